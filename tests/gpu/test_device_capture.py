"""Functions on arrays of CuPy are captured, guarded and kept as those on arrays of NumPy are, for one device each."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from cupy_double import on_double, tolerance

from dy2static import SaveError, save, to_static


class MLP(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1, self.l2 = L.Linear(6, 5), L.Linear(5, 3)

    def forward(self, x):
        return self.l2(F.relu(self.l1(x)))


def loss_of(model, x, t):
    return F.softmax_cross_entropy(model(x), t)


def on_device(number=0):
    import numpy_on_double
    model = MLP()
    model.to_device(f"@cupy:{number}")
    with chainer.get_device(f"@cupy:{number}").create_context():
        x = numpy_on_double.array(4, 6)
        return model, x, chainer.get_device(f"@cupy:{number}").send(np.array([0, 2, 1, 1], np.int32))


def trained(function, model, *args):
    model.cleargrads()
    loss = function(model, *args)
    loss.backward()
    return loss, {name: p.grad for name, p in model.namedparams()}


@on_double
def test_a_loss_and_its_gradients_stay_on_the_device():
    cupy = chainer.backends.cuda.cupy
    model, x, t = on_device()
    static = to_static(loss_of, strict=True)
    loss, gradients = trained(loss_of, model, x, t)
    for _ in range(2):
        made, found = trained(static, model, x, t)
        assert type(made.array) is cupy.ndarray and made.shape == () and float(made.array) == pytest.approx(float(loss.array), rel=tolerance(1e-6))
        assert all(type(g) is cupy.ndarray for g in found.values())
        for name, g in found.items():
            np.testing.assert_allclose(g.get(), gradients[name].get(), rtol=tolerance(1e-5), atol=tolerance(1e-7))
    assert static.stats()["programs"] == static.stats()["segments"] == 1


@on_double
def test_an_optimizer_of_chainers_updates_on_the_device():
    losses = []
    for function in (loss_of, to_static(loss_of, strict=True)):
        np.random.seed(0)
        model, x, t = on_device()
        optimizer = chainer.optimizers.Adam().setup(model)
        losses.append([])
        for _ in range(3):
            losses[-1].append(float(trained(function, model, x, t)[0].array))
            optimizer.update()
    np.testing.assert_allclose(losses[0], losses[1], rtol=tolerance(1e-5))
    assert losses[0][2] < losses[0][0]


@on_double
def test_each_device_has_its_program():
    static = to_static(loss_of, strict=True)
    model, x, t = on_device()
    wanted = float(static(model, x, t).array)
    model.to_cpu()
    loss = static(model, x.get(), t.get())
    assert type(loss.array) is np.ndarray and float(loss.array) == pytest.approx(wanted, rel=tolerance(1e-6))
    model.to_device("@cupy:0")
    assert float(static(model, x, t).array) == pytest.approx(wanted, rel=tolerance(1e-6)) and static.stats()["captures"] == 2
    guards = [guard.describe() for guard in static.program(model, x, t).guards]
    assert "argument 1: ndarray (4, 6) float32 on cupy:0" in guards


@on_double
def test_programs_for_a_gpu_are_not_saved(tmp_path):
    model, x, _ = on_device()
    model = to_static(model, strict=True)
    model(x)
    with pytest.raises(SaveError, match="cupy:0"):
        save(model, tmp_path / "saved")

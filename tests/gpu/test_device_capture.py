"""Functions on arrays of CuPy are captured, guarded and kept as those on arrays of NumPy are, for one device each."""
import contextlib

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from cupy_double import on_device as has_one_device
from cupy_double import on_double, tolerance

from dy2static import SaveError, save, to_static
from dy2static.native import compiler, library
from dy2static.program import hotpath
from dy2static.runtime import array_writes, guard_tests, node
from dy2static.runtime.program import MISS


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


@contextlib.contextmanager
def native():
    """Native code in the places of Python functions, and the Python functions of these names."""
    hotpath.stop()
    in_python = node.make_variable, array_writes.overlap
    hotpath.start()
    try:
        yield in_python
    finally:
        hotpath.stop()


@pytest.mark.skipif(not compiler.available() or bool(library._problem()), reason="there is no C compiler on this machine, or another Python")
@on_double
def test_native_code_checks_arrays_of_a_gpu():
    """The table of guards says what Python says of arrays of other shapes, dtypes, devices, and libraries; Variables are made alike."""
    model, x, t = on_device()
    with native() as (make_variable, _):
        static = to_static(loss_of, strict=True)
        loss = static(model, x, t)
        found = static.dispatcher.programs[0].call.__globals__.values()
        table, = [value for value in found if type(value) is guard_tests.GuardTable]
        others = [(model, x[:2], t), (model, x.astype("d"), t), (model, x.get(), t), (model, x, t.get())]
        if not has_one_device():
            other, elsewhere, _ = on_device(1)
            others += [(other, x, t), (model, elsewhere, t)]
        for args, holds in [((model, x, t), True), *[(args, False) for args in others]]:
            found, expected = guard_tests.check(table, args, {}), table.python(args, {})
            assert (found is not MISS) == (expected is not MISS) == holds
            assert not holds or all(a is b or a == b for a, b in zip(found, expected))
        made, again = node.make_variable(x, True), make_variable(x, True)
        assert type(loss.array) is type(x) and made.shape == (4, 6) and made.dtype == np.float32 and made.array is x
        assert vars(made).keys() == vars(again).keys() and vars(made.node).keys() == vars(again.node).keys()


@pytest.mark.skipif(not compiler.available() or bool(library._problem()), reason="there is no C compiler on this machine, or another Python")
@on_double
def test_native_code_sees_shared_memory_on_a_gpu():
    x, y = on_device()[1], on_device()[1]
    with native() as (_, overlap):
        for written, others in (
                ((x,), (y,)), ((x, y), ()), ((x,), (x,)), ((x, x), ()), ((x,), (x[1:],)), ((x[:2],), (x[2:],)), ((x[:3],), (x[2:],)),
                ((x.T,), (y,)), ((x.T,), (x[1:],)), ((x[:, ::2],), (x,)), ((x[:0],), (x,)), ((x,), (x.get(),)), ((x.get(),), (x,))):
            assert array_writes.overlap(written, others) is overlap(written, others)


@on_double
def test_programs_for_a_gpu_are_not_saved(tmp_path):
    model, x, _ = on_device()
    model = to_static(model, strict=True)
    model(x)
    with pytest.raises(SaveError, match="cupy:0"):
        save(model, tmp_path / "saved")

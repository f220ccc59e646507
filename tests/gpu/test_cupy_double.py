"""The stand-in for CuPy keeps CuPy's rules, and Chainer trains on it.  On a device: CuPy has these rules."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from cupy_double import on_device, on_double, tolerance

cupy = chainer.backends.cuda.cupy
A = np.arange(6, dtype=np.float32).reshape(2, 3)


@on_double
def test_numpy_cannot_see_the_elements():
    a = cupy.array(A)
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(a)
    for wrong in (lambda: a + A, lambda: A + a, lambda: cupy.add(a, A), lambda: cupy.concatenate([a, a], out=A)):
        with pytest.raises(TypeError, match="Unsupported type|incorrect type"):
            wrong()
    assert type(np.exp(a)) is type(np.sum(a)) is cupy.ndarray


@on_double
def test_results_without_axes_are_arrays():
    a = cupy.array(A)
    assert [type(x) for x in (a.sum(), a[0, 0], cupy.max(a), a.mean() * 2, -a.sum(), cupy.allclose(a, a))] == [cupy.ndarray] * 6
    assert (a * cupy.array(2, np.float64)).dtype == (a.sum() * cupy.ones(3)).dtype == np.float64
    assert cupy.clip(a.sum(), None, 1).dtype == cupy.clip(a.sum(), 0, 1.5).dtype == (a * 2.5).dtype == np.float32 and isinstance(a.size, int)


@on_double
def test_indices_wrap_and_nothing_is_warned_of():
    a = cupy.array(A)
    assert a[cupy.array([0, 2])].tolist() == a[cupy.array([0, 0])].tolist() == a.take(cupy.array([-2, 4]), 0).tolist()
    a[a > 3] = cupy.array([7, 8], np.float32)
    assert a.tolist() == [[0, 1, 2], [3, 7, 8]]
    with np.errstate(all="raise"):
        assert np.isnan(float(cupy.log(a - 9).sum())) and int(cupy.array(1) // 0) == 0
    with pytest.raises(IndexError):
        a[2]


@on_double
def test_keywords_and_names_are_those_of_cupy():
    a = cupy.array(A)
    with pytest.raises(TypeError, match="where"):
        cupy.exp(a, where=a > 1)
    with pytest.raises(TypeError, match="where"):
        a.sum(where=a > 1)
    for name in ("errstate", "lexsort2", "float128"):
        with pytest.raises(AttributeError):
            getattr(cupy, name)


@pytest.mark.stand_in("it has two devices that cannot reach each other")
@on_double
def test_there_are_two_devices():
    a = cupy.array(A)
    with cupy.cuda.Device(1):
        b = cupy.array(A)
        with pytest.raises(ValueError, match="array device = 0 while current = 1"):
            a + b
    assert (a.device.id, b.device.id, b[0].device.id, cupy.cuda.Device().id) == (0, 1, 1, 0)
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):
        cupy.cuda.Device(2).use()
    assert chainer.get_device("@cupy:1").send(a).device.id == 1


@on_double
def test_random_numbers_depend_on_the_order_of_draws_and_the_dtype():
    def drawn(*dtypes):
        cupy.random.seed(3)
        return [cupy.random.rand(2, dtype=dtype).tolist() for dtype in dtypes]
    assert drawn("f", "f") == drawn("f", "f") and drawn("f", "f")[0] != drawn("f", "f")[1]
    assert drawn("f", "f")[1] == drawn("d", "f")[1] and drawn("f")[0] != drawn("d")[0]


@on_double
def test_kernels_compute_what_their_text_says():
    scaled = cupy.ElementwiseKernel("T x, raw T y, int32 n", "T z", "z = x * y[i % n]", "scaled")
    assert scaled(cupy.array(A), cupy.array([1, 10, 100], np.float32), 3).tolist() == (A * [1, 10, 100]).tolist()
    squares = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = a", "0", "squares")
    assert squares(cupy.array(A), axis=0).tolist() == (A * A).sum(0).tolist()
    assert squares(cupy.array(A), axis=1, keepdims=True).shape == (2, 1) and float(squares(cupy.array(A))) == (A * A).sum()
    into = cupy.zeros((3, 2), np.float32).T
    cupy.ElementwiseKernel("T x", "T y", "y = x", "copied")(cupy.array(A), into)
    assert into.tolist() == A.tolist()


@pytest.mark.stand_in("allocations fail where a test wants it")
@on_double
def test_memory_can_run_out():
    cupy.memory.refused.add(cupy.memory.allocations + 1)
    a = cupy.array(A)
    with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
        a + a
    assert (a + a).tolist() == (A + A).tolist() and a[0].base is a and a.base is None


class Network(chainer.Chain):
    """Convolution, normalizations, a look-up and products."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv, self.bn = L.Convolution2D(1, 3, 3, nobias=True), L.BatchNormalization(3)
            self.embed, self.ln = L.EmbedID(5, 12), L.LayerNormalization(12)
            self.out = L.Linear(12, 4)

    def forward(self, x, i):
        h = F.max_pooling_2d(F.relu(self.bn(self.conv(x))), 2)
        return self.out(F.leaky_relu(self.ln(F.reshape(h, (len(x), -1)) + self.embed(i))))


def trained(device, optimizer):
    rng = np.random.RandomState(0)
    model = Network()
    for _, parameter in sorted(model.namedparams()):
        parameter.array[...] = rng.standard_normal(parameter.shape) * 0.3
    model.to_device(device)
    optimizer.setup(model)
    x, i, t = (chainer.get_device(device).send(a) for a in (rng.rand(6, 1, 6, 6).astype("f"), np.arange(6) % 5, np.arange(6) % 4))
    for _ in range(3):
        loss = F.softmax_cross_entropy(model(x, i), t)
        model.cleargrads()
        loss.backward()
        optimizer.update()
    model.to_cpu()
    return [chainer.get_device("@numpy").send(loss.array), *(p.array for _, p in sorted(model.namedparams()))]


@pytest.mark.parametrize("name", ["SGD", "MomentumSGD", "Adam"])
@on_double
def test_chainer_trains_on_it_as_on_the_processor(name):
    optimizer = getattr(chainer.optimizers, name)
    for there, here in zip(trained("@cupy:0" if on_device() else "@cupy:1", optimizer()), trained("@numpy", optimizer())):
        assert type(there) is np.ndarray
        np.testing.assert_allclose(there, here, rtol=tolerance(1e-4), atol=tolerance(2e-5))

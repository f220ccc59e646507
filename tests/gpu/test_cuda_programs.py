"""Programs on CuPy arrays whose regions are kernels: arrays are those of the stand-in for CuPy, and kernels are emulated."""
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from cupy_double import on_device, on_double, tolerance
from models_on_double import compare
from numpy_on_double import array

from dy2static import FallbackWarning, config, to_static
from dy2static.backends.cuda.backend import CudaBackend
from dy2static.backends.cupy.backend import CUPY
from dy2static.backends.registry import OF_LIBRARY, register
from dy2static.errors import BackendError
from dy2static.native import announce
from dy2static.native.emulated import missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

cupy = chainer.backends.cuda.cupy

#: Models of the zoo, and how many kernels two steps of training launch, at least.
MODELS = {"MLP": 12, "VAE": 40, "MAML: two inner steps, second order": 60, "CNN: batch normalisation, dropout": 80}


class Launches:
    """What an emulated device is asked to do while this is its block."""

    def __init__(self, number=0):
        self.device = OF_LIBRARY["cupy", True].device(number)

    def __enter__(self):
        self.launched, self.products = self._counts()
        return self

    def __exit__(self, *args):
        launched, products = self._counts()
        self.launched, self.products = launched - self.launched, products - self.products

    def kernels(self, least, most=1000):
        """Whether so many kernels were launched, where that is known."""
        return on_device() or least <= self.launched <= most

    def _counts(self):
        return (0, 0) if on_device() else (self.device.launched, self.device.products)


def compiled(function):
    return to_static(function, backend="c", strict=True)


def check(function, *arrays, rtol=1e-5):
    """Compare a compiled function with eager mode; gives what was launched in the second call."""
    static = compiled(function)
    static(*arrays)
    with Launches(arrays[0].device.id) as seen:
        results = static(*arrays)
    for one, other in zip(*[x if isinstance(x, tuple) else (x,) for x in (results, function(*arrays))]):
        one, other = getattr(one, "array", one), getattr(other, "array", other)
        assert type(one) is type(other) and one.device == other.device
        np.testing.assert_allclose(one.get(), other.get(), rtol=tolerance(rtol), atol=tolerance(1e-6) - 1e-6)
    return seen


@pytest.mark.parametrize("name", MODELS)
@on_double
def test_model(name):
    with Launches() as seen:
        compare(name, backend="c")
    assert seen.kernels(MODELS[name])


def perceptron(device):
    """The losses, parameters and gradients of three steps of Adam."""
    np.random.seed(0)
    model = L.Classifier(chainer.Sequential(L.Linear(6, 16), L.LayerNormalization(16), F.relu, L.Linear(16, 4)))
    model.to_device(device)
    optimizer = chainer.optimizers.Adam().setup(model)
    forward = compiled(model.forward)
    random = np.random.RandomState(1)
    x, t = chainer.get_device(device).send((random.rand(10, 6).astype("f"), random.randint(0, 4, 10).astype("i")))
    found = []
    for _ in range(3):
        loss = forward(x, t)
        model.cleargrads()
        loss.backward()
        optimizer.update()
        arrays = [loss.array, *[array for p in model.params() for array in (p.array, p.grad)]]
        found += [np.array(chainer.backends.cuda.to_cpu(array)) for array in arrays]
    return found


@on_double
def test_a_perceptron_trains_as_on_the_host():
    with Launches() as seen:
        found = perceptron("@cupy:0")
    for one, other in zip(found, perceptron("@numpy")):
        np.testing.assert_allclose(one, other, rtol=tolerance(1e-5), atol=tolerance(4e-6))
    assert on_device() or 3 * 14 <= seen.launched <= 3 * 15 and seen.products == 3 * 5         # a bias is part of a product, as alignments allow


@on_double
def test_one_region_is_one_line_and_few_launches():
    """Elementwise work of any length is one kernel; the text shows its call."""
    static = compiled(lambda x, y: F.sum(F.tanh(x * 2 + y) * F.sigmoid(x) - 1, axis=1))
    static(array(7, 9), array(7, 9, seed=1))
    with Launches() as seen:
        static(array(7, 9), array(7, 9, seed=1))
    assert seen.kernels(1, 1)
    (program,) = static.dispatcher.programs
    assert program.source.count("native(") == 1 and "cp.tanh" not in program.source
    assert "__global__" in program.native_code


@on_double
def test_arrays_with_any_strides():
    x = array(12, 10)
    assert check(lambda x: F.exp(x) + x.T.sum(), x[::2, 1::3]).kernels(1)
    assert check(lambda x: F.softmax(F.transpose(x)), x).kernels(1)
    assert check(lambda x: (x + 1, F.transpose(x)[2:5, ::2], x), x).kernels(1)


@on_double
def test_chains_use_memory_again():
    def function(x, w):
        y = x
        for _ in range(4):
            y = F.softmax(F.matmul(y, w, transb=True)) + F.broadcast_to(F.sum(y, axis=0), y.shape)
        return y
    assert check(function, array(40, 40), array(40, 40, seed=1), rtol=2e-5).products == (0 if on_device() else 4)


@on_double
def test_control_flow_on_values():
    def function(x):
        n = 0
        while F.sum(x).array < 100:
            x = F.exp(x) * 1.5 + x
            n += 1
        return x / n
    assert check(function, array(5, 5)).kernels(1)


@on_double
def test_float16_is_rounded_after_each_operation():
    """As in eager mode, also where one kernel computes several operations; sums are rounded once."""
    def function(x, y):
        z = (x * y + 1.7) / (x * 0.3 + y * y) - x
        return z * z * 0.1 + z
    x, y = (array(700, 30, dtype=np.float16, seed=seed) for seed in (0, 1))
    assert check(function, x, y, rtol=0).kernels(1, 1)
    assert check(lambda x: F.tanh(F.softmax(x)) * 2, x, rtol=2e-3).kernels(1, 1)
    assert check(lambda x: F.sum(x * x), x, rtol=1e-3).kernels(1)


@on_double
def test_models_in_float16():
    """Values and gradients of a classifier; the convolution, the product and the normalization compute in float32 inside."""
    def trained(function):
        with chainer.using_config("dtype", np.float16):
            np.random.seed(0)
            model = chainer.Sequential(L.Convolution2D(3, 4, 3), L.BatchNormalization(4), F.relu, L.Linear(36, 5))
        model.to_device("@cupy:0")
        loss = function(model)(array(6, 3, 5, 5, dtype=np.float16), array(6, dtype=np.int32))
        loss.backward()
        return [loss.array.get(), *[p.grad.get() for p in model.params()]]
    def function(model):
        return lambda x, t: F.softmax_cross_entropy(model(x), t)
    with Launches() as seen:
        found = trained(lambda model: compiled(function(model)))
    assert seen.kernels(11)
    for one, other in zip(found, trained(function)):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2e-2, atol=2e-3)


@on_double
def test_calls_of_cupy_between_kernels():
    assert check(lambda x: cupy.sort(F.exp(x).array, axis=1) * F.sigmoid(x), array(4, 6)).kernels(1)


@pytest.mark.devices(2)
@on_double
def test_another_device():
    with chainer.using_device("@cupy:1"):
        x = array(5, 4)
    assert check(lambda x: F.log_softmax(F.tanh(x) * 3), x).kernels(1)


@on_double
def test_arrays_of_the_host_between():
    def function(x):
        y = chainer.backends.cuda.to_cpu(F.exp(x).array)
        return F.tanh(x) + chainer.backends.cuda.to_gpu(np.sqrt(y) * 2)
    assert check(function, array(5, 4)).kernels(1)


@pytest.mark.stand_in("it counts launches, which only the emulator does")
@on_double
def test_auto_begins_with_calls_of_cupy():
    static = to_static(lambda x: F.tanh(x) * 2 + 1, strict=True, backend="auto")
    counts = []
    with config.NATIVE_AFTER.set(2), config.BACKGROUND.set(0):
        for _ in range(5):
            with Launches() as seen:
                static(array(3, 4))
            counts.append(seen.launched)
    assert counts == [0, 0, 1, 1, 1]


@on_double
def test_numpy_means_calls_of_cupy():
    with Launches() as seen:
        to_static(lambda x: F.tanh(x) * 2, backend="numpy", strict=True)(array(3, 4))
    assert not seen.launched


@on_double
def test_without_a_compiler_for_kernels():
    class NoDevice:
        def __init__(self, number):
            raise BackendError("there is no NVRTC")
    before = OF_LIBRARY["cupy", True]
    register(CudaBackend(NoDevice))
    announce.forget()
    try:
        with pytest.warns(FallbackWarning, match="run as calls of CuPy.*no NVRTC"):
            result = compiled(lambda x: F.tanh(x) * 2)(array(3, 4))
    finally:
        register(before)
    np.testing.assert_allclose(result.array.get(), np.tanh(array(3, 4).get()) * 2, rtol=1e-6)


@on_double
def test_whole_steps():
    """Updates are calls of CuPy beside the kernels."""
    from test_device_updates import step, trained
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, (losses, arrays, count, _) = trained(step, "Adam", None), trained(compiled(step), "Adam", None)
    np.testing.assert_allclose(losses, expected[0], rtol=1e-4)
    for one, other in zip(arrays, expected[1]):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-6)
    assert count == 4 and CUPY.library.number == -1


@on_double
def test_the_profile_names_kernels_by_their_lines():
    def function(x, w):
        y = F.matmul(x, w)
        y = F.tanh(y) * 2
        return cupy.sort(y.array, axis=1)
    static = compiled(function)
    x, w = array(6, 5), array(5, 4)
    with static.profile() as profile:
        for _ in range(3):
            static(x, w)
    first = function.__code__.co_firstlineno
    assert {(record.library, record.calls, tuple([place.line - first for place in record.places]))
            for record in profile.records if record.library} == {("CUDA", 3, (1,)), ("CUDA", 3, (2,)), ("CuPy", 3, (3,))}
    assert "CUDA" in str(profile)

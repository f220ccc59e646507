"""Products that cublasLt finishes with a bias and ReLU: which ones, and what happens where it cannot."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from cupy_double import on_device, on_double
from emulated_graphs import array, case, run

from dy2static import to_static
from dy2static.backends.cuda.program.steps import Finished, Launch, Product
from dy2static.backends.registry import OF_LIBRARY
from dy2static.check_gpu.samples import kernels_of
from dy2static.ir.op import OPS
from dy2static.native import launcher
from dy2static.native.emulated import EmulatedDevice, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

cupy = chainer.backends.cuda.cupy


def linear(x, w, b):
    y = OPS["matmul"](x, w, transa=False, transb=True)
    return OPS["add"](y, OPS["broadcast_to"](b, shape=y.shape))


def layer(x, w, b):
    return OPS["relu"](linear(x, w, b))


def operands(dtype=np.float32):
    return array(4, 5, dtype=dtype), array(6, 5, dtype=dtype, seed=1), array(6, dtype=dtype, seed=2)


def reshaped(x, w, b):
    """As a linear link has it for more than one batch axis."""
    y = OPS["reshape"](linear(OPS["reshape"](x, shape=(4, 5)), w, b), shape=(2, 2, 6))
    return OPS["relu"](y)


def kept(x, w, b):
    y = linear(x, w, b)
    return OPS["relu"](y), y


def product_kept(x, w, b):
    y = OPS["matmul"](x, w, transa=False, transb=True)
    return OPS["add"](y, OPS["broadcast_to"](b, shape=y.shape)), y


#: Functions, and whether ReLU and bias are part of the product, or only the bias, or nothing.
FUNCTIONS = {"bias": (linear, False), "bias and ReLU": (layer, True), "reshaped": (reshaped, False), "sum kept": (kept, None),
             "product kept": (product_kept, None), "tanh": (lambda *xs: OPS["tanh"](linear(*xs)), None),
             "matrix": (lambda x, w, b: OPS["add"](OPS["matmul"](x, w, transa=False, transb=True), array_of(b)), None)}


def array_of(b):
    return OPS["concat"](*[OPS["reshape"](b, shape=(1, 6))] * 4, axis=0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_finished(name):
    function, relu = FUNCTIONS[name]
    x, w, b = operands()
    one, device = case(function, x.reshape(2, 2, 5) if name == "reshaped" else x, w, b), EmulatedDevice()
    steps = one.region.function.steps
    assert [step.relu for step in steps if isinstance(step, Finished)] == ([] if relu is None else [relu])
    assert run(one, device) == "" and device.products == 1
    assert device.state.finished == (relu is not None) and (device.launched == 0 or relu is None or name == "reshaped")


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_only_float32(dtype):
    """Eager mode rounds products of float16 before it adds the bias."""
    one = case(layer, *operands(dtype))
    assert [type(step) for step in one.region.function.steps] == [Product, Launch]


@pytest.mark.parametrize("name", ["no algorithm", "NaN is lost", "no memory", "no cuBLAS"])
def test_without_it_there_is_a_product_and_a_kernel(name, monkeypatch):
    one, device = case(layer, *operands()), EmulatedDevice()
    device.state.finish_status = 15 * (name == "no algorithm")
    device.state.loses_nan = name == "NaN is lost"
    if name == "no memory":
        place = device.place(True)
        monkeypatch.setattr(device, "launcher", small_launcher(device))
        device.place = lambda products: place
    elif name == "no cuBLAS":
        monkeypatch.setattr(device.launcher(), "kinds", frozenset(launcher.KINDS) - {"product", "finished"})
    for _ in range(2):
        assert run(one, device) == ""
    assert device.state.finished == 0 and device.launched == device.products == 2


def small_launcher(device):
    """A launcher whose workspace has no place for a bias of NaN."""
    from dy2static.native import emulated
    state = emulated.ctypes.addressof(device.state)
    made = launcher.Launcher(emulated.ctypes.addressof(emulated._table()), state, state, 64, state)
    return lambda: made


@pytest.mark.parametrize("loses", [0, 1])
def test_nan_stays_nan(loses):
    x, w, b = operands()
    x[1] = np.nan
    b[2] = np.nan
    one, device = case(layer, x, w, b), EmulatedDevice()
    device.state.loses_nan = loses
    (found,) = one.run(device, device.load(kernels_of([one])))
    np.testing.assert_allclose(found, np.maximum(x @ w.T + b, 0), rtol=1e-5)
    assert np.isnan(found).sum() == 6 + 3


def test_other_alignments_and_modes_are_chosen_for_anew():
    """The emulator refuses addresses that are less aligned than was said when the algorithm was chosen."""
    x, w, b = operands()
    one, device = case(layer, x, w, b), EmulatedDevice()
    assert run(one, device) == ""
    place, memory = device.place(True), np.zeros(64, np.float32)
    for k in (0, 1, 2, 3, 0):
        view = memory[k:k + 20].reshape(4, 5)
        view[...] = x
        out = np.zeros((4, 6), np.float32)
        device.place = lambda products, k=k: place._replace(modes=7 << 8 if k == 2 else 0)
        one.region.call(view, w, b, out)
        np.testing.assert_allclose(out, np.maximum(x @ w.T + b, 0), rtol=1e-5)
        assert device.state.compute == (77 if k == 2 else 68)
    assert device.state.finished == 6


def test_it_is_part_of_graphs():
    def network(x, w, b, v, c):
        return linear(layer(x, w, b), v, c)
    arrays = (*operands(), array(3, 6, seed=3), array(3, seed=4))
    def whole(*xs):
        return OPS["tanh"](network(*xs))
    one, device = case(whole, *arrays), EmulatedDevice()
    assert run(one, device) == ""
    out, scratch = np.zeros((4, 3), np.float32), np.zeros(one.region.function.scratch, np.uint8)
    for _ in range(4):
        one.region.call(*arrays, out, *([scratch] if scratch.size else []))
        np.testing.assert_allclose(out, one.expected[0], rtol=1e-5)
    (only,) = one.region.runs
    assert only.region.counts.replayed == 3 and device.state.finished > 3


def test_graphs_are_for_alignments():
    """A batch that is aligned otherwise may be computed by other kernels: no graph is set anew for it, it has one of its own."""
    def network(x, w, b, v):
        return OPS["tanh"](OPS["matmul"](layer(x, w, b), v))
    arrays = (*operands(), array(6, 3, seed=3))
    one, device = case(network, *arrays), EmulatedDevice()
    assert run(one, device) == ""
    memory = np.zeros(128, np.float32)
    begin = -memory.ctypes.data % 256 // 4
    out, scratch = np.zeros((4, 3), np.float32), np.zeros(one.region.function.scratch, np.uint8)
    for offset in (0, 0, 0, 4, 8, 1, 1, 1, 0, 3):
        x = memory[begin + offset:begin + offset + 20].reshape(4, 5)
        x[...] = arrays[0]
        one.region.call(x, *arrays[1:], out, scratch)
        np.testing.assert_allclose(out, one.expected[0], rtol=1e-5)
    counts = one.region.runs[-1].region.counts
    assert (counts.plain, counts.built, counts.patched, counts.failures) == (3, 2, 4, 0)       # the first is that of `run`


def finished(device):
    """How many products an emulated device has computed together with what follows them."""
    return 0 if on_device() else device.state.finished


@on_double
def test_a_model_with_relu():
    """Forward and backward of two layers are those of eager mode."""
    np.random.seed(0)
    model = chainer.Sequential(L.Linear(6, 16), F.relu, L.Linear(16, 4))
    model.to_device("@cupy:0")
    static, device = to_static(model.__call__, backend="c", strict=True), OF_LIBRARY["cupy", True].device(0)
    x, before, found = cupy.array(np.random.rand(10, 6).astype("f")), finished(device), []
    for function in (static, static, static, model):
        model.cleargrads()
        F.sum(function(x) ** 2).backward()
        found.append([p.grad.get() for p in model.params()])
    assert on_device() or finished(device) >= before + 3
    for other in found[:3]:
        for one, wanted in zip(other, found[3]):
            np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-6)

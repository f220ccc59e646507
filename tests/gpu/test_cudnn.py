"""Convolutions by cuDNN: an emulated library with the same functions computes them; its results are those of products of patches."""
import contextlib
import ctypes
import gc
import itertools

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from cupy_double import on_device, on_double, tolerance
from emulated_graphs import case, run

from dy2static import config, to_static
from dy2static.backends.cuda.launches.region import DeviceRegion
from dy2static.backends.cuda.program.steps import Convolve
from dy2static.check_gpu.samples import difference, graphs, meaning
from dy2static.ir.op import OPS
from dy2static.native import cudnn, store
from dy2static.native.cudnn import FILTERS, FORWARD, IMAGE, Convolution, Cudnn, CudnnError, Mode
from dy2static.native.emulated import EmulatedDevice, EmulationError, emulated_cudnn, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

cupy = chainer.backends.cuda.cupy

FLOAT, DOUBLE, HALF = map(np.dtype, "fde")


def plain(kind=FORWARD, dtype=FLOAT, image=(2, 3, 5, 5), filters=(4, 3, 3, 3), result=(2, 4, 3, 3), groups=1):
    return Convolution(kind, dtype, image, filters, result, (1, 1), (0, 0), (1, 1), groups)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["conv", "conv_transpose", "conv_grad_weight"])
def test_samples_of_ops(name, dtype):
    device, done = EmulatedDevice(library=emulated_cudnn()), 0
    for _, graph, operands in graphs(OPS[name], dtype, 100):
        if 0 in graph.outputs[0].shape:
            continue
        region = DeviceRegion(graph, device.plan)
        if any(type(step) is not Convolve for step in region.function.steps):
            continue                                               # windows that reach beyond the padding
        region.load(device, {})
        out = np.full(graph.outputs[0].shape, 77, graph.outputs[0].dtype)
        region.call(*operands, out, np.full(region.function.scratch, 255, np.uint8))
        assert not difference(graph, [out], meaning(graph, operands))
        done += 1
    assert done >= 3


def test_descriptors_live_as_long_as_the_plan():
    library = emulated_cudnn()
    gc.collect()
    before = library.dy_cudnn_living()
    convolutions = Cudnn(library)
    assert convolutions.plan(plain()) is convolutions.plan(plain()) is not None
    assert convolutions.plan(plain()).workspace == 4096
    assert library.dy_cudnn_living() == before + 5                 # three arrays, the convolution with and without TF32
    del convolutions
    gc.collect()
    assert library.dy_cudnn_living() == before


@pytest.mark.parametrize("asked", [
    plain(image=(2, 3, 6, 6)), plain(dtype=np.dtype("int32")), plain(image=(1, 1, 1, 2 ** 31), filters=(1, 1, 1, 1), result=(1, 1, 1, 2 ** 31)),
    Convolution(FORWARD, FLOAT, (1, 1, 2, 2, 2, 2), (1, 1, 1, 1, 1, 1), (1, 1, 2, 2, 2, 2), (1,) * 4, (0,) * 4, (1,) * 4, 1),
    plain(groups=2), plain(filters=(4, 2, 3, 3))], ids=["windows that end early", "ints", "large", "four sizes", "groups", "channels"])
def test_what_cudnn_does_not_compute(asked):
    assert Cudnn(emulated_cudnn()).plan(asked) is None


def test_float32_is_rounded_only_where_that_is_asked_for():
    library = emulated_cudnn()
    convolutions = Cudnn(library)
    before = library.dy_cudnn_rounded()
    for dtype, is_rounded, rounded in ((FLOAT, False, 0), (FLOAT, True, 1), (DOUBLE, True, 1), (HALF, True, 1)):
        made = convolutions.plan(plain(dtype=dtype))
        x, w, y, work = np.ones((2, 3, 5, 5), dtype), np.ones((4, 3, 3, 3), dtype), np.zeros((2, 4, 3, 3), dtype), np.zeros(4096, "b")
        convolutions.run(made, 0, Mode(is_rounded), [a.ctypes.data for a in (x, w, y)], work.ctypes.data)
        assert (y == 27).all() and library.dy_cudnn_rounded() == before + rounded


def test_errors_of_cudnn_are_said():
    convolutions = Cudnn(emulated_cudnn())
    with pytest.raises(CudnnError, match="error 5000, CUDNN_STATUS_EXECUTION_FAILED"):
        convolutions.run(convolutions.plan(plain()), 0, Mode(), (0, 0, 0), 0)


class Described(cudnn.Plan):
    """A plan without algorithms, which only a GPU has: cuDNN says how large the result of a convolution is."""

    def _fastest(self, handle, asked, math_type, timer):
        sizes = (ctypes.c_int * len(asked.result))()
        made = self._described(asked, math_type)
        if asked.kind == FORWARD:
            function = self._library.cudnnGetConvolutionNdForwardOutputDim
            function.argtypes = (*[ctypes.c_void_p] * 3, ctypes.c_int, ctypes.c_void_p)
            cudnn.check(self._library, function(made, *self.operands[:2], len(sizes), sizes))
            assert tuple(sizes) == asked.result
        return (cudnn.Choice(made.value, 0, 0),) * 2


def test_cudnn_that_is_installed_takes_the_descriptors():
    library = cudnn.found()
    if library is None:
        pytest.skip("there is no cuDNN (python -m pip install nvidia-cudnn-cu13)")
    for dtype, kind in itertools.product((FLOAT, DOUBLE, HALF), (FORWARD, IMAGE, FILTERS)):
        for asked in (plain(kind, dtype), Convolution(kind, dtype, (2, 4, 9), (6, 2, 3), (2, 6, 5), (2,), (1,), (1,), 2),
                      Convolution(kind, dtype, (2, 4, 9, 8, 7), (4, 1, 3, 2, 3), (2, 4, 5, 4, 3), (2, 2, 2), (1, 0, 1), (1, 1, 2), 4)):
            assert asked.is_expressible()
            Described(library, None, asked.of_two_sizes())


def network(device):
    """Losses and gradients of two steps of a network with all kinds of convolutions, compiled and in eager mode."""
    def forward(model, x):
        h = F.relu(model.first(x))
        h = F.relu(model.grouped(h)) + F.relu(model.dilated(h))
        h = F.convolution_nd(F.reshape(model.up(h), (3, 2, -1)), model.line, stride=2, pad=1)
        return F.sum(h * h)

    np.random.seed(0)
    model = chainer.Chain(
        first=L.Convolution2D(2, 4, 3, stride=2, pad=1), grouped=L.Convolution2D(4, 4, 3, pad=1, groups=4),
        dilated=L.DilatedConvolution2D(4, 4, 3, pad=2, dilate=2), up=L.Deconvolution2D(4, 2, 4, stride=2, pad=1))
    with model.init_scope():
        model.line = chainer.Parameter(np.random.rand(3, 2, 5).astype("f"))
    model.to_device(device)
    x = chainer.get_device(device).send(np.random.RandomState(1).rand(3, 2, 9, 9).astype("f"))
    found = []
    for function in (to_static(forward, backend="c", strict=True), forward):
        for _ in range(2):
            model.cleargrads()
            loss = function(model, x)
            loss.backward()
        found.append([loss.array.get(), *[parameter.grad.get() for _, parameter in sorted(model.namedparams())]])
    return found


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.devices(2))], ids=["cuDNN", "no cuDNN"])
@on_double
def test_a_network_trains_as_in_eager_mode(number):
    library = emulated_cudnn()
    before = library.dy_cudnn_computed()
    for actual, expected in zip(*network(f"@cupy:{number}")):
        np.testing.assert_allclose(actual, expected, rtol=tolerance(1e-4))
    assert on_device() or library.dy_cudnn_computed() - before == (0 if number else 2 * 14)


def squared(x, w):
    """A convolution between kernels, and its gradient by the image."""
    y = OPS["tanh"](OPS["conv"](OPS["tanh"](x), w, size=(3, 3)))
    return OPS["exp"](OPS["conv_transpose"](y, w, size=(5, 5)))


def test_the_launcher_computes_them_and_replays_them_in_graphs():
    library, random = emulated_cudnn(), np.random.RandomState(0)
    device, one = EmulatedDevice(library=library), case(squared, random.rand(2, 3, 5, 5).astype("f"), random.rand(4, 3, 3, 3).astype("f"))
    one.region = DeviceRegion(one.graph, device.plan)
    before, rounded = library.dy_cudnn_computed(), library.dy_cudnn_rounded()
    assert run(one, device) == "" and library.dy_cudnn_computed() == before + 2
    (steps,) = one.region.runs
    x, w = one.operands
    out, scratch = np.zeros_like(one.expected[0]), np.zeros(one.region.scratch, np.uint8)
    for device.is_rounded in (False, False, False, True, True, True):
        out[...], scratch[...] = 77, 255
        one.region.call(x, w, out, scratch)
        assert not one.difference([out])
    assert library.dy_cudnn_computed() == before + 14 and library.dy_cudnn_rounded() == rounded + 6
    assert steps.region.counts._asdict() == {"plain": 3, "replayed": 4, "built": 2, "patched": 0, "failures": 0}


def test_a_convolution_that_fails_in_the_launcher():
    device = EmulatedDevice(library=emulated_cudnn())
    one = case(lambda x, w: OPS["conv"](x, w, size=(3, 3)), np.ones((2, 3, 5, 5), "f"), np.ones((4, 3, 3, 3), "f"))
    one.region = DeviceRegion(one.graph, device.plan)
    one.region.load(device, {})
    (step,) = one.region.function.steps
    emulated_cudnn().cudnnDestroyConvolutionDescriptor(step.plan.choices[Mode()].descriptor)
    with pytest.raises(EmulationError, match="cudnn reports error 2000") as failed:
        one.region.call(*one.operands, np.zeros((2, 4, 3, 3), "f"), np.zeros(one.region.scratch, np.uint8))
    assert "step 0 of a region on a GPU, convolve" in str(failed.value.__cause__)


def test_arrays_that_begin_anywhere_are_copied():
    device = EmulatedDevice(library=emulated_cudnn())
    one = case(squared, *[np.random.RandomState(0).rand(*shape).astype("f") for shape in ((2, 3, 5, 5), (4, 3, 3, 3))])
    one.region = DeviceRegion(one.graph, device.plan)
    assert run(one, device) == ""
    x, w = one.operands
    memory = np.zeros(w.size + 1, np.float32)
    memory[1:] = w.ravel()
    out = np.zeros_like(one.expected[0])
    one.region.call(x, memory[1:].reshape(w.shape), out, np.zeros(one.region.scratch, np.uint8))
    assert not one.difference([out])


def test_algorithms_by_what_is_asked_for():
    """cuDNN's order counts, or what was measured, once for each convolution; only where that is allowed, bits may differ."""
    convolutions, seconds, measured = Cudnn(emulated_cudnn()), {0: 3.0, 1: 2.0, 4: 1.0}, []

    def timer(sizes, run):
        assert sizes[:3] == [4 * n for n in (2 * 3 * 5 * 5, 4 * 3 * 3 * 3, 2 * 4 * 3 * 3)]
        memory = [np.zeros(size + 16, np.uint8) for size in sizes]
        run([(array.ctypes.data + 15) // 16 * 16 for array in memory], 0)
        measured.append(emulated_cudnn().dy_cudnn_latest())
        if len(measured) == 6:                                     # the last one with TF32
            raise CudnnError("no memory")
        return seconds[measured[-1]]
    expected = [choice.algorithm for choice in convolutions.plan(plain()).choices.values()]
    assert expected == [1, 1, 0, 0] and not measured
    tuned = convolutions.plan(plain(), timer)
    assert tuned is convolutions.plan(plain(), timer) and measured == [0, 1, 4] * 2
    assert [choice.algorithm for choice in tuned.choices.values()] == [4, 1, 4, 1]


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """An empty directory for what is kept, and a function that gives the files in it."""
    library = emulated_cudnn()
    monkeypatch.setattr(store, "_checked", {})
    with config.CACHE_DIR.set(str(tmp_path)):
        yield library, lambda: sorted((tmp_path / "native").glob("*.measured"))


def measured(library, seconds, asked=plain(), identity="some device"):
    """How many times a process measures, and which algorithm it then takes where bits may differ."""
    count = []

    def timer(sizes, run):
        memory = [np.zeros(size + 16, np.uint8) for size in sizes]
        run([(array.ctypes.data + 15) // 16 * 16 for array in memory], 0)
        count.append(seconds[library.dy_cudnn_latest()])
        if count[-1] is None:
            raise CudnnError("no memory")
        return count[-1]
    choices = Cudnn(library, identity).plan(asked, timer).choices
    return len(count), choices[Mode(False, True)].algorithm


def test_what_was_measured_is_kept_for_later_processes(kept):
    """For each convolution, precision and device."""
    library, files = kept
    slow, fast = {0: 3.0, 1: 2.0, 4: 1.0}, {0: 1.0, 1: 2.0, 4: 3.0}
    assert measured(library, slow) == (6, 4) and len(files()) == 2
    assert measured(library, fast) == (0, 4)
    assert measured(library, fast, plain(FILTERS))[0] > 0
    assert measured(library, fast, identity="another device") == (6, 0)
    for path in files():
        path.write_bytes(path.read_bytes()[:-1])
    assert measured(library, fast) == (6, 0) and measured(library, slow) == (0, 0)


def test_what_could_not_be_measured_is_not_kept(kept):
    library, files = kept
    assert measured(library, {0: 3.0, 1: 2.0, 4: None}) == (6, 1) and not files()
    assert measured(library, {0: 3.0, 1: 2.0, 4: 1.0}, identity="") == (6, 4) and not files()
    with config.KEEP.set(0):
        assert measured(library, {0: 3.0, 1: 2.0, 4: 1.0}) == (6, 4) and not files()


def test_an_order_of_other_algorithms_does_not_count(kept):
    library, files = kept
    seconds = {0: 3.0, 1: 2.0, 4: 1.0}
    measured(library, seconds)
    for path in files():
        store.keep_text(path.stem, b"[[3, 0], [3, 7]]", store.MEASURED)
    assert measured(library, seconds) == (6, 4) and measured(library, {0: 1.0, 1: 2.0, 4: 3.0}) == (0, 4)


@pytest.mark.parametrize("settings, algorithm", [({}, 0), ({"cudnn_deterministic": True}, 1), ({"autotune": True}, 0),
                                                 ({"use_cudnn": "never"}, None)], ids=str)
@on_double
def test_settings_of_chainer(settings, algorithm):
    """They count as in eager mode: each call has the algorithm that the settings of this call allow, also in graphs."""
    def forward(x, w):
        return F.tanh(F.convolution_2d(F.tanh(x), w))
    static = to_static(forward, backend="c", strict=True)
    x, w = [cupy.array(np.random.RandomState(0).rand(*shape).astype("f")) for shape in ((2, 3, 5, 5), (4, 3, 3, 3))]
    before = emulated_cudnn().dy_cudnn_computed()
    for _ in range(3):
        with chainer.using_config("cudnn_deterministic", True):
            static(x, w)
        with contextlib.ExitStack() as stack:
            for name, value in settings.items():
                stack.enter_context(chainer.using_config(name, value))
            y, expected = static(x, w), forward(x, w)
        np.testing.assert_allclose(y.array.get(), expected.array.get(), rtol=tolerance(1e-5))
        if algorithm is not None and not on_device():
            assert emulated_cudnn().dy_cudnn_latest() == algorithm
    if algorithm is None and not on_device():
        assert emulated_cudnn().dy_cudnn_computed() == before + 3


@pytest.mark.parametrize("inside", [True, False])
@on_double
def test_settings_that_a_function_changes_count_for_gradients(inside):
    """Around ``backward``; not if it has the settings of the call again."""
    def step(x, w):
        loss = F.sum(F.tanh(F.convolution_2d(x, w)))
        with chainer.using_config("cudnn_deterministic", inside):
            loss.backward()
        return loss
    x, w = [chainer.Variable(cupy.array(np.random.RandomState(0).rand(*shape).astype("f"))) for shape in ((2, 3, 5, 5), (4, 3, 3, 3))]
    static, found = to_static(step, backend="c"), []
    for function in (static, static, step):
        x.cleargrad()
        w.cleargrad()
        before = None if on_device() else emulated_cudnn().dy_cudnn_computed()
        if function is static and inside and not found:
            with pytest.warns(UserWarning, match="gradients of convolutions on a GPU are taken with another `cudnn_deterministic`"):
                function(x, w)
        else:
            function(x, w)
        found.append([x.grad.get(), w.grad.get()])
        assert on_device() or (emulated_cudnn().dy_cudnn_computed() > before) == (function is static and not inside)
    for one in found[:2]:
        for a, b in zip(one, found[2]):
            np.testing.assert_allclose(a, b, rtol=tolerance(1e-4), atol=tolerance(1e-5))


@on_double
def test_settings_that_a_function_changes_count_for_its_convolutions():
    def forward(x, w):
        with chainer.using_config("use_cudnn", "never"):
            return F.tanh(F.convolution_2d(x, w))
    static = to_static(forward, backend="c")
    x, w = [cupy.array(np.random.RandomState(0).rand(*shape).astype("f")) for shape in ((2, 3, 5, 5), (4, 3, 3, 3))]
    before = None if on_device() else emulated_cudnn().dy_cudnn_computed()
    for _ in range(2):
        np.testing.assert_allclose(static(x, w).array.get(), forward(x, w).array.get(), rtol=tolerance(1e-5))
    assert on_device() or emulated_cudnn().dy_cudnn_computed() == before

"""Kernels for sizes that only the run knows: in emulation against NumPy and kernels for known sizes, and in programs."""
import contextlib
from unittest.mock import patch

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from cupy_double import on_device, on_double
from numpy_on_double import array

from dy2static import InputSpec, to_static
from dy2static.backends.cuda.kernels import scans, scatter
from dy2static.backends.cuda.launches import region
from dy2static.backends.cuda.nests import elements, rows, sums
from dy2static.backends.cuda.text import function
from dy2static.backends.registry import OF_LIBRARY
from dy2static.check_gpu import open_sizes
from dy2static.native.emulated import EmulatedDevice, emulated_cudnn, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

cupy = chainer.backends.cuda.cupy

#: Numbers that decide on schedules, so low that small arrays have all of them.
LOW = ((elements, "VECTORS", 200), (rows, "SHARED_ROW", 200), (rows, "OWN", 64), (sums, "_FEW_ACROSS", 4),
       (sums, "_SUMMED", 1), (scans, "SHORT", 4), (scans, "MANY", 100), (scatter, "_COMPARED", 300))


def holds(name, problem):
    assert not problem, f"{name}: {problem}"


def checked(devices=(0,), **options):
    return open_sizes.check([EmulatedDevice(order) for order in devices], holds, **options)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_kernels_give_the_bits_of_those_for_known_sizes(dtype):
    checked((0, 2), dtype=dtype)


def test_whichever_schedule_the_sizes_call_for(monkeypatch):
    """What is not taken is not launched: all kernels of a function are launched for some size."""
    for module, name, number in LOW:
        monkeypatch.setattr(module, name, number)
    for case in checked():
        if not {"i", "c"} & set(case.letters):
            ready = [case.region.function.at(region.Sizes(dict(length_n0=n, length_n1=m))) for n, m in open_sizes.SIZES]
            launched = {launch.kernel for one in ready for launch in one.launches}
            assert len(launched) > 1 or len(case.kernels) < 2, case.name
            assert all(launch.blocks for one in ready for launch in one.launches)


@pytest.fixture
def loaded():
    """Some cases on an emulated device."""
    device, cases = EmulatedDevice(), [open_sizes.OpenCase(name, "float32") for name in (
        "elements", "sum of all", "product", "joined", "taken")]
    module = device.load(open_sizes.kernels_of(cases))
    for case in cases:
        case.region.load(device, module)
    return device, cases


def test_without_elements_the_library_computes_a_region(loaded):
    device, cases = loaded
    launched = device.launched
    for case in cases:
        found = case.run(device, (0, 7))
        assert [x.size for x in found] == [1] if case.name == "sum of all" else not any(x.size for x in found)
    assert device.launched == launched and cases[1].run(device, (0, 7))[0] == 0


def test_very_large_arrays_have_kernels_of_their_own(loaded, monkeypatch):
    """Indices of 64 bits; these kernels are compiled by the first call that needs them."""
    monkeypatch.setattr(function, "INT", 2 ** 6)
    device, cases = EmulatedDevice(), [open_sizes.OpenCase(case.name, "float32") for case in loaded[1][:2]]
    module = device.load(open_sizes.kernels_of(cases))
    for case in cases:
        case.region.load(device, module)
        case.run(device, (3, 7))
    assert len(device.texts) == 1 and "int64_t k" not in device.texts[0]
    for case in cases:
        wanted = case.closed((70, 9))
        assert not wanted.difference(case.run(device, (70, 9)))
    assert len(device.texts) == 1 + len(cases) and all("int64_t k" in text for text in device.texts[1:] if "__global__" in text)


# Programs -------------------------------------------------------------------------------------------------------------


def trained(build, calls, **options):
    """Values and gradients for each call, compiled and in eager mode; gives the compiled function."""
    np.random.seed(0)
    function, links = build()
    for link in links:
        link.to_device("@cupy:0")
    static = to_static(function, backend="c", strict=True, **options)
    for arrays in calls:
        found = []
        for one in (static, function):
            for link in links:
                link.cleargrads()
            inputs = [chainer.Variable(x) if getattr(x, "dtype", np.dtype("i")).kind == "f" else x for x in arrays]
            results = one(*inputs)
            results = results if isinstance(results, (tuple, list)) else (results,)
            sum([F.sum(result * result) for result in results]).backward()
            gradients = [x.grad for x in inputs if isinstance(x, chainer.Variable)] + [p.grad for link in links for p in link.params()]
            found.append([*[result.array for result in results], *gradients])
        for compiled, eager in zip(*found):
            np.testing.assert_allclose(compiled.get(), eager.get(), rtol=2e-5, atol=2e-5)
    return static


def classifier():
    lin, norm = L.Linear(6, 5), L.LayerNormalization(5)
    return lambda x, t: F.softmax_cross_entropy(norm(F.relu(lin(x))), t), (lin, norm)


def embedded():
    embed, lin, norm = L.EmbedID(9, 6), L.Linear(6, 5), L.BatchNormalization(5)

    def function(i, t):
        h = norm(F.tanh(lin(embed(i))))
        return F.softmax_cross_entropy(h, t) + F.mean(h * h)
    return function, (embed, lin, norm)


def attention():
    return lambda q, k: F.matmul(F.softmax(F.matmul(q, k, transb=True) * 0.3, axis=1), k), ()


def sequences():
    embed, lin = L.EmbedID(9, 6), L.Linear(6, 5)
    return lambda xs: [F.sum(F.tanh(lin(embed(x))), axis=0) for x in xs], (embed, lin)


def convolutional():
    first, up = L.Convolution2D(2, 3, 3, stride=2, pad=1), L.Deconvolution2D(3, 2, 2, stride=2)

    def function(x):
        h = F.relu(first(x))
        h = F.max_pooling_2d(h, 2, 1, cover_all=False) + F.average_pooling_2d(h, 2, 1)
        return F.tanh(up(h))
    return function, (first, up)


def ints(*shape):
    return cupy.array(np.random.RandomState(len(shape)).randint(0, 5, shape).astype("i"))


IDS, MATRIX = InputSpec([None], "int32"), InputSpec([None, 6])


@on_double
def test_programs_with_free_sizes_are_kernels():
    for build, calls, spec in (
            (classifier, [(array(n, 6, seed=n), ints(n)) for n in (4, 7, 4, 70)], [MATRIX, IDS]),
            (embedded, [(ints(n), ints(n)) for n in (4, 7, 70)], [IDS, IDS]),
            (attention, [(array(n, 6, seed=n), array(m, 6, seed=m)) for n, m in ((4, 3), (7, 30), (9, 5))], [MATRIX, MATRIX])):
        (program,) = trained(build, calls, input_spec=spec).dispatcher.programs
        assert "cp.tanh" not in program.source and "dot(" not in program.source and "native(" in program.source
        assert "const int size0" in program.native_code


@on_double
def test_lists_of_sequences_of_fresh_lengths_are_kernels():
    static = trained(sequences, [([ints(a), ints(b)],) for a, b in ((3, 4), (5, 7), (6, 2))])
    assert any("const int size0" in p.native_code for p in static.dispatcher.programs)


@pytest.mark.parametrize("spec", [[None, 2, 9, 9], [None, 2, None, 9]], ids=["batch", "batch and height"])
@pytest.mark.parametrize("kind", ["cuDNN", "products", "never"])
@on_double
def test_convolutions_and_pooling_of_free_sizes_are_steps_of_regions(kind, spec):
    """cuDNN has a plan for each size; a region is launched for these sizes, and replayed when they come again."""
    device, library = OF_LIBRARY["cupy", True].device(0), emulated_cudnn()
    heights = (9, 9, 9) if spec[2] else (9, 12, 7)
    calls = [(array(n, 2, height, 9, seed=n),) for n, height in [*zip((2, 3, 4), heights)] * 3]
    before, replayed = library.dy_cudnn_computed(), on_device() or device.state.replays
    with contextlib.ExitStack() as stack:
        if kind == "never":
            stack.enter_context(chainer.using_config("use_cudnn", "never"))
        if kind == "products" and not on_device():
            stack.enter_context(patch.object(device, "_cudnn", None))
        static = trained(convolutional, calls, input_spec=[InputSpec(spec)])
        computed = library.dy_cudnn_computed() - before
        for x in [calls[0][0]] * 6:
            static(x)
    program = static.dispatcher.programs[-1]
    assert "convolve_images" not in program.source and "take_maximum" not in program.source and "native(" in program.source
    if not on_device():
        assert computed == (6 * len(calls) if kind == "cuDNN" else 0)
        assert device.state.replays > replayed


@pytest.mark.stand_in("it counts graphs, which only the emulator does")
@on_double
def test_graphs_are_for_sizes_that_come_again():
    """The launches of sizes that came lately are remembered, with their graphs; fresh sizes are launched one by one."""
    device = OF_LIBRARY["cupy", True].device(0)

    def function(x, w):
        return F.tanh(F.matmul(F.tanh(x), w)) * 2
    static = to_static(function, backend="c", strict=True, input_spec=[MATRIX, InputSpec([6, 6])])
    inputs = {n: array(n, 6, seed=n) for n in range(3, 20)}
    w, wanted = array(6, 6, seed=1), {}
    for n in (3, 4, 3, 4, 3, 4, 3, 4):
        found = static(inputs[n], w).array.get()
        assert np.array_equal(found, wanted.setdefault(n, found))
        np.testing.assert_allclose(found, function(inputs[n], w).array.get(), rtol=1e-5)
        del found
    replayed = device.state.replays
    assert replayed > 0
    built = device.state.graphs
    for n in range(5, 20):
        static(inputs[n], w)
    assert (device.state.graphs, device.state.replays) == (built, replayed)
    for _ in range(4):
        static(inputs[3], w)
    assert device.state.replays > replayed

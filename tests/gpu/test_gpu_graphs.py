"""Regions as CUDA graphs, with the emulated driver: what is recorded, replayed and set anew, and what happens if it fails."""
import threading
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from cupy_double import on_device, on_double, tolerance
from emulated_graphs import array as random_array
from emulated_graphs import case
from numpy_on_double import array

from dy2static import FallbackWarning, config, to_static
from dy2static.backends.registry import OF_LIBRARY
from dy2static.check_gpu.samples import kernels_of
from dy2static.ir.op import OPS
from dy2static.native import announce, drivers, emulated
from dy2static.native.emulated import EmulatedDevice, EmulationError, missing
from dy2static.native.launcher import Place

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

cupy = chainer.backends.cuda.cupy


def network(x, v, w):
    """Two products and two kernels."""
    return OPS["exp"](OPS["matmul"](OPS["tanh"](OPS["matmul"](x, v)), w))


class Calls:
    """A region of `network` on an emulated device: `call` computes with the arrays that it is given, and checks the result."""

    def __init__(self):
        self.case, self.device = case(network, *[random_array(*shape) for shape in ((4, 5), (5, 3), (3, 6))]), EmulatedDevice()
        self.case.region.load(self.device, self.device.load(kernels_of([self.case])))
        self.scratch = np.zeros(self.case.region.scratch, np.uint8)
        self.v, self.w, self.out = *[np.array(x) for x in self.case.operands[1:]], np.zeros((4, 6), np.float32)

    def x(self, seed=0):
        return np.random.RandomState(seed).rand(4, 5).astype("f")

    def call(self, x, out=None, v=None):
        out, v = self.out if out is None else out, self.v if v is None else v
        self.case.region.call(x, v, self.w, out, self.scratch)
        np.testing.assert_allclose(out, np.exp(np.tanh(x @ v) @ self.w), rtol=1e-5)
        return out

    @property
    def counts(self):
        (run,) = self.case.region.runs
        return run.region.counts._asdict()


def test_the_second_call_is_recorded_and_the_next_are_replayed():
    calls = Calls()
    x = calls.x()
    for _ in range(4):
        calls.call(x)
        x += 0.5                                            # contents are no part of a graph
        calls.v *= 1.5
    assert calls.counts == {"plain": 1, "replayed": 3, "built": 1, "patched": 0, "failures": 0}
    assert calls.device.state.graphs == 1 and calls.device.state.replays == 3
    assert calls.device.launched == calls.device.products == 8


def test_what_moves_is_set_anew_and_results_stay():
    """A new batch and a new result in each call: one product and one kernel of four steps."""
    calls = Calls()
    first = calls.x()
    for _ in range(2):
        calls.call(first)
    inputs = [calls.x(seed) for seed in range(5)]
    outputs = [calls.call(x, np.zeros((4, 6), np.float32)) for x in inputs]
    for x, out in zip(inputs, outputs):                     # no later call has written to them
        np.testing.assert_allclose(out, np.exp(np.tanh(x @ calls.v) @ calls.w), rtol=1e-5)
    assert calls.counts == {"plain": 1, "replayed": 6, "built": 1, "patched": 5, "failures": 0}
    assert calls.device.state.patches == 2 * 5


def test_where_most_has_moved_another_graph_is_made():
    calls = Calls()
    x, other = calls.x(), [calls.x(1), np.zeros((4, 6), np.float32), np.array(calls.v)]
    w = np.array(calls.w)
    for _ in range(3):
        calls.call(x)
    calls.w, kept = w, calls.w
    for _ in range(3):
        calls.call(other[0], other[1], other[2])
    calls.w = kept
    calls.call(x)
    assert calls.counts == {"plain": 2, "replayed": 5, "built": 2, "patched": 0, "failures": 0}


def test_places_that_come_in_turns_have_a_graph_each():
    """As gradients of training steps, which lie where those of the step before the last did."""
    calls = Calls()
    x, outs = calls.x(), [np.zeros((4, 6), np.float32) for _ in range(3)]
    for turn in range(9):
        calls.call(x, outs[turn % 3])
        x += 0.5
    counts = calls.counts
    assert counts["built"] == 3 and counts["patched"] <= 1 and counts["plain"] == 1
    for turn in range(6):
        calls.call(x, outs[turn % 3])
    assert calls.counts == {**counts, "replayed": counts["replayed"] + 6}


def test_addresses_that_never_come_again_are_not_recorded():
    calls = Calls()
    kept = []
    for seed in range(8):
        calls.v, calls.w, calls.scratch = (np.array(x) for x in (calls.v, calls.w, calls.scratch))
        kept += [calls.x(seed), np.zeros((4, 6), np.float32), calls.v, calls.w, calls.scratch]
        calls.call(*kept[-5:-3])
    assert calls.counts["plain"] == 8 and calls.device.state.graphs == 0


def test_graphs_are_few():
    """More sets of addresses than there are graphs, in turns: no graph gives way to another in each call."""
    calls = Calls()
    sets = [(calls.x(seed), np.zeros((4, 6), np.float32), np.array(calls.v), np.array(calls.w), np.array(calls.scratch)) for seed in range(6)]
    for _ in range(4):
        for x, out, v, calls.w, calls.scratch in sets:
            calls.call(x, out, v)
    assert calls.device.state.graphs == 0
    for _ in range(4):
        for x, out, v, calls.w, calls.scratch in sets[:4]:
            calls.call(x, out, v)
    assert calls.device.state.graphs == 4 and calls.counts["replayed"] >= 8
    for _ in range(4):
        for x, out, v, calls.w, calls.scratch in sets[:5]:
            calls.call(x, out, v)
    assert calls.device.state.graphs == 4                   # the fifth has none
    for _ in range(20):
        calls.call(x, out, v)
    assert calls.device.state.graphs == 5                   # until the others are not used any more


def test_another_stream_has_other_memory_for_products():
    """Two runs of a product on two streams may not share it: products are recorded for each, kernels are not."""
    calls, memory = Calls(), [np.zeros(64, np.uint8) for _ in range(2)]
    x = calls.x()
    for turn in range(6):
        place = Place(turn % 2, memory[turn % 2].ctypes.data)
        calls.device.place = lambda products, place=place: place
        calls.call(x)
        assert calls.device.state.memory == place.workspace or turn > 3
    assert calls.counts["replayed"] == 4 and calls.device.state.graphs == 2


@pytest.mark.parametrize("status", [2, 801])
def test_where_graphs_fail_kernels_are_launched(status):
    """Short memory, and a driver that does not want to: one warning, and after two attempts no more."""
    calls = Calls()
    calls.device.state.graph_status = status
    announce.forget()
    with pytest.warns(FallbackWarning, match=rf"launched one by one where no CUDA graph can be made or launched \(error {status}\)") as found:
        for seed in range(6):
            calls.call(calls.x())
            x = calls.x(seed)
            for _ in range(2):
                calls.call(x)
    assert len(found) == 1 and calls.counts["replayed"] == 0 and calls.counts["failures"] == 2


def test_a_graph_that_cannot_be_set_anew_is_dropped():
    calls = Calls()
    x = calls.x()
    for _ in range(2):
        calls.call(x)
    calls.device.state.graph_status = 2
    announce.forget()
    with pytest.warns(FallbackWarning, match="error 2"):
        calls.call(x)
    calls.device.state.graph_status = 0
    for _ in range(3):
        calls.call(x)
    assert calls.counts == {"plain": 2, "replayed": 4, "built": 2, "patched": 0, "failures": 1}


def test_what_fails_without_graphs_too_is_an_error():
    calls = Calls()
    x = calls.x()
    calls.call(x)
    calls.device.state.graph_status = calls.device.state.launch_status = 2
    with pytest.raises(EmulationError, match="driver reports error 2") as found:
        calls.call(x)
    assert "step 1 of a region on a GPU, kernel_" in str(found.value.__cause__)
    calls.device.state.graph_status = calls.device.state.launch_status = 0
    calls.call(x)


def test_what_the_caller_records_is_recorded_step_by_step():
    """On a stream that the user records nothing is replayed or made; the steps are in the user's graph."""
    calls, stream = Calls(), 77
    x = calls.x()
    for _ in range(2):
        calls.call(x)
    place = calls.device.place(True)
    calls.device.place = lambda products: place._replace(stream=stream)
    graph, launched = emulated.ctypes.c_void_p(), calls.device.launched
    assert emulated._call("cuStreamBeginCapture_v2", emulated.ctypes.c_void_p(stream), 1) == 0
    calls.case.region.call(x, calls.v, calls.w, calls.out, calls.scratch)
    assert emulated._call("cuStreamEndCapture", emulated.ctypes.c_void_p(stream), emulated.ctypes.byref(graph)) == 0
    assert calls.device.launched == launched and calls.counts["plain"] == 2 and graph.value


@pytest.mark.parametrize("blocking", ["0", "1"])
def test_graphs_can_be_turned_off(blocking, monkeypatch):
    """By their setting, or by that of CUDA with which each launch waits for its kernel."""
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", blocking)
    with config.GPU_GRAPHS.set(int(blocking)):
        calls = Calls()
    x = calls.x()
    for _ in range(4):
        calls.call(x)
    assert calls.counts == {"plain": 4, "replayed": 0, "built": 0, "patched": 0, "failures": 0}


def test_threads_share_a_region():
    calls, wrong = Calls(), []

    def work(seed):
        x, out = calls.x(seed), np.zeros((4, 6), np.float32)
        scratch = np.array(calls.scratch)
        for _ in range(30):
            x += 0.01
            calls.case.region.call(x, calls.v, calls.w, out, scratch)
            wrong.extend([seed] * (not np.allclose(out, np.exp(np.tanh(x @ calls.v) @ calls.w), rtol=1e-4)))
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and calls.counts["plain"] + calls.counts["replayed"] == 120 and calls.counts["replayed"] > 60


def test_a_driver_without_graphs(monkeypatch):
    class Old:
        """A driver of CUDA 11."""

        def __getattr__(self, name):
            if name.endswith("_v2") and name.startswith("cuGraph"):
                raise AttributeError(name)
            return lambda *args: 0
    monkeypatch.setattr(drivers, "_driver", Old)
    announce.forget()
    with pytest.warns(FallbackWarning, match="launched one by one: the driver is older than CUDA 12 and has no cuGraphAddKernelNode_v2"):
        assert drivers.recorder() == 0


# Programs -------------------------------------------------------------------------------------------------------------


def replays(device):
    """How many graphs an emulated device has launched."""
    return 0 if on_device() else device.state.replays


def steps(device, count, keeps):
    """All losses and gradients of some steps of training.  keeps: whether the arrays themselves are kept until the end."""
    np.random.seed(0)
    model = L.Classifier(chainer.Sequential(L.Linear(6, 16), F.tanh, L.Linear(16, 16), F.tanh, L.Linear(16, 4)))
    model.to_device(device)
    optimizer = chainer.optimizers.MomentumSGD(0.1).setup(model)
    forward = to_static(model.forward, backend="c", strict=True)
    random, kept = np.random.RandomState(1), []
    for _ in range(count):
        x, t = chainer.get_device(device).send((random.rand(10, 6).astype("f"), random.randint(0, 4, 10).astype("i")))
        loss = forward(x, t)
        model.cleargrads()
        loss.backward()
        optimizer.update()
        found = [loss.array, *[p.grad for p in model.params()]]
        kept += found if keeps else [np.array(chainer.backends.cuda.to_cpu(x)) for x in found]
    return [chainer.backends.cuda.to_cpu(x) for x in [*kept, *[p.array for p in model.params()]]]


@pytest.mark.parametrize("keeps", [True, False])
@on_double
def test_training(keeps):
    """Parameters change between calls; losses and gradients are those of the host.  Where their memory is used again, graphs are."""
    device = OF_LIBRARY["cupy", True].device(0)
    before = replays(device)
    for one, other in zip(steps("@cupy:0", 10, keeps), steps("@numpy", 10, keeps)):
        np.testing.assert_allclose(one, other, rtol=tolerance(1e-4), atol=tolerance(1e-5))
    assert keeps or on_device() or replays(device) > before + 5, (replays(device) - before, device.state.graphs, device.state.patches)


@on_double
def test_two_signatures():
    """Arrays of two shapes in turns: each has a program, with graphs of its own."""
    static = to_static(lambda x, w: F.exp(F.matmul(F.tanh(F.matmul(x, w)), w)), backend="c", strict=True)
    device, w, kept = OF_LIBRARY["cupy", True].device(0), array(6, 6, seed=1), []
    before = replays(device)
    for turn in range(12):
        x = array(3 + turn % 2, 6, seed=turn)
        kept.append((x, static(x, w).array))
    for x, result in kept:
        expected = np.exp(np.tanh(x.get() @ w.get()) @ w.get())
        np.testing.assert_allclose(result.get(), expected, rtol=tolerance(1e-5))
    assert len(static.dispatcher.programs) == 2 and (on_device() or replays(device) > before)


@on_double
def test_streams_and_programs():
    """A call on another stream uses other working memory, and does not wait for a graph of the first."""
    static, x = to_static(lambda x: F.exp(F.matmul(F.tanh(F.matmul(x, x)), x)), backend="c", strict=True), array(6, 6)
    expected, streams = static(x).array.get(), [cupy.cuda.Stream() for _ in range(2)]
    for _ in range(6):
        for stream in streams:
            with stream:
                np.testing.assert_array_equal(static(x).array.get(), expected)


@pytest.mark.stand_in("the emulated driver fails where a test wants it")
@on_double
def test_memory_that_the_driver_lacks():
    """A launch that finds no memory is repeated when CuPy's pool is empty; what does not help is an error of the driver.

    Its cause names the line of the step.
    """
    static, x = to_static(lambda x: F.exp(F.matmul(F.tanh(F.matmul(x, x)), x)), backend="c", strict=True), array(6, 6)
    expected, device = static(x).array.get(), OF_LIBRARY["cupy", True].device(0)
    empty, freed = cupy.memory.free_all_blocks, cupy.memory.freed

    def free_all_blocks(stream=None):
        empty()
        device.state.launch_status = 0
    for helps in (True, False):
        device.state.launch_status = 2
        cupy.memory.free_all_blocks = free_all_blocks if helps else empty
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if helps:
                    np.testing.assert_array_equal(static(x).array.get(), expected)
                else:
                    with pytest.raises(cupy.cuda.driver.CUDADriverError, match="CUDA_ERROR_2") as error:
                        static(x)
                    assert "test_gpu_graphs.py:" in str(error.value.__cause__) and "F.matmul(F.tanh(" in str(error.value.__cause__)
        finally:
            cupy.memory.free_all_blocks, device.state.launch_status = empty, 0
    assert cupy.memory.freed == freed + 2
    np.testing.assert_array_equal(static(x).array.get(), expected)

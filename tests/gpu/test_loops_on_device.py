"""Loops whose condition is a value of the device: a node of a CUDA graph, or turns that the host counts."""
import warnings
from unittest.mock import patch

import chainer
import chainer.functions as F
import numpy as np
import pytest
from cupy_double import on_device, on_double, tolerance
from numpy_on_double import array

from dy2static import FallbackWarning, config, to_static
from dy2static.backends.cuda.launches import loops
from dy2static.backends.registry import OF_LIBRARY
from dy2static.errors import BackendError
from dy2static.native import announce, drivers, nvrtc
from dy2static.native.emulated import missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

cupy = chainer.backends.cuda.cupy


def halved(x, w):
    """Two arrays are carried, each decides the other; products are in the loop."""
    y = x * 2
    while F.sum(F.absolute(x)).array > 0.3:
        x, y = F.tanh(F.matmul(y, w)) * 0.9, F.sin(x) * 0.5
    return x + 1, y


def power(x, w):
    """Arrays without Variables; a loop that may have no turn."""
    a = x.array
    while abs(a).max() > 0.01:
        a = a * 0.5 + w.array.sum() * 0
    return a


class Loop:
    """A compiled function of a loop, and its arguments."""

    def __init__(self, function=halved):
        self.function, self.static = function, to_static(function, backend="c", strict=True)
        self.device = OF_LIBRARY["cupy", True].device(0)
        self.w = chainer.Variable(array(5, 5, seed=1) * np.float32(0.4))

    def call(self, x):
        """The loop on an array, compared with eager mode; how many turns an emulated device has counted."""
        x, before = chainer.Variable(x), self._turns()
        with chainer.no_backprop_mode():
            found, expected = self.static(x, self.w), self.function(x, self.w)
        turns = self._turns() - before
        for one, other in zip(found if isinstance(found, tuple) else (found,), expected if isinstance(expected, tuple) else (expected,)):
            np.testing.assert_allclose(chainer.backends.cuda.to_cpu(getattr(one, "array", one)),
                                       chainer.backends.cuda.to_cpu(getattr(other, "array", other)), rtol=tolerance(1e-5), atol=tolerance(1e-7))
        return turns

    def _turns(self):
        return 0 if on_device() else self.device.state.turns

    @property
    def source(self):
        return self.static.dispatcher.programs[0].source


@pytest.mark.parametrize("function", [halved, power])
@on_double
def test_a_loop_is_a_node_of_a_graph(function):
    loop = Loop(function)
    loop.call(array(4, 5))
    assert "while" not in loop.source
    assert loop.call(array(4, 5, seed=2)) > 0 or on_device()
    assert loop.call(array(4, 5) * np.float32(0.0001)) <= (0 if function is power else 3)
    assert all([loop.call(array(4, 5, seed=seed) * np.float32(seed)) > 0 for seed in range(1, 4)]) or on_device()


@on_double
def test_without_a_turn_the_state_is_the_result():
    loop = Loop(power)
    loop.call(array(4, 5))
    zeros = array(4, 5) * np.float32(0)
    assert loop.call(zeros) == 0


def _host(loop):
    loop.call(array(4, 5))
    return [loop.call(array(4, 5, seed=seed)) for seed in (3, 4)]


@on_double
def test_graphs_are_off():
    with config.GPU_GRAPHS.set(0):
        assert _host(Loop()) == [0, 0]


@pytest.mark.stand_in("the emulated driver fails where a test wants it")
@on_double
def test_the_driver_makes_no_graph():
    loop = Loop()
    loop.device.state.graph_status = 801
    announce.forget()
    try:
        with pytest.warns(FallbackWarning, match="the host waits for a GPU in each turn of a loop: the driver makes no CUDA graph"):
            assert _host(loop) == [0, 0]
    finally:
        loop.device.state.graph_status = 0


@on_double
def test_the_kernel_of_conditions_cannot_be_loaded():
    loop, load = Loop(), type(Loop().device).load

    def refuse(self, kernels):
        if loops.CONDITION in kernels:
            raise BackendError("unresolved symbol")
        return load(self, kernels)
    announce.forget()
    with patch.object(type(loop.device), "load", refuse), pytest.warns(FallbackWarning, match="each turn of a loop: .*unresolved symbol"):
        assert _host(loop) == [0, 0]


@on_double
def test_no_c_compiler():
    loop = Loop()
    with patch.object(type(loop.device), "launcher", lambda self: None):
        assert _host(loop) == [0, 0]


@on_double
def test_streams_and_moved_arrays():
    loop = Loop()
    loop.call(array(4, 5))
    for _ in range(3):
        for stream in [cupy.cuda.Stream() for _ in range(2)]:
            with stream:
                loop.w.array = loop.w.array.copy()
                assert loop.call(array(4, 5, seed=5)) > 0 or on_device()


@on_double
def test_loops_with_gradients_stay_on_the_host():
    static, xs = to_static(lambda x, w: F.sum(halved(x, w)[0]), backend="c", strict=True), []
    for function in (static, lambda x, w: F.sum(halved(x, w)[0])):
        x, w = chainer.Variable(array(4, 5)), chainer.Variable(array(5, 5, seed=1) * np.float32(0.4))
        function(x, w).backward()
        xs.append((x.grad.get(), w.grad.get()))
    for one, other in zip(*xs):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_a_driver_without_loops_has_graphs():
    class Old:
        """A driver of CUDA 12.0."""

        def __getattr__(self, name):
            if name in ("cuGraphConditionalHandleCreate", "cuGraphAddNode"):
                raise AttributeError(name)
            return lambda *args: 0
    announce.forget()
    with patch.object(drivers, "_driver", Old):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            drivers.recorder()


def test_the_kernel_that_sets_conditions():
    """NVRTC makes machine code of it without another library: the driver knows the function."""
    if not nvrtc.available():
        pytest.skip("there is no NVRTC")
    for architecture in ("sm_75", "sm_90"):
        assert b"cudaGraphSetConditional" in nvrtc.machine_code(loops.CONDITION.text, architecture).cubin

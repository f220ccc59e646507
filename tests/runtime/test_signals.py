"""Handlers of signals that come in a first call: they run as in eager mode, and the next call is compiled."""
import signal
import types

import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import array

from dy2static import to_static
from dy2static.capture.chainer_calls import ChainerCalls
from dy2static.dispatch import tiers

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="this system does not have the signal")


@pytest.fixture
def handled(monkeypatch):
    """``handled(handler)``: the signal comes once, in the middle of the next capture."""
    before = signal.getsignal(signal.SIGUSR1)

    def install(handler):
        signal.signal(signal.SIGUSR1, handler)
        apply = ChainerCalls.apply

        def interrupted(calls, node, inputs):
            monkeypatch.setattr(ChainerCalls, "apply", apply)
            signal.raise_signal(signal.SIGUSR1)
            return apply(calls, node, inputs)
        monkeypatch.setattr(ChainerCalls, "apply", interrupted)
    yield install
    signal.signal(signal.SIGUSR1, before)


def work(x):
    return F.sum(F.relu(x) * 2)


def test_an_exception_of_a_handler_is_that_of_the_call(handled):
    """The handler of an alarm that ends what takes too long: its error was taken for one of the function, which then ran again."""
    def too_long(number, frame):
        raise TimeoutError("it takes too long")
    handled(too_long)
    static, apply, x = to_static(work), chainer.FunctionNode.apply, array(2, 3)
    with pytest.raises(TimeoutError, match="it takes too long") as raised:
        static(x)
    assert raised.value.__cause__ is None and raised.value.__suppress_context__
    assert signal.getsignal(signal.SIGUSR1) is too_long and chainer.FunctionNode.apply is apply
    np.testing.assert_allclose(static(x).array, work(x).array, rtol=1e-6)
    assert static.cache_info().captures == 1 and not static.dispatcher.fallback.refused


def test_a_handler_that_computes(handled):
    """It was captured with the function, and did not come to its end."""
    found, other, x = [], to_static(lambda x: F.sum(F.tanh(x))), array(2, 3)

    def handler(number, frame):
        found.append([F.sum(F.exp(x)).array, other(x).array, signal.getsignal(number) is handler])
    handled(handler)
    static = to_static(work)
    np.testing.assert_allclose(static(x).array, work(x).array, rtol=1e-6)
    np.testing.assert_allclose(found, [[np.exp(x).sum(), np.tanh(x).sum(), False]], rtol=1e-6)
    assert [node.op.name for node in static.dispatcher.programs[0].graph.nodes].count("exp") == 0
    assert signal.getsignal(signal.SIGUSR1) is handler and static.cache_info().captures == 1


def test_a_handler_that_is_replaced_meanwhile(handled):
    def other(number, frame):
        raise AssertionError("it is not called")

    def handler(number, frame):
        signal.signal(number, other)
    handled(handler)
    to_static(work)(array(2, 3))
    assert signal.getsignal(signal.SIGUSR1) is other


@pytest.mark.parametrize("wait", (False, True))
def test_native_code_is_made_again_after_an_interrupt(monkeypatch, wait):
    """Ctrl-C in the call in which a program was made again for native code left it on NumPy for ever."""
    begun = []

    def again(recipe, segments):
        begun.append(recipe)
        yield
        if len(begun) == 1:
            raise KeyboardInterrupt
        return "made"
    monkeypatch.setattr(tiers, "_again", again)
    becoming, program = tiers.Becoming("recipe"), types.SimpleNamespace(segments=())
    with pytest.raises(KeyboardInterrupt):
        for _ in range(2):
            becoming.advance(program, wait)
    assert "made" in [becoming.advance(program, wait) for _ in range(2)] and begun == ["recipe"] * 2

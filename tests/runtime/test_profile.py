"""`profile`: which parts of a program took the time; and Chainer's own timer."""
import threading
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest
from chainer.function_hooks import TimerHook

from dy2static import to_static
from dy2static.native import compiler
from dy2static.runtime.clocks import DECLINED, ENTERING
from dy2static.runtime.profile import AROUND

BACKENDS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not compiler.available(), reason="there is no C compiler"))]


def decides(x, w):
    h = F.matmul(x, w)                              # line 0
    h = F.dropout(F.tanh(h), 0.25)
    while float(F.sum(h * h).array) > 1:
        h = h * 0.5
    if float(F.sum(h).array) > 0:
        h = F.exp(h)
    else:
        h = F.sin(h)
    return F.sum(h * x)


FIRST = decides.__code__.co_firstlineno + 1


def operands(shift=0):
    random = np.random.RandomState(3)
    return [chainer.Variable(random.normal(shift, 1, (8, 8)).astype("f")) for _ in range(2)]


def outcome(function, profile=None, calls=3):
    """Values, gradients and random numbers of some calls."""
    np.random.seed(1)
    found = []
    for k in range(calls):
        x, w = operands(k % 2)
        loss = function(x, w)
        loss.backward()
        found += [loss.array, x.grad, w.grad]
    return [*found, np.random.rand()]


@pytest.mark.parametrize("backend", BACKENDS)
def test_parts_of_a_program(backend):
    """The same values while it is profiled, before and after; every operation is found, as often as it ran."""
    static = to_static(decides, backend=backend)
    before = outcome(static)
    calls = list(static.dispatcher.calls)
    with static.profile() as profile:
        during = outcome(static)
    np.testing.assert_equal((during, outcome(static)), (before, before))
    assert static.dispatcher.calls == calls and static.cache_info().captures == 1
    records = profile.records
    found = {(r.direction, op, place.line - FIRST): r for r in records for op in r.operations for place in r.places}
    assert {key for key in found if key[0] == "forward"} >= {
        ("forward", "matmul", 0), ("forward", "random_uniform", 1), ("forward", "mul", 3), ("forward", "exp", 5),
        ("forward", "sum", 8), ("forward", "while", 2)}
    assert ("backward", "matmul", 0) in found
    assert found["forward", "matmul", 0].calls == 3 < found["forward", "mul", 3].calls
    assert found["forward", "matmul", 0].native == (backend == "c")
    sides = [found[key].calls for key in (("forward", "exp", 5), ("forward", "sin", 7)) if key in found]
    assert sum(sides) == 3
    assert profile.calls == 3 and profile.seconds > 0 and sum(r.share for r in records) == pytest.approx(1)
    assert sum(r.seconds for r in records if r.direction == "forward") == pytest.approx(profile.seconds, rel=0.2)
    assert [r.seconds for r in records] == sorted([r.seconds for r in records], reverse=True)
    assert any(AROUND in r.operations for r in records)
    assert any(ENTERING in r.operations for r in records) == (backend == "c")
    text = str(profile)
    assert text.startswith("decides: 3 calls of ") and "; backward 3 runs of " in text
    assert "h = F.matmul(x, w)" in text and f"test_profile.py:{FIRST}" in text and "guards, results, writes" in text


def test_one_program_and_new_ones():
    """`Program.profile` times the calls that it serves; that of the function also those of programs made inside."""
    static = to_static(lambda x: F.sum(x * x))
    small, large = np.ones((2, 2), "f"), np.ones((3, 3), "f")
    static(small), static(large)
    with static.program(small).profile() as profile:
        static(small), static(large), static(small), static(np.ones(5, "f"))
    assert profile.calls == 2
    with static.profile() as both:
        static(small), static(large), static(np.ones(7, "f"))
    assert both.calls == 3
    with both:                                      # it goes on
        static(small)
    static(small)
    assert both.calls == 4
    assert "no compiled call was timed" in str(static.profile())


def test_other_threads_are_not_timed():
    static = to_static(lambda x: F.sum(x * x))
    x = np.ones((2, 2), "f")
    expected = static(x).array
    found = []
    with static.profile() as profile:
        static(x)
        other = threading.Thread(target=lambda: found.append(static(x).array))
        other.start()
        other.join()
    assert found == [expected] and profile.calls == 1


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler")
def test_programs_that_become_native_code():
    """What is timed is what they become; the calls count for nothing else."""
    static = to_static(decides, backend="auto")
    outcome(static, calls=4)
    call, = static.dispatcher.calls
    warming = call.call                                 # inside what counts the first calls of a program
    left = warming.left
    with static.profile() as profile:
        outcome(static)
    assert static.dispatcher.calls == [call] and warming.left == left
    assert any(record.native for record in profile.records)
    outcome(static, calls=20)
    with warming.program.profile() as profile:
        outcome(static)
    assert profile.calls == 3


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler")
def test_what_native_code_leaves_to_numpy():
    def function(x):
        return F.sum(F.log(x) * 2)
    static = to_static(function, backend="c")
    zero = np.zeros((4, 4), "f")
    with static.profile() as profile, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        static(zero + 1), static(zero)
    assert any("divide by zero" in str(warning.message) for warning in caught)
    declined, = [record for record in profile.records if DECLINED in record.operations]
    assert declined.calls == 1 and declined.places[0].line == function.__code__.co_firstlineno + 1 and not declined.native


@pytest.mark.parametrize("backend", BACKENDS)
def test_errors_name_the_line(backend):
    def function(x, n):
        y = x * 2
        return F.sum(y[int(n)])
    static = to_static(function, backend=backend)
    x = chainer.Variable(np.ones((2, 2), "f"))
    static(x, np.array(1))
    with static.profile():
        static(x, np.array(1))
        with pytest.raises(IndexError) as caught:
            static(x, np.array(5))
    lines = [entry.lineno + 1 for entry in caught.traceback if str(entry.path) == __file__]
    assert function.__code__.co_firstlineno + 2 in lines


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_of_gradients(backend):
    def function(x):
        return F.sum(F.tanh(x) * x)
    static = to_static(function, backend=backend)

    def second(called):
        x, = operands()[:1]
        first, = chainer.grad([called(x)], [x], enable_double_backprop=True)
        return first.array, chainer.grad([F.sum(first * first)], [x])[0].array
    expected = second(static)
    with static.profile() as profile:
        np.testing.assert_equal(second(static), expected)
    assert {record.direction for record in profile.records} == {"forward", "backward"}


@pytest.mark.parametrize("profiled", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_timer_of_chainer(backend, profiled):
    """`TimerHook` sees a compiled call as one function, forward and backward."""
    static = to_static(decides, backend=backend)
    outcome(static)
    expected = outcome(static)
    hook = TimerHook()
    with hook:
        if profiled:
            with static.profile() as profile:
                found = outcome(static)
            assert profile.calls == 3
        else:
            found = outcome(static)
    np.testing.assert_equal(found, expected)
    assert [name for name, _ in hook.call_history] == ["decides"] * 6
    assert all(seconds > 0 for _, seconds in hook.call_history) and hook.summary()["decides"]["occurrence"] == 6

"""Functions that call nothing of Chainer's are measured beside Python, and the faster way stays (`dispatch.pacing`)."""
import chainer.functions as F
import numpy as np
import paces
import pytest
from against_eager import array, variable

import dy2static
from dy2static import lazy, to_static
from dy2static.dispatch import pace, pacing

#: After so many calls it is known which way is faster.
KNOWN = 1 + pacing._BEFORE + 2 * pace.MEASURED


def normed(x):
    if (x > 2).any():
        x = x - 1
    return x / np.sqrt((x * x).sum())


def test_what_is_slower_compiled_runs_as_python_and_is_measured_again(monkeypatch):
    """As Python, a call whose arrays have grown is noticed by its time."""
    seconds = {"python": 1.0}
    paces.measure(monkeypatch, lambda: 2.0, lambda: seconds["python"])
    static = to_static(normed, backend="numpy")
    for i in range(KNOWN + 40):
        x = array(4, seed=i) * (i % 3)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(static(x), normed(x))
    assert static.stats()["as_python"] == 40 and static.stats()["fallbacks"] == 0
    assert "calls run as Python, which is faster: 1000000.0 µs, compiled 2000000.0 µs" in static.explain(x)
    with static.profile() as profile:
        static(x)
    assert profile.calls == 1                           # which shows what compiled calls take

    captures, seconds["python"] = static.stats()["captures"], 100.0
    for i in range(2 * KNOWN):
        np.testing.assert_array_equal(static(array(5, seed=i)), normed(array(5, seed=i)))
    assert static.stats()["captures"] > captures and "run as Python" not in static.explain(x)
    assert static.stats()["as_python"] < 40 + KNOWN


@pytest.mark.parametrize("options", [{"strict": True}, {"rng": "fast"}, {"check": 1}, "chainer", "faster", "off"], ids=str)
def test_what_stays_compiled(monkeypatch, options):
    """Gradients are made after the call; what is strict is to be compiled; what is as fast stays."""
    paces.measure(monkeypatch, lambda: 1.0 if options == "faster" else 2.0, lambda: 1.0)
    if options == "off":
        monkeypatch.setattr(dy2static.config.PACE, "value", 0)
    function = (lambda x: F.tanh(x) * 2) if options == "chainer" else normed
    static = to_static(function, backend="numpy", **(options if isinstance(options, dict) else {}))
    x = (variable if options == "chainer" else array)(4)
    for _ in range(KNOWN + 5):
        static(x)
    assert static.stats()["as_python"] == 0 and static.stats()["captures"] == 1


def test_calls_that_find_no_program(monkeypatch):
    """Lines that cannot be compiled, and texts that differ in every call: Python alone is faster."""
    paces.measure(monkeypatch, lambda: 2.0, lambda: 1.0)
    known = {}

    def numbers(text):
        return [known.setdefault(word, len(known)) for word in text.split()]
    static = to_static(numbers, backend="numpy")
    with pytest.warns(dy2static.FallbackWarning):
        found = [static(f"a{i % 5} b{i % 3} c") for i in range(KNOWN + 30)]
    assert found[-1] == numbers(f"a{(KNOWN + 29) % 5} b{(KNOWN + 29) % 3} c")
    assert static.stats()["as_python"] == 30


def test_who_calls_it(monkeypatch):
    """Another capture takes it into its graph, lazy arrays are evaluated, and it may call itself and raise."""
    paces.measure(monkeypatch, lambda: 2.0, lambda: 1.0)
    static = to_static(normed, backend="numpy")
    x = array(4)
    for _ in range(KNOWN + 1):
        static(x)
    outer = to_static(lambda x: static(x) + 1, backend="numpy")
    np.testing.assert_array_equal(outer(x), normed(x) + 1)
    assert outer.stats()["captures"] == 1 and outer.stats()["host_call"] == 0
    assert type(static(lazy.array(x))) is np.ndarray
    with pytest.raises(TypeError):
        static(None)
    static.clear_cache()
    assert static.stats()["as_python"] == 0
    np.testing.assert_array_equal(static(x), normed(x))

    @to_static(backend="numpy")
    def depth(tree):
        return 1 + max(map(depth, tree), default=0)
    assert {depth([[], [[], [[]]]]) for _ in range(2 * KNOWN)} == {4}


def test_calls_in_a_rhythm_are_measured_in_both_ways():
    """Calls of two kinds by turns, one of which takes much longer: Python gets as many of each."""
    found = pace.Pace()
    kinds = {True: [], False: []}
    for i in range(4 * (pace.MEASURED // 4) * 2):
        kinds[found.is_for_python].append(i % 2)
        (found.python if found.is_for_python else found.compiled).append(1.0)
    assert kinds[True].count(0) == kinds[True].count(1) == kinds[False].count(0) == kinds[False].count(1)

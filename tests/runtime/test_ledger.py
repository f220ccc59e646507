"""The seconds that the captures of a function and of all its parts may take."""
import warnings

import chainer.functions as F
import numpy as np
import pytest
from against_eager import array, variable

from dy2static import FallbackWarning, pipeline, to_static
from dy2static.dispatch.sizes import Captures
from dy2static.ir.size_needed import SizeNeeded
from dy2static.options import DEFAULTS
from dy2static.record.paths import Argument, Sources
from dy2static.runtime.ledger import Clock, Ledger, clock


@pytest.fixture
def time(monkeypatch):
    """A clock that only tests move: ``time[0]``; captures may take four seconds at first.

    No captures have been counted by it: a difference from a fraction of seconds would be rounded.
    """
    now = [0.0]
    monkeypatch.setattr(clock, "captured", 0.0)
    monkeypatch.setattr("dy2static.runtime.ledger._ALLOWANCE", 4.0)
    monkeypatch.setattr(Clock, "now", staticmethod(lambda: now[0]))
    return now


@pytest.fixture
def tried(monkeypatch):
    """The codes of the functions of all tries of a capture."""
    found, compile_call = [], pipeline.compile_call

    def counted(function, *args, **options):
        found.append(function.__code__)
        return compile_call(function, *args, **options)
    monkeypatch.setattr(pipeline, "compile_call", counted)
    return found


@pytest.fixture
def slow(time, tried, monkeypatch):
    """Every try of a capture takes a second."""
    compile_call = pipeline.compile_call

    def delayed(*args, **options):
        time[0] += 1
        return compile_call(*args, **options)
    monkeypatch.setattr(pipeline, "compile_call", delayed)
    return tried


def captured(ledger, time, seconds):
    with ledger.bill() as bill:
        time[0] += seconds
    return bill


def test_what_may_be_owed_grows_with_the_time(time):
    ledger, found = Ledger(), []
    for _ in range(61):
        while not ledger.is_spent:
            captured(ledger, time, 0.5)
        found.append(ledger.owed)
        time[0] += 1
    assert [found[k] for k in (0, 1, 12, 60)] == pytest.approx([4, 5.5, 22, 94], abs=0.5)


def test_calls_pay_by_the_time_that_they_take(time):
    ledger = Ledger()
    bill = captured(ledger, time, 3)
    bill.used(0.5)
    assert ledger.owed == 2
    bill.needed(0.001)
    assert ledger.owed == pytest.approx(1.8) and ledger.limit == pytest.approx(4.2)
    bill.needed(1)
    assert ledger.owed == 0 and ledger.limit == pytest.approx(6)
    with bill.more():                                   # its backward
        time[0] += 1
    assert ledger.owed == 1


def storms(x, f, g, h):
    y = f(F.tanh(x))
    assert y.array.ctypes.shape[0] == len(y)
    y = g(F.tanh(y))
    assert y.array.ctypes.shape[0] == len(y)
    return h(F.tanh(y))


def test_parts_share_what_captures_may_take(slow):
    """Before, each of them was captured until it had used up a budget of its own."""
    static = to_static(storms)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for k in range(60):
            functions = [lambda y, n=n: y * n for n in (2, 3, 4)]
            x = variable(3, seed=k)
            np.testing.assert_allclose(static(x, *functions).array, storms(x, *functions).array, rtol=1e-6)
    told = [str(warning.message) for warning in found if "again and again" in str(warning.message)]
    assert len(slow) <= 6 and len(told) == 1 and "test_ledger.py" in told[0] and "another <lambda>" in told[0]
    assert all(warning.filename == __file__ for warning in found)


def test_a_function_of_one_piece(slow, time):
    """It is captured again when the rest of the program has run for long enough, and told of its captures but once."""
    def run(x, f):
        return f(F.relu(x))
    static = to_static(run)
    with pytest.warns(FallbackWarning, match="4 captures, and none .* needed again") as found:
        for _ in range(50):
            static(array(3), lambda y: y * 2)
    assert len(slow) == 5 and len(found) == 1 and static.cache_info().paused > 0
    time[0] += 4
    for _ in range(50):
        static(array(3), lambda y: y * 2)
    assert 8 <= len(slow) <= 13


def test_shapes_that_come_back_are_captured(slow, time):
    """Their calls take long enough for what they save."""
    def run(x):
        time[0] += 0.1
        return F.relu(x)
    static = to_static(run, dynamic=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(200):
            static(array(2 + k % 12))
    assert len(slow) == 13 and static.cache_info().paused == 0      # one more for the time, which is an input from then on


def test_clear_cache_clears_the_ledger(slow):
    static = to_static(lambda x, f: f(x))
    for _ in range(10):
        static(array(3), lambda y: y)
    assert len(slow) == 4
    static.clear_cache()
    for _ in range(10):
        static(array(3), lambda y: y)
    assert len(slow) == 8


@pytest.mark.parametrize("seconds, most", [(0, 25), (1, 6)])
def test_tries_with_free_sizes(time, monkeypatch, seconds, most):
    """Of thirty axes that each need their numbers in the end, not each has the tries for some of its sizes."""
    tried = []

    def once(self, sizes, backend, args, kwargs):
        tried.append(sizes)
        time[0] += seconds
        axes = [axis for k in range(30) for axis in sizes.shape(Sources().get(Argument, None, k), (5 + k,))
                if not isinstance(axis, int)]
        if axes:
            raise SizeNeeded("it depends on a size", axes[0])
        return "program"
    monkeypatch.setattr(Captures, "_once", once)
    captures = Captures(lambda: None, DEFAULTS, type("Varying", (), {"texts": ()})(), {})
    captures._wanted = {(Sources().get(Argument, None, k).path(), 0) for k in range(30)}
    with Ledger().bill() as bill:
        assert captures.program(None, (), {}, bill) == "program"
    assert len(tried) <= most


def test_sequences_that_are_all_in_the_way(tried):
    """After three of them, all are known."""
    def run(xs):
        return sum([F.sum(x) * sum([0.5] * len(x)) for x in xs])
    xs = [array(3 + k) for k in range(9)]
    np.testing.assert_allclose(to_static(run)(xs).array, run(xs).array, rtol=1e-5)
    assert len(tried) <= 5


def inner(x, y):
    z = F.tanh(x)
    assert x.array.ctypes.shape[0] == len(x)
    return F.sum(F.tanh(z)) + F.sum(F.tanh(y))


def outer(x, y):
    assert x.array.ctypes.shape[0] == len(x)
    return inner(x, y) * 2


def test_a_function_between_parts_that_has_cuts_is_not_captured_as_a_whole(tried):
    static = to_static(outer, dynamic=False)
    with pytest.warns(FallbackWarning, match="runs as Python"):
        for k in range(6):
            x, y = variable(3), variable(2 + k)
            np.testing.assert_allclose(static(x, y).array, outer(x, y).array, rtol=1e-6)
    assert not tried.count(inner.__code__)


def in_order(xs):
    return F.sum(F.pad_sequence([xs[k] for k in np.argsort([-len(x) for x in xs])]) ** 2)


def calls_in_order(xs):
    return in_order(xs) * 2


def test_functions_between_parts_leave_orders_at_once():
    static, rng = to_static(calls_in_order), np.random.RandomState(0)
    with pytest.warns(FallbackWarning, match="runs as Python.*put into an order by sizes"):
        for _ in range(12):
            xs = [rng.rand(rng.randint(2, 9), 2).astype("f") for _ in range(4)]
            np.testing.assert_allclose(static(list(xs)).array, calls_in_order(list(xs)).array, rtol=1e-5)
    assert static.stats()["captures"] <= 11

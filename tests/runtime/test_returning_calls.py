"""What is left to Python because it is another one in nearly every call, until such calls are seen to come back."""
import chainer.functions as F
import numpy as np
import pytest

from dy2static import FallbackWarning, pipeline, to_static
from dy2static.runtime.ledger import Clock

ORDERED = "runs as Python.*put into an order by sizes"


@pytest.fixture
def time(monkeypatch):
    """A clock that stands still: captures cost nothing, so that all that come back pay.  ``time[0]`` is what each takes."""
    now, cost, compile_call = [0.0], [0.0], pipeline.compile_call

    def delayed(*args, **options):
        now[0] += cost[0]
        return compile_call(*args, **options)
    monkeypatch.setattr(pipeline, "compile_call", delayed)
    monkeypatch.setattr(Clock, "now", staticmethod(lambda: now[0]))
    return cost


def in_order(xs):
    order = np.argsort([-len(x) for x in xs])
    return F.sum(F.pad_sequence([xs[k] for k in order]) ** 2)


def scaled(xs):
    y = len(xs) > 9 or xs[0].ctypes.shape[0] and in_order(xs)       # runs as Python, and calls the other one
    return y * 2


def batches(count, seed=0):
    rng = np.random.RandomState(seed)
    return [[rng.rand(rng.randint(2, 99), 2).astype("f") for _ in range(4)] for _ in range(count)]


def run(static, function, calls):
    for xs in calls:
        np.testing.assert_allclose(static(list(xs)).array, function(list(xs)).array, rtol=1e-5)


def test_batches_that_come_back_are_compiled(time):
    """Ten batches in turn: they were left to parts for good after six."""
    static, epoch = to_static(in_order), batches(10)
    with pytest.warns(FallbackWarning, match=ORDERED):
        run(static, in_order, epoch)
    assert static.stats()["parts"] > 0
    run(static, in_order, epoch)
    stats = static.stats()
    run(static, in_order, epoch[::-1])
    assert static.stats() == stats and stats["captures"] == 10 and stats["parts"] == stats["cuts"] == stats["fallbacks"] == 0
    assert len(static.dispatcher.programs) == 10


def test_functions_between_parts(time):
    """The cuts that were known before stay."""
    static, epoch = to_static(scaled), batches(9)
    with pytest.warns(FallbackWarning, match="runs as Python"):
        run(static, scaled, epoch)
        known = static.stats()
        run(static, scaled, epoch)
    inner, = [each for each in static.dispatcher.in_parts.dispatchers() if each.function is in_order]
    assert known["cuts"] == 2 and static.stats()["cuts"] == 1 and not inner.in_parts.is_used
    captures = static.stats()["captures"]
    run(static, scaled, epoch)
    assert static.stats()["captures"] == captures and len(inner.programs) == 9


def test_batches_that_do_not_come_back_stay_refused(time, monkeypatch):
    """The programs of before are kept for a while."""
    monkeypatch.setattr("dy2static.dispatch.refusals._PATIENCE", 20)
    static, calls = to_static(in_order), batches(40)
    kept = static.dispatcher.refusals
    with pytest.warns(FallbackWarning, match=ORDERED):
        run(static, in_order, calls[:12])
    assert len(kept._kept) == 6
    run(static, in_order, calls[:1])                    # a single one
    run(static, in_order, calls[12:])
    assert not kept._kept and static.stats()["parts"] > 0


def test_what_does_not_pay_for_captures_stays_refused(time):
    time[0] = 0.1
    static, epoch = to_static(in_order), batches(10)
    with pytest.warns(FallbackWarning, match=ORDERED):
        run(static, in_order, epoch * 2)
    assert static.stats()["parts"] > 0


def test_they_are_refused_again_if_few_come_back(time):
    """Then for good."""
    static, calls = to_static(in_order), batches(60)
    with pytest.warns(FallbackWarning, match=ORDERED):
        run(static, in_order, calls[:7])
    run(static, in_order, calls[:2])
    assert static.stats()["parts"] == 0
    run(static, in_order, calls[7:])
    assert static.stats()["parts"] > 0 and not static.dispatcher.refusals._kept

"""What the compiler does for an unrolled loop grows like the number of its steps: counted in calls of Python functions."""
import sys

import chainer.functions as F
import numpy as np

from dy2static import to_static
from dy2static.backends.loops.grouping import Grouping


def calls_of(function, *args):
    """What the function gives, and how many Python functions it calls."""
    count = [0]

    def look(frame, event, arg):
        count[0] += event == "call"

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        return function(*args), count[0]
    finally:
        sys.setprofile(before)


def beside(xs, w):
    """Steps of which each has a loop over elements that reads no other one's."""
    return sum([F.matmul(F.sigmoid(F.tanh(x * 2 + 1) * x), w) for x in xs])


def decided(xs):
    h = F.sum(xs[0])
    for x in xs:
        if float(h.array) > 0:
            h = h + F.sum(x)
        else:
            h = h * 0.5
    return h


def arrays(count):
    r = np.random.RandomState(0)
    return [r.randn(3, 3).astype("f") for _ in range(count)]


def test_groups_of_nodes(monkeypatch):
    counts = []
    add = Grouping.add

    def counted(self, node):
        _, calls = calls_of(add, self, node)
        counts[-1] += calls

    monkeypatch.setattr(Grouping, "add", counted)
    results = []
    for steps in (40, 160):
        counts.append(0)
        xs, w = arrays(steps), arrays(1)[0]
        results.append(to_static(beside, backend="c", strict=True)(xs, w).array - beside(xs, w).array)
    assert counts[0] and counts[1] < 4.4 * counts[0]
    np.testing.assert_allclose(results, 0, atol=1e-3)          # of sums of 160 terms


def test_decisions_on_array_values():
    counts = []
    for steps in (20, 80):
        xs = arrays(steps)
        result, calls = calls_of(to_static(decided, backend="numpy", strict=True), xs)
        counts.append(calls)
        np.testing.assert_array_equal(result.array, decided(xs).array)
    assert counts[1] < 4.4 * counts[0]

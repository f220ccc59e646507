"""Loops over an axis in steps, of which the number of steps must be known: one program serves all sizes that make as many."""
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import to_static
from dy2static.ir.dims import Dim
from dy2static.native import compiler

STEP = 8
BACKENDS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not compiler.available(), reason="no C compiler"))]
SIZES = (32, 40, 48, 56, 41, 42, 50, 43, 31, 17, 33, 47, 49, 55, 26, 30, 20, 44, 9, 12, 7, 5)

#: For native code: what is captured for a size does not depend on the backend, and numbers of steps differ in nothing but how often they are there.
#: Three numbers of steps, the last of them whole, of one row, and of more rows, by programs for one size and for others.
FEW_SIZES = (32, 41, 42, 43, 26, 31, 9, 48)


def in_pairs(link, x):
    parts = [F.tanh(link(x[i:i + STEP])) for i in range(0, len(x), STEP)]
    total = F.sum(parts[0])
    for a, b in zip(parts, parts[1:]):
        total = total + F.sum((F.mean(a, axis=0) - F.mean(b, axis=0)) ** 2)
    return total


def behind_another(link, x):
    parts = [F.tanh(link(F.sum(x, axis=0, keepdims=True)))]
    for i in range(0, len(x), STEP):
        parts.append(F.tanh(link(x[i:i + STEP])) + parts[0][0])
    return F.sum(F.concat(parts, axis=0) ** 2)


def fine_and_coarse(link, x):
    fine = [F.mean(F.tanh(link(x[i:i + STEP])), axis=0) for i in range(0, len(x), STEP)]
    coarse = [F.mean(F.tanh(link(x[i:i + 2 * STEP])), axis=0) for i in range(0, len(x), 2 * STEP)]
    return F.sum(F.stack(fine) ** 2) + F.sum(F.stack(coarse) ** 3)


def coarse_and_fine(link, x):
    """Neither step is a multiple of the other."""
    coarse = [F.mean(F.tanh(link(x[i:i + 3 * STEP])), axis=0) for i in range(0, len(x), 3 * STEP)]
    fine = [F.mean(F.tanh(link(x[i:i + 2 * STEP])), axis=0) for i in range(0, len(x), 2 * STEP)]
    return F.sum(F.stack(fine) ** 2) + F.sum(F.stack(coarse) ** 3)


def beginning_with_the_last(link, x):
    places, total = range(0, len(x), STEP), 0.0
    for k, i in enumerate(reversed(places)):
        total = total * 0.5 + F.sum(F.tanh(link(x[i:i + STEP]))) * k
    return total + len(places) + places[-1] + (STEP in places)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function, most", [(in_pairs, 13), (behind_another, 10), (fine_and_coarse, 11), (coarse_and_fine, 11),
                                            (beginning_with_the_last, 11)])
def test_a_program_for_each_number_of_steps(function, most, backend):
    np.random.seed(0)
    link = L.Linear(3, 4)
    static = to_static(function, backend=backend)
    for n in SIZES if backend == "numpy" else FEW_SIZES:
        x, found = np.random.RandomState(n).uniform(-1, 1, (n, 3)).astype("f"), []
        for run in (function, static):
            link.cleargrads()
            loss = run(link, x)
            loss.backward()
            found.append((loss.array, link.W.grad, link.b.grad))
        for a, b in zip(*found):
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)
    info = static.cache_info()
    assert info.captures <= most and not info.fallbacks
    if backend == "numpy":
        for n in range(26, 56):                         # numbers of steps that are known by now
            static(link, np.zeros((n, 3), "f"))
        assert static.cache_info().captures <= info.captures + 2


def test_the_stop_of_a_range_is_that_of_the_call():
    @to_static(backend="numpy")
    def function(x):
        parts, places = [x[i:i + STEP] for i in range(0, len(x), STEP)], range(0, len(x), STEP)
        total = sum([float((a.sum(0) * b.sum(0)).sum()) for a, b in zip(parts, parts[1:])])
        return total, places.stop, places.start, places.step, str(places), type(places) is range, places == range(0, len(x), STEP)
    for n in SIZES[:12]:
        x = np.random.RandomState(n).rand(n, 2)
        total, *others = function(x)
        parts = [x[i:i + STEP] for i in range(0, n, STEP)]
        assert others == [n, 0, STEP, f"range(0, {n}, {STEP})", True, True]
        np.testing.assert_allclose(total, sum([(a.sum(0) * b.sum(0)).sum() for a, b in zip(parts, parts[1:])]))


def test_a_range_of_known_items_is_one_of_pythons():
    def function(x):
        places = range(0, len(x), STEP)
        parts = [x[i:i + STEP] for i in places]
        total = sum([float((a.sum(0) * b.sum(0)).sum()) for a, b in zip(parts, parts[1:])])
        return (type(places) is range, isinstance(places, range), list(places), len(places), places[-1], list(reversed(places)),
                STEP in places, places == range(0, STEP * len(places), STEP), bool(places), max(places), list(enumerate(places)),
                places[1:], total > 0)
    static = to_static(function, backend="numpy")
    for n in SIZES:
        x = np.random.RandomState(n).rand(n, 2)
        assert static(x) == function(x)
    assert static.cache_info().captures <= 13


def test_sequences_of_unknown_length_are_ranges_and_tuples():
    @to_static(strict=True, backend="numpy")
    def function(x):
        places, rows, total = range(len(x)), F.separate(x), 0.0
        for i, row in zip(places, rows):
            total = total + F.sum(row) * i
        return total, type(places) is range, isinstance(places, (list, range)), isinstance(places, list), isinstance(rows, tuple)
    for n in (4, 5, 6, 7, 8):
        total, *others = function(np.ones((n, 2), "f"))
        assert others == [True, True, False, True] and total.array == n * (n - 1)


def test_quotients_between_bounds_are_numbers():
    n = Dim("length_n0_from9_upto16")
    assert (n + 7) // 8 == 2 and (n - 1) // 8 == 1 and -(-n // 8) == 2 and (n + 15) // 16 == 1 and 3 * n // 64 == 0
    assert str(n // 8) == "length_n0_from9_upto16 // 8" and str((n + 11) // 12) == "(length_n0_from9_upto16 + 11) // 12"

"""Attention in C computes no columns that a mask drops, and gives what it would give with them."""
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static
from dy2static.native import compiler

pytestmark = [pytest.mark.any_python, pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")]

ROWS = 230
PLACES = np.arange(ROWS)
CAUSAL = PLACES <= PLACES[:, None]
LATER = ~CAUSAL
WINDOW = CAUSAL & (PLACES > PLACES[:, None] - 40)
SHORT = (PLACES < np.array([90, ROWS])[:, None])[:, None, None]             # keys of two sequences, the first one shorter
BOTH = SHORT & SHORT.transpose(0, 1, 3, 2)                                  # of some queries no key is kept
LATE = np.broadcast_to(PLACES >= 100, (ROWS, ROWS)).copy()
HOLES = CAUSAL & (PLACES % 7 > 0) | np.eye(ROWS, dtype=bool)


def attention(mask, fill=-1e9, scale=0.25):
    def attend(q, k, v):
        scores = F.matmul(q, k, transb=True) * scale
        kept = np.broadcast_to(mask, scores.shape)
        return F.matmul(F.softmax(F.where(kept, scores, np.full(scores.shape, fill, scores.dtype)), axis=3), v)
    return attend


def inverted(q, k, v):
    scores = F.matmul(q, k, transb=True)
    return F.matmul(F.softmax(F.where(np.broadcast_to(LATER, scores.shape), np.full(scores.shape, -np.inf), scores / 4), axis=3), v)


ATTENTION = {
    "causal": attention(CAUSAL), "window": attention(WINDOW), "keys": attention(SHORT), "keys and queries": attention(BOTH),
    "late": attention(LATE), "holes": attention(HOLES), "all": attention(CAUSAL | True), "none": attention(CAUSAL & False),
    "infinite": attention(CAUSAL, -np.inf), "inverted": inverted,
    "scores far below the fill": attention(CAUSAL, -1e4, -900.0),
}
OTHER = {
    "fill that counts": attention(CAUSAL, -2.0),
    "added behind it": lambda q, k, v: F.matmul(F.softmax(
        F.where(np.broadcast_to(CAUSAL, (2, 3, ROWS, ROWS)), F.matmul(q, k, transb=True), np.full((2, 3, ROWS, ROWS), -1e9))
        + np.broadcast_to(PLACES * 1e8, (2, 3, ROWS, ROWS)), axis=3), v),
    "large factor": attention(CAUSAL, scale=1e30),
}


def arrays(seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((2, 3, ROWS, size)).astype(dtype) for size in (16, 16, 20)]


def results_of(function, data, train):
    xs = [chainer.Variable(x.copy()) for x in data]
    with chainer.using_config("enable_backprop", train):
        y = function(*xs)
    if train:
        F.sum(y * y).backward()
    return [y.array, *(x.grad for x in xs if x.grad is not None)]


@pytest.mark.parametrize("name", [*ATTENTION, *OTHER])
def test_columns_that_a_mask_drops(name):
    function = {**ATTENTION, **OTHER}[name]
    fast = to_static(function, backend="c", strict=True)
    with chainer.no_backprop_mode():
        assert ("dy_kept_columns(" in fast.program(*map(chainer.Variable, arrays())).native_code) == (name in ATTENTION)
    for train in (False, True):
        for seed in (0, 1):
            expected, actual = (results_of(f, arrays(seed), train) for f in (function, fast))
            assert len(expected) == len(actual) == (4 if train else 1)
            for a, b in zip(actual, expected):
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11 * np.abs(b).max())
    assert fast.stats()["fallbacks"] == 0


@pytest.mark.parametrize("which, number", [(0, np.nan), (1, np.nan), (1, 1e300), (2, np.inf), (2, np.nan)])
@pytest.mark.parametrize("row", [3, 228])
def test_numbers_that_are_not_finite_in_dropped_columns(which, number, row):
    """Infinity times the zero of a dropped weight is NaN, and an overflow of a dropped score is reported."""
    function, data = attention(CAUSAL), arrays()
    data[which][1, 2, row, 5] = number
    fast = to_static(function, backend="c", strict=True)
    found = []
    for f in (function, fast, fast):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found.append((results_of(f, data, False)[0], {str(w.message) for w in told}))
    for result, messages in found[1:]:
        np.testing.assert_allclose(result, found[0][0], rtol=1e-10, atol=1e-11)
        assert messages == found[0][1]


@pytest.mark.parametrize("rows", [ROWS, 128])
def test_single_precision(rows):
    function, data = attention(CAUSAL[:rows, :rows]), [x[:, :, :rows] for x in arrays(dtype="float32")]
    fast = to_static(function, backend="c", strict=True)
    expected, actual = (results_of(f, data, True) for f in (function, fast))
    for a, b in zip(actual, expected):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5 * np.abs(b).max())

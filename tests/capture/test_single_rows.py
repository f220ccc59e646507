"""Slices of one row, ``x[i:i + 1]``, in loops on array values: their size is known, whatever the number of the row."""
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static
from dy2static.native import compiler

BACKENDS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not compiler.available(), reason="no C compiler"))]


def variables(x, limit):
    """Rows are added until the sum is large."""
    h, i = x[:1] * 0, 0
    while F.sum(h).array < limit:
        h = h + x[i:i + 1] * x[1 + i:i + 1 + 1, 0]
        i += 1
    return h


def columns(x, limit):
    h, i = x[:, 0:1] * 0, 0
    while F.sum(h).array < limit:
        h = h + F.transpose(x[..., i:i + 1])[0][:, None]
        i = i + 1
    return h


def arrays(x, limit):
    """A local function writes into an array that it shares with the loop."""
    x = x.array
    cache = np.zeros((6, 3), "f")

    def keep(i, row):
        cache[i] = row[0]
    i = 0
    while cache.sum() < limit:
        row = x[i:i + 1] + 1
        keep(i, row)
        cache[i:i + 1] = cache[i:1 + i] + row
        i = 1 + i
    return cache.sum(axis=0)


def counted(x, limit):
    h = x[:1] * 0
    for i in range(6):
        h = h + x[i:i + 1]
        if F.sum(h).array > limit:
            break
    return h


def given(limit, seed=0):
    return chainer.Variable(np.random.RandomState(seed).rand(6, 3).astype("f") + 0.5), limit


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [variables, columns, arrays, counted])
def test_slices(function, backend):
    compiled = to_static(function, strict=True, backend=backend)
    for limit in (0.1, 4.0, 7.0):
        found = []
        for run in (function, compiled):
            x, limit = given(limit)
            y = run(x, limit)
            if isinstance(y, chainer.Variable):
                F.sum(y * y).backward()
            found.append((getattr(y, "array", y), x.grad))
        np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
        assert (found[0][1] is None) == (found[1][1] is None)
        if found[0][1] is not None:
            np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-4)
    assert compiled.stats()["captures"] <= 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_beyond_the_last_row_there_is_nothing(backend):
    """Behind the array, the slice has no row: such a call runs as eagerly, and so do the next ones."""
    def total(x, n):
        found, i = x[0, 0] * 0, n * 0
        while i < n:
            found = found + F.sum(x[i:i + 1])
            i = i + 1
        return found

    compiled = to_static(total, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in (3, 6, 9, 2, 8, 6):
            n = np.array(n)
            with chainer.no_backprop_mode():
                np.testing.assert_allclose(compiled(given(0)[0], n).array, total(given(0)[0], n).array, rtol=1e-5)

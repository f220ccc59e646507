"""Slices of one row, ``x[i:i + 1]``, in loops on array values: their size is known, whatever the number of the row."""
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
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


class Pointer(chainer.Chain):
    """A cell is given the points in an order, each as an array of one row."""

    def __init__(self):
        super().__init__()
        np.random.seed(0)
        with self.init_scope():
            self.cell, self.encoder, self.query = L.LSTM(2, 5), L.Linear(2, 5), L.Linear(5, 5)

    def forward(self, points, order):
        self.cell.reset_state()
        keys, x, loss = self.encoder(points), np.zeros((1, 2), "f"), 0
        for k in range(len(order)):
            scores = F.matmul(self.query(self.cell(x)), keys, transb=True)
            t = int(order[k])
            loss += F.softmax_cross_entropy(scores, np.array([t], "i"))
            x = points[t:t + 1]
        return loss

    def greedy(self, points):
        self.cell.reset_state()
        keys, x, found = self.encoder(points), np.zeros((1, 2), "f"), []
        for _ in range(len(points)):
            scores = F.matmul(self.query(self.cell(x)), keys, transb=True)
            t = int(scores.array.argmax())
            found.append(t)
            x = points[t:t + 1]
        return F.sum(self.cell.h) * found[-1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_outside_of_loops_where_their_number_matters(backend):
    """A program for each number of points, none of which runs a line as Python."""
    model, random = Pointer(), np.random.RandomState(0)
    forward, greedy = (to_static(lambda *args, f=f: f(model, *args), strict=True, backend=backend)
                       for f in (Pointer.forward, Pointer.greedy))
    for n in (4, 6, 5, 4, 6, 5, 4, 5, 6):
        points, order = random.rand(n, 2).astype("f"), random.permutation(n).astype("i")
        for compiled, eager, args in ((forward, model.forward, (points, order)), (greedy, model.greedy, (points,))):
            found = []
            for run in (eager, compiled):
                model.cleargrads()
                loss = run(*args)
                loss.backward()
                found.append([loss.array, model.cell.h.array, *[0 if p.grad is None else p.grad for p in model.params()]])
            for a, b in zip(*found):
                np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)
    assert forward.cache_info().captures == greedy.cache_info().captures == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_of_arrays_of_any_size_in_loops(backend):
    def total(x, limit):
        h, i = x[:1] * 0, 0
        while F.sum(h).array < limit:
            h = h + F.tanh(x)[i:i + 1]
            i += 1
        return h

    compiled = to_static(total, strict=True, backend=backend)
    for n in (6, 9, 7, 12, 10, 8, 11):
        x = np.random.RandomState(n).rand(n, 3).astype("f") + 0.5
        found = []
        for run in (total, compiled):
            v = chainer.Variable(x)
            y = run(v, np.float32(n * 0.9))
            F.sum(y * y).backward()
            found.append((y.array, v.grad))
        np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-5)
        np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-4)
    assert compiled.cache_info().captures <= 4


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_that_are_not_there_outside_of_loops(backend):
    """Nothing is behind the last row: from such a call on, the number of rows is not taken to be one."""
    def joined(x, place, y):
        t = int(place)
        return F.sum(F.reshape(x[t:t + 1], (-1,)) * y)

    compiled = to_static(joined, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n, t in ((4, 2), (5, 4), (6, 0), (7, 3), (7, 7), (6, -1), (6, 9), (5, 2), (4, -4)):
            x, y = chainer.Variable(np.random.RandomState(n).rand(n, 3).astype("f")), np.ones(3, "f")
            empty = not 0 <= t < n and t != -n
            found = []
            for run in (joined, compiled):
                try:
                    found.append(float(run(x, np.array(t), y).array))
                except Exception as error:
                    found.append(type(error))
            assert found[0] == found[1] if empty else found[1] == pytest.approx(found[0], rel=1e-5), (n, t, found)

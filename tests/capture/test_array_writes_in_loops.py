"""Writes into arrays in loops: native code writes in place, and failures leave what was written before them."""
import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
from written_arrays import Holder

from dy2static import to_static


def filled(x, n):
    a, i = np.zeros((5, 3), "f"), 0
    while i < n:
        a[i] = x.array[0] * i
        i += 1
    return F.sum(x * a), a


def filled_argument(x, n):
    """The loop begins with what somebody else holds, and that is read afterwards."""
    begin, i = x.array * 2, 0
    a = begin.copy()
    while i < n:
        a[i] = -1
        i += 1
    return x * begin, x * a


def filled_by_side(x, n):
    a, i = np.zeros((5, 3), "f"), 0
    while i < n:
        if i > 1:
            a[i, 1:] = i
        else:
            a += 1
        i += 1
    return x * a


def read_before_and_after(x, n):
    """What was there before the write is read after it, in the same iteration."""
    a, i, total = np.ones((5, 3), "f"), 0, np.zeros((5, 3), "f")
    while i < n:
        before = a * 1
        a[i] = 7
        total = total + before + a
        i += 1
    return x * total, x * a


def swapped(x, n):
    a, b, i = np.zeros((5, 3), "f"), np.ones((5, 3), "f"), 0
    while i < n:
        a[i] = i + 2
        a, b = b, a
        i += 1
    return x * a, x * b


def saved_by_gradient(x, n):
    """Each iteration's contents are read again by the backward."""
    a, i, y = np.ones((5, 3), "f"), 0, x
    while i < n:
        a[i] = i + 2
        y = y * a
        i += 1
    return F.sum(y)


def begun_in_another(x, n):
    """The inner loop changes a copy of what the outer one reads afterwards."""
    a, i = np.ones((5, 3), "f"), 0
    total = x
    while i < n:
        b, j = a.copy(), 0
        while j < i:
            b[j] = 3
            j += 1
        total = total + b + a
        a[i] = 5
        i += 1
    return total


def fails_half_way(x, n):
    a, i = np.zeros((2, 3), "f"), 0
    while i < n:
        a[i] = i
        i += 1
    return F.sum(x) + a.sum()


IN_PLACE = [filled, filled_argument, filled_by_side, read_before_and_after, swapped, saved_by_gradient, begun_in_another]


@pytest.mark.parametrize("program", IN_PLACE, ids=lambda f: f.__name__)
def test_filled_in_loops(program):
    """Values, gradients and results of earlier calls, for several counts of one program."""
    compiled = to_static(program)
    kept = []
    for n in (3, 0, 5, 2, 3):
        made = []
        for run in (program, compiled):
            x = chainer.Variable(np.arange(15, dtype="f").reshape(5, 3) / 4)
            results = run(x, np.array(n))
            results = results if isinstance(results, tuple) else (results,)
            F.sum(results[0]).backward()
            made.append([getattr(y, "array", y) for y in results] + [x.grad])
        for want, got in zip(*made):
            np.testing.assert_array_equal(want, got)
        kept += [(got, got.copy()) for got in made[1]]
    for got, copy in kept:
        np.testing.assert_array_equal(got, copy)


@pytest.mark.parametrize("program", [filled, filled_argument, filled_by_side, read_before_and_after])
def test_writes_change_the_array(program):
    """Where nobody reads the contents as they were, the generated loop writes into the array itself."""
    x = chainer.Variable(np.ones((5, 3), "f"))
    code = to_static(program, strict=True).program(x, np.array(3)).code
    assert code.count(".copy('K')") == 1 and "do_" not in code[code.index("while"):code.rindex(" + 1")]


def test_failure_in_a_filled_array():
    compiled = to_static(fails_half_way)
    for n in (1, 3, 2):
        x = chainer.Variable(np.ones((2, 3), "f"))
        if n == 3:
            with pytest.raises(IndexError):
                compiled(x, np.array(n))
        else:
            assert compiled(x, np.array(n)).array == fails_half_way(x, np.array(n)).array


@pytest.mark.parametrize("write", [
    lambda g, x: np.maximum(g, x, out=g), lambda g, x: np.clip(x, 0, 1, out=g), lambda g, x: np.add.at(g, np.array([0, 0]), x[:2]),
    lambda g, x: g.itemset(1, 2) if hasattr(g, "itemset") else g.put([1], [2]), lambda g, x: g.put([0, 1], x[1:])],
    ids=["maximum", "clip", "add_at", "itemset", "put"])
def test_what_may_fail_writes_into_arrays_that_are_kept_already(write):
    """Before what may fail, the program stores what was written so far; the write comes behind that."""
    def make(compile):
        holder = Holder()

        def f(x):
            holder.kept["g"] = g = np.zeros(3, "f")
            write(g, x)
            holder.last = g
        return compile(f), [holder]
    against_eager.check(make, [lambda: (np.arange(3, dtype="f"),)] * 2, backward=False)


@pytest.mark.parametrize("compute", [lambda g, x: g ** 2, lambda g, x: x[0] ** -0.5 + g, lambda g, x: masked(g / x, 0),
                                     lambda g, x: masked(g / x, 1.5)], ids=["power", "number", "mask", "mask_of_floats"])
def test_what_cannot_fail_stores_nothing_before_it(compute):
    def make(compile):
        holder = Holder()

        def f(x):
            holder.kept["g"] = g = np.zeros_like(x)
            holder.last = compute(g, x)
            g += x
        made = compile(f)
        return made, [holder]
    against_eager.check(make, [lambda: (np.arange(1, 4, dtype="f"),), lambda: (np.zeros(3, "d"),)], backward=False, strict=True)


def masked(y, number):
    y[np.isnan(y)] = number
    return y

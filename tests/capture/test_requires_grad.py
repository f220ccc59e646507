"""Whether gradients require a gradient themselves: as in eager, however branches and loops went."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static


def squares(x, w):
    while float(F.sum(x).array) < 6:
        x = x * x + x
    return x


def linear(x, w):
    n = 0
    while n < int(w.array[0]):
        x = x * 2
        n += 1
    return x


def product_with_parameter(x, w):
    h = x
    while float(abs(h.array).sum()) < 20:
        h = h * w
    return h


def branch(x, w):
    y = x * w if float(w.array[0]) > 1 else x * 3
    return y + x


def fork(x, w):
    if float(w.array[0]) > 1:
        return F.sum(x)
    return F.sin(x) * w


def relu(x, w):
    while float(F.sum(x).array) > 2:
        x = F.relu(x - w * 0.1)
    return x


def branch_in_loop(x, w):
    n = 0
    while n < int(w.array[0]):
        x = x * w if float(F.sum(x).array) > 3 else x * 2
        n += 1
    return x


def squares_in_branch(x, w):
    for _ in range(int(w.array[1])):
        x = x * x if float(F.sum(x).array) > 3 else x * w
    return x


def last_state_is_new(x, w):
    h, n = x, 0
    while n < int(w.array[0]):
        h = w * 2 if float(h.array[0]) > 1.2 else h * 2
        n += 1
    return h * x


def a_step_late(x, w):
    h, n = x, 0
    while n < int(w.array[0]):
        x, h, n = h, w * 2, n + 1
    return x * h


def branch_in_branch(x, w):
    y = x
    if float(x.array[0]) > 0.5:
        y = x * w if float(w.array[0]) > 1 else x * 3
    return y + x


#: Programs, and up to which order what is seen of their gradients is exact.
PROGRAMS = [(squares, 3), (linear, 3), (product_with_parameter, 2), (branch, 3), (fork, 3), (relu, 3),
            (branch_in_loop, 2), (squares_in_branch, 2), (last_state_is_new, 3), (a_step_late, 3), (branch_in_branch, 3)]


def flags(function, x, w, order):
    """Values and flags of gradients up to an order, with respect to both arguments."""
    x, w = chainer.Variable(np.array(x, "d")), chainer.Variable(np.array(w, "d"))
    found, level = [], [F.sum(function(x, w))]
    for _ in range(order):
        following = []
        for y in level:
            if y is None or not y.requires_grad or y.creator is None:
                continue
            for g in chainer.grad([y], [x, w], enable_double_backprop=True):
                found.append(None if g is None else (g.requires_grad, g.array))
                following.append(None if g is None else F.sum(g))
        level = following
    return found


@pytest.mark.parametrize("program, order", PROGRAMS, ids=[program.__name__ for program, _ in PROGRAMS])
def test_flags(program, order):
    compiled = to_static(program, strict=True)
    for x in ([0.3, 0.4, 0.5], [1.0, 1.0, 1.0], [2.0, 2.5, 3.0], [0.9, 0.4, 0.2]):
        for w in ([0.5, 2.0, 2.0], [1.5, 1.5, 1.5], [2.0, 2.0, 1.0], [3.0, 3.0, 3.0]):
            eager, found = flags(program, x, w, order), flags(compiled, x, w, order)
            assert [g and g[0] for g in eager] == [g and g[0] for g in found], (x, w)
            for a, b in zip(eager, found):
                if a is not None:
                    np.testing.assert_allclose(a[1], b[1], rtol=1e-9)
    assert compiled.stats()["programs"] == 1


@pytest.mark.parametrize("check", [0, 1])
def test_gradients_of_results_may_be_given_as_arrays(check):
    """Chainer's functions take them for Variables."""
    def gradients(function):
        x = chainer.Variable(np.linspace(-1, 1, 6).reshape(2, 3).astype("f"))
        first, = chainer.grad(function(x), [x], [None, np.full((2, 3), 0.5, "f")], enable_double_backprop=True)
        return first.array, chainer.grad([first], [x], [np.ones((2, 3), "f")])[0].array

    def two(x):
        return F.sum(x), F.tanh(x)
    compiled = to_static(two, backend="numpy", check=check)
    np.testing.assert_allclose(gradients(compiled), gradients(two), rtol=1e-6)
    assert compiled.stats()["fallbacks"] == 0

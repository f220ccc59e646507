"""Decisions of which one side raises: loops of the other side are native code."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import not_to_static, to_static
from dy2static.native import compiler

X = np.random.RandomState(0).standard_normal((7, 4, 20)).astype("f")
W = np.random.RandomState(1).standard_normal((20, 20)).astype("f") * 0.2


def collected(x, w, steps):
    h, states = x[0], []
    i = 0
    while i < int(steps.sum()):
        new = F.tanh(F.matmul(h, w) + x[i])
        states.append(F.relu(new) * 2)
        h = new
        i += 1
    return F.stack(states)


def raised_by_user(x, w, steps):
    if int(steps.sum()) == 0:
        raise ValueError("no steps")
    total = F.sum(x)
    if int(steps.sum()) > 6:
        raise KeyError("too many", int(steps.sum()))
    return total * F.sum(w)


def stacked_twice(x, w, steps):
    """The list lives on: it is changed neither by what is done with the array, nor are the array's items by more of them."""
    states, i = [], 0
    while i < int(steps.sum()):
        states.append(x[i] + 1)
        i += 1
    first = F.stack(states)
    doubled = first * first
    while i < 7:
        states.append(x[i] + 1)
        i += 1
    return doubled, first, F.stack(states), states[0]


def appended_twice(x, w, steps):
    """Two lists are made of one; an array is appended after another one."""
    a, i = [x[0] * 2], 1
    while i < int(steps.sum()):
        new = x[i] * 3
        b = a + [x[i]]
        a.append(new)
        a.append(b[0] + new)
        i += 1
    return F.stack(a)


def made_longer_again_and_again(x, w, steps):
    """The list stays as it is, and so does the array of its items, while longer lists are made of it."""
    states, i = [], 0
    while i < int(steps.sum()):
        states.append(x[i] + 1)
        i += 1
    first, h, i = F.stack(states), x[0], 0
    while i < 40:
        longer = states + [F.tanh(h) * 2]
        h = h * w[:4] + F.sum(F.stack(longer), axis=0) * 0.01
        i += 1
    return first, h, states[-1]


@not_to_static
def noted(steps):
    """A function that raises nothing, whatever its name says."""


noted.__name__ = "raise"


def named_as_what_raises(x, w, steps):
    if int(steps.sum()) > 3:
        noted(steps)
        h = x * 2
    else:
        h = F.tanh(x)
    return F.sum(F.matmul(h[0], w))


def outcome(function, steps):
    x, w = chainer.Variable(X), chainer.Variable(W)
    try:
        ys = function(x, w, np.array(steps))
    except Exception as error:
        return type(error), str(error)
    ys = ys if isinstance(ys, tuple) else (ys,)
    found = [y.array for y in ys]
    sum(F.sum(y * y) for y in ys).backward()
    return [*found, x.grad, w.grad]


def same(found, expected):
    if not isinstance(expected, list):
        assert found == expected
        return
    for a, b in zip(found, expected):
        assert (a is None) == (b is None)
        if b is not None:
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", ["numpy", pytest.param("c", marks=pytest.mark.skipif(
    not compiler.available(), reason="there is no C compiler on this machine"))])
@pytest.mark.parametrize("function", [
    collected, raised_by_user, stacked_twice, appended_twice, made_longer_again_and_again,
    named_as_what_raises], ids=lambda f: f.__name__)
def test_the_same_as_in_eager_mode(function, backend):
    compiled = to_static(function, backend=backend)
    for steps in ([2, 1], [3, 4], [0, 0], [1, 0], [3, 2], [0, 0], [2, 1]):
        same(outcome(compiled, steps), outcome(function, steps))


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
def test_the_loop_is_native_and_copies_nothing():
    compiled = to_static(collected, backend="c")
    with chainer.no_backprop_mode():
        program = compiled.program(X, W, np.array([2, 1]))
    assert "while (1)" in program.native_code and "dy_list_with_room(" in program.native_code
    assert "while " not in program.code or "do_host_call" in program.code

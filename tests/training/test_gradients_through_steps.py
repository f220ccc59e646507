"""Gradients of what steps of gradient descent lead to, to second order; the steps are a loop of the program."""
import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import array
from chainer import Variable

from dy2static import to_static

STEPS = 8


def loss_of(weights, x, y):
    w, b = weights
    return F.mean_squared_error(F.tanh(F.linear(x, w, b)), y)


def descended(weights, x, y, rate, steps=STEPS):
    for _ in range(steps):
        grads = chainer.grad([loss_of(weights, x, y)], weights, enable_double_backprop=True)
        weights = [w - F.broadcast_to(rate, w.shape) * g for w, g in zip(weights, grads)]
    return weights


def loss(w, b, x, y, rate):
    return loss_of(descended([w, b], x, y, rate), x, y)


def with_gradients(w, b, x, y, rate):
    """MAML with all inside."""
    result = loss(w, b, x, y, rate)
    return (result, *chainer.grad([result], [w, b, rate], enable_double_backprop=True))


def with_second_gradients(w, b, x, y, rate):
    result, *grads = with_gradients(w, b, x, y, rate)
    return (result, *grads, *chainer.grad([sum(F.sum(g * g) for g in grads)], [w, b, rate]))


def over_tasks(w, b, x, y, rate):
    """A loop of tasks, each with a loop of steps."""
    total = 0
    for _ in range(7):
        total += loss(w, b, x, y, rate)
        x = x * 0.9
    return (total, *chainer.grad([total], [w, b, rate], enable_double_backprop=True))


def with_momentum(w, b, x, y, rate):
    weights, moved = [w, b], [np.zeros_like(w.array), np.zeros_like(b.array)]
    for _ in range(STEPS):
        grads = chainer.grad([loss_of(weights, x, y)], weights, enable_double_backprop=True)
        moved = [0.9 * m - F.broadcast_to(rate, g.shape) * g for m, g in zip(moved, grads)]
        weights = [w + m for w, m in zip(weights, moved)]
    return loss_of(weights, x, y)


# ---- where one of the Variables was computed from another, gradients go on there

def bias_of_weights(w, b, x, y, rate):
    for _ in range(STEPS):
        gw, gb = chainer.grad([loss_of((w, b), x, y)], [w, b], enable_double_backprop=True)
        w = w - 0.1 * gw
        b = b - 0.1 * gb + 0.1 * F.sum(w, axis=1)
    return loss_of((w, b), x, y)


def computed_before(w, b, x, y, rate):
    w = w * 1.5
    b = b + F.sum(w, axis=1)
    for _ in range(STEPS):
        gw, gb = chainer.grad([loss_of((w, b), x, y)], [w, b], enable_double_backprop=True)
        w, b = w - 0.1 * gw, b - 0.1 * gb
    return loss_of((w, b), x, y)


def sometimes_the_same(w, b, x, y, rate):
    for i in range(STEPS):
        gw, gb = chainer.grad([loss_of((w, b), x, y)], [w, b], enable_double_backprop=True)
        w = w - 0.1 * gw
        if float(x[0, 0]) > i:
            b = b - 0.1 * gb
    return loss_of((w, b), x, y)


def one_stays_a_while(w, b, x, y, rate):
    old = b * 2
    for _ in range(STEPS):
        gw, gb = chainer.grad([loss_of((w, old), x, y)], [w, old], enable_double_backprop=True)
        w, old, b = w - 0.1 * gw, b, b - 0.1 * gb
    return loss_of((w, b), x, y)


ROLLED = (loss, with_gradients, with_second_gradients, over_tasks, with_momentum)
WRITTEN_OUT = (bias_of_weights, computed_before, sometimes_the_same, one_stays_a_while)


def seen(function, seed):
    """The results, their gradients, and gradients of these."""
    w, b = chainer.Parameter(array(2, 3, seed=seed)), chainer.Parameter(array(2, seed=seed))
    x, y, rate = array(4, 3, seed=seed), array(4, 2, seed=seed + 1), Variable(np.array(0.1, "f"))
    found = function(w, b, x, y, rate)
    found = list(found) if isinstance(found, tuple) else [found]
    if found[0].creator is not None:
        found += chainer.grad(found[:1], [w, b, rate], enable_double_backprop=True)
        double = [F.sum(g * g) for g in found[-3:] if g is not None and g.requires_grad]
        found += chainer.grad([sum(double)], [w, b, rate]) if double else []
    return [None if v is None else v.array for v in found]


def check(function, backend):
    compiled = to_static(function, backend=backend)
    for seed in range(2):
        for want, got in zip(seen(function, seed), seen(compiled, seed)):
            assert (want is None) == (got is None)
            if want is not None:
                np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-6)
    return compiled.stats()


@pytest.mark.parametrize("function", ROLLED, ids=lambda f: f.__name__)
def test_steps_become_a_loop(function):
    stats = check(function, "numpy")
    assert stats["regions"] and not stats["cuts"] and not stats["fallbacks"]


@pytest.mark.parametrize("function", WRITTEN_OUT, ids=lambda f: f.__name__)
def test_gradients_that_go_on_before_the_iteration(function):
    check(function, "numpy")


def test_native_code():
    assert check(with_second_gradients, "c")["regions"]

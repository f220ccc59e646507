"""`chainer.grad`, `backward` and what goes with them, called inside the compiled function: as eagerly, and in the graph."""
import chainer
import chainer.functions as F
import numpy as np
import pytest
from chainer import Variable

from dy2static import to_static
from tests import against_eager


def array(*shape, seed=0, low=-1.0, high=1.0, dtype="f"):
    return np.random.RandomState(seed).uniform(low, high, shape).astype(dtype)


def variable(*shape, **options):
    return Variable(array(*shape, **options))


def three():
    return variable(2, 3), variable(2, seed=1), variable(4, 3, seed=2)


def pair():
    return variable(3, low=0.5, high=2), variable(3, seed=1, low=0.5, high=2)


def one():
    return (variable(3, low=0.5, high=2),)


# --- programs: functions of Variables ------------------------------------------------------------------------------------

def maml(w, b, x):
    loss = F.mean_squared_error(F.tanh(F.linear(x, w, b)), F.linear(x, w).array)
    gw, gb = chainer.grad([loss], [w, b], enable_double_backprop=True)
    return F.sum(F.sigmoid(F.linear(x, w - 0.1 * gw, b - 0.1 * gb)) ** 2)


def maml_of_two_steps(w, b, x):
    params = [w, b]
    for _ in range(2):
        loss = F.mean(F.relu(F.linear(x, *params)) ** 2)
        grads = chainer.grad([loss], params, enable_double_backprop=True)
        params = [p - 0.1 * g for p, g in zip(params, grads)]
    return F.mean(F.linear(x, *params) ** 2)


def first_order(w, b, x):
    loss = F.mean_squared_error(F.tanh(F.linear(x, w, b)), F.linear(x, w).array)
    grads = chainer.grad([loss], [w, b])
    return [p - 0.1 * g for p, g in zip([w, b], grads)], grads


def gradient_penalty(w, b, x):
    h = F.sum(F.leaky_relu(F.linear(x, w, b)), axis=1)
    g, = chainer.grad([F.sum(h)], [x], enable_double_backprop=True)
    return F.mean((F.sqrt(F.sum(g ** 2, axis=1) + 1e-4) - 1) ** 2) + F.mean(h)


def newton(x):
    for _ in range(4):
        f = F.sum(x ** 4 + 3 * x ** 2 + x)
        g, = chainer.grad([f], [x], enable_double_backprop=True)
        h, = chainer.grad([F.sum(g)], [x])
        x = x - g / h
    return x


def third_order(x):
    y = F.sum(F.sin(x) * x)
    for _ in range(3):
        g, = chainer.grad([y], [x], enable_double_backprop=True)
        y = F.sum(g * x)
    return y


def intermediate(x, z):
    h = F.tanh(x * z)
    y = F.sum(h * h + F.exp(h) * x)
    gh, gx, gz = chainer.grad([y], [h, x, z], enable_double_backprop=True)
    return F.sum(gh * gx) + F.sum(gz * h), gh, gx


def several_outputs(x, z):
    y1, y2 = x * z, F.exp(x)
    return chainer.grad([y1, y2, y1], [x, z, y1], [None, z, x])


def given_gradients(x, z):
    y = F.exp(x) * z
    return chainer.grad([y], [x, z], [x * 2.0], [z, None], enable_double_backprop=True)


def of_itself(x, z):
    y = x * z
    return chainer.grad([y], [y, x]), chainer.grad([x], [x])


def nothing(x, z):
    gx, gz = chainer.grad([F.sum(x * 2.0)], [x, z])
    return gx, gz, gz is None


def not_required(x, z):
    c = Variable(z.array, requires_grad=False)
    h = c * 2.0
    y = x * h
    gx, gc = chainer.grad([F.sum(y)], [x, c])
    return gx, gc is None, h.requires_grad


def constant_gradient(x, z):
    g, = chainer.grad([F.sum(x * 3.0 + z)], [x], enable_double_backprop=True)
    return g, g.requires_grad


def detached(x, z):
    y = F.sum(x * x.array + F.linear(F.reshape(z, (1, 3)), F.reshape(x, (1, 3)).array))
    gx, gz = chainer.grad([y], [x, z])
    return gx, gz


def without_backprop(x, z):
    with chainer.no_backprop_mode():
        h = x * z
    y = h * z
    gx, gz, gh = chainer.grad([F.sum(y)], [x, z, h])
    return gx is None, gz, gh, y


def unchained(x, z):
    h = x * z
    y = h * x
    h.unchain()
    gx, gz, gh = chainer.grad([F.sum(y * h)], [x, z, h])
    return gx, gz is None, gh, y, h.creator is None


def unchained_backward(x, z):
    h = F.exp(x)
    a, b = F.split_axis(F.concat([h, z], axis=0), 2, 0)
    y = a * z
    y.unchain_backward()
    return y * b + h, b.creator is None


def scaled(x):
    return chainer.grad([F.sum(x ** 3)], [x], loss_scale=8.0)


def set_inside(x):
    v = Variable(x.array)
    chainer.grad([F.sum(v ** 3)], [v], set_grad=True)
    return v.grad * 2, v.grad_var * x


def backward_of_leaf(x):
    v = Variable(x.array)
    loss = F.sum(v ** 3)
    loss.backward()
    first = v.grad
    F.sum(v * 2.0).backward()
    return first, v.grad, loss.grad is None, loss.grad_var is None, x * v.grad


def cleared(x):
    v = Variable(x.array)
    F.sum(v ** 3).backward()
    v.cleargrad()
    before = v.grad
    F.sum(v ** 2).backward(enable_double_backprop=True)
    g = v.grad_var
    v.grad = None
    return before is None, v.grad is None, F.sum(g * x)


def backward_of_inputs(x, z):
    x.cleargrad()
    z.cleargrad()
    loss = F.sum(x ** 2 * z)
    loss.backward()
    return loss, x.grad * 2, z.grad_var.requires_grad


def accumulated(x, z):
    loss = F.sum(x ** 2 * z)
    loss.backward()
    loss.backward()
    return loss, x.grad + 1


def backward_twice_differentiable(x, z):
    loss = F.sum(x ** 2 * F.tanh(z))
    loss.backward(enable_double_backprop=True)
    return F.sum(x.grad_var * z.grad_var)


def backward_with_gradient(x):
    y = x * x
    y.grad = x.array * 2
    y.backward()
    return x.grad, y.grad is None


def through_branch(x, z):
    h = x * z
    if h.array.sum() > 0:
        y = F.exp(h) * x
    else:
        y = F.sin(h) + x
    gx, gz = chainer.grad([F.sum(y)], [x, z], enable_double_backprop=True)
    return F.sum(gx * gz), gx


def through_loop(x, z):
    h = x * z
    while h.array.sum() < 20:
        h = h * z + x
    g, = chainer.grad([F.sum(h)], [h])
    return g, h


def state_through_loop(x, z):
    h = x * z
    n = 0
    while n < 3 and h.array.sum() < 200:
        h = F.tanh(h * 1.5) * 2
        n += 1
    gx, = chainer.grad([F.sum(h)], [x], enable_double_backprop=True)
    return F.sum(gx * z)


def newton_in_loop(x):
    while F.sum(abs(x * x - 2)).array > 1e-4:
        g, = chainer.grad([x * x - 2], [x])
        x = x - (x * x - 2) / g
    return x


def newton_of_gradients_in_loop(x):
    n = 0
    while n < 20:
        g, = chainer.grad([F.sum(x ** 4 + x ** 2 + x)], [x], enable_double_backprop=True)
        if F.sum(abs(g)).array < 1e-3:
            break
        h, = chainer.grad([F.sum(g)], [x])
        x = x - g / h
        n += 1
    return x


def in_branch(x, z):
    if z.array.sum() > 3:
        h = x * z
        g, = chainer.grad([F.sum(h ** 2)], [h])
        y = g * x
    else:
        y = x * 2.0
    return y


def leaf_in_loop(x):
    w = x.array
    n = 0
    while (w * w).sum() > 0.1:
        v = Variable(w)
        F.sum(v ** 2 + v ** 4).backward()
        w = w - 0.05 * v.grad
        n += 1
    return w, n, x * w


def many_functions(w, b, x):
    h = F.batch_normalization(F.linear(x, w, b), b.array + 2, b.array)
    h = F.log_softmax(F.dropout(h, 0.0)) * F.softmax(h) + F.maximum(h, h * 0.5) - F.clip(h, -0.5, 0.5)
    h = F.concat([h, F.sigmoid(h)], axis=1)[:, 1:3]
    loss = F.softmax_cross_entropy(h, np.array([0, 1, 1, 0], "i"), enable_double_backprop=True) + F.max(h)
    gw, gb, gx = chainer.grad([loss], [w, b, x], enable_double_backprop=True)
    return F.sum(gw ** 2) + F.sum(gx ** 2), gw, gb, gx


COMPILED = [
    (maml, three), (maml_of_two_steps, three), (first_order, three), (gradient_penalty, three), (newton, one),
    (third_order, one), (intermediate, pair), (several_outputs, pair), (given_gradients, pair), (of_itself, pair),
    (nothing, pair), (not_required, pair), (constant_gradient, pair), (detached, pair), (without_backprop, pair),
    (unchained, pair), (unchained_backward, pair), (scaled, one), (set_inside, one), (backward_of_leaf, one), (cleared, one),
    (backward_of_inputs, pair), (accumulated, pair), (backward_twice_differentiable, pair), (backward_with_gradient, one),
    (through_branch, pair), (through_loop, pair), (state_through_loop, pair), (newton_in_loop, one),
    (newton_of_gradients_in_loop, one), (in_branch, pair), (leaf_in_loop, one), (many_functions, three)]


@pytest.mark.parametrize("program, inputs", COMPILED, ids=lambda x: x.__name__)
def test_program(program, inputs):
    """Values, flags, gradients kept by Variables, and the outer gradients."""
    against_eager.check(lambda compile: compile(program), [inputs] * 2, compiled=True)


@pytest.mark.parametrize("program, inputs", COMPILED, ids=lambda x: x.__name__)
def test_second_outer_gradients(program, inputs):
    """The gradients of the gradients of what comes out."""
    found = []
    for function in (program, to_static(program, strict=True)):
        given = inputs()
        outputs = against_eager.floats_in(function(*given))
        if not any(y.creator is not None for y in outputs):
            return
        total = against_eager.weighted_sum(outputs)
        first = chainer.grad([total], given, enable_double_backprop=True)
        total = against_eager.weighted_sum([g for g in first if g is not None])
        second = [] if total is None or total.creator is None else chainer.grad([total], given)
        found.append([None if g is None else against_eager.Values(g.array) for g in (*first, *second)])
    for eager, compiled in zip(*found):
        assert eager == compiled

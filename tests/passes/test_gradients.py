"""Gradients of compiled calls from outside: cuts, orders, subsets, ``None``, and arrays that change before backward."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import Picture, array, differences, variable

from dy2static import to_static


class Model(chainer.Chain):
    """Two layers and a scale."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a = L.Linear(3, 4, initialW=array(4, 3, seed=1))
            self.b = L.Linear(4, 2, initialW=array(2, 4, seed=2))
            self.unused = chainer.Parameter(array(2, seed=3))


def smooth(x, y):
    h = F.tanh(x * y)
    return F.sum(F.exp(h) * h + x)


def several(x, y):
    h = F.tanh(x * y)
    k = F.sigmoid(h + y)
    return h, k, F.sum(h * k)


def independent(x, y):
    return F.sum(x * x), F.sum(y)


def dropped(x, y):
    with chainer.no_backprop_mode():
        h = F.tanh(x)
    return h * y, h


def kept_leaf(x, y):
    inner = chainer.Variable(x.array * 2)
    return inner, inner * y


def detached(x, y):
    h = F.tanh(x)
    return F.sum(chainer.Variable(h.array) * y), h


def indexed(x, y):
    return x[0, 1:] * y[1, :2], F.concat([x, y], axis=1), F.maximum(x, y)


def repeated(x, y):
    h = x * x * x
    return h, h, F.sum(h + h)


def detached_between(x, y):
    h = F.relu(x * y)
    with chainer.no_backprop_mode():
        k = F.tanh(h) * 3
    z = (x + k) * y
    return z, h, F.exp(z)


def detached_both_ways(x, y):
    s = F.sin(x) * y
    h = F.exp(x * chainer.Variable(s.array, requires_grad=False))
    with chainer.no_backprop_mode():
        k = F.tanh(h)
    return s * k, h, F.sum(h * h)


def opaque(x, y):
    return F.sum(F.selu(x) * F.softplus(y)), F.logsumexp(x * y, axis=1)


def chained(x, y):
    outs = []
    h = x
    for _ in range(4):
        h = F.tanh(h * y)
        outs.append(h)
    return outs


FUNCTIONS = [smooth, several, independent, dropped, kept_leaf, detached, indexed, repeated, detached_between, detached_both_ways, opaque, chained]


def flat(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def loss_of(result):
    return sum([F.sum(F.cast(y, "f")) for y in flat(result) if y.requires_grad])


def plain_backward(f, x, y):
    result = f(x, y)
    loss_of(result).backward()
    return result, x, y


def retained(f, x, y):
    result = f(x, y)
    loss_of(result).backward(retain_grad=True)
    return result, x, y


def one_output(f, x, y):
    result = flat(f(x, y))
    result[-1].grad = np.ones_like(result[-1].array)
    result[-1].backward()
    return result, x, y


def first_output(f, x, y):
    result = flat(f(x, y))
    result[0].grad = np.ones_like(result[0].array)
    result[0].backward()
    return result, x, y


def outputs_one_by_one(f, x, y):
    result = flat(f(x, y))
    for out in result:
        out.grad = np.full_like(out.array, 2)
        out.backward()
    return result, x, y


def both_calls_before_backward(f, x, y):
    first, second = f(x, y), f(y, x)
    (loss_of(first) * 3 + loss_of(second)).backward()
    return first, second, x, y


def call_of_call(f, x, y):
    inner = flat(f(x, y))[0]
    outer = f(F.broadcast_to(inner, x.shape) if inner.shape != x.shape and inner.ndim == 0 else x * 2, y)
    loss_of(outer).backward()
    return inner, outer, x, y


def twice_backward(f, x, y):
    loss = loss_of(f(x, y))
    loss.backward()
    loss.backward()
    return x, y


def grad_subset(f, x, y):
    result = [out for out in flat(f(x, y)) if out.requires_grad]
    return chainer.grad(result, [x]), chainer.grad(result[-1:], [y]), chainer.grad(result, [x, y], [F.exp(o) for o in result])


def grad_of_intermediate(f, x, y):
    result = [out for out in flat(f(x, y)) if out.requires_grad]
    return [chainer.grad([a], [b]) for a in result for b in result if a is not b]


def second_order(f, x, y):
    result = loss_of(f(x, y))
    gx, gy = chainer.grad([result], [x, y], enable_double_backprop=True)
    total = sum([F.sum(g * g) for g in (gx, gy) if g is not None])
    if isinstance(total, chainer.Variable):
        total.backward()
    return gx, gy, x, y


def third_order(f, x, y):
    result = loss_of(f(x, y))
    for _ in range(2):
        gx, = chainer.grad([result], [x], enable_double_backprop=True)
        if gx is None:
            return None
        result = F.sum(gx * gx * x)
    result.backward()
    return x, y, gx


def double_through_backward(f, x, y):
    result = loss_of(f(x, y))
    result.backward(enable_double_backprop=True)
    found = [v.grad_var for v in (x, y) if v.grad_var is not None]
    x.cleargrad(), y.cleargrad()
    if found:
        F.sum(F.stack([F.sum(g * g) for g in found])).backward()
    return found, x, y


def unchained_first(f, x, y):
    result = flat(f(x, y))
    result[0].unchain_backward()
    loss_of(result).backward()
    return result, x, y


def unchained_last(f, x, y):
    result = flat(f(x, y))
    loss = loss_of(result)
    result[-1].unchain()
    loss.backward()
    return result, x, y


def input_unchained(f, x, y):
    x2 = x * 2
    result = f(x2, y)
    x2.unchain_backward()
    loss_of(result).backward()
    return result, x, x2, y


def non_leaf_inputs(f, x, y):
    a, b = F.tanh(x), y * 2
    result = f(a, b)
    loss_of(result).backward(retain_grad=True)
    return result, x, y, a, b


def same_input_twice(f, x, y):
    result = f(x, x)
    loss_of(result).backward()
    return result, x


def no_gradient_wanted(f, x, y):
    x, y = chainer.Variable(x.array, requires_grad=False), y
    result = f(x, y)
    loss = loss_of(result)
    if isinstance(loss, chainer.Variable):
        loss.backward()
    return result, x, y


def arrays_as_inputs(f, x, y):
    result = f(x, chainer.Variable(y.array, requires_grad=False))
    loss_of(result).backward()
    return result, x


def changed_in_place(f, x, y):
    result = f(x, y)
    x.array[...] = 0.5
    loss_of(result).backward()
    return x, y


def rebound(f, x, y):
    result = f(x, y)
    x.array = np.full_like(x.array, 0.25)
    loss_of(result).backward()
    return x, y


def output_changed(f, x, y):
    result = f(x, y)
    loss = loss_of(result)
    flat(result)[0].array[...] = 0.125
    loss.backward()
    return x, y


def under_no_backprop(f, x, y):
    with chainer.no_backprop_mode():
        result = f(x, y)
    return result, [out.creator for out in flat(result)]


def accumulates(f, x, y):
    for _ in range(3):
        loss_of(f(x, y)).backward()
    return x, y


def variable_is_gone(f, x, y):
    result = f(x * 1, y)
    import gc
    gc.collect(1)   # what this call has left is young, and the garbage of all tests takes long
    loss_of(result).backward()
    return x, y


def loss_scaled(f, x, y):
    loss = loss_of(f(x, y))
    loss.backward(loss_scale=4.0)
    return x, y


def hooked(f, x, y):
    with chainer.function_hooks.TimerHook():
        result = f(x, y)
        loss_of(result).backward()
    return result, x, y


WAYS = [plain_backward, retained, one_output, first_output, outputs_one_by_one, both_calls_before_backward, call_of_call,
        twice_backward, grad_subset, grad_of_intermediate, second_order, third_order, double_through_backward, unchained_first,
        unchained_last, input_unchained, non_leaf_inputs, same_input_twice, no_gradient_wanted, arrays_as_inputs,
        changed_in_place, rebound, output_changed, under_no_backprop, accumulates, variable_is_gone, loss_scaled, hooked]

#: What is known to differ: what Chainer keeps as a view of an array that is replaced before backward is read from the
#: new one.
DIFFERENT = {("rebound", "indexed")}

#: Where gradients come back as Variables: compiled ones always require grad, Chainer's only if something in them does.
AS_VARIABLES = (grad_subset, grad_of_intermediate, second_order)


def seen(way, function):
    x, y = variable(2, 3), variable(2, 3, seed=1)
    try:
        result = way(function, x, y)
    except Exception as error:
        return {"error": (type(error).__name__, str(error))}
    return {"seen": Picture(with_graph=way not in AS_VARIABLES).of(result), "error": None}


@pytest.mark.parametrize("way", WAYS, ids=lambda w: w.__name__)
def test_ways(way):
    """Every way to use gradients, of every function, over two calls of one program."""
    problems = []
    for function in FUNCTIONS:
        compiled = to_static(function)
        wanted = seen(way, function)
        for round in range(3):
            found = seen(way, compiled)
            lines = differences(wanted, found) + differences(found, wanted)
            if lines and (way.__name__, function.__name__) not in DIFFERENT:
                problems.append(f"{function.__name__}, round {round}: {lines[0]}")
        assert not compiled.dispatcher.fallback.refused or function is detached, (function.__name__, compiled.dispatcher.fallback.refused)
    assert not problems, "\n".join(problems)


def steps(decorate, count=6):
    model = Model()
    forward = decorate(lambda self, x: self.b(F.tanh(self.a(x))))
    optimizer = chainer.optimizers.Adam().setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(0.1))
    for k in range(count):
        model.cleargrads()
        loss = F.mean_squared_error(forward(model, array(5, 3, seed=k)), array(5, 2, seed=k + 50))
        loss.backward()
        assert model.unused.grad is None
        try:
            optimizer.update()
        except TypeError:
            optimizer.update(lambda: loss)
    return [p.array for p in model.params()]


def test_training_steps():
    for a, b in zip(steps(lambda f: f), steps(to_static)):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_gradient_penalty():
    """A loss of a gradient inside the training loop, parameters changed in place between the two calls."""
    def run(decorate):
        model = Model()
        critic = decorate(lambda self, x: F.sum(self.b(F.tanh(self.a(x)))))
        for k in range(3):
            x = variable(4, 3, seed=k)
            model.cleargrads()
            g, = chainer.grad([critic(model, x)], [x], enable_double_backprop=True)
            penalty = F.sum((F.sqrt(F.sum(g * g, axis=1)) - 1) ** 2)
            (penalty + critic(model, x * 0.5)).backward()
            for p in model.params():
                if p.grad is not None:
                    p.array -= 0.01 * p.grad
        return [p.array for p in model.params()]
    for a, b in zip(run(lambda f: f), run(to_static)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


SUMS = {
    "sum": lambda x: F.sum(x), "two sums": lambda x: F.sum(x) + F.sum(x), "weighted": lambda x: F.sum(x) / 3 + F.sum(x),
    "one twice": lambda x: (lambda y: y + y)(F.sum(x)), "mean": lambda x: F.mean(x), "negative": lambda x: -F.sum(x),
    "of two": lambda x: F.sum(x * 2), "reshaped": lambda x: F.sum(F.reshape(x, (3, 1))) + F.sum(F.reshape(x, (3, 1))),
    "branch": lambda x: F.sum(x) if float(x.array[0]) > 0 else F.sin(x)}


@pytest.mark.parametrize("program", SUMS.values(), ids=SUMS)
def test_writeable(program):
    """A gradient that is one number seen many times cannot be written to, as in eager."""
    found = []
    for function in (program, to_static(program, strict=True)):
        x = chainer.Variable(np.array([0.5, 1.0, 1.5]))
        F.sum(function(x) * 1.5).backward()
        found.append((x.grad.flags.writeable, x.grad.strides, x.grad.tolist()))
    assert found[0] == found[1]

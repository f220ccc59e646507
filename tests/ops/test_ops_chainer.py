"""Ops against the Chainer functions they stand for: forward, backward and double backward, ties and NaN included."""
import functools
from itertools import chain

import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import ops
from dy2static.ir.building import Builder, building
from dy2static.ir.interpret import interpret
from dy2static.ir.types import type_of
from dy2static.passes.differentiation.autodiff import autodiff

X = np.array([[-1.5, -0.5, 0.0, 0.5, 0.5], [0.25, 2.0, -3.0, 1.0, 0.0]], "float32")
Y = np.array([[-1.5, 0.5, 0.0, 2.0, 0.5], [1.0, -2.0, 3.0, 0.5, 0.5]], "float32")
POSITIVE = np.abs(X) + np.float32(0.5)
ROWS = np.array([[0, 1], [1, 1]], "int32")

TABLE = {
    "add": (ops.add, lambda a, b: a + b, X, Y),
    "sub": (ops.sub, lambda a, b: a - b, X, Y),
    "mul": (ops.mul, lambda a, b: a * b, X, Y),
    "div": (ops.div, lambda a, b: a / b, X, POSITIVE),
    "neg": (ops.neg, lambda a: -a, X),
    "exp": (ops.exp, F.exp, X),
    "log": (ops.log, F.log, POSITIVE),
    "sqrt": (ops.sqrt, F.sqrt, POSITIVE),
    "square": (ops.square, F.square, X),
    "sin": (ops.sin, F.sin, X),
    "cos": (ops.cos, F.cos, X),
    "tan": (ops.tan, F.tan, X),
    "log1p": (ops.log1p, F.log1p, POSITIVE),
    "expm1": (ops.expm1, F.expm1, X),
    "tanh": (ops.tanh, F.tanh, X),
    "sigmoid": (ops.sigmoid, F.sigmoid, X),
    "relu": (ops.relu, F.relu, X),
    "leaky_relu": (lambda x: ops.leaky_relu(x, slope=0.2), F.leaky_relu, X),
    "elu": (lambda x: ops.elu(x, alpha=0.7), lambda x: F.elu(x, alpha=0.7), X),
    "softplus": (lambda x: ops.softplus(x, beta=2.0), lambda x: F.softplus(x, beta=2.0), X),
    "clip": (lambda x: ops.clip(x, x_min=-0.5, x_max=0.5), lambda x: F.clip(x, -0.5, 0.5), X),
    "abs": (ops.abs, F.absolute, X),
    "maximum": (ops.maximum, F.maximum, X, Y),
    "minimum": (ops.minimum, F.minimum, X, Y),
    "power": (ops.power, lambda a, b: a ** b, POSITIVE, Y),
    "power_const 2": (lambda x: x ** 2, lambda x: x ** 2, X),
    "power_const 3.5": (lambda x: x ** 3.5, lambda x: x ** 3.5, POSITIVE),
    "power_const -1": (lambda x: x ** -1, lambda x: x ** -1, POSITIVE),
    "where": (lambda a, b: ops.where(a > b, a, b), lambda a, b: F.where(a.array > b.array, a, b), X, Y),
    "cast": (lambda x: ops.cast(x, dtype="float64"), lambda x: F.cast(x, "float64"), X),
    "sum": (lambda x: ops.sum(x, axis=1), lambda x: F.sum(x, axis=1), X),
    "mean": (lambda x: ops.mean(x, axis=(0, 1)), F.mean, X),
    "max": (lambda x: ops.max(x, axis=1, keepdims=True), lambda x: F.max(x, axis=1, keepdims=True), X),
    "max of all": (ops.max, F.max, X),
    "min": (lambda x: ops.min(x, axis=0), lambda x: F.min(x, axis=0), X),
    "softmax": (ops.softmax, F.softmax, X),
    "log_softmax": (ops.log_softmax, F.log_softmax, X),
    "logsumexp": (lambda x: ops.logsumexp(x, axis=1), lambda x: F.logsumexp(x, axis=1), X),
    "sum_to": (lambda x: ops.sum_to(x, shape=(1, 5)), lambda x: F.sum_to(x, (1, 5)), X),
    "broadcast_to": (lambda x: ops.broadcast_to(x, shape=(3, 2, 5)), lambda x: F.broadcast_to(x, (3, 2, 5)), X),
    "transpose": (ops.transpose, F.transpose, X),
    "reshape": (lambda x: ops.reshape(x, shape=(5, -1)), lambda x: F.reshape(x, (5, -1)), X),
    "getitem": (lambda x: ops.getitem(x, index=(0, slice(None, None, -2))), lambda x: x[0, ::-2], X),
    "concat": (lambda a, b: ops.concat(a, b, axis=0), lambda a, b: F.concat((a, b), axis=0), X, Y),
    "stack": (lambda a, b: ops.stack(a, b, axis=1), lambda a, b: F.stack((a, b), axis=1), X, Y),
    "take": (lambda w: ops.take(w, ops.constant(value=ROWS)), lambda w: F.embed_id(ROWS, w), X),
    "take_along": (lambda x: ops.take_along(x, ops.constant(value=ROWS[:, :1])),
                   lambda x: F.reshape(F.select_item(x, ROWS[:, 0]), (2, 1)), X),
    **{name: (getattr(ops, name), getattr(F, name), X) for name in (
        "arcsin", "arccos", "arctan", "arctanh", "sinh", "cosh", "log2", "log10")},
    "arctan2": (ops.arctan2, F.arctan2, X, Y),
    "fmod": (ops.fmod, F.fmod, X, Y),
    **{name: (functools.partial(ops.special, function=name), getattr(F, name), X) for name in (
        "erf", "erfc", "erfcx", "erfinv", "erfcinv", "ndtr", "log_ndtr", "ndtri", "digamma")},
    "gammaln": (lambda x: ops.special(x, function="gammaln"), F.lgamma, X),
    "zeta": (lambda x: ops.special(x, function="zeta", order=2), lambda x: F.zeta(2, x), X),
    "cumsum": (lambda x: ops.cumsum(x, axis=1), lambda x: F.cumsum(x, axis=1), X),
    "cumprod": (lambda x: ops.cumprod(x, axis=1), lambda x: F.cumprod(x, axis=1), X),
    "prod": (lambda x: ops.prod(x, axis=1), lambda x: F.prod(x, axis=1), X),
    "diagonal": (lambda x: ops.diagonal(x, offset=1), lambda x: F.diagonal(x, 1), X),
    "einsum": (lambda x, y: ops.einsum(x, y, inputs=("ij", "kj"), output="i"), lambda x, y: F.einsum("ij,kj->i", x, y), X, Y),
    "matmul": (lambda a, b: ops.matmul(a, b, transb=True), lambda a, b: F.matmul(a, b, transb=True), X, Y),
    "linear": (lambda a, b: ops.matmul(a, b, transb=True), F.linear, X, Y),
}


def ours(op, arrays):
    """Output, gradients and second gradients, with ones and twos as what comes from above."""
    builder = Builder()
    inputs = tuple(builder.input(type_of(a), f"x{i}") for i, a in enumerate(arrays))
    with building(builder):
        graph = builder.build((op(*inputs),))
    first = autodiff(graph, tuple(range(len(arrays))), (0,))
    assert all(first.connected)
    (y,) = interpret(graph, *arrays)
    given = [*arrays, np.ones_like(y)]
    gradients = interpret(first.graph, *given)
    second = autodiff(first.graph, tuple(range(len(given))), tuple(range(len(gradients))))
    results = iter(interpret(second.graph, *given, *(np.full_like(g, 2) for g in gradients)))
    return (y,), gradients, [next(results) if linked else np.zeros_like(a)
                             for a, linked in zip(given, second.connected)]


def chainers(function, arrays):
    """The same from Chainer."""
    xs = [chainer.Variable(a) for a in arrays]
    y = function(*xs)
    gy = chainer.Variable(np.ones_like(y.array))
    gradients = [g * 1 for g in chainer.grad([y], xs, [gy], enable_double_backprop=True)]  # none is twice the same
    second = chainer.grad(gradients, [*xs, gy], [chainer.Variable(np.full_like(g.array, 2)) for g in gradients])
    return (y.array,), [g.array for g in gradients], [np.zeros_like(x.array) if g is None else g.array
                                                   for g, x in zip(second, [*xs, gy])]


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("variant", ["plain", "nan"])
def test_same_as_chainer(name, variant):
    op, function, *arrays = TABLE[name]
    arrays = [a.copy() for a in arrays]
    if variant == "nan":
        arrays[0][0, 0], arrays[0][1, 2] = np.nan, np.inf
    with np.errstate(all="ignore"):
        actual, expected = ours(op, arrays), chainers(function, arrays)
    for a, b in zip(chain(*actual), chain(*expected)):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

"""Lowerings of `chainer.functions.activation`."""
from __future__ import annotations

from typing import Any, Optional

import chainer
from chainer.functions.activation.clipped_relu import ClippedReLU
from chainer.functions.activation.crelu import CReLU
from chainer.functions.activation.elu import ELU
from chainer.functions.activation.hard_sigmoid import HardSigmoid
from chainer.functions.activation.leaky_relu import LeakyReLU
from chainer.functions.activation.log_softmax import LogSoftmax
from chainer.functions.activation.prelu import PReLUFunction
from chainer.functions.activation.relu import ReLU
from chainer.functions.activation.rrelu import RReLU
from chainer.functions.activation.sigmoid import Sigmoid
from chainer.functions.activation.softmax import Softmax
from chainer.functions.activation.softplus import Softplus
from chainer.functions.activation.swish import Swish
from chainer.functions.activation.tanh import Tanh

from .. import ops
from ..ir.building import constant
from ..ir.graph import Value
from .registry import are_ints, array_in, is_number, lowers, lowers_to, may_be_input, number, symbolic_value, varies

lowers_to("relu", ReLU)                     # backward multiplies by ``y > 0``: the output is retained, not the input
lowers_to("tanh", Tanh)
lowers_to("sigmoid", Sigmoid)               # computed as tanh(x / 2) / 2 + 1 / 2
lowers_to("hard_sigmoid", HardSigmoid)      # the gradient is decided by x itself, not by what the clipped line reached


@lowers(LeakyReLU)
def leaky_relu(node: Any, x: Value) -> Optional[Value]:
    # a negative slope makes backward look at x, because the sign of y says nothing then
    is_known = is_number(node.slope) and not varies(node.slope)
    if is_known and 0 < abs(node.slope) <= 1:
        return ops.leaky_relu(x, slope=float(node.slope))
    # with other slopes, what is above zero may be infinite or too large to be multiplied by them
    slope = number(node.slope, x.dtype) if is_known or symbolic_value(node.slope) is not None else None
    if slope is None:
        return None
    y = x * ops.where(ops.less_equal(x, number(0, x.dtype)), slope, number(1, x.dtype))
    return ops.by_rule(y, x, y, slope, rule="leaky_relu") if is_known and node.slope >= 0 else y


@lowers(ELU)
def elu(node: Any, x: Value) -> Optional[Value]:
    # negative alpha: as for LeakyReLU
    if not is_number(node.alpha):
        return None
    if not may_be_input(node.alpha, x.dtype):
        return ops.elu(x, alpha=float(node.alpha))
    zero = number(0, x.dtype)
    is_positive = ops.less(zero, x)
    return ops.where(is_positive, x, ops.expm1(ops.where(is_positive, zero, x)) * number(node.alpha, x.dtype))


@lowers(Softplus)
def softplus(node: Any, x: Value) -> Optional[Value]:
    if not is_number(node.beta):
        return None
    if not may_be_input(node.beta, x.dtype):
        return ops.softplus(x, beta=float(node.beta))
    return ops.softplus(x * number(node.beta, x.dtype), beta=1.0) * number(node.beta_inv, x.dtype)


@lowers(ClippedReLU)
def clipped_relu(node: Any, x: Value) -> Optional[Value]:
    # unlike Clip, the gradient is zero at both bounds
    if not is_number(node.cap):
        return None
    if not varies(node.cap):
        return ops.clipped_relu(x, cap=float(node.cap))
    zero, cap = number(0, x.dtype), number(node.cap, x.dtype)
    inside = ops.logical_and(ops.less(zero, x), ops.less(x, cap))
    return ops.where(inside, x, ops.minimum(ops.maximum(ops.stop_gradient(x), zero), cap))


@lowers(Softmax)
def softmax(node: Any, x: Value) -> Optional[Value]:
    return ops.softmax(x, axis=node.axis) if are_ints(node.axis) else None


@lowers(LogSoftmax)
def log_softmax(node: Any, x: Value) -> Optional[Value]:
    return ops.log_softmax(x, axis=node.axis) if are_ints(node.axis) else None


@lowers(CReLU)
def crelu(node: Any, x: Value) -> Optional[Value]:
    return ops.concat(ops.relu(x), ops.relu(-x), axis=node.axis) if are_ints(node.axis) else None


def _per_channel(W: Value, x: Value) -> Value:
    """A parameter for the axes after the first one, in the shape of ``x``."""
    return ops.broadcast_to(ops.reshape(W, shape=(1,) + W.shape + (1,) * (x.ndim - W.ndim - 1)), shape=x.shape)


@lowers(PReLUFunction)
def prelu(node: Any, x: Value, W: Value) -> Value:
    # unlike LeakyReLU, x = 0 counts as positive
    W = _per_channel(W, x)
    return ops.by_rule(ops.where(ops.greater_equal(x, constant(0, x.dtype)), x, x * W), x, W, rule="prelu")


@lowers(Swish)
def swish(node: Any, x: Value, beta: Value) -> Value:
    beta = _per_channel(beta, x)
    share = ops.sigmoid(beta * x)
    return ops.by_rule(x * share, x, beta, share, rule="swish")


@lowers(RReLU)
def rrelu(node: Any, x: Value) -> Optional[Value]:
    # draws in double precision; what is given is not looked at in test mode.  `r` is read from the node.
    if not (is_number(node.lower) and is_number(node.upper)) or x.ndim == 0:
        return None
    if not chainer.config.train:
        node.r = r = ops.full(shape=x.shape, value=(node.lower + node.upper) / 2, dtype=x.dtype)
    elif node.r is None:
        drawn = ops.random_between(low=float(node.lower), high=float(node.upper), shape=x.shape)
        node.r = r = ops.cast(drawn, dtype=x.dtype)
    else:
        r = array_in(node.r, x.shape, x.dtype)
    return None if r is None else ops.randomized_relu(x, r)

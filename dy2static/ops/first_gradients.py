"""Gradients in the steps in which Chainer computes them: the rules of `by_rule` for results of functions."""
from __future__ import annotations

from typing import Optional, Tuple

import numpy as np

from ..ir.building import constant
from ..ir.graph import Value
from .broadcasting import broadcast_to
from .comparison import equal, greater, greater_equal, less, less_equal, mask, where
from .contraction import matmul
from .elementwise import exp, power_const
from .gathering import scatter_add
from .gradient_rules import by_rule, gradient_rule
from .movement import reshape, transpose
from .reduction import mean

_Gradients = Tuple[Optional[Value], ...]


@gradient_rule
def number_by(g: Value, x: Value, number: Value) -> _Gradients:
    """Of ``number / x``."""
    gx = -number * g / power_const(x, exponent=2)
    return by_rule(gx, x, g, number, rule="number_by_gradient"), None


# Activations.  Parameters have the shape of the result ----------------------------------------------------


@gradient_rule
def leaky_relu(g: Value, x: Value, y: Value, slope: Value) -> _Gradients:
    """Of ``x``, times ``slope`` where it is not positive; NaN in ``y`` counts as positive."""
    return g * where(less_equal(y, 0), slope, 1), None, None


@gradient_rule
def prelu(g: Value, x: Value, W: Value) -> _Gradients:
    """Of ``x``, times ``W`` where it is negative."""
    positive = greater_equal(x, 0)
    return (by_rule(where(positive, g, g * W), x, W, g, rule="prelu_input"),
            by_rule(where(positive, 0, x * g), x, g, rule="prelu_slope"))


@gradient_rule
def prelu_input(g: Value, x: Value, W: Value, gy: Value) -> _Gradients:
    """Of ``gy``, times ``W`` where ``x`` is negative."""
    positive = greater_equal(x, 0)
    return None, where(positive, 0, gy * g), where(positive, g, g * W)


@gradient_rule
def prelu_slope(g: Value, x: Value, gy: Value) -> _Gradients:
    """Of ``x * gy`` where ``x`` is negative."""
    g = mask(g, less(x, 0))
    return gy * g, x * g


@gradient_rule
def swish(g: Value, x: Value, beta: Value, share: Value) -> _Gradients:
    """Of ``x * share``, where ``share`` is ``sigmoid(beta * x)``."""
    y = x * share
    scaled = beta * y
    return (by_rule(g * (scaled + share * (1.0 - scaled)), x, beta, share, g, rule="swish_input"),
            by_rule(g * y * (x - y), x, beta, share, g, rule="swish_slope"), None)


@gradient_rule
def swish_input(g: Value, x: Value, beta: Value, share: Value, gy: Value) -> _Gradients:
    """Of ``gy * (beta * y + share * (1 - beta * y))``, where ``y`` is the result."""
    scaled = beta * (x * share)
    rest = share * (1.0 - scaled)
    return (g * gy * beta * (1.0 - share) * (scaled + rest * 2.0), g * _swish_mixed(x, beta, share, gy), None, g * (scaled + rest))


@gradient_rule
def swish_slope(g: Value, x: Value, beta: Value, share: Value, gy: Value) -> _Gradients:
    """Of ``gy * y * (x - y)``, where ``y`` is the result."""
    y = x * share
    product = y * (x - y)
    return g * _swish_mixed(x, beta, share, gy), g * gy * product * (x - y * 2.0), None, g * product


def _swish_mixed(x: Value, beta: Value, share: Value, gy: Value) -> Value:
    y = x * share
    return gy * y * (beta * (x - y * 2.0) + 2.0) * (1.0 - share)


# Losses ---------------------------------------------------------------------------------------------------------


@gradient_rule
def squared_error(g: Value, x0: Value, x1: Value) -> _Gradients:
    """Of ``(x0 - x1) ** 2``."""
    gx = g * 2.0 * (x0 - x1)
    return gx, -gx


@gradient_rule
def mean_squared_error(g: Value, x0: Value, x1: Value, share: Value) -> _Gradients:
    """Of the mean of ``(x0 - x1) ** 2``.  share: two, divided by the number of elements."""
    gx = broadcast_to(g, shape=x0.shape) * (x0 - x1) * share
    return gx, -gx, None


@gradient_rule
def triplet(g: Value, anchor: Value, positive: Value, negative: Value, losses: Value) -> _Gradients:
    """Of the loss of each row; of those that are zero there is none."""
    row = anchor.shape[:1] + (1,) + anchor.shape[2:]
    there = broadcast_to(reshape(greater(losses, 0), shape=row), shape=anchor.shape)
    twice = mask(broadcast_to(reshape(g * 2.0, shape=row), shape=anchor.shape), there)
    return twice * (negative - positive), twice * (positive - anchor), twice * (anchor - negative), None


@gradient_rule
def half_cross_covariance(g: Value, y: Value, z: Value, share: Value) -> _Gradients:
    """Of half the sum of the squares of the covariances.  share: one, divided by the number of rows."""
    y, z, g = _centred(y), _centred(z), g * share
    covariance = matmul(y, z, transa=True) * share
    return matmul(z, covariance, transb=True) * g, matmul(y, covariance) * g, None


@gradient_rule
def cross_covariance(g: Value, y: Value, z: Value, share: Value) -> _Gradients:
    """Of the covariances of the columns of ``y`` with those of ``z``."""
    g = g * share
    return matmul(_centred(z), g, transb=True), matmul(_centred(y), g), None


@gradient_rule
def half_covariance(g: Value, h: Value, centred: Value, covariance: Value, share: Value) -> _Gradients:
    """Of half the sum of the squares of the covariances of different columns of ``h``."""
    return matmul(centred, covariance) * 2.0 * (g * share), None, None, None


@gradient_rule
def covariance(g: Value, h: Value, centred: Value, covariance: Value, share: Value) -> _Gradients:
    """Of the covariances of different columns of ``h``."""
    g = where(constant(np.eye(h.shape[1], dtype=bool)), 0, g * share)
    return matmul(centred, g + transpose(g)), None, None, None


def _centred(x: Value) -> Value:
    return x - mean(x, axis=0, keepdims=True)


# Others ---------------------------------------------------------------------------------------------------------


@gradient_rule
def batch_l2_norm_squared(g: Value, x: Value) -> _Gradients:
    """Of the squares of ``x``; ``g`` has their shape."""
    return by_rule(x * 2.0 * g, x, g, rule="batch_l2_norm_squared_gradient"),


@gradient_rule
def batch_l2_norm_squared_gradient(g: Value, x: Value, gy: Value) -> _Gradients:
    """Of ``2 * x * gy``."""
    twice = g * 2.0
    return twice * gy, twice * x


@gradient_rule
def linear_interpolate(g: Value, p: Value, x: Value, y: Value) -> _Gradients:
    """Of ``p * x + (1 - p) * y``."""
    part = p * g
    return (x - y) * g, part, by_rule(g - part, p, g, rule="linear_interpolate_rest")


@gradient_rule
def linear_interpolate_rest(g: Value, p: Value, gy: Value) -> _Gradients:
    """Of ``gy - p * gy``."""
    return -gy * g, (1.0 - p) * g


@gradient_rule
def embed_id(g: Value, W: Value, ids: Value, given: int) -> _Gradients:
    """Of rows of ``W``, and zeros where an id is the given one."""
    ignored = equal(ids, given)
    g = where(reshape(ignored, shape=ids.shape + (1,)), 0, g)
    return scatter_add(g, where(ignored, 0, ids), axis=0, shape=W.shape), None


@gradient_rule
def gaussian(g: Value, ln_var: Value, eps: Value) -> _Gradients:
    """Of ``exp(ln_var / 2) * eps``."""
    return g * (exp(ln_var * 0.5) * eps) * 0.5, None

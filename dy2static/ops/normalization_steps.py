"""Layers that normalise in terms of sums and elementwise ops, so that they share loops with what is around them.

Each function is the decomposition of the op of the same name.
"""
from __future__ import annotations

from typing import Any, Tuple

import numpy as np

from ..ir.dims import Size
from ..ir.graph import Value
from .elementwise import clip, sqrt, square
from .movement import reshape
from .reduction import sum_
from .rules import reduced
from .scalar import size_as_number

_Axes = Tuple[int, ...]


def _kept(value: Value, x: Value, axis: _Axes) -> Value:
    """A statistic over ``axis`` of ``x`` with all axes, those of size 1."""
    return reshape(value, shape=reduced(x.shape, axis, True))


def one_of(count: Size, dtype: np.dtype) -> Any:
    """``1 / count``, as a 0-d array where only the run knows it."""
    if isinstance(count, int):
        return float(dtype.type(1.0 / count))
    return 1.0 / size_as_number(count, dtype)


def _count(x: Value, gamma: Value) -> Any:
    return size_as_number(x.type.size // gamma.type.size, x.dtype)


def _statistics(x: Value, axis: _Axes, count: Any) -> Tuple[Value, Value]:
    """The mean and the variance."""
    mean = sum_(x, axis=axis) / count
    return mean, sum_(square(x - _kept(mean, x, axis)), axis=axis) / count


def _normal(x: Value, mean: Value, inv_std: Value, axis: _Axes) -> Value:
    """Each loop computes these anew: that is cheaper than to keep them."""
    return (x - _kept(mean, x, axis)) * _kept(inv_std, x, axis)


# Batches ------------------------------------------------------------------------------------------------------------


def batch_norm(x: Value, gamma: Value, beta: Value, *, axis: _Axes, eps: float) -> Tuple[Value, ...]:
    """Give y, and the mean, variance and inverse deviation of each channel."""
    mean, var = _statistics(x, axis, _count(x, gamma))
    inv_std = 1.0 / sqrt(var + eps)
    y = _normal(x, mean, inv_std, axis) * _kept(gamma, x, axis) + _kept(beta, x, axis)
    return y, mean, var, inv_std


def batch_norm_grad(x: Value, gamma: Value, g: Value, mean: Value, inv_std: Value, *, axis: _Axes) -> Tuple[Value, ...]:
    """Give the gradients by x, gamma and beta."""
    scale = _kept(gamma * inv_std, x, axis)                 # first, so that it is there for the loops below
    gbeta, ggamma = sum_(g, axis=axis), sum_(g * _normal(x, mean, inv_std, axis), axis=axis)
    share = one_of(x.type.size // gamma.type.size, gamma.dtype)
    x_hat = _normal(x, mean, inv_std, axis)
    gx = scale * (g - (x_hat * _kept(ggamma, x, axis) + _kept(gbeta, x, axis)) * share)
    return gx, ggamma, gbeta


def fixed_batch_norm(x: Value, gamma: Value, beta: Value, mean: Value, var: Value, *, axis: _Axes,
                      eps: float) -> Tuple[Value, ...]:
    """Give y, and the inverse deviation and variance of each channel."""
    inv_var = 1.0 / (var + eps)
    inv_std = sqrt(inv_var)
    x_hat = _normal(x, mean, inv_std, axis)
    return x_hat * _kept(gamma, x, axis) + _kept(beta, x, axis), inv_std, inv_var


def fixed_batch_norm_grad(x: Value, gamma: Value, mean: Value, var: Value, g: Value, inv_std: Value, inv_var: Value, *,
                           axis: _Axes) -> Tuple[Value, ...]:
    """Give the gradients by x, gamma, beta, mean and var."""
    scale = gamma * inv_std
    gbeta, ggamma = sum_(g, axis=axis), sum_(_normal(x, mean, inv_std, axis) * g, axis=axis)
    gvar = inv_var * -0.5 * (gamma * ggamma)
    return _kept(scale, x, axis) * g, ggamma, gbeta, -scale * gbeta, gvar


def batch_renorm(x: Value, gamma: Value, beta: Value, running_mean: Value, running_var: Value, *, axis: _Axes, eps: float,
                  rmax: float, dmax: float) -> Tuple[Value, ...]:
    """Give y, and what the gradient reads: see the op."""
    mean, var = _statistics(x, axis, _count(x, gamma))
    std, running_std = sqrt(var + eps), sqrt(running_var + eps)
    r = clip(std / running_std, x_min=1.0 / rmax, x_max=rmax)
    d = clip((mean - running_mean) / running_std, x_min=-dmax, x_max=dmax)
    x_hat = (x - _kept(mean, x, axis)) / _kept(std, x, axis)
    renormalized = x_hat * _kept(r, x, axis) + _kept(d, x, axis)
    y = _kept(gamma, x, axis) * renormalized + _kept(beta, x, axis)
    return y, mean, var, std, r, x_hat, renormalized


def batch_renorm_grad(x: Value, gamma: Value, g: Value, std: Value, r: Value, x_hat: Value, renormalized: Value, *,
                       axis: _Axes) -> Tuple[Value, ...]:
    """Give the gradients by x, gamma and beta."""
    scale = _kept(r * gamma / std, x, axis)
    gbeta, ggamma, gstd = (sum_(v, axis=axis) for v in (g, g * renormalized, g * x_hat))
    mean = (x_hat * _kept(gstd, x, axis) + _kept(gbeta, x, axis)) / _count(x, gamma)
    return scale * (g - mean), ggamma, gbeta


# Rows ---------------------------------------------------------------------------------------------------------------


def standardize(x: Value, *, eps: float) -> Tuple[Value, ...]:
    """Give rows of mean 0 and variance 1, and the inverse deviations."""
    mean, var = _statistics(x, (1,), size_as_number(x.shape[1], x.dtype))
    inv_std = 1.0 / sqrt(var + eps)
    return _normal(x, mean, inv_std, (1,)), inv_std


def _channels(value: Value) -> Value:
    return reshape(value, shape=(1, *value.shape, 1))


def scale_shift(x: Value, gamma: Value, beta: Value) -> Value:
    """Give ``x * gamma + beta``, channel by channel."""
    return x * _channels(gamma) + _channels(beta)


def scale_shift_grad(x: Value, gamma: Value, g: Value) -> Tuple[Value, ...]:
    """Give the gradients by x, gamma and beta."""
    return g * _channels(gamma), sum_(g * x, axis=(0, 2)), sum_(g, axis=(0, 2))


def normalize_l2(x: Value, *, axis: _Axes, eps: float) -> Value:
    """Give rows of length 1."""
    return x / (sqrt(sum_(square(x), axis=axis, keepdims=True)) + eps)

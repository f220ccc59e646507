"""Layers and losses in terms of sums and elementwise ops, so that they share loops with what is around them."""
from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import numpy as np

from ...ir.dims import Size
from ...ir.graph import Node, Value
from ...ops.elementwise import cast, clip, log, maximum, sqrt, square
from ...ops.movement import reshape
from ...ops.reduction import sum_
from ...ops.rules import reduced
from ...ops.scalar import dimension, scalar_to_tensor
from .extents import is_known

_Axes = Tuple[int, ...]


def _kept(value: Value, x: Value, axis: _Axes) -> Value:
    """A statistic over ``axis`` of ``x`` with all axes, those of size 1."""
    return reshape(value, shape=reduced(x.shape, axis, True))


def _number(size: Size, dtype: Any) -> Any:
    """A size as a number to divide by; as a 0-d array where only the run knows it."""
    if is_known(size):
        return float(size)
    return scalar_to_tensor(dimension(size=size), dtype=dtype)


def _count(x: Value, gamma: Value) -> Any:
    return _number(x.type.size // gamma.type.size, x.dtype)


def _statistics(x: Value, axis: _Axes, count: Any) -> Tuple[Value, Value]:
    """The mean and the variance."""
    mean = sum_(x, axis=axis) / count
    return mean, sum_(square(x - _kept(mean, x, axis)), axis=axis) / count


def _normal(x: Value, mean: Value, inv_std: Value, axis: _Axes) -> Value:
    """Each loop computes these anew: that is cheaper than to keep them."""
    return (x - _kept(mean, x, axis)) * _kept(inv_std, x, axis)


# Batches ------------------------------------------------------------------------------------------------------------


def _batch_norm(x: Value, gamma: Value, beta: Value, *, axis: _Axes, eps: float) -> Tuple[Value, ...]:
    mean, var = _statistics(x, axis, _count(x, gamma))
    inv_std = 1.0 / sqrt(var + eps)
    y = _normal(x, mean, inv_std, axis) * _kept(gamma, x, axis) + _kept(beta, x, axis)
    return y, mean, var, inv_std


def _batch_norm_grad(x: Value, gamma: Value, g: Value, mean: Value, inv_std: Value, *, axis: _Axes) -> Tuple[Value, ...]:
    scale = _kept(gamma * inv_std, x, axis)                 # first, so that it is there for the loops below
    gbeta, ggamma = sum_(g, axis=axis), sum_(g * _normal(x, mean, inv_std, axis), axis=axis)
    count = x.type.size // gamma.type.size
    share = float(gamma.dtype.type(1.0 / count)) if is_known(count) else 1.0 / _number(count, gamma.dtype)
    x_hat = _normal(x, mean, inv_std, axis)
    gx = scale * (g - (x_hat * _kept(ggamma, x, axis) + _kept(gbeta, x, axis)) * share)
    return gx, ggamma, gbeta


def _fixed_batch_norm(x: Value, gamma: Value, beta: Value, mean: Value, var: Value, *, axis: _Axes,
                      eps: float) -> Tuple[Value, ...]:
    inv_var = 1.0 / (var + eps)
    inv_std = sqrt(inv_var)
    x_hat = _normal(x, mean, inv_std, axis)
    return x_hat * _kept(gamma, x, axis) + _kept(beta, x, axis), inv_std, inv_var


def _fixed_batch_norm_grad(x: Value, gamma: Value, mean: Value, var: Value, g: Value, inv_std: Value, inv_var: Value, *,
                           axis: _Axes) -> Tuple[Value, ...]:
    scale = gamma * inv_std
    gbeta, ggamma = sum_(g, axis=axis), sum_(_normal(x, mean, inv_std, axis) * g, axis=axis)
    gvar = inv_var * -0.5 * (gamma * ggamma)
    return _kept(scale, x, axis) * g, ggamma, gbeta, -scale * gbeta, gvar


def _batch_renorm(x: Value, gamma: Value, beta: Value, running_mean: Value, running_var: Value, *, axis: _Axes, eps: float,
                  rmax: float, dmax: float) -> Tuple[Value, ...]:
    mean, var = _statistics(x, axis, _count(x, gamma))
    std, running_std = sqrt(var + eps), sqrt(running_var + eps)
    r = clip(std / running_std, x_min=1.0 / rmax, x_max=rmax)
    d = clip((mean - running_mean) / running_std, x_min=-dmax, x_max=dmax)
    x_hat = (x - _kept(mean, x, axis)) / _kept(std, x, axis)
    renormalized = x_hat * _kept(r, x, axis) + _kept(d, x, axis)
    y = _kept(gamma, x, axis) * renormalized + _kept(beta, x, axis)
    return y, mean, var, std, r, x_hat, renormalized


def _batch_renorm_grad(x: Value, gamma: Value, g: Value, std: Value, r: Value, x_hat: Value, renormalized: Value, *,
                       axis: _Axes) -> Tuple[Value, ...]:
    scale = _kept(r * gamma / std, x, axis)
    gbeta, ggamma, gstd = (sum_(v, axis=axis) for v in (g, g * renormalized, g * x_hat))
    mean = (x_hat * _kept(gstd, x, axis) + _kept(gbeta, x, axis)) / _count(x, gamma)
    return scale * (g - mean), ggamma, gbeta


# Rows ---------------------------------------------------------------------------------------------------------------


def _standardize(x: Value, *, eps: float) -> Tuple[Value, ...]:
    mean, var = _statistics(x, (1,), _number(x.shape[1], x.dtype))
    inv_std = 1.0 / sqrt(var + eps)
    return _normal(x, mean, inv_std, (1,)), inv_std


def _channels(value: Value) -> Value:
    return reshape(value, shape=(1, *value.shape, 1))


def _scale_shift(x: Value, gamma: Value, beta: Value) -> Value:
    return x * _channels(gamma) + _channels(beta)


def _scale_shift_grad(x: Value, gamma: Value, g: Value) -> Tuple[Value, ...]:
    return g * _channels(gamma), sum_(g * x, axis=(0, 2)), sum_(g, axis=(0, 2))


def _normalize_l2(x: Value, *, axis: _Axes, eps: float) -> Value:
    return x / (sqrt(sum_(square(x), axis=axis, keepdims=True)) + eps)


# Losses -------------------------------------------------------------------------------------------------------------


def _sum_of_squares(x: Value) -> Value:
    return sum_(square(x))


def _soft_labels(x: Value, log_y: Value, t: Value, *, ignored: float, eps: Any, cached: bool) -> Value:
    if eps is None:
        return -sum_(t * log_y, axis=1)
    return sum_(t * (log(t + eps) - log_y), axis=1)


def _contrast(difference: Value, labels: Value, *, margin: float) -> Value:
    squared = sum_(square(difference), axis=1)
    rest = maximum(margin - sqrt(squared), 0.0)
    dtype = np.result_type(difference.dtype, labels.dtype)
    squared, rest, same = (v if v.dtype == dtype else cast(v, dtype=dtype) for v in (squared, rest, labels))
    return (same * squared + (1.0 - same) * rest * rest) * 0.5


def _triplet_distance(anchor: Value, positive: Value, negative: Value) -> Value:
    return sum_(square(anchor - positive) - square(anchor - negative), axis=1)


#: Ops by name, and what they are.
LAYERS: Dict[str, Callable[..., Any]] = {
    "batch_norm": _batch_norm, "batch_norm_grad": _batch_norm_grad, "fixed_batch_norm": _fixed_batch_norm,
    "fixed_batch_norm_grad": _fixed_batch_norm_grad, "batch_renorm": _batch_renorm, "batch_renorm_grad": _batch_renorm_grad,
    "standardize": _standardize, "scale_shift": _scale_shift, "scale_shift_grad": _scale_shift_grad,
    "normalize_l2": _normalize_l2, "sum_of_squares": _sum_of_squares, "soft_labels": _soft_labels, "contrast": _contrast,
    "triplet_distance": _triplet_distance}


def takes(node: Node) -> bool:
    """Whether the formulas hold: for elements, of one type of float."""
    values = (*node.inputs, *node.outputs)
    if node.op.name == "contrast":
        return node.inputs[0].dtype.kind == "f" and node.inputs[1].dtype.kind in "if" and 0 not in node.inputs[0].shape
    return 0 not in node.inputs[0].shape and all(v.dtype == values[0].dtype and v.dtype.kind == "f" for v in values)

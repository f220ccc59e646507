"""Lowerings of `chainer.functions.normalization`."""
from __future__ import annotations

import math
from typing import Any, Optional, Tuple

import chainer
import numpy as np
from chainer.functions.normalization import batch_normalization as _batch
from chainer.functions.normalization.batch_normalization import BatchNormalization, FixedBatchNormalization
from chainer.functions.normalization.batch_renormalization import BatchRenormalizationFunction
from chainer.functions.normalization.decorrelated_batch_normalization import (
    DecorrelatedBatchNormalization,
    FixedDecorrelatedBatchNormalization,
)
from chainer.functions.normalization.group_normalization import GroupNormalization
from chainer.functions.normalization.l2_normalization import NormalizeL2
from chainer.functions.normalization.layer_normalization import LayerNormalization
from chainer.functions.normalization.local_response_normalization import LocalResponseNormalization

from .. import ops
from ..ir.dims import less
from ..ir.graph import Value
from .math import mean_of
from .registry import are_ints, are_there, array_in, beside, ints, is_number, is_state, lowers, may_be_input, number, number_of

_ONCE = "Double backward is not implemented for fixed decorrelated batch normalization."


@lowers(LayerNormalization)
def layer_normalization(node: Any, x: Value, gamma: Value, beta: Value) -> Optional[Value]:
    # backward computes everything again from x; rows of no elements divide by zero there
    if not is_number(node.eps) or x.shape[1] == 0:
        return None
    centred = x - mean_of(x, (1,), True)
    eps = number(node.eps, x.dtype) if may_be_input(node.eps, x.dtype) else float(node.eps)
    deviation = ops.sqrt(mean_of(ops.square(centred), (1,), True) + eps)
    return centred * (1.0 / deviation) * gamma + beta


@lowers(BatchNormalization, state=("running_mean", "running_var"))
def batch_normalization(node: Any, x: Value, gamma: Value, beta: Value) -> Optional[Value]:
    # The running statistics are arrays that forward changes in place, after the result is there; backward does not read
    # them.  A batch of one sample makes a warning.
    axis = _axes(node, x, gamma)
    if axis is None or node._impl_selector is not _batch._impl_selector or not less(1, math.prod(x.shape[i] for i in axis)):
        return None
    keeps = node.running_mean is not None or node.running_var is not None
    if keeps and not (is_state(node.running_mean, gamma) and is_state(node.running_var, gamma)):
        return None
    y, mean, var, _ = ops.batch_norm(x, gamma, beta, axis=axis, eps=node.eps)
    if keeps:
        _advance_both((node.running_mean, node.running_var), node.decay, mean, var, x.type.size // gamma.type.size)
    return y


@lowers(FixedBatchNormalization)
def fixed_batch_normalization(node: Any, x: Value, gamma: Value, beta: Value, mean: Value, var: Value) -> Optional[Value]:
    axis = _axes(node, x, gamma)
    if axis is None:
        return None
    eps = node.eps
    if may_be_input(eps, var.dtype):
        var, eps = var + number(eps, var.dtype), 0.0
    return ops.fixed_batch_norm(x, gamma, beta, mean, var, axis=axis, eps=eps)[0]


@lowers(BatchRenormalizationFunction, state=("_running_mean", "_running_var"))
def batch_renormalization(node: Any, x: Value, gamma: Value, beta: Value) -> Optional[Value]:
    # Here forward reads the running statistics before it changes them.  Gradients of a wider dtype are an error.
    if gamma.ndim == 0 or not are_there(x, gamma) or np.promote_types(x.dtype, gamma.dtype) != gamma.dtype:
        return None
    if not chainer.config.train or not all(map(is_number, (node.eps, node.rmax, node.dmax, node.decay))) or node.rmax == 0:
        return None
    running = node._running_mean, node._running_var
    before = [array_in(array, gamma.shape, gamma.dtype) for array in running]
    if None in before or node.update_statistics and not all(is_state(array, gamma) for array in running):
        return None
    y, mean, var, *_ = ops.batch_renorm(x, gamma, beta, *before, axis=(0, *range(gamma.ndim + 1, x.ndim)),
                                        eps=node.eps, rmax=node.rmax, dmax=node.dmax)
    if node.update_statistics:
        _advance_both(running, node.decay, mean, var, x.type.size // gamma.type.size)
    return y


def _advance_both(running: Tuple[Any, Any], decay: Any, mean: Value, var: Value, m: Any) -> None:
    """The running statistics on their way to those of a batch of ``m``; its variance is made unbiased."""
    rest = 1 - decay
    for array, share in ((running[0], rest * beside(running[0], mean)), (running[1], _unbiased(running[1], rest, var, m))):
        array *= decay
        array += share


def _unbiased(array: Any, rest: Any, value: Value, m: Any) -> Any:
    """What of a statistic of ``m`` samples is added to one that runs along."""
    if isinstance(m, int):
        return rest * (m / max(m - 1.0, 1.0)) * beside(array, value)
    count = number_of(m)
    factor = ops.cast(rest * (count / ops.maximum(count - 1.0, 1.0)), dtype=value.dtype)
    return beside(array, value) * beside(array, ops.broadcast_to(factor, shape=value.shape))


def _axes(node: Any, x: Value, gamma: Value) -> Optional[Tuple[int, ...]]:
    """The axes of `x` over which it is normalised; None for what is left to Chainer: no channels, or one number for all."""
    if not is_number(node.eps) or gamma.ndim == 0 or not are_there(gamma):
        return None
    return tuple(_batch._compute_axis(x.ndim, gamma.ndim, node.axis))


@lowers(DecorrelatedBatchNormalization, state=("running_mean", "running_projection"), may_fail=True)
def decorrelated_batch_normalization(node: Any, x: Value) -> Optional[Value]:
    # LAPACK takes no half precision; as of batches, the statistics that run along are changed in place
    if x.dtype.char not in "fd" or not are_there(x) or not is_number(node.eps) or not is_number(node.decay):
        return None
    grouped = _grouped(x, node.groups)
    y, mean, projection, *_ = ops.decorrelate(grouped, eps=float(node.eps))
    pairs = ((node.running_mean, mean), (node.running_projection, projection))
    if any(array is not None and not is_state(array, of_batch) for array, of_batch in pairs):
        return None
    rest, m = 1 - node.decay, grouped.shape[2]
    if node.running_mean is not None:
        node.running_mean *= node.decay
        node.running_mean += rest * beside(node.running_mean, mean)
    if node.running_projection is not None:
        node.running_projection *= node.decay
        node.running_projection += _unbiased(node.running_projection, rest, projection, m)
    return _ungrouped(y, x)


@lowers(FixedDecorrelatedBatchNormalization)
def fixed_decorrelated_batch_normalization(node: Any, x: Value, mean: Value, projection: Value) -> Optional[Value]:
    if not are_there(x):
        return None
    xs = [ops.once_differentiable(v, error=NotImplementedError, message=_ONCE) for v in (x, mean, projection)]
    grouped = _grouped(xs[0], node.groups)
    if mean.shape != grouped.shape[:2] or projection.shape != (*grouped.shape[:2], grouped.shape[1]):
        return None
    return _ungrouped(ops.fixed_decorrelate(grouped, *xs[1:]), x)


def _grouped(x: Value, groups: int) -> Value:
    """``(groups, channels of one, places)``."""
    turned = ops.transpose(x, axes=(1, 0, *range(2, x.ndim)))
    channels = x.shape[1] // groups
    return ops.reshape(turned, shape=(groups, channels, x.type.size // (groups * channels)))


def _ungrouped(y: Value, x: Value) -> Value:
    turned = ops.reshape(y, shape=(x.shape[1], x.shape[0], *x.shape[2:]))
    return ops.transpose(turned, axes=(1, 0, *range(2, x.ndim)))


@lowers(GroupNormalization)
def group_normalization(node: Any, x: Value, gamma: Value, beta: Value) -> Optional[Value]:
    # computed in the wider dtype of the two; where that is not the parameters', their gradients have it, too
    dtype = np.promote_types(x.dtype, gamma.dtype)
    if dtype != gamma.dtype or not is_number(node.eps) or not are_there(x) or x.shape[1] % node.groups:
        return None
    batch, channels = x.shape[:2]
    x_hat, _ = ops.standardize(_as(ops.reshape(x, shape=(batch * node.groups, x.type.size // (batch * node.groups))), dtype),
                               eps=node.eps)
    y = ops.scale_shift(ops.reshape(x_hat, shape=(batch, channels, x.type.size // (batch * channels))), gamma, beta)
    return _as(ops.reshape(y, shape=x.shape), x.dtype)


def _as(x: Value, dtype: np.dtype) -> Value:
    return x if x.dtype == dtype else ops.cast(x, dtype=dtype)


@lowers(NormalizeL2)
def normalize_l2(node: Any, x: Value) -> Optional[Value]:
    # the gradient leaves out the direction of rows of zeros
    axis = ints(node.axis)
    if axis is None or not is_number(node.eps) or any(not -x.ndim <= i < x.ndim for i in axis) or not are_there(x):
        return None
    return ops.normalize_l2(x, axis=axis, eps=float(node.eps))


@lowers(LocalResponseNormalization)
def local_response_normalization(node: Any, x: Value) -> Optional[Value]:
    attrs = {name: getattr(node, name) for name in ("n", "k", "alpha", "beta")}
    if not are_ints(node.n) or not all(map(is_number, attrs.values())):
        return None
    return ops.local_response(ops.once_differentiable(x, error=NotImplementedError), **attrs)[0]

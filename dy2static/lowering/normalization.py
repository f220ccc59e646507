"""Lowerings of `chainer.functions.normalization`."""
from __future__ import annotations

from typing import Any, Optional, Tuple

from chainer.functions.normalization import batch_normalization as _batch
from chainer.functions.normalization.batch_normalization import BatchNormalization, FixedBatchNormalization
from chainer.functions.normalization.layer_normalization import LayerNormalization

from .. import ops
from ..ir.graph import Value
from .math import mean_of
from .registry import beside, is_number, is_state, lowers


@lowers(LayerNormalization)
def layer_normalization(node: Any, x: Value, gamma: Value, beta: Value) -> Optional[Value]:
    # backward computes everything again from x; rows of no elements divide by zero there
    if not is_number(node.eps) or x.shape[1] == 0:
        return None
    centred = x - mean_of(x, (1,), True)
    deviation = ops.sqrt(mean_of(ops.square(centred), (1,), True) + float(node.eps))
    return centred * (1.0 / deviation) * gamma + beta


@lowers(BatchNormalization, state=("running_mean", "running_var"))
def batch_normalization(node: Any, x: Value, gamma: Value, beta: Value) -> Optional[Value]:
    # The running statistics are arrays that forward changes in place, after the result is there; backward does not read
    # them.  A batch of one sample makes a warning.
    axis = _axes(node, x, gamma)
    if axis is None or node._impl_selector is not _batch._impl_selector or all(x.shape[i] == 1 for i in axis):
        return None
    keeps = node.running_mean is not None or node.running_var is not None
    if keeps and not (is_state(node.running_mean, gamma) and is_state(node.running_var, gamma)):
        return None
    y, mean, var, _ = ops.batch_norm(x, gamma, beta, axis=axis, eps=node.eps)
    if keeps:
        m = x.type.size // gamma.type.size
        rest = 1 - node.decay
        _advance(node.running_mean, node.decay, rest * beside(node.running_mean, mean))
        _advance(node.running_var, node.decay, rest * (m / max(m - 1.0, 1.0)) * beside(node.running_var, var))
    return y


def _advance(running: Any, decay: Any, share: Any) -> None:
    running *= decay
    running += share


@lowers(FixedBatchNormalization)
def fixed_batch_normalization(node: Any, x: Value, gamma: Value, beta: Value, mean: Value, var: Value) -> Optional[Value]:
    axis = _axes(node, x, gamma)
    return None if axis is None else ops.fixed_batch_norm(x, gamma, beta, mean, var, axis=axis, eps=node.eps)[0]


def _axes(node: Any, x: Value, gamma: Value) -> Optional[Tuple[int, ...]]:
    """The axes of `x` over which it is normalised; None for what is left to Chainer: nothing at all, or one channel."""
    sizes = x.shape + gamma.shape
    if not is_number(node.eps) or gamma.ndim == 0 or not all(isinstance(n, int) and n > 0 for n in sizes):
        return None
    return tuple(_batch._compute_axis(x.ndim, gamma.ndim, node.axis))

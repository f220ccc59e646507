"""Lowerings of `chainer.functions.noise`."""
from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np
from chainer.functions.noise.dropout import Dropout
from chainer.functions.noise.gaussian import Gaussian
from chainer.functions.noise.simplified_dropconnect import SimplifiedDropconnect
from chainer.functions.noise.zoneout import Zoneout

from .. import ops
from ..ir.building import constant
from ..ir.graph import Value
from .registry import array_in, is_number, lowers


@lowers(Dropout)
def dropout(node: Any, x: Value) -> Optional[Value]:
    # Draws in double precision from NumPy's global generator, whatever the dtype of x.  The mask is read from the node.
    # A 0-d array is an error in Chainer.
    if node.mask is not None:
        mask = array_in(node.mask, x.shape)
        return None if mask is None else _masked(x, mask)
    if x.ndim == 0 or not is_number(node.dropout_ratio):
        return None
    kept = _kept(x.shape, node.dropout_ratio)
    scale = ops.broadcast_to(constant(x.dtype.type(1.0 / (1 - node.dropout_ratio))), shape=x.shape)
    node.mask = mask = ops.mask(scale, kept)
    return x * mask


def _kept(shape: Tuple[int, ...], ratio: Any) -> Value:
    """Drawn at random: which elements stay."""
    return ops.greater_equal(ops.random_uniform(shape=shape), constant(ratio, np.float64))


def _masked(x: Value, mask: Value) -> Optional[Value]:
    """The product with a mask of the same shape; None if it would change the dtype."""
    if mask.dtype.kind == "b":
        return ops.mask(x, mask)
    return x * mask if mask.dtype == x.dtype else None


@lowers(Zoneout)
def zoneout(node: Any, h: Value, x: Value) -> Optional[Value]:
    # draws as Dropout does, for x; h shows through where x is dropped
    if x.ndim == 0 or h.shape != x.shape or h.dtype != x.dtype or not is_number(node.zoneout_ratio):
        return None
    kept = _kept(x.shape, node.zoneout_ratio)
    return ops.mask(h, ops.logical_not(kept)) + ops.mask(x, kept)


@lowers(Gaussian)
def gaussian(node: Any, mean: Value, ln_var: Value) -> Optional[Value]:
    # what is drawn is read from the node
    if node.eps is None:
        node.eps = eps = ops.cast(ops.random_normal(shape=ln_var.shape), dtype=mean.dtype)
    else:
        eps = array_in(node.eps, ln_var.shape, mean.dtype)
    return None if eps is None else mean + ops.exp(ln_var * 0.5) * eps


@lowers(SimplifiedDropconnect)
def simplified_dropconnect(node: Any, x: Value, W: Value, b: Optional[Value] = None) -> Optional[Value]:
    # one mask for the weights, or one for each sample
    if W.dtype != x.dtype or not is_number(node.ratio) or 0 in (*x.shape, *W.shape):
        return None
    shape = (x.shape[0], *W.shape)
    own = node.use_batchwise_mask
    mask = _kept(shape if own else W.shape, node.ratio) if node.mask is None else array_in(node.mask, shape if own else W.shape)
    scaled = W * float(W.dtype.type(1.0 / (1 - node.ratio)))
    weights = None if mask is None else _masked(ops.broadcast_to(scaled, shape=shape) if own else scaled, mask)
    if weights is None:
        return None
    columns = ops.reshape(x, shape=(x.shape[0], W.shape[1], 1))
    weights = weights if own else ops.broadcast_to(weights, shape=shape)
    y = ops.reshape(ops.matmul(weights, columns), shape=shape[:2])
    return y if b is None else y + b

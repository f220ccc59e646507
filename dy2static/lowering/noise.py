"""Lowerings of `chainer.functions.noise`."""
from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np
from chainer.backends import cuda
from chainer.functions.noise.dropout import Dropout
from chainer.functions.noise.gaussian import Gaussian
from chainer.functions.noise.simplified_dropconnect import SimplifiedDropconnect
from chainer.functions.noise.zoneout import Zoneout

from .. import ops
from ..ir.building import constant
from ..ir.devices import is_gpu
from ..ir.graph import Value
from .registry import array_in, is_number, lowers, number, varies


@lowers(Dropout)
def dropout(node: Any, x: Value) -> Optional[Value]:
    # Draws in double precision from NumPy's global generator, whatever the dtype of x.  The mask is read from the node.
    # A 0-d array is an error in Chainer.
    if node.mask is not None:
        mask = array_in(node.mask, x.shape)
        return None if mask is None else _masked(x, mask)
    if x.ndim == 0 or not is_number(node.dropout_ratio):
        return None
    if is_gpu(x.type.device) and cuda.cudnn_enabled:     # cuDNN draws, from a stream of its own
        return None
    kept = _kept(x.shape, node.dropout_ratio) if not is_gpu(x.type.device) else _kept_on_gpu(x.shape, node.dropout_ratio, x.dtype)
    scale = ops.broadcast_to(_scale(node.dropout_ratio, x.dtype), shape=x.shape)
    node.mask = mask = ops.mask(scale, kept)
    return x * mask


def _scale(ratio: Any, dtype: np.dtype) -> Value:
    """By what the elements are multiplied that stay."""
    if varies(ratio):
        return ops.cast(1.0 / (1.0 - _double(ratio)), dtype=dtype)
    return constant(dtype.type(1.0 / (1 - ratio)))


def _double(ratio: Any) -> Value:
    value = number(ratio, np.dtype(np.float64))
    assert value is not None
    return value


def _kept(shape: Tuple[int, ...], ratio: Any) -> Value:
    """Drawn at random: which elements stay."""
    return ops.greater_equal(ops.random_uniform(shape=shape), _double(ratio))


def _kept_on_gpu(shape: Tuple[int, ...], ratio: Any, dtype: np.dtype) -> Value:
    """The same where Chainer draws in single precision, and has the ratio in the precision of what it drops."""
    wide = np.promote_types(dtype, np.float32)
    return ops.greater_equal(ops.cast(ops.random_typed(shape=shape), dtype=wide), constant(dtype.type(ratio), wide))


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
        node.eps = eps = ops.cast(_normal(ln_var, mean.dtype), dtype=mean.dtype)
    else:
        eps = array_in(node.eps, ln_var.shape, mean.dtype)
    return None if eps is None else mean + ops.by_rule(ops.exp(ln_var * 0.5) * eps, ln_var, eps, rule="gaussian")


def _normal(like: Value, dtype: np.dtype) -> Value:
    if not is_gpu(like.type.device):
        return ops.random_normal(shape=like.shape)
    return ops.random_typed(function="standard_normal", shape=like.shape, dtype=np.promote_types(dtype, np.float32))


@lowers(SimplifiedDropconnect)
def simplified_dropconnect(node: Any, x: Value, W: Value, b: Optional[Value] = None) -> Optional[Value]:
    # one mask for the weights, or one for each sample
    if W.dtype != x.dtype or not is_number(node.ratio) or 0 in (*x.shape, *W.shape):
        return None
    shape = (x.shape[0], *W.shape)
    own = node.use_batchwise_mask
    drawn = shape if own else W.shape
    mask = array_in(node.mask, drawn) if node.mask is not None else \
        _kept_on_gpu(drawn, node.ratio, np.dtype("float32")) if is_gpu(x.type.device) else _kept(drawn, node.ratio)
    scaled = W * _scale(node.ratio, W.dtype)
    weights = None if mask is None else _masked(ops.broadcast_to(scaled, shape=shape) if own else scaled, mask)
    if weights is None:
        return None
    columns = ops.reshape(x, shape=(x.shape[0], W.shape[1], 1))
    weights = weights if own else ops.broadcast_to(weights, shape=shape)
    y = ops.reshape(ops.matmul(weights, columns), shape=shape[:2])
    return y if b is None else y + b

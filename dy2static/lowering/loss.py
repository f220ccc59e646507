"""Lowerings of `chainer.functions.loss`."""
from __future__ import annotations

from typing import Any, Optional

import chainer
import numpy as np
from chainer.functions.loss.absolute_error import AbsoluteError
from chainer.functions.loss.huber_loss import HuberLoss
from chainer.functions.loss.mean_absolute_error import MeanAbsoluteError
from chainer.functions.loss.mean_squared_error import MeanSquaredError
from chainer.functions.loss.sigmoid_cross_entropy import SigmoidCrossEntropy
from chainer.functions.loss.softmax_cross_entropy import SoftmaxCrossEntropy
from chainer.functions.loss.squared_error import SquaredError

from .. import ops
from ..ir.building import constant
from ..ir.graph import Value
from .registry import is_number, lowers, size_of

_DOUBLE = np.dtype("float64")
_ONCE = ("F.softmax_cross_entropy was called with 'enable_double_backprop=False' argument, but double-backprop is "
         "actually being performed. Please specify 'enable_double_backprop=True' explicitly.")


@lowers(MeanSquaredError)
def mean_squared_error(node: Any, x0: Value, x1: Value) -> Value:
    # the sum is a dot product of the difference with itself
    total = ops.sum_of_squares(x0 - x1)
    return _cast(_cast(total, _DOUBLE) / float(size_of(x0)), x0.dtype)


@lowers(MeanAbsoluteError)
def mean_absolute_error(node: Any, x0: Value, x1: Value) -> Value:
    # half precision is summed in single precision; the quotient is cast once
    difference = ops.abs(x0 - x1)
    wide = _wider(x0.dtype)
    total = ops.sum(_cast(difference, wide))
    return _cast(_cast(total, _DOUBLE) / float(size_of(x0)), x0.dtype)


@lowers(SquaredError)
def squared_error(node: Any, x0: Value, x1: Value) -> Value:
    difference = x0 - x1
    return difference * difference


@lowers(AbsoluteError)
def absolute_error(node: Any, x0: Value, x1: Value) -> Value:
    return ops.abs(x0 - x1)


@lowers(HuberLoss)
def huber_loss(node: Any, x: Value, t: Value) -> Optional[Value]:
    # the gradient is the clipped difference; without room between its bounds Chainer raises
    if not is_number(node.delta) or not node.delta > 0:
        return None
    y = ops.huber(x - t, delta=float(node.delta))
    return y if node.reduce == "no" else ops.sum(y, axis=1)


@lowers(SoftmaxCrossEntropy)
def softmax_cross_entropy(node: Any, x: Value, t: Value) -> Optional[Value]:
    # Float targets have a gradient rule that is not the derivative; class weights are arrays in an attribute; without
    # cache_score backward computes from what x holds then; debug mode checks the labels; for an empty batch, backward
    # raises.
    label = _label(node.ignore_label, t.dtype)
    if label is None or node.class_weight is not None or not node.cache_score:
        return None
    if chainer.is_debug() or size_of(x) == 0:
        return None
    log_y = ops.log_softmax(ops.once_differentiable(x, message=_ONCE), axis=1)
    valid = ops.not_equal(t, label)
    picks = ops.mask(t, valid)                                         # an ignored label reads column 0
    column = ops.take_along(log_y, ops.reshape(picks, shape=t.shape[:1] + (1,) + t.shape[1:]), axis=1)
    log_p = ops.mask(ops.reshape(column, shape=t.shape), valid)
    if node.reduce == "no":
        return -log_p
    total = ops.sum(_cast(log_p, _wider(x.dtype)))                     # half precision is summed in single precision
    return _cast(total * _cast(-1.0 / _count(node.normalize, valid, x.shape[0]), total.dtype), x.dtype)


@lowers(SigmoidCrossEntropy)
def sigmoid_cross_entropy(node: Any, x: Value, t: Value) -> Optional[Value]:
    # integer labels make NumPy compute in a wider dtype; the loss is cast at the end
    label = _label(node.ignore_label, t.dtype)
    if label is None:
        return None
    valid = ops.not_equal(t, label)
    loss = -ops.mask(ops.log_likelihood(x, t), valid)
    if node.reduce == "no":
        return _cast(loss, x.dtype)
    total = _cast(ops.sum(loss), _DOUBLE)
    return _cast(total / _count(node.normalize, valid, x.shape[0] if x.ndim else 1), x.dtype)


def _label(label: Any, dtype: np.dtype) -> Optional[Value]:
    """The label to ignore as a value that labels can be compared with."""
    if not isinstance(label, (int, np.integer)) or dtype.kind not in "iu":
        return None
    return constant(label, dtype) if np.iinfo(dtype).min <= label <= np.iinfo(dtype).max else None


def _count(normalize: Any, valid: Value, size: int) -> Value:
    """By how much the sum of losses is divided: the number of labels that count, or the batch size, at least 1."""
    if not normalize:
        return constant(max(size, 1), _DOUBLE)
    return _cast(ops.maximum(ops.sum(valid), 1), _DOUBLE)


def _wider(dtype: np.dtype) -> np.dtype:
    """The dtype Chainer sums this one in."""
    return np.dtype("float32") if dtype == np.float16 else dtype


def _cast(x: Value, dtype: np.dtype) -> Value:
    return x if x.dtype == dtype else ops.cast(x, dtype=dtype)

"""Lowerings of `chainer.functions.loss`."""
from __future__ import annotations

from typing import Any, Optional

import chainer
import numpy as np
from chainer.functions.loss.absolute_error import AbsoluteError
from chainer.functions.loss.contrastive import Contrastive
from chainer.functions.loss.cross_covariance import CrossCovariance
from chainer.functions.loss.decov import DeCov
from chainer.functions.loss.huber_loss import HuberLoss
from chainer.functions.loss.mean_absolute_error import MeanAbsoluteError
from chainer.functions.loss.mean_squared_error import MeanSquaredError
from chainer.functions.loss.negative_sampling import NegativeSamplingFunction
from chainer.functions.loss.sigmoid_cross_entropy import SigmoidCrossEntropy
from chainer.functions.loss.softmax_cross_entropy import SoftmaxCrossEntropy
from chainer.functions.loss.squared_error import SquaredError
from chainer.functions.loss.triplet import Triplet
from chainer.links.loss.hierarchical_softmax import BinaryHierarchicalSoftmaxFunction

from .. import ops
from ..ir.building import constant
from ..ir.graph import Value
from ..ir.size_bounds import maximum
from .math import clipped, mean_of
from .registry import (
    are_ints,
    array_in,
    beside,
    divisor,
    is_captured,
    is_number,
    label_to_ignore,
    lowers,
    number,
    number_of,
    size_of,
    varies,
)

_DOUBLE = np.dtype("float64")
_ONCE = ("F.softmax_cross_entropy was called with 'enable_double_backprop=False' argument, but double-backprop is "
         "actually being performed. Please specify 'enable_double_backprop=True' explicitly.")


@lowers(MeanSquaredError)
def mean_squared_error(node: Any, x0: Value, x1: Value) -> Value:
    # the sum is a dot product of the difference with itself
    total, size = ops.sum_of_squares(x0 - x1), number_of(size_of(x0))
    y = _cast(_cast(total, _DOUBLE) / size, x0.dtype)
    return ops.by_rule(y, x0, x1, _cast(2.0 / size, x0.dtype), rule="mean_squared_error")


@lowers(MeanAbsoluteError)
def mean_absolute_error(node: Any, x0: Value, x1: Value) -> Value:
    # half precision is summed in single precision; the quotient is cast once
    difference = ops.abs(x0 - x1)
    wide = _wider(x0.dtype)
    total = ops.sum(_cast(difference, wide))
    return _cast(_cast(total, _DOUBLE) / number_of(size_of(x0)), x0.dtype)


@lowers(SquaredError)
def squared_error(node: Any, x0: Value, x1: Value) -> Value:
    difference = x0 - x1
    return ops.by_rule(difference * difference, x0, x1, rule="squared_error")


@lowers(AbsoluteError)
def absolute_error(node: Any, x0: Value, x1: Value) -> Value:
    return ops.abs(x0 - x1)


@lowers(HuberLoss)
def huber_loss(node: Any, x: Value, t: Value) -> Optional[Value]:
    # The gradient is the clipped difference.  Chainer raises for bounds without room between them, and delta may vary between runs.
    if not is_number(node.delta) or getattr(node.delta, "text", "") is None or not node.delta > 0:
        return None
    y = _huber(x - t, number(node.delta, x.dtype)) if varies(node.delta) else ops.huber(x - t, delta=float(node.delta))
    return y if node.reduce == "no" else ops.sum(y, axis=1)


def _huber(difference: Value, delta: Value) -> Value:
    """``ops.huber`` with a number that differs from call to call."""
    near = clipped(difference, -delta, delta)
    return near * (difference - near * number(0.5, delta.dtype))


@lowers(SoftmaxCrossEntropy)
def softmax_cross_entropy(node: Any, x: Value, t: Value) -> Optional[Value]:
    # debug mode checks the labels; for an empty batch, backward raises
    if size_of(x) == 0 or chainer.is_debug():
        return None
    x = ops.once_differentiable(x, message=_ONCE)
    log_y = ops.log_softmax(ops.stop_gradient(x), axis=1)
    if t.dtype.kind == "f":
        return _soft_target_loss(node, x, log_y, t)
    label, weight = label_to_ignore(node.ignore_label, t.dtype), None
    if label is None:
        return None
    terms = log_y
    if node.class_weight is not None:
        weight = array_in(node.class_weight, x.shape[1:2])
        if weight is None or weight.dtype.kind != "f":
            return None
        wide = np.promote_types(x.dtype, weight.dtype)
        weights = ops.reshape(_cast(weight, wide), shape=(1, -1) + (1,) * (x.ndim - 2))
        terms = _cast(_cast(log_y, wide) * weights, x.dtype)
    valid = ops.not_equal(t, label)
    picks = ops.mask(t, valid)                                         # an ignored label reads column 0
    picks = ops.reshape(picks, shape=t.shape[:1] + (1,) + t.shape[1:])
    column = ops.take_along(terms, picks, axis=1)
    log_p = ops.mask(ops.reshape(column, shape=t.shape), valid)
    more = () if weight is None else (weight,)
    attrs = {"cached": bool(node.cache_score), "weighted": weight is not None, "ignored": int(node.ignore_label)}
    if node.reduce == "no":
        return ops.cross_entropy(-log_p, x, log_y, t, *more, mean=False, **attrs)
    total = ops.sum(_cast(log_p, _wider(x.dtype)))                     # half precision is summed in single precision
    share = 1.0 / _count(node.normalize, valid, x.shape[0])
    factor = -share if node.normalize else _cast(-share, total.dtype)
    more += _coefficient(share, x.dtype, node.normalize),
    return ops.cross_entropy(ops.scaled(total, factor, dtype=x.dtype), x, log_y, t, *more, **attrs)


def _soft_target_loss(node: Any, x: Value, log_y: Value, t: Value) -> Optional[Value]:
    if t.dtype != x.dtype or not is_number(node.ignore_label):
        return None
    losses = ops.soft_labels(log_y, t, eps=node.eps if node.soft_target_loss == "kl-divergence" else None)
    attrs = {"ignored": float(node.ignore_label), "cached": bool(node.cache_score)}
    if node.reduce == "no":
        return ops.cross_entropy(losses, x, log_y, t, mean=False, **attrs)
    share = 1.0 / number_of(size_of(x) // x.shape[1])
    total = ops.sum(losses) * _cast(share, x.dtype)
    return ops.cross_entropy(total, x, log_y, t, _coefficient(share, x.dtype, False), **attrs)


def _coefficient(share: Value, dtype: np.dtype, counted: bool) -> Value:
    """A factor in the dtype in which NumPy multiplies a 0-d array of ``dtype`` by it.

    counted: whether the factor is a number of NumPy's, made of a count, not one of Python's.
    """
    return _cast(share, (np.ones((), dtype) * (_DOUBLE.type(1) if counted else 1.0)).dtype)


@lowers(SigmoidCrossEntropy)
def sigmoid_cross_entropy(node: Any, x: Value, t: Value) -> Optional[Value]:
    # integer labels make NumPy compute in a wider dtype; the loss is cast at the end
    label = label_to_ignore(node.ignore_label, t.dtype)
    if label is None:
        return None
    valid = ops.not_equal(t, label)
    loss = -ops.mask(ops.log_likelihood(x, t), valid)
    if node.reduce == "no":
        return _cast(loss, x.dtype)
    total = _cast(ops.sum(loss), _DOUBLE)
    return _cast(total / _count(node.normalize, valid, x.shape[0] if x.ndim else 1), x.dtype)


@lowers(NegativeSamplingFunction, calls=("sampler",))
def negative_sampling(node: Any, x: Value, t: Value, W: Value) -> Optional[Value]:
    # The samples are an array of the sampler's, which gets the true labels, and is read from the node.  Half precision is
    # computed in single precision.
    label = label_to_ignore(node.ignore_label, t.dtype)
    if label is None or not are_ints(node.sample_size) or 0 in x.shape + W.shape:
        return None
    shape = x.shape[0], node.sample_size + 1
    node.samples = samples = node.sampler(shape)
    drawn = array_in(samples, shape)
    if drawn is None:
        return None
    true = _cast(ops.reshape(t, shape=(shape[0], 1)), drawn.dtype)
    chosen = ops.concat(true, ops.getitem(drawn, index=(slice(None), slice(1, None))), axis=1)
    if is_captured(samples):
        samples[:, 0] = beside(samples, t)
    wide = _wider(x.dtype)
    rows = ops.take(_cast(W, wide), chosen, axis=0)
    scores = ops.reshape(ops.matmul(rows, ops.reshape(_cast(x, wide), shape=x.shape + (1,))), shape=shape)
    signs = np.where(np.arange(shape[1]) == 0, -1, 1).astype(wide)
    losses = ops.sum(ops.softplus(scores * constant(signs)), axis=1)
    losses = ops.where(ops.not_equal(t, label), losses, 0)
    return _cast(losses if node.reduce == "no" else ops.sum(losses), x.dtype)


@lowers(BinaryHierarchicalSoftmaxFunction)
def hierarchical_softmax(node: Any, x: Value, t: Value, W: Value) -> Optional[Value]:
    codes = array_in(node.codes, dtype=x.dtype)
    tree = array_in(node.paths), codes, array_in(node.begins)
    return None if None in tree else ops.tree_loss(x, W, t, *tree)


@lowers(Contrastive)
def contrastive(node: Any, x0: Value, x1: Value, y: Value) -> Optional[Value]:
    # integer labels make NumPy compute in a wider dtype; the loss is cast at the end
    if not is_number(node.margin) or x0.dtype == np.float16 and float(node.margin) > np.finfo(np.float16).max:
        return None
    losses = ops.contrast(x0 - x1, y, number(node.margin, x0.dtype))
    return _cast(losses if node.reduce == "no" else ops.sum(losses) / divisor(x0.shape[0], losses.dtype), x0.dtype)


@lowers(Triplet)
def triplet(node: Any, anchor: Value, positive: Value, negative: Value) -> Optional[Value]:
    # the gradients are products with differences of the other two
    if not is_number(node.margin):
        return None
    margin = number(node.margin, anchor.dtype) if varies(node.margin) else float(node.margin)
    losses = ops.relu(ops.triplet_distance(anchor, positive, negative) + margin)
    losses = ops.by_rule(losses, anchor, positive, negative, losses, rule="triplet")
    return losses if node.reduce == "no" else ops.sum(losses) / divisor(anchor.shape[0], losses.dtype)


@lowers(CrossCovariance)
def cross_covariance(node: Any, y: Value, z: Value) -> Optional[Value]:
    # the gradients do not go through the means, which pass nothing on but for rounding
    if 0 in y.shape + z.shape:
        return None
    product = ops.matmul(_centred(y), _centred(z), transa=True)
    cost = _half_squared(node, product / divisor(y.shape[0], product.dtype))
    rule = "cross_covariance" if node.reduce == "no" else "half_cross_covariance"
    return ops.by_rule(cost, y, z, _share(y), rule=rule)


@lowers(DeCov)
def decov(node: Any, h: Value) -> Optional[Value]:
    # the covariance of different units only
    if 0 in h.shape:
        return None
    centred = _centred(h)
    product = ops.matmul(centred, centred, transa=True)
    others = ops.where(constant(np.eye(h.shape[1], dtype=bool)), 0, product) / divisor(h.shape[0], product.dtype)
    rule = "covariance" if node.reduce == "no" else "half_covariance"
    return ops.by_rule(_half_squared(node, others), h, centred, others, _share(h), rule=rule)


def _centred(x: Value) -> Value:
    return x - mean_of(x, (0,), True)


def _share(x: Value) -> Value:
    """One, divided by the number of rows."""
    return _cast(1.0 / number_of(x.shape[0]), x.dtype)


def _half_squared(node: Any, covariance: Value) -> Value:
    return covariance if node.reduce == "no" else ops.sum_of_squares(covariance) * 0.5


def _count(normalize: Any, valid: Value, size: int) -> Value:
    """By how much the sum of losses is divided: the number of labels that count, or the batch size, at least 1."""
    if not normalize:
        return number_of(maximum(size, 1))
    return _cast(ops.maximum(ops.sum(valid), 1), _DOUBLE)


def _wider(dtype: np.dtype) -> np.dtype:
    """The dtype Chainer sums this one in."""
    return np.dtype("float32") if dtype == np.float16 else dtype


def _cast(x: Value, dtype: np.dtype) -> Value:
    return x if x.dtype == dtype else ops.cast(x, dtype=dtype)

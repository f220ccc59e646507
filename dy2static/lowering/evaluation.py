"""Lowerings of `chainer.functions.evaluation`."""
from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import chainer
import numpy as np
from chainer.functions.evaluation.accuracy import Accuracy
from chainer.functions.evaluation.binary_accuracy import BinaryAccuracy
from chainer.functions.evaluation.classification_summary import ClassificationSummary
from chainer.functions.evaluation.r2_score import R2_score

from .. import ops
from ..ir.graph import Value
from .math import mean_of
from .registry import are_ints, is_number, label_to_ignore, lowers, size_of, symbolic_value


@lowers(Accuracy)
def accuracy(node: Any, y: Value, t: Value) -> Optional[Value]:
    # without a label to ignore the mean is taken in the dtype of y
    if size_of(t) == 0:
        return None
    predicted = ops.reshape(ops.argmax(y, axis=1), shape=t.shape)
    hits = ops.equal(predicted, ops.cast(t, dtype=predicted.dtype))
    if node.ignore_label is not None:
        label = label_to_ignore(node.ignore_label, t.dtype)
        if label is None:
            return None
        counts = ops.not_equal(t, label)
        total = ops.sum(counts)
        share = ops.sum(ops.logical_and(hits, counts)) / ops.maximum(total, 1)
        return _as(ops.mask(share, ops.greater(total, 0)), y.dtype)
    return _as(ops.mean(ops.cast(hits, dtype="float32" if y.dtype == "float16" else y.dtype)), y.dtype)


@lowers(BinaryAccuracy)
def binary_accuracy(node: Any, y: Value, t: Value) -> Optional[Value]:
    label = label_to_ignore(node.ignore_label, t.dtype)
    if label is None:
        return None
    hits = ops.equal(ops.cast(ops.greater_equal(y, 0), dtype=t.dtype), t)
    return _as(ops.sum(hits) / ops.maximum(ops.sum(ops.not_equal(t, label)), 1), y.dtype)


@lowers(ClassificationSummary)
def classification_summary(node: Any, y: Value, t: Value) -> Optional[Tuple[Value, ...]]:
    if not is_number(node.beta) or size_of(t) == 0 or chainer.is_debug():
        return None
    counts = _counted(node, y, t) if node.label_num is not None else [symbolic_value(x) for x in getattr(node, "counts", ())]
    if not counts:
        return None
    support, relevant, found = counts
    precision, recall = found / relevant, found / support
    squared = float(node.beta) * float(node.beta)
    return precision, recall, (1 + squared) * precision * recall / (squared * precision + recall), support


def _counted(node: Any, y: Value, t: Value) -> Sequence[Value]:
    """How many labels there are of each class, how many predictions, and how many right ones; what is ignored is one class more."""
    count, label = node.label_num, label_to_ignore(node.ignore_label, np.dtype("int32"))
    if not are_ints(count) or label is None:
        return ()
    t = ops.reshape(_as(t, np.dtype("int32")), shape=(size_of(t),))
    ignored = ops.equal(t, label)
    predicted = ops.where(ignored, count, ops.reshape(ops.argmax(y, axis=1), shape=t.shape))
    true = ops.where(ignored, count, _as(t, predicted.dtype))
    hits = ops.where(ops.equal(predicted, true), true, count)
    return [ops.getitem(ops.bincount(x, size=count + 1), index=(slice(0, count),)) for x in (true, predicted, hits)]


@lowers(R2_score)
def r2_score(node: Any, prediction: Value, true: Value) -> Optional[Value]:
    # it has no gradient; what does not vary scores 0
    if prediction.dtype != true.dtype or prediction.ndim == 0 or size_of(true) == 0:
        return None
    rest = ops.sum(ops.square(prediction - true), axis=0)
    whole = ops.sum(ops.square(true - mean_of(true, (0,), False)), axis=0)
    varies = ops.not_equal(whole, 0)
    score = ops.stop_gradient(ops.where(varies, 1.0 - rest / ops.where(varies, whole, 1), 0))
    return score if node.multioutput == "raw_values" else mean_of(score, tuple(range(score.ndim)), False)


def _as(x: Value, dtype: np.dtype) -> Value:
    return x if x.dtype == dtype else ops.cast(x, dtype=dtype)

"""Metrics of as many classes as the greatest label says: what they count, as arrays of a size that the run knows."""
from __future__ import annotations

from typing import Any, Sequence, Tuple

import chainer
import numpy as np
from chainer.functions.evaluation.classification_summary import ClassificationSummary

from ..ir.graph import Value
from ..symbolic.values import SymbolicArray


def count_classes(capture: Any, node: chainer.FunctionNode, values: Sequence[Value]) -> None:
    """Leave in a summary that has no number of classes what its lowering needs: ``counts`` of true, predicted and right labels."""
    summary = getattr(node, "function", None)
    if type(summary) is ClassificationSummary and summary.label_num is None and type(summary.ignore_label) is int:
        arrays = [SymbolicArray(capture, value) for value in values]
        summary.__dict__["counts"] = capture.numpy_call(_class_counts, (*arrays, summary.ignore_label), {})


def _class_counts(y: np.ndarray, t: np.ndarray, ignored: int) -> Tuple[np.ndarray, ...]:
    t = t.astype(np.int32, copy=False)
    count = np.amax(t) + 1
    skipped = (t == ignored).ravel()
    predicted = np.where(skipped, count, y.argmax(axis=1).ravel())
    true = np.where(skipped, count, t.ravel())
    right = np.where(predicted == true, true, count)
    support, relevant, found = (np.bincount(x, minlength=count + 1)[:count] for x in (true, predicted, right))
    return support, relevant, found

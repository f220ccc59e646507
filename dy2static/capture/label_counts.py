"""Metrics of as many classes as the greatest label says: what they count, as arrays of a size that the run knows."""
from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

import chainer
from chainer.functions.evaluation.classification_summary import ClassificationSummary

from ..ir.graph import Value
from ..runtime.functions import class_counts
from ..symbolic.values import SymbolicArray

if TYPE_CHECKING:
    from .protocols import Capture


def count_classes(capture: Capture, node: chainer.FunctionNode, values: Sequence[Value]) -> None:
    """Leave in a summary that has no number of classes what its lowering needs: ``counts`` of true, predicted and right labels."""
    summary = getattr(node, "function", None)
    if type(summary) is ClassificationSummary and summary.label_num is None and type(summary.ignore_label) is int:
        arrays = [SymbolicArray(capture, value) for value in values]
        summary.__dict__["counts"] = capture.numpy.call(class_counts, (*arrays, summary.ignore_label), {})

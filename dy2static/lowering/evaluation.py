"""Lowerings of `chainer.functions.evaluation`."""
from __future__ import annotations

from typing import Any, Optional

from chainer.functions.evaluation.accuracy import Accuracy

from .. import ops
from ..ir.graph import Value
from .registry import lowers, size_of


@lowers(Accuracy)
def accuracy(node: Any, y: Value, t: Value) -> Optional[Value]:
    # with a label to ignore, the number of labels left decides how it is computed
    if node.ignore_label is not None or size_of(t) == 0:
        return None
    predicted = ops.reshape(ops.argmax(y, axis=1), shape=t.shape)
    hits = ops.equal(predicted, ops.cast(t, dtype=predicted.dtype))
    total = ops.mean(ops.cast(hits, dtype="float32" if y.dtype == "float16" else y.dtype))
    return total if total.dtype == y.dtype else ops.cast(total, dtype=y.dtype)

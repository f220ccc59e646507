"""Lowerings of `chainer.functions.normalization`."""
from __future__ import annotations

from typing import Any, Optional

from chainer.functions.normalization.layer_normalization import LayerNormalization

from .. import ops
from ..ir.graph import Value
from .math import mean_of
from .registry import is_number, lowers


@lowers(LayerNormalization)
def layer_normalization(node: Any, x: Value, gamma: Value, beta: Value) -> Optional[Value]:
    # backward computes everything again from x; rows of no elements divide by zero there
    if not is_number(node.eps) or x.shape[1] == 0:
        return None
    centred = x - mean_of(x, (1,), True)
    deviation = ops.sqrt(mean_of(ops.square(centred), (1,), True) + float(node.eps))
    return centred * (1.0 / deviation) * gamma + beta

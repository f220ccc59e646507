"""Lowerings of `chainer.functions.noise`."""
from __future__ import annotations

from typing import Any, Optional

import numpy as np
from chainer.functions.noise.dropout import Dropout
from chainer.functions.noise.zoneout import Zoneout

from .. import ops
from ..ir.building import constant
from ..ir.graph import Value
from .registry import is_number, lowers


@lowers(Dropout)
def dropout(node: Any, x: Value) -> Optional[Value]:
    # Draws in double precision from NumPy's global generator, whatever the dtype of x.  A mask that is given is an
    # array in an attribute; one that is asked for is read from the node, which never runs here.  A 0-d array is
    # an error in Chainer.
    if x.ndim == 0 or node.mask is not None or node.return_mask or not is_number(node.dropout_ratio):
        return None
    kept = ops.greater_equal(ops.random_uniform(shape=x.shape), constant(node.dropout_ratio, np.float64))
    scale = ops.broadcast_to(constant(x.dtype.type(1.0 / (1 - node.dropout_ratio))), shape=x.shape)
    return x * ops.mask(scale, kept)


@lowers(Zoneout)
def zoneout(node: Any, h: Value, x: Value) -> Optional[Value]:
    # draws as Dropout does, for x; h shows through where x is dropped
    if x.ndim == 0 or h.shape != x.shape or h.dtype != x.dtype or not is_number(node.zoneout_ratio):
        return None
    kept = ops.greater_equal(ops.random_uniform(shape=x.shape), constant(node.zoneout_ratio, np.float64))
    return ops.mask(h, ops.logical_not(kept)) + ops.mask(x, kept)

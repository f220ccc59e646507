"""Rules for what NumPy does along axes: sums, means and deviations, norms.  The last bits may differ from NumPy's."""
from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np

from ... import ops
from ...ir.building import constant
from ...ir.graph import Value
from ...ir.op import OpDef
from ...ir.size_bounds import is_positive, not_below
from ...ir.types import Tensor
from ...ops.scalar import size_as_number
from .elements import truth
from .exact import Rule
from .operands import axes_of, is_array, operand, stacked


def mean(type_: Tensor, x: Any, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
    """The rule of ``np.mean``; of ints it is the mean of float64."""
    x = stacked(x)
    axes = axes_of(x, axis, keepdims)
    return None if axes is None else ops.mean(_as_float(x), axis=axes, keepdims=keepdims)


def deviation(root: bool) -> Rule:
    """The rule of ``np.var``; of ``np.std`` for its root."""
    def rule(type_: Tensor, x: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Optional[Value]:
        axes = axes_of(x, axis, keepdims)
        if axes is None or type(ddof) is not int:
            return None
        count = math.prod(x.shape[a] for a in axes)
        if ddof and not is_positive(count - ddof):          # NumPy warns
            return None
        x = _as_float(x)
        squares = ops.square(x - ops.broadcast_to(ops.mean(x, axis=axes, keepdims=True), shape=x.shape))
        if ddof:
            variance = ops.sum(squares, axis=axes, keepdims=keepdims) / size_as_number(count - ddof, x.dtype)
        else:
            variance = ops.mean(squares, axis=axes, keepdims=keepdims)
        return ops.sqrt(variance) if root else variance
    return rule


def covariance(type_: Tensor, m: Any, rowvar: Any = True, bias: Any = False, ddof: Any = None) -> Optional[Value]:
    """The rule of ``np.cov`` of one array of two axes, or one."""
    if not is_array(m) or m.ndim not in (1, 2) or m.dtype.kind not in "biuf" or not is_positive(m.type.size) or \
            type(rowvar) is not bool or type(bias) is not bool or type(ddof) not in (int, type(None)):
        return None
    x = ops.cast(m, dtype=type_.dtype) if m.dtype != type_.dtype else m
    if x.ndim == 1:
        x = ops.reshape(x, shape=(1, *x.shape))
    elif not rowvar:                                        # but a single row is one variable
        if not not_below(x.shape[0], 2):
            return None
        x = ops.transpose(x, axes=(1, 0))
    count = x.shape[1] - (int(not bias) if ddof is None else ddof)
    if not is_positive(count):                              # NumPy warns
        return None
    x = x - ops.broadcast_to(ops.mean(x, axis=(1,), keepdims=True), shape=x.shape)
    return ops.copy(ops.reshape(ops.matmul(x, x, transb=True) / size_as_number(count, x.dtype), shape=type_.shape))


def running(op: OpDef) -> Rule:
    """The rule of ``np.cumsum`` or ``np.cumprod``; without an axis, of all elements in a row."""
    def rule(type_: Tensor, x: Any, axis: Any = None) -> Optional[Value]:
        if not is_array(x) or not x.ndim or x.dtype.kind not in "biuf" or type(axis) not in (int, type(None)):
            return None
        x = ops.cast(x, dtype=type_.dtype) if x.dtype != type_.dtype else x
        return op(ops.reshape(x, shape=type_.shape), axis=0) if axis is None else op(x, axis=axis)
    return rule


def clip(type_: Tensor, x: Any, low: Any = None, high: Any = None) -> Optional[Value]:
    """The rule of ``np.clip`` between numbers or arrays of the type of the result."""
    if not is_array(x) or x.dtype != type_.dtype or x.dtype.kind not in "iuf" or low is None and high is None:
        return None
    if all(bound is None or type(bound) in (int, float) and operand(bound, x.dtype) is not None for bound in (low, high)):
        return ops.clip(x, x_min=low, x_max=high)
    for bound, op in ((low, ops.maximum), (high, ops.minimum)):
        if bound is not None:
            value = operand(bound, type_.dtype)
            if value is None:
                return None
            x = op(x, value)
    return x


def reduced(op: OpDef, axis: Any = None) -> Rule:
    """The rule of a reduction in the dtype of its result; of ``np.add.reduce`` and the like with ``axis=0``."""
    default = axis

    def rule(type_: Tensor, x: Any, axis: Any = default, dtype: Any = None, keepdims: Any = False) -> Optional[Value]:
        axes = axes_of(x, axis, keepdims)
        if axes is None or not np.can_cast(x.dtype, type_.dtype):
            return None
        return op(ops.cast(x, dtype=type_.dtype) if x.dtype != type_.dtype else x, axis=axes, keepdims=keepdims)
    return rule


def over_truths(op: OpDef, axis: Any = None) -> Rule:
    """The rule of ``np.all`` or ``np.any``; of ``np.logical_and.reduce`` and the like with ``axis=0``."""
    default = axis

    def rule(type_: Tensor, x: Any, axis: Any = default, keepdims: Any = False) -> Optional[Value]:
        axes, truths = axes_of(x, axis, keepdims), truth(x)
        return None if axes is None or truths is None else op(truths, axis=axes, keepdims=keepdims)
    return rule


def argument(op: OpDef) -> Rule:
    """The rule of ``np.argmax`` or ``np.argmin``, also of all elements, and with the axis kept."""
    def rule(type_: Tensor, x: Any, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
        axes = axes_of(x, axis, keepdims)
        if axes is None or type(axis) is tuple or x.dtype.kind not in "iuf":
            return None
        return ops.reshape(op(x, axis=axis), shape=type_.shape) if keepdims else op(x, axis=axis)
    return rule


def count_nonzero(type_: Tensor, x: Any, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
    """The rule of ``np.count_nonzero``."""
    axes, truths = axes_of(x, axis, keepdims), truth(x)
    return None if axes is None or truths is None else ops.sum(ops.cast(truths, dtype=type_.dtype), axis=axes, keepdims=keepdims)


def spread(type_: Tensor, x: Any, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
    """The rule of ``np.ptp``."""
    axes = axes_of(x, axis, keepdims)
    if axes is None or x.dtype.kind not in "iuf":
        return None
    return ops.max(x, axis=axes, keepdims=keepdims) - ops.min(x, axis=axes, keepdims=keepdims)


def without_nan(op: OpDef) -> Rule:
    """The rule of ``np.nansum`` and ``np.nanmean``."""
    def rule(type_: Tensor, x: Any, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
        axes = axes_of(x, axis, keepdims)
        if axes is None or x.dtype.kind != "f":
            return None
        missing = ops.isnan(x)
        total = ops.sum(ops.where(missing, constant(x.dtype.type(0)), x), axis=axes, keepdims=keepdims)
        if op is ops.sum:
            return total
        return total / ops.sum(ops.cast(ops.logical_not(missing), dtype=x.dtype), axis=axes, keepdims=keepdims)
    return rule


def norm(type_: Tensor, x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
    """The rule of ``np.linalg.norm`` of vectors, and of all elements of matrices."""
    axes = axes_of(x, axis, keepdims)
    if axes is None or x.dtype.kind != "f" or type(ord) not in (int, float, str, type(None)):
        return None
    count = x.ndim if axis is None else len(axes)
    if ord is None or ord == 2 and count == 1 or ord == "fro" and count == 2:
        return ops.sqrt(ops.sum(ops.square(x), axis=axes, keepdims=keepdims))
    if count != 1 or ord not in (1, math.inf, -math.inf):
        return None
    return {1: ops.sum, math.inf: ops.max, -math.inf: ops.min}[ord](ops.abs(x), axis=axes, keepdims=keepdims)


def differences(type_: Tensor, a: Any, n: Any = 1, axis: Any = -1) -> Optional[Value]:
    """The rule of ``np.diff``."""
    if not is_array(a) or type(n) is not int or n < 1 or type(axis) is not int or a.dtype.kind not in "iuf":
        return None
    before = (slice(None),) * (axis % a.ndim)
    for _ in range(n):
        a = ops.getitem(a, index=(*before, slice(1, None))) - ops.getitem(a, index=(*before, slice(None, -1)))
    return a


def _as_float(x: Value) -> Value:
    return x if x.dtype.kind == "f" else ops.cast(x, dtype=np.dtype("float64"))

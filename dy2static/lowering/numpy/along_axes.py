"""Rules for what NumPy does along axes: means and deviations, running sums, orders.  The last bits may differ from NumPy's."""
from __future__ import annotations

import math
from typing import Any, Optional, Tuple

import numpy as np

from ... import ops
from ...ir.dims import is_known, is_positive
from ...ir.graph import Value
from ...ir.op import OpDef
from ...ir.types import Tensor
from .exact import Rule
from .operands import is_array, operand, stacked


def mean(type_: Tensor, x: Any, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
    """The rule of ``np.mean``; of ints it is the mean of float64."""
    x = stacked(x)
    axes = _axes(x, axis, keepdims)
    return None if axes is None else ops.mean(_as_float(x), axis=axes, keepdims=keepdims)


def deviation(root: bool) -> Rule:
    """The rule of ``np.var``; of ``np.std`` for its root."""
    def rule(type_: Tensor, x: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Optional[Value]:
        axes = _axes(x, axis, keepdims)
        if axes is None or type(ddof) is not int:
            return None
        count = math.prod(x.shape[a] for a in axes)
        if ddof and (not is_known(count) or count <= ddof):    # NumPy warns
            return None
        x = _as_float(x)
        squares = ops.square(x - ops.broadcast_to(ops.mean(x, axis=axes, keepdims=True), shape=x.shape))
        if ddof:
            variance = ops.sum(squares, axis=axes, keepdims=keepdims) / float(count - ddof)
        else:
            variance = ops.mean(squares, axis=axes, keepdims=keepdims)
        return ops.sqrt(variance) if root else variance
    return rule


def running(op: OpDef) -> Rule:
    """The rule of ``np.cumsum`` or ``np.cumprod``; without an axis, of all elements in a row."""
    def rule(type_: Tensor, x: Any, axis: Any = None) -> Optional[Value]:
        if not is_array(x) or not x.ndim or x.dtype.kind not in "biuf" or type(axis) not in (int, type(None)):
            return None
        x = ops.cast(x, dtype=type_.dtype) if x.dtype != type_.dtype else x
        return op(ops.reshape(x, shape=type_.shape), axis=0) if axis is None else op(x, axis=axis)
    return rule


def sort(type_: Tensor, x: Any, axis: Any = -1, kind: Any = None) -> Optional[Value]:
    """The rule of ``np.sort``: what is equal cannot be told apart, so that every kind gives the same."""
    if not is_array(x) or not x.ndim or x.dtype.kind not in "iuf" or x.dtype.itemsize < 4 or type(axis) not in (int, type(None)):
        return None
    if axis is None:
        return ops.sort(ops.reshape(x, shape=type_.shape))
    if axis in (-1, x.ndim - 1):
        return ops.sort(x)
    order = list(range(x.ndim))
    order[axis], order[-1] = order[-1], order[axis]
    return ops.copy(ops.transpose(ops.sort(ops.transpose(x, axes=tuple(order))), axes=tuple(order)))


def argsort(type_: Tensor, x: Any, axis: int = -1, kind: Any = None) -> Optional[Value]:
    """The rule of ``np.argsort``.  Of ints, of which many may be equal, only the stable one."""
    stable = kind in ("stable", "mergesort")
    is_plain = isinstance(x, Value) and x.ndim and axis in (-1, x.ndim - 1) and x.dtype.itemsize >= 4 and (
        x.dtype.kind in "iuf" if stable else x.dtype.kind == "f" and kind in (None, "quicksort"))
    return ops.argsort(x, stable=stable) if is_plain else None


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


def _axes(x: Any, axis: Any, keepdims: Any) -> Optional[Tuple[int, ...]]:
    """The axes of a reduction of an array that has elements, all for None; None for what is no array or axis."""
    if not is_array(x) or not is_positive(x.type.size) or x.dtype.kind not in "biuf" or type(keepdims) is not bool:
        return None
    axes = tuple(range(x.ndim)) if axis is None else axis if type(axis) is tuple else (axis,)
    return tuple(a % x.ndim for a in axes) if all(type(a) is int for a in axes) else None


def _as_float(x: Value) -> Value:
    return x if x.dtype.kind == "f" else ops.cast(x, dtype=np.dtype("float64"))

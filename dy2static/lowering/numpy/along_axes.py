"""Rules for what NumPy does along axes: sums, means and deviations, norms, orders.  The last bits may differ from NumPy's."""
from __future__ import annotations

import math
from typing import Any, Callable, Optional, Tuple

import numpy as np

from ... import ops
from ...ir.building import constant
from ...ir.dims import is_known
from ...ir.graph import Value
from ...ir.op import OpDef
from ...ir.size_bounds import is_positive
from ...ir.types import Tensor
from .elements import truth
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


def reduced(op: OpDef, axis: Any = None) -> Rule:
    """The rule of a reduction in the dtype of its result; of ``np.add.reduce`` and the like with ``axis=0``."""
    default = axis

    def rule(type_: Tensor, x: Any, axis: Any = default, dtype: Any = None, keepdims: Any = False) -> Optional[Value]:
        axes = _axes(x, axis, keepdims)
        if axes is None or not np.can_cast(x.dtype, type_.dtype):
            return None
        return op(ops.cast(x, dtype=type_.dtype) if x.dtype != type_.dtype else x, axis=axes, keepdims=keepdims)
    return rule


def over_truths(op: OpDef, axis: Any = None) -> Rule:
    """The rule of ``np.all`` or ``np.any``; of ``np.logical_and.reduce`` and the like with ``axis=0``."""
    default = axis

    def rule(type_: Tensor, x: Any, axis: Any = default, keepdims: Any = False) -> Optional[Value]:
        axes, truths = _axes(x, axis, keepdims), truth(x)
        return None if axes is None or truths is None else op(truths, axis=axes, keepdims=keepdims)
    return rule


def argument(op: OpDef) -> Rule:
    """The rule of ``np.argmax`` or ``np.argmin``, also of all elements, and with the axis kept."""
    def rule(type_: Tensor, x: Any, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
        axes = _axes(x, axis, keepdims)
        if axes is None or type(axis) is tuple or x.dtype.kind not in "iuf":
            return None
        return ops.reshape(op(x, axis=axis), shape=type_.shape) if keepdims else op(x, axis=axis)
    return rule


def count_nonzero(type_: Tensor, x: Any, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
    """The rule of ``np.count_nonzero``."""
    axes, truths = _axes(x, axis, keepdims), truth(x)
    return None if axes is None or truths is None else ops.sum(ops.cast(truths, dtype=type_.dtype), axis=axes, keepdims=keepdims)


def spread(type_: Tensor, x: Any, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
    """The rule of ``np.ptp``."""
    axes = _axes(x, axis, keepdims)
    if axes is None or x.dtype.kind not in "iuf":
        return None
    return ops.max(x, axis=axes, keepdims=keepdims) - ops.min(x, axis=axes, keepdims=keepdims)


def median(type_: Tensor, x: Any, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
    """The rule of ``np.median`` along one axis of known size, or of all elements."""
    return _between(type_, x, axis, keepdims, lambda n: (n - 1) / 2, lambda a, b, share: (a + b) * 0.5)


def quantile(whole: float) -> Rule:
    """The rule of ``np.quantile``; of ``np.percentile`` with ``whole=100``: between the two nearest elements."""
    def rule(type_: Tensor, x: Any, q: Any, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
        if type(q) not in (int, float) or not 0 <= q <= whole or not type_.shape and x.dtype != type_.dtype:
            return None                                 # of a number that is NaN, NumPy gives the dtype of the array
        return _between(type_, x, axis, keepdims, lambda n: q / whole * (n - 1), from_the_nearer)

    def from_the_nearer(a: Value, b: Value, share: float) -> Value:
        return a + (b - a) * share if share < 0.5 else b - (b - a) * (1 - share)
    return rule


def _between(type_: Tensor, x: Any, axis: Any, keepdims: Any, at: Callable[[int], float],
             join: Callable[[Value, Value, float], Value]) -> Optional[Value]:
    """An element of sorted ones, or a number between two; NaN if one is.

    at: from the count of elements, the place.  join: from two elements and the share of the second, what is between them.
    """
    axes = _axes(x, axis, keepdims)
    if axes is None or len(axes) != 1 and axis is not None or x.dtype.kind != "f" or x.dtype.itemsize < 4 or \
            not all(is_known(x.shape[a]) for a in axes):
        return None
    flat, along = (x, axes[0]) if axis is not None and x.ndim > 1 else (ops.reshape(x, shape=(x.type.size,)), 0)
    order = (*(a for a in range(flat.ndim) if a != along), along)
    ordered = ops.sort(ops.transpose(flat, axes=order))
    place, last = at(flat.shape[along]), flat.shape[along] - 1
    low = math.floor(place)
    a, b, greatest = (ops.getitem(ordered, index=(Ellipsis, n)) for n in (low, min(low + 1, last), last))
    a, b = (ops.cast(v, dtype=type_.dtype) if v.dtype != type_.dtype else v for v in (a, b))
    y = a if place == low else join(a, b, place - low)
    y = ops.where(ops.isnan(greatest), constant(type_.dtype.type(np.nan)), y)
    return ops.reshape(y, shape=type_.shape)


def without_nan(op: OpDef) -> Rule:
    """The rule of ``np.nansum`` and ``np.nanmean``."""
    def rule(type_: Tensor, x: Any, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
        axes = _axes(x, axis, keepdims)
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
    axes = _axes(x, axis, keepdims)
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


def _axes(x: Any, axis: Any, keepdims: Any) -> Optional[Tuple[int, ...]]:
    """The axes of a reduction of an array that has elements, all for None; None for what is no array or axis."""
    if not is_array(x) or not is_positive(x.type.size) or x.dtype.kind not in "biuf" or type(keepdims) is not bool:
        return None
    axes = tuple(range(x.ndim)) if axis is None else axis if type(axis) is tuple else (axis,)
    return tuple(a % x.ndim for a in axes) if all(type(a) is int for a in axes) else None


def _as_float(x: Value) -> Value:
    return x if x.dtype.kind == "f" else ops.cast(x, dtype=np.dtype("float64"))

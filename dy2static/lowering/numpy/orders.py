"""Rules for what depends on the order of elements along an axis: sorting, and elements in the middle."""
from __future__ import annotations

import math
from typing import Any, Callable, Optional, Tuple

import numpy as np

from ... import ops
from ...ir.building import constant
from ...ir.dims import Size, equal, floordiv, is_known
from ...ir.graph import Value
from ...ir.types import Tensor
from ...ops.scalar import size_as_number
from .exact import Rule
from .operands import axes_of, is_array


def sort(type_: Tensor, x: Any, axis: Any = -1, kind: Any = None) -> Optional[Value]:
    """The rule of ``np.sort``: what is equal cannot be told apart, so that every kind gives the same."""
    if not is_array(x) or not x.ndim or x.dtype.kind not in "biuf" or type(axis) not in (int, type(None)):
        return None
    if x.dtype.itemsize < 4:
        if x.dtype.kind == "f":
            return None
        wide = sort(type_, ops.cast(x, dtype=np.dtype("int32")), axis)
        return None if wide is None else ops.cast(wide, dtype=x.dtype)
    if axis is None:
        return ops.sort(ops.reshape(x, shape=type_.shape))
    return _along(x, axis, ops.sort)


def argsort(type_: Tensor, x: Any, axis: Any = -1, kind: Any = None) -> Optional[Value]:
    """The rule of ``np.argsort``.  Of ints, of which many may be equal, only the stable one."""
    stable = kind in ("stable", "mergesort")
    kinds = "biuf" if stable else "f"
    if not is_array(x) or not x.ndim or type(axis) is not int or x.dtype.kind not in kinds or \
            not stable and kind not in (None, "quicksort"):
        return None
    if x.dtype.itemsize < 4:
        if x.dtype.kind == "f":
            return None
        x = ops.cast(x, dtype=np.dtype("int32"))
    return _along(x, axis, lambda turned: ops.argsort(turned, stable=stable))


def _along(x: Value, axis: int, op: Callable[[Value], Value]) -> Value:
    """What an op that works along the last axis gives along another one."""
    if axis in (-1, x.ndim - 1):
        return op(x)
    order = list(range(x.ndim))
    order[axis], order[-1] = order[-1], order[axis]
    return ops.copy(ops.transpose(op(ops.transpose(x, axes=tuple(order))), axes=tuple(order)))


def median(type_: Tensor, x: Any, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
    """The rule of ``np.median`` along one axis, or of all elements: the mean of the two in the middle, or the one that is both."""
    if is_array(x) and x.dtype.kind in "biu":
        x = ops.cast(x, dtype=np.dtype("float64"))

    def join(a: Value, b: Value) -> Value:
        return ops.where(ops.equal(a, b), a, (a + b) * 0.5)
    return _between(type_, x, axis, keepdims, lambda n: (floordiv(n - 1, 2), floordiv(n, 2)), join)


def quantile(whole: float) -> Rule:
    """The rule of ``np.quantile``; of ``np.percentile`` with ``whole=100``: between the two nearest elements."""
    def rule(type_: Tensor, x: Any, q: Any, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
        if not is_array(x) or type(q) not in (int, float) or not 0 <= q <= whole or not type_.shape and x.dtype != type_.dtype:
            return None                                 # of a number that is NaN, NumPy gives the dtype of the array
        axes = axes_of(x, axis, keepdims)
        count = None if axes is None else math.prod([x.shape[a] for a in axes])
        if count is None:
            return None
        if not is_known(count):
            return _quantile_of_any(type_, x, q / whole, count, axis, keepdims)
        place = q / whole * (count - 1)
        low = math.floor(place)
        share = place - low

        def join(a: Value, b: Value) -> Value:
            if not share:
                return a
            return a + (b - a) * share if share < 0.5 else b - (b - a) * (1 - share)
        return _between(type_, x, axis, keepdims, lambda n: (low, min(low + 1, n - 1)), join)
    return rule


def _quantile_of_any(type_: Tensor, x: Value, q: float, count: Size, axis: Any, keepdims: Any) -> Optional[Value]:
    """A quantile of so many elements that only the run knows."""
    place = size_as_number(count - 1, np.dtype("float64")) * q
    low = ops.floor(place)

    def join(a: Value, b: Value) -> Value:
        share = ops.broadcast_to(ops.cast(place - low, dtype=a.dtype), shape=a.shape)
        near = ops.less(share, constant(a.dtype.type(0.5)))
        return ops.where(near, a + (b - a) * share, b - (b - a) * (1.0 - share))
    first = ops.reshape(ops.cast(low, dtype=np.dtype("int64")), shape=(1,))
    last = ops.reshape(ops.scalar_to_tensor(ops.dimension(size=count - 1), dtype=np.dtype("int64")), shape=(1,))
    return _between(type_, x, axis, keepdims, lambda n: (first, ops.minimum(first + 1, last)), join)


def _between(type_: Tensor, x: Any, axis: Any, keepdims: Any, places: Callable[[Any], Tuple[Any, Any]],
             join: Callable[[Value, Value], Value]) -> Optional[Value]:
    """What is between two of the sorted elements; NaN if one is.

    places: from the count of elements, those of the two: sizes, or arrays of one int.  join: what is between them.
    """
    axes = axes_of(x, axis, keepdims)
    if axes is None or len(axes) != 1 and axis is not None or x.dtype.kind != "f" or x.dtype.itemsize < 4:
        return None
    flat, along = (x, axes[0]) if axis is not None and x.ndim > 1 else (ops.reshape(x, shape=(x.type.size,)), 0)
    order = (*(a for a in range(flat.ndim) if a != along), along)
    ordered = ops.sort(ops.transpose(flat, axes=order))
    count = flat.shape[along]
    low, high = places(count)
    a, b, greatest = (ops.reshape(ops.take(ordered, n, axis=ordered.ndim - 1), shape=ordered.shape[:-1]) if isinstance(n, Value)
                      else ops.getitem(ordered, index=(Ellipsis, n)) for n in (low, high, count - 1))
    a, b = (ops.cast(v, dtype=type_.dtype) if v.dtype != type_.dtype else v for v in (a, b))
    is_one = not isinstance(low, Value) and equal(low, high)
    y = ops.where(ops.isnan(greatest), constant(type_.dtype.type(np.nan)), a if is_one else join(a, b))
    return ops.reshape(y, shape=type_.shape)

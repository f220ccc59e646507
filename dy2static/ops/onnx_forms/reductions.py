"""Sums, extrema, products along axes and sorting as nodes of ONNX."""
from __future__ import annotations

import math
from typing import Any, Optional, Sequence, Tuple

import numpy as np

from ...ir.onnx_forms import Name, OnnxWriter
from ...ir.types import Type
from .arithmetic import Rule, truth, where

Axes = Tuple[int, ...]


def sum_(o: OnnxWriter, types: Sequence[Type], results: Sequence[Any], x: Name, *, axis: Axes, keepdims: bool) -> Name:
    """The sum over axes, in the dtype of the result."""
    return o.reduce("ReduceSum", o.cast(x, results[0].dtype), axis, keepdims)


def mean(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, *, axis: Axes, keepdims: bool) -> Name:
    """The mean over axes; NaN of none, where ONNX has zero."""
    x, sizes = o.cast(x, results[0].dtype), [types[0].shape[a] for a in axis]
    if all(type(n) is int and n for n in sizes):
        return o.reduce("ReduceMean", x, axis, keepdims)
    count = o.size(math.prod(sizes))
    return o.node("Div", o.reduce("ReduceSum", x, axis, keepdims), o.cast(count, o.dtype(x)))


def extremum(operator: str, is_sign_known: bool = False) -> Rule:
    """The extremum over axes: NaN, if there is one.  is_sign_known: no element is below zero.

    The sum of what is not below zero is NaN only if an element is; it takes onnxruntime half as long as a search for NaN.
    """
    def rule(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, *, axis: Axes, keepdims: bool) -> Name:
        y = o.reduce(operator, x, axis, keepdims)
        if o.dtype(x).kind != "f":
            return y
        total = o.reduce("ReduceSum", x if is_sign_known else o.node("Abs", x), axis, keepdims)
        return where(o, o.node("IsNaN", total), o.like(np.nan, x), y)
    return rule


def any_(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, *, axis: Axes, keepdims: bool) -> Name:
    """Whether one is true; of none, none is."""
    return truth(o, o.reduce("ReduceSum", o.cast(truth(o, x), np.int64), axis, keepdims))


def all_(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, *, axis: Axes, keepdims: bool) -> Name:
    """Whether none is false."""
    others = o.cast(o.node("Not", truth(o, x)), np.int64)
    return o.node("Not", truth(o, o.reduce("ReduceSum", others, axis, keepdims)))


def argument(operator: str) -> Rule:
    """The first place of an extremum: of the first NaN, if there is one."""
    def rule(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, *, axis: Optional[int]) -> Name:
        if axis is None:
            x, axis = o.node("Reshape", x, o.constant([-1], np.int64)), 0
        if o.dtype(x).kind in "iu" and not o.takes(operator, o.dtype(x)):
            _, places = o.nodes("TopK", (x, o.constant([1], np.int64)), (o.dtype(x), np.int64), axis=axis,
                                largest=int(operator == "ArgMax"))
            return o.node("Squeeze", places, o.constant([axis], np.int64))
        found = o.node(operator, x, axis=axis, keepdims=0)
        if o.dtype(x).kind != "f":
            return found
        invalid = o.cast(o.node("IsNaN", x), np.int32)
        there = truth(o, o.reduce("ReduceMax", invalid, (axis,)))
        return where(o, there, o.node("ArgMax", invalid, axis=axis, keepdims=0), found)
    return rule


def along(operator: str) -> Rule:
    """An operator with one axis: ``Softmax``."""
    def rule(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, *, axis: int) -> Name:
        return o.node(operator, x, axis=axis)
    return rule


def prod(o: OnnxWriter, types: Sequence[Type], results: Sequence[Any], x: Name, *, axis: Axes, keepdims: bool) -> Name:
    """The product over axes; of ints, in the 64 bits that onnxruntime has, which hold the same bits."""
    if o.dtype(x).kind not in "iu":
        return o.reduce("ReduceProd", x, axis, keepdims)
    return o.cast(o.reduce("ReduceProd", o.cast(x, np.int64), axis, keepdims), results[0].dtype)


def sum_of_squares(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], x: Name) -> Name:
    """The sum of the squares of all elements."""
    return o.reduce("ReduceSum", o.node("Mul", x, x), tuple(range(types[0].ndim)))


def bincount(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, *, size: Any) -> Name:
    """How often each of the numbers below ``size`` occurs."""
    column = o.node("Unsqueeze", o.cast(x, np.int64), o.constant([1], np.int64))
    numbers = o.node("Range", o.constant(0, np.int64), o.size(size), o.constant(1, np.int64))
    return o.reduce("ReduceSum", o.cast(o.node("Equal", column, numbers), np.int64), (0,))


def triplet_distance(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], anchor: Name, *others: Name) -> Name:
    """The square of the distance to the first less that to the second, along axis 1."""
    near, far = (o.node("Sub", anchor, x) for x in others)
    return o.reduce("ReduceSum", o.node("Sub", o.node("Mul", near, near), o.node("Mul", far, far)), (1,))


# Steps along an axis --------------------------------------------------------------------------------------------


def _part(o: OnnxWriter, x: Name, start: int, stop: int, axis: int) -> Name:
    return o.node("Slice", x, *(o.constant([n], np.int64) for n in (start, stop, axis)))


def cumsum(o: OnnxWriter, types: Sequence[Type], results: Sequence[Any], x: Name, *, axis: int) -> Name:
    """The sums of all up to each element; ints around in their dtype."""
    return o.node("CumSum", x, o.constant(axis, np.int64))


def shift(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, *, axis: int, by: int, fill: float) -> Name:
    """Each element's neighbour along ``axis``."""
    # the edge takes the place of the element that goes, so that an empty axis stays empty
    edge = _part(o, x, 0, 1, axis)
    edge = o.node("Expand", o.like(fill, x), o.shape_of(edge))
    end = np.iinfo(np.int64).max
    parts = (edge, _part(o, x, 0, -1, axis)) if by > 0 else (_part(o, x, 1, end, axis), edge)
    return o.node("Concat", *parts, axis=axis)


def _steps(o: OnnxWriter, type_: Any, axis: int, factors: Name, terms: Optional[Name]) -> Name:
    """Along ``axis``, products, or a recurrence with terms that are added."""
    item_shape = [n for a, n in enumerate(type_.shape) if a != axis]
    state = o.node("Expand", o.like(1 if terms is None else 0, factors), o.shape(item_shape))

    def body(i: Name, y: Name) -> Any:
        y = o.node("Mul", y, o.node("Gather", factors, i, axis=axis))
        if terms is not None:
            y = o.node("Add", y, o.node("Gather", terms, i, axis=axis))
        return (y,), (y,)
    stacked = o.loop(o.size(type_.shape[axis]), (state,), body, pushed=1)[1]
    # onnxruntime gives one axis where there was no iteration
    whole = o.node("Reshape", stacked, o.shape([type_.shape[axis], *item_shape]), allowzero=1)
    order = [a + 1 if a < axis else 0 if a == axis else a for a in range(type_.ndim)]
    return whole if axis == 0 else o.node("Transpose", whole, perm=order)


def cumprod(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], x: Name, *, axis: int) -> Name:
    """The products of all up to each element."""
    return _steps(o, types[0], axis, x, None)


def linear_recurrence(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], factors: Name, terms: Name, *,
                      axis: int) -> Name:
    """``y[i] = y[i - 1] * factors[i] + terms[i]``."""
    return _steps(o, types[0], axis, factors, terms)


# Order ----------------------------------------------------------------------------------------------------------


def _order(o: OnnxWriter, x: Name, type_: Any) -> Name:
    """The places of the elements along the last axis, from the smallest; NaN last, equal ones in their order."""
    count = o.node("Unsqueeze", o.size(type_.shape[-1]), o.constant([0], np.int64))

    def ascending(key: Name) -> Name:
        return o.nodes("TopK", (key, count), (o.dtype(key), np.int64), axis=-1, largest=0)[1]
    key = o.cast(x, np.int32) if o.dtype(x).kind == "b" else x
    if o.dtype(x).kind != "f":
        return ascending(key)
    invalid = o.node("IsNaN", x)
    places = ascending(where(o, invalid, o.like(np.inf, x), x))
    last = ascending(o.node("GatherElements", o.cast(invalid, np.int32), places, axis=-1))
    return o.node("GatherElements", places, last, axis=-1)


def argsort(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], x: Name, **attrs: Any) -> Name:
    """The order of the elements along the last axis."""
    return _order(o, x, types[0])


def sort(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], x: Name) -> Name:
    """The elements along the last axis, from the smallest to the largest."""
    return o.node("GatherElements", x, _order(o, x, types[0]), axis=-1)

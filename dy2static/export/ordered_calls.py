"""Calls of NumPy that look numbers up in a rising row, as ops, for graphs that leave Python.

Each number is compared with each of the row.  A program that stays in Python calls NumPy, which halves the row instead.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np

from .. import ops
from ..ir.building import constant
from ..ir.graph import Graph, Node, Value
from ..ir.types import Tensor
from ..lowering.numpy.legalize import CALLS, by_rule, key_of
from ..lowering.numpy.operands import as_arrays
from ..lowering.numpy.table import found
from ..ops.scalar import size_as_number
from ..runtime.host_calls import Call, fill

#: What a call gives, from the type of that and what it is given; None for what no ops say.
Rule = Callable[..., Optional[Value]]


def with_ordered_calls(graph: Graph) -> Graph:
    """The graph with ops in place of such calls, in regions too."""
    nodes: List[Node] = []
    for node in graph.nodes:
        if node.regions:
            node = replace(node, regions=tuple(map(with_ordered_calls, node.regions)))
        made = by_rule(node, _lowered) if node.op.name in CALLS and len(node.outputs) == 1 else None
        nodes += [node] if made is None else made
    return graph.with_(nodes=tuple(nodes))


def _lowered(call: Call, inputs: Sequence[Value], wanted: Tensor) -> Optional[Value]:
    rule = found(_RULES, key_of(call.function))
    if rule is None:
        return None
    operands = as_arrays(inputs, wanted)
    try:
        return rule(wanted, *fill(call.args, operands), **fill(call.kwargs, operands))
    except (IndexError, TypeError, ValueError):         # arguments, or sizes, that the rule does not know
        return None


def _searchsorted(type_: Tensor, a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Optional[Value]:
    """The rule of ``np.searchsorted``: so many of the row are less than a number; with ``side="right"``, or equal to it."""
    row, numbers = _numbers(a, v)
    if row is None or row.ndim != 1 or sorter is not None or side not in ("left", "right"):
        return None
    return _count(type_, row, numbers, ops.less if side == "left" else ops.less_equal)


def _digitize(type_: Tensor, x: Any, bins: Any, right: Any = False) -> Optional[Value]:
    """The rule of ``np.digitize``, with edges that rise or fall."""
    edges, numbers = _numbers(bins, x)
    if edges is None or edges.ndim != 1 or type(right) is not bool:
        return None
    if isinstance(bins, Value):
        ends = [ops.getitem(edges, index=(n,)) for n in (0, edges.shape[0] - 1)]
        is_falling = ops.broadcast_to(ops.less(ends[1], ends[0]), shape=type_.shape)
        falling = _count(type_, edges, numbers, ops.greater_equal if right else ops.greater)
        return ops.where(is_falling, falling, _count(type_, edges, numbers, ops.less if right else ops.less_equal))
    if np.all(np.diff(bins) >= 0):
        return _count(type_, edges, numbers, ops.less if right else ops.less_equal)
    return _count(type_, edges, numbers, ops.greater_equal if right else ops.greater)


def _interp(type_: Tensor, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Optional[Value]:
    """The rule of ``np.interp``: on the line between the two points around a number, and at the ends beyond the first and last."""
    points, numbers = _numbers(xp, x)
    heights, _ = _numbers(fp, fp)
    if points is None or heights is None or points.ndim != 1 or heights.ndim != 1 or \
            not all(end is None or type(end) in (int, float) for end in (left, right)):
        return None
    double = np.dtype("float64")
    points, heights, numbers = [v if v.dtype == double else ops.cast(v, dtype=double) for v in (points, heights, numbers)]
    last = points.shape[0] - 1
    place = _count(Tensor(type_.shape, np.dtype(np.intp)), points, numbers, ops.less_equal) - 1

    def beside(row: Value, step: int) -> Value:
        within = ops.minimum(ops.maximum(place + step, constant(0, place.dtype)), size_as_number(last, place.dtype))
        return ops.take(row, within, axis=0)

    ends = [ops.getitem(row, index=(n,)) for row in (points, heights) for n in (0, last)]
    first, final, below, above = [ops.broadcast_to(end, shape=type_.shape) for end in ends]
    below, above = [known if end is None else ops.full(shape=type_.shape, value=float(end), dtype=double)
                    for known, end in ((below, left), (above, right))]
    x0, x1, y0, y1 = beside(points, 0), beside(points, 1), beside(heights, 0), beside(heights, 1)
    width = ops.where(ops.equal(x0, x1), ops.full(shape=type_.shape, value=1.0, dtype=double), x1 - x0)
    y = (y1 - y0) / width * (numbers - x0) + y0
    y = ops.where(ops.equal(numbers, final), ops.broadcast_to(ends[3], shape=type_.shape), y)
    y = ops.where(ops.less(numbers, first), below, ops.where(ops.greater(numbers, final), above, y))
    # of one point, NaN has the height, too
    has_several = ops.broadcast_to(ops.greater(size_as_number(last, double), constant(0, double)), shape=type_.shape)
    of_nan = ops.where(has_several, numbers, ops.broadcast_to(ends[2], shape=type_.shape))
    return ops.where(ops.isnan(numbers), of_nan, y)


def _numbers(row: Any, numbers: Any) -> Any:
    """A row and numbers as arrays of one dtype; None and None for what is no array of numbers."""
    found = [x if isinstance(x, Value) else np.asarray(x) for x in (row, numbers)]
    if any(x.dtype.kind not in "iuf" or x.dtype.name == "float16" for x in found):
        return None, None
    dtype = np.result_type(*[x.dtype for x in found])
    values = [x if isinstance(x, Value) else constant(x) for x in found]
    return [x if x.dtype == dtype else ops.cast(x, dtype=dtype) for x in values]


def _count(type_: Tensor, row: Value, numbers: Value, comes_before: Any) -> Value:
    """How many of a row come before each number, of which NaN is the last."""
    shape = (*numbers.shape, row.shape[0])
    each = ops.broadcast_to(row, shape=shape)
    of = ops.broadcast_to(ops.reshape(numbers, shape=(*numbers.shape, 1)), shape=shape)
    before = comes_before(each, of)
    if row.dtype.kind == "f" and comes_before in (ops.less, ops.less_equal):
        is_last = ops.isnan(of)
        if comes_before is ops.less:
            is_last = ops.logical_and(is_last, ops.logical_not(ops.isnan(each)))
        before = ops.logical_or(before, is_last)
    return ops.sum(ops.cast(before, dtype=type_.dtype), axis=(numbers.ndim,))


_RULES: Dict[Any, Rule] = {np.searchsorted: _searchsorted, ("method", "searchsorted"): _searchsorted, np.digitize: _digitize,
                           np.interp: _interp}

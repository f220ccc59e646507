"""Lists as sequences of ONNX."""
from __future__ import annotations

import builtins
from typing import Any, Callable, Dict, Sequence, Tuple

import numpy as np

from ...ir.onnx_forms import Name, NotInOnnx, OnnxWriter
from ...ir.types import Scalar, Tensor, Type
from .arithmetic import truth, where


def need_items(type_: Any) -> Any:
    """The type of the items of a list that a sequence can be: arrays or numbers."""
    if not isinstance(type_.elem, (Tensor, Scalar)):
        raise NotInOnnx(f"a sequence of ONNX holds no {type_.elem}")
    return type_.elem


def empty(o: OnnxWriter, type_: Any) -> Name:
    """A sequence without items."""
    return o.nodes("SequenceEmpty", (), (need_items(type_).dtype,), dtype=need_items(type_).dtype)[0]


def new(o: OnnxWriter, types: Sequence[Type], results: Sequence[Any], *items: Name, elem: Any) -> Name:
    """A list of the operands."""
    need_items(results[0])
    return o.node("SequenceConstruct", *items) if items else empty(o, results[0])


def append(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], xs: Name, item: Name) -> Name:
    """A list with one item more."""
    return o.node("SequenceInsert", xs, item)


def get(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], xs: Name, index: Name, *, is_last: bool) -> Name:
    """An item."""
    return o.node("SequenceAt", xs, o.cast(index, np.int64))


def length(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], xs: Name) -> Name:
    """How many items there are."""
    return o.nodes("SequenceLength", (xs,), (np.int64,))[0]


def pop(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], xs: Name) -> Name:
    """The list without its last item."""
    return o.node("SequenceErase", xs)


def _bound(o: OnnxWriter, x: Name, count: Name, low: int) -> Name:
    """An end of a slice, counted from the front, inside of the list.  low: the least that it may be, -1 for a slice backwards."""
    least = o.constant(low, np.int64)
    x = where(o, o.node("Less", x, o.constant(0, np.int64)), o.node("Add", x, count), x)
    return o.node("Min", o.node("Max", x, least), o.node("Add", count, least))


def slice_(o: OnnxWriter, types: Sequence[Type], results: Sequence[Any], xs: Name, start: Name, stop: Name, *, step: int,
           is_whole: bool) -> Name:
    """Some of the items."""
    count, low = length(o, types, results, xs), -1 if step < 0 else 0
    first, last = _bound(o, start, count, low), _bound(o, stop, count, low)
    span = o.node("Sub", *((first, last) if step < 0 else (last, first)))
    many = o.node("Div", o.node("Add", span, o.constant(abs(step) - 1, np.int64)), o.constant(abs(step), np.int64))
    return _copied(o, empty(o, results[0]), xs, first, step, o.node("Max", many, o.constant(0, np.int64)))


def _copied(o: OnnxWriter, to: Name, xs: Name, first: Name, step: int, count: Name) -> Name:
    def body(i: Name, ys: Name) -> Tuple[Sequence[Name], Sequence[Name]]:
        place = o.node("Add", o.node("Mul", i, o.constant(step, np.int64)), first)
        return (o.node("SequenceInsert", ys, o.node("SequenceAt", xs, place)),), ()
    return o.loop(count, (to,), body)[0]


def extend(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], xs: Name, ys: Name) -> Name:
    """The items of two lists."""
    return _copied(o, xs, ys, o.constant(0, np.int64), 1, length(o, types, results, ys))


def _joined(o: OnnxWriter, xs: Name, axis: int) -> Name:
    return o.nodes("ConcatFromSequence", (xs,), (o.dtype(xs),), axis=axis, new_axis=1)[0]


def stack(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], xs: Name, *, axis: int, extent: Any, refuse: Any,
          size: Any) -> Name:
    """The items along a new axis."""
    return _joined(o, xs, axis)


def array(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], xs: Name, *, extent: Any, dtype: Any, size: Any) -> Name:
    """An array of numbers."""
    # there may be none, and `ConcatFromSequence` wants some: one is put in front and left out again
    first = o.node("SequenceInsert", xs, o.constant(0, dtype), o.constant(0, np.int64))
    one, end = o.constant([1], np.int64), o.constant([np.iinfo(np.int64).max], np.int64)
    return o.node("Slice", _joined(o, first, 0), one, end)


def unstack(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, *there: Name, axis: int) -> Name:
    """Every ``x[..., i, ...]``."""
    if there:
        raise NotInOnnx("a sequence of ONNX holds no gradients of which some are missing")
    return o.nodes("SplitToSequence", (x,), (o.dtype(x),), axis=axis, keepdims=0)[0]


def _sum(o: OnnxWriter, xs: Name) -> Name:
    return o.reduce("ReduceSum", xs, (0,))


def _sorted(o: OnnxWriter, xs: Name) -> Name:
    values, _ = o.nodes("TopK", (xs, o.shape_of(xs)), (o.dtype(xs), np.int64), axis=0, largest=0)
    return o.nodes("SplitToSequence", (values,), (o.dtype(values),), axis=0, keepdims=0)[0]


_OF_NUMBERS: Dict[Callable[..., Any], Callable[[OnnxWriter, Name], Name]] = {
    builtins.sum: _sum,
    builtins.max: lambda o, xs: o.reduce("ReduceMax", xs, (0,)),
    builtins.min: lambda o, xs: o.reduce("ReduceMin", xs, (0,)),
    builtins.sorted: _sorted,
    builtins.any: lambda o, xs: truth(o, _sum(o, o.cast(truth(o, xs), np.int64))),
    builtins.all: lambda o, xs: o.node("Not", truth(o, _sum(o, o.cast(o.node("Not", truth(o, xs)), np.int64)))),
}


def call(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], xs: Name, *, function: Callable[..., Any]) -> Name:
    """What a function of Python's gives for a list of numbers, which has some."""
    if function not in _OF_NUMBERS:
        raise NotInOnnx(f"there is no form for {getattr(function, '__name__', function)} of a list")
    y = _OF_NUMBERS[function](o, _joined(o, xs, 0))
    dtype = getattr(results[0], "dtype", None)
    return y if dtype is None else o.cast(y, dtype)

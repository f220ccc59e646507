"""Slices of a fixed number of elements, ``x[:, i:i + 24]``, that begin at a number which only the run knows.

If the number is certain to lie between bounds that keep the slice inside of the array (it was drawn from ``range(5)``), the shape
of the part is known.  Such a slice is a `Window`.
"""
from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence, Tuple

from ..ir.graph import Value
from ..ir.op import OPS
from ..ir.size_bounds import not_below
from ..ir.template import AT
from ..ir.types import Scalar
from ..lowering.indexing import Window
from ..runtime.host_calls import Hole
from ..symbolic.abstract_eval import Known
from ..symbolic.values import SymbolicArray, SymbolicScalar
from .value_enumeration import producer

if TYPE_CHECKING:
    from .protocols import Capture

_WHOLE = slice(None)

#: What moves a number, and in which direction.
_SIGNS = {operator.add: 1, operator.sub: -1}


def with_windows(capture: Capture, key: Any, shape: Sequence[Any]) -> Any:
    """The basic index, of an array of this shape, with a `Window` for each slice that is one; other indices as they are."""
    entries = key if isinstance(key, tuple) else (key,)
    if not any(map(_is_of_run, entries)) or not all(map(_is_basic, entries)):
        return key
    found = [_window(capture, entry, axis_size(entries, place, shape)) or entry for place, entry in enumerate(entries)]
    return tuple(found) if any(type(entry) is Window for entry in found) else key


def part_of(capture: Capture, array: SymbolicArray, key: Tuple[Any, ...]) -> SymbolicArray:
    """``array[key]`` for an index with windows."""
    rest = tuple([_WHOLE if type(entry) is Window else entry for entry in key])
    inner = array if all(type(entry) is slice and entry == _WHOLE for entry in rest) else \
        capture.numpy.call(operator.getitem, (array, rest), {})
    windows = _by_axis(key, inner.type.shape)
    operands = inner.now(), *[_value(window.ends.start) for window in windows.values()]
    axes = range(max(windows) + 1)
    index = tuple([(AT, windows[axis].count) if axis in windows else _WHOLE for axis in axes])
    capture.builder.device = capture.placement.of_call(operands)
    capture.event("staged", "numpy getitem")
    made, = capture.builder.add(OPS["getitem_at"], operands, {"index": index}, name="window")
    result = SymbolicArray(capture, made)
    slices = tuple([windows[axis].ends if axis in windows else _WHOLE for axis in axes])
    capture.array_writes.called(operator.getitem, (inner, slices), {}, [result], True)
    return result


def with_least(capture: Capture, types: Sequence[Any], operands: Sequence[Value]) -> Sequence[Any]:
    """The types of the operands of a write, for a trial, in which numbers with known bounds hold the least that they may be.

    The ends of a slice thus lie as far apart as in a run.  The trial shows whether what is written may fit; its type is known.
    """
    numbers = [getattr(v.type, "shape", None) == () and type(t) is type(v.type) for v, t in zip(operands, types)]
    known = [capture.number_bounds.of_whole(v) if is_number else None for v, is_number in zip(operands, numbers)]
    return [t if bounds is None else Known(t, int(bounds[0]) if _is_python(t) else v.dtype.type(bounds[0]))
            for v, t, bounds in zip(operands, types, known)]


def _is_python(type_: Any) -> bool:
    return isinstance(type_, Scalar) and type_.kind != "numpy"


def _by_axis(key: Tuple[Any, ...], shape: Sequence[Any]) -> Dict[int, Window]:
    """The windows of an index by the axis of the result, in order."""
    dots = next((place for place, entry in enumerate(key) if entry is Ellipsis), len(key))
    front, behind = [entry for entry in key[:dots] if _makes_axis(entry)], [entry for entry in key[dots + 1:] if _makes_axis(entry)]
    axes = [*enumerate(front), *enumerate(behind, start=len(shape) - len(behind))]
    return {axis: entry for axis, entry in axes if type(entry) is Window}


def _makes_axis(entry: Any) -> bool:
    return entry is None or type(entry) in (slice, Window)


def axis_size(entries: Tuple[Any, ...], place: int, shape: Sequence[Any]) -> Any:
    """The size of the axis that an entry of an index is about; None where there is none."""
    axes = [entry is not None and entry is not Ellipsis for entry in entries]
    behind = any(entry is Ellipsis for entry in entries[:place])
    axis = len(shape) - sum(axes[place:]) if behind else sum(axes[:place])
    return shape[axis] if 0 <= axis < len(shape) else None


def _is_basic(entry: Any) -> bool:
    return entry is None or entry is Ellipsis or type(entry) in (int, slice) or _is_number(entry)


def _is_number(item: Any) -> bool:
    """Whether this is a whole number that only the run knows."""
    if type(item) is SymbolicScalar:
        return item.text is None and item.kind == "py_int"
    return type(item) is SymbolicArray and item.type.shape == () and item.dtype.kind in "iu"


def _is_of_run(entry: Any) -> bool:
    return isinstance(entry, slice) and entry.step in (None, 1) and _is_number(entry.start) and _is_number(entry.stop)


def _window(capture: Capture, entry: Any, size: Any) -> Optional[Window]:
    if not _is_of_run(entry) or size is None:
        return None
    ends = [_value(entry.start), _value(entry.stop)]
    count = capture.index_ranges.count_between(*ends, size)
    if count is not None:
        return Window(entry, count)
    (of_start, before), (of_stop, behind) = [_moved(capture, end) for end in ends]
    count = behind - before
    below = capture.index_ranges.places.get(ends[0])
    if of_start is not of_stop or count <= 0:
        return None
    if below is not None and not_below(size, below - 1 + count):
        return Window(entry, count)
    bounds = [capture.number_bounds.of_whole(end) for end in ends]
    is_inside = None not in bounds and bounds[0][0] >= 0 and not_below(size, bounds[0][1] + count)
    return Window(entry, count) if is_inside else None


def _value(number: Any) -> Value:
    return number.now() if type(number) is SymbolicArray else number.value


def _moved(capture: Capture, value: Value) -> Tuple[Value, int]:
    """A number that this one is computed from, and what is added to it."""
    more, depth = 0, 8
    node = producer(capture.builder, value)
    while node is not None and node.op.name == "numpy_call" and depth:
        call, rest = node.attrs["call"], [part for part in node.attrs["call"].args if type(part) is not Hole]
        if call.function not in _SIGNS or len(node.inputs) != 1 or len(rest) != 1 or type(rest[0]) is not int or \
                call.function is operator.sub and type(call.args[0]) is not Hole:
            break
        value, more, depth = node.inputs[0], more + _SIGNS[call.function] * rest[0], depth - 1
        node = producer(capture.builder, value)
    return value, more

"""Slices of one row, ``x[i:i + 1]``: the run knows the number of the row, but the size of the part is known now."""
from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, List, Optional, Sequence

from ..heap.locations import user_location
from ..ir.dims import Dim
from ..ir.graph import Value
from ..ir.size_symbols import FREE
from ..lowering.checked_range import within
from ..lowering.indexing import Window
from ..runtime.checked_range import SEEN
from ..runtime.host_calls import Hole
from ..symbolic.sizes import Size
from ..symbolic.values import SymbolicScalar
from .value_enumeration import producer
from .windows import axis_size

if TYPE_CHECKING:
    from .protocols import Capture

#: No array has so many rows.
_GREATEST = 2 ** 63 - 1


def with_numbers(capture: Capture, key: Any, shape: Sequence[Any]) -> Any:
    """The index, of an array of this shape, with the number of the row and a new axis for each slice of one row.

    The number is checked to be that of a row: outside of the array, the slice would be empty.  After a run that met one outside,
    the index stays as it is; so does one with arrays in it.  Outside of loops sizes may be those that the run tells, so it stays
    there, too, unless a capture has shown that something needs to know the size (`Capture.knows_rows`).
    """
    entries = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(entry, slice) for entry in entries) or not all(map(_is_basic, entries)):
        return key
    found: List[Any] = []
    for place, entry in enumerate(entries):
        row = _row(capture, entry)
        size = None if row is None else axis_size(entries, place, shape)
        where = f"{user_location()} (a slice of one row: {place})"
        if row is None or not _is_of_caller(size) or where in SEEN:
            found.append(entry)
        elif capture.staging.in_loop or capture.knows_rows:
            found += [_checked(capture, row, size, where), None]
        else:
            capture.leaves_rows = True
            found.append(entry)
    return tuple(found)


def _is_of_caller(size: Any) -> bool:
    """Whether a size is known, or one of the caller's arrays."""
    return type(size) is int or isinstance(size, Dim) and all(symbol.startswith(FREE) for symbol in size.symbols)


def _is_basic(entry: Any) -> bool:
    return entry is None or entry is Ellipsis or type(entry) in (int, slice, SymbolicScalar, Window)


def _row(capture: Capture, entry: Any) -> Optional[Value]:
    """The number at which a slice of one row begins; None for other slices and other objects."""
    if not isinstance(entry, slice) or entry.step is not None or type(entry.start) is not SymbolicScalar or \
            type(entry.stop) is not SymbolicScalar:
        return None
    start, stop = entry.start.value, producer(capture.builder, entry.stop.value)
    if stop is None or stop.op.name != "numpy_call" or stop.inputs != (start,) or stop.attrs["call"].function is not operator.add:
        return None
    more = [part for part in stop.attrs["call"].args if type(part) is not Hole]
    return start if more == [1] and type(more[0]) is int else None


def _checked(capture: Capture, row: Value, size: Any, where: str) -> SymbolicScalar:
    if type(size) is int:
        found = _within(capture, row, size - 1, where)
    else:                                               # how far it is from the last row is not below zero, either
        last = Size(capture, size).number - 1
        behind = last - _within(capture, row, _GREATEST, where)
        found = last - _within(capture, behind.value, _GREATEST, where)
    capture.index_ranges.places[found.value] = size
    return found


def _within(capture: Capture, number: Value, greatest: int, where: str) -> SymbolicScalar:
    attrs = {"least": 0, "greatest": greatest, "finite": True, "place": where}
    value, = capture.builder.add(within, (number,), attrs, name=number.name)
    return capture.wrap(value)

"""Slices of one row, ``x[i:i + 1]``, in loops: the run knows the number of the row, but the size of the part is known now."""
from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, List, Optional, Sequence

from ..heap.locations import user_location
from ..ir.graph import Value
from ..lowering.checked_range import within
from ..lowering.indexing import Window
from ..runtime.checked_range import SEEN
from ..runtime.host_calls import Hole
from ..symbolic.values import SymbolicScalar
from .value_enumeration import producer
from .windows import axis_size

if TYPE_CHECKING:
    from .protocols import Capture


def with_numbers(capture: Capture, key: Any, shape: Sequence[Any]) -> Any:
    """The index, of an array of this shape, with the number of the row and a new axis for each slice of one row.

    The number is checked to be that of a row: outside of the array, the slice would be empty.  After a run that met one outside,
    the index stays as it is; so does one with arrays in it, and one outside of loops, where sizes may be those that the run tells.
    """
    entries = key if isinstance(key, tuple) else (key,)
    if not capture.staging.in_loop or not any(isinstance(entry, slice) for entry in entries) or not all(map(_is_basic, entries)):
        return key
    found: List[Any] = []
    for place, entry in enumerate(entries):
        row = _row(capture, entry)
        size = None if row is None else axis_size(entries, place, shape)
        where = f"{user_location()} (a slice of one row: {place})"
        found += [entry] if row is None or type(size) is not int or where in SEEN else [_checked(capture, row, size, where), None]
    return tuple(found)


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


def _checked(capture: Capture, row: Value, size: int, where: str) -> SymbolicScalar:
    value, = capture.builder.add(within, (row,), {"least": 0, "greatest": size - 1, "finite": True, "place": where}, name=row.name)
    capture.index_ranges.places[value] = size
    return capture.wrap(value)

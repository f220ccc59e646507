"""Tests of guards that are more than one expression: arrays, equality that also separates 0.0 from -0.0 and 1 from True, cells."""
from __future__ import annotations

import logging
import types
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np


def outside(array: np.ndarray, low: int, high: int) -> bool:
    """Whether an element is below ``low``, or not below ``high``."""
    return bool(array.max() >= high or array.min() < low)


def fits(expected: Sequence[Tuple[bytes, np.dtype]], *arrays: Any) -> bool:
    """Whether all these are arrays as expected: lengths of the axes, as int64 one after the other, and dtype."""
    return all([type(x) is np.ndarray and np.array(x.shape, np.int64).tobytes() == shape and x.dtype == dtype
                for (shape, dtype), x in zip(expected, arrays)])


def distinct(*objects: Any) -> bool:
    """Whether all these are different objects.  The native function of this name gives the same answers."""
    return len(set(map(id, objects))) == len(objects)


class MadeLater:
    """A function that ``make`` creates at the first call."""

    def __init__(self, make: Callable[[], Callable[..., Any]]):
        self._make = make
        self._function: Any = None

    def __call__(self, *args: Any) -> Any:
        if self._function is None:
            self._function = self._make()
        return self._function(*args)


class OnceThen:
    """A function that is ``first`` in its first call, if there is one, and ``later`` in all others."""

    def __init__(self, first: Optional[Callable[..., Any]], later: Callable[..., Any]):
        self._first, self._later = first, later

    def __call__(self, *args: Any) -> Any:
        first, self._first = self._first, None
        return (first or self._later)(*args)


class GuardTable(NamedTuple):
    """Guards that native code checks one after the other, and values that it finds on the way.

    rows: 32-bit numbers, see `native.hotpath.ROWS`; constants: what they refer to; wanted: the numbers of the values that the
    entry goes on with; most: how many are found.  missed: the answer where a guard does not hold.  python: does the same.
    memory: native code keeps in these bytes what it needs again (`memory_of` makes them).
    """

    rows: bytes
    constants: Tuple[Any, ...]
    wanted: bytes
    most: int
    missed: Any
    python: Callable[[Tuple, Mapping[str, Any]], Any]
    memory: bytes


def memory_of(most: int) -> bytes:
    """The memory of a table that finds so many values: a mark, and four words for each.  Nobody else has it."""
    return bytes(8 + 32 * most)


def check(table: GuardTable, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
    """The values that an entry goes on with, or ``table.missed``.  The native function of this name gives the same answers."""
    return table.python(args, kwargs)


def has_plain_dict(cls: type) -> bool:
    """Whether ``__dict__`` of an instance is the dict of its attributes, unless ``__getattribute__`` is overridden."""
    owner = next((base for base in cls.__mro__ if "__dict__" in vars(base)), None)
    return bool(cls.__dictoffset__) and owner is not None and isinstance(vars(owner)["__dict__"], types.GetSetDescriptorType)


def exact(value: Any) -> Any:
    """A form of a value that is equal only for indistinguishable values: not for 0.0 and -0.0, not 1 and True."""
    if isinstance(value, (float, complex, np.generic)):
        return type(value), repr(value)
    if isinstance(value, range):
        return range, value.start, value.stop, value.step
    if isinstance(value, (set, frozenset)):
        return frozenset([exact(item) for item in value])
    return tuple([exact(item) for item in value]) if type(value) is tuple else (type(value), value)


_NOTHING = object()


def is_empty(cell: Any) -> bool:
    """Whether a cell holds nothing."""
    try:
        return cell.cell_contents is _NOTHING
    except ValueError:
        return True


def is_off(logger: logging.Logger, level: int) -> bool:
    """Whether a message of this level does nothing.  One to the root logger may give that its first handler."""
    return not logger.isEnabledFor(level) and (logger is not logging.root or bool(logger.handlers))

"""Guards that are checked without code of their own: most of what leaves the table of native code does so once.

A first call makes the states of many rules.  The code of its guards would take longer to compile than the rest of its entry.
"""
from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, Type

import numpy as np

from ..ir.devices import is_gpu
from ..ir.dims import is_known
from ..record.guards import (
    ArrayLayout,
    ArrayMatch,
    DistinctObjects,
    EqualsMatch,
    Guard,
    IdentityMatch,
    KeyAbsent,
    KeysMatch,
    LengthMatch,
    NoOverlap,
    SameObject,
    TypeMatch,
    VariableMatch,
)
from ..record.paths import Constant, Keyword, Source
from ..runtime import array_writes
from ..runtime.program import GUARD_ERRORS, MISS

#: What is at the end of a path.
At = Callable[[Source], Any]


def _is_array(array: Any, guard: Any) -> bool:
    return type(array) is np.ndarray and array.shape == guard.shape and array.dtype == guard.dtype


def _is_variable(guard: Any, at: At) -> bool:
    value = at(guard.source)
    return (type(value) is guard.cls and value._requires_grad is guard.requires_grad and value._layout is None
            and _is_array(value._data[0], guard))


def _lies(guard: Any, at: At) -> bool:
    array = at(guard.source)
    return bool(array.strides == guard.strides and array.flags.num == guard.flags)


def _holds(guard: Any, at: At) -> bool:
    return bool(guard.holds(at))


#: How guards are checked that may be in a table; they tell the same as their code.
_CHECKS: Dict[Type[Guard], Callable[[Any, At], bool]] = {
    **dict.fromkeys((TypeMatch, IdentityMatch, EqualsMatch, LengthMatch, KeysMatch, KeyAbsent, SameObject, DistinctObjects),
                    _holds), VariableMatch: _is_variable, ArrayLayout: _lies,
    ArrayMatch: lambda guard, at: _is_array(at(guard.source), guard),
    NoOverlap: lambda guard, at: not array_writes.overlap(tuple(map(at, guard.written)), tuple(map(at, guard.others))),
}


class _Call:
    """What is at the ends of paths in one call; all that goes through one value sees the same one."""

    def __init__(self, args: Tuple, kwargs: Mapping[str, Any]):
        self._args, self._kwargs = args, kwargs
        self._found: Dict[Source, Any] = {}

    def at(self, source: Source) -> Any:
        """The value at the end of a path.  Raises one of `GUARD_ERRORS` where there is none."""
        if source not in self._found:
            self._found[source] = self._begin(source) if source.parent is None else source.read(self.at(source.parent))
        return self._found[source]

    def _begin(self, source: Source) -> Any:
        if isinstance(source, Constant):
            return source.key
        return self._kwargs[source.key] if isinstance(source, Keyword) else self._args[source.key]


#: For each value that is wanted its path, or None for True, and whether the array of that Variable is meant.
Wanted = Sequence[Tuple[Optional[Source], bool]]


def reader(guards: Sequence[Guard], wanted: Wanted) -> Optional[Callable[[Tuple, Mapping[str, Any]], Any]]:
    """``python`` of a `GuardTable` that reads path by path; None if some of the guards cannot be checked so."""
    return functools.partial(_read, guards, wanted) if all(map(_may_read, guards)) else None


def _may_read(guard: Guard) -> bool:
    """Whether there is a check for a guard: arrays of GPUs, and of free sizes, need code."""
    return type(guard) in _CHECKS and not is_gpu(getattr(guard, "device", "")) and all(map(is_known, getattr(guard, "shape", ())))


def _read(guards: Sequence[Guard], wanted: Wanted, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
    at = _Call(args, kwargs).at
    try:
        for guard in guards:
            if not _CHECKS[type(guard)](guard, at):
                return MISS
        values = [True if source is None else at(source) for source, _ in wanted]
    except GUARD_ERRORS:
        return MISS
    return tuple([value._data[0] if is_array else value for value, (_, is_array) in zip(values, wanted)])

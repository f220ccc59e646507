"""Shadows of sets."""
from __future__ import annotations

from typing import Any, Iterator

from ..record.paths import Source
from ..record.writes import AssignSet, Change
from .stand_ins import stands_for


class ShadowSet(set):
    """The shadow of a set of plain values: all of it is read at once."""

    __class__ = property(lambda self: set)              # type: ignore[assignment]

    def __init__(self, real: set, source: Source):
        super().__init__(real)
        self.real, self.source, self.before = real, source, set(real)

    def changes(self) -> Iterator[Change]:
        """All items, if anything changed since the last call."""
        if set(self) != self.before:
            self.before = set(self)
            yield AssignSet, None, set(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return set, (list(self),)

    def __repr__(self) -> str:
        return repr(set(self))

    __hash__ = None


stands_for(ShadowSet, set)

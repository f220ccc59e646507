"""The guards of a program as a table for native code, and the same guards in Python for what that does not know."""
from __future__ import annotations

import array
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ..native.hotpath import ROWS
from ..record.guards import Guard
from ..record.paths import Constant, InstanceDict, Source
from ..runtime.guard_tests import GuardTable, memory_of
from ..runtime.program import MISS

_NUMBERS = {word: number for number, word in enumerate(ROWS)}


class Table:
    """Takes the native forms of guards and of the paths to what they are about: a `record.paths.TableWriter`.

    places: the numbers of values at the ends of paths; None for paths that native code cannot follow.
    """

    def __init__(self) -> None:
        self.types: Dict[Source, type] = {}
        self.arrays: Dict[Source, int] = {}
        self.places: Dict[Source, Optional[int]] = {}
        self._rows = array.array("i")
        self._constants: List[Any] = []
        self._known: Dict[int, int] = {}
        self._count = 0

    def place(self, source: Source) -> Optional[int]:
        """The number of the value at the end of a path."""
        if source not in self.places:
            self.places[source] = source.row(self)
        return self.places[source]

    def type_of(self, source: Source) -> Optional[type]:
        """The type of the value at the end of a path, if that is known."""
        if isinstance(source, Constant):
            return type(source.key)
        return dict if isinstance(source, InstanceDict) else self.types.get(source)

    def constant(self, value: Any) -> int:
        """The number of an object."""
        if id(value) not in self._known:
            self._known[id(value)] = len(self._constants)
            self._constants.append(value)
        return self._known[id(value)]

    def give(self, row: str, *operands: int) -> int:
        """Add a row that gives a value: its number."""
        self.test(row, *operands)
        self._count += 1
        return self._count - 1

    def test(self, row: str, *operands: int) -> bool:
        """Add a row."""
        self._rows.extend((_NUMBERS[row], *operands))
        return True

    def finished(self, wanted: Sequence[int], python: Callable[[Tuple, Mapping[str, Any]], Any]) -> GuardTable:
        """What is checked.  wanted: the numbers of the values that it gives; python: does the same."""
        numbers = array.array("i", wanted).tobytes()
        memory = memory_of(self._count)
        return GuardTable(self._rows.tobytes(), tuple(self._constants), numbers, self._count, MISS, python, memory)


def divided(guards: Sequence[Guard]) -> Tuple[Table, List[Guard], List[Guard]]:
    """A table, the guards that are in it, and the others."""
    table = Table()
    inside: List[Guard] = []
    others: List[Guard] = []
    for guard in guards:
        (inside if guard.row(table) else others).append(guard)
    return table, inside, others

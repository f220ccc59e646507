"""State that calls read and change, such as the ``h`` of an LSTM: arguments and results of an exported program."""
from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from ..errors import ExportError, Location
from ..ir.graph import Value
from ..record.builds import Build
from ..record.inputs import ArrayInput, VariableInput
from ..record.outcome import Outcome
from ..record.paths import Item
from ..record.writes import RebindArray, SetItem, Write, WriteArray
from ..saved.paths import name_of_path

#: Of an argument that is state, and of the result that is its next value.
BEFORE, AFTER = "state/", "next/"


class State:
    """What one captured call changes.

    before: the inputs of its graph that it also writes, with their names.
    """

    def __init__(self, outcome: Outcome):
        self.writes = [write for end in outcome.ends for write in end.writes]
        names = {_path(write): _name(write) for write in self.writes if _path(write) is not None}
        self.before: Dict[Value, str] = {
            item.value: BEFORE + names[item.source.path()] for item in outcome.inputs
            if isinstance(item, (ArrayInput, VariableInput)) and item.source.path() in names}
        self._read = {item.source.path() for item in outcome.inputs if item.source is not None}

    @property
    def read_again(self) -> int:
        """How many of the places that it writes held arrays that it read: in the first of all calls, those of None do not."""
        return sum(_path(write) in self._read for write in self.writes)

    def after(self, at: Optional[Location]) -> List[Tuple[str, Build]]:
        """Names and builds of what is written.  Raises `ExportError` for what is no attribute or array."""
        found = []
        for write in self.writes:
            if _path(write) is None or write.built is None:
                raise ExportError(f"state that is no attribute with an array cannot be an argument ({write.describe()})", at,
                                  "keep arrays in attributes, or take the state as an argument, and give it back")
            found.append((AFTER + _name(write), write.built))
        return sorted(found, key=lambda pair: pair[0])

    @property
    def places(self) -> str:
        """What is written, in words."""
        return ", ".join(dict.fromkeys([_name(write) or write.describe() for write in self.writes]))


def _path(write: Write) -> Optional[Tuple]:
    """The path of what a write replaces; None for writes of containers and numbers."""
    if isinstance(write, SetItem):
        return (Item.word, write.key, *write.container.path())
    return write.container.path() if isinstance(write, (WriteArray, RebindArray)) else None


def _name(write: Write) -> str:
    name = name_of_path(write.container).replace(".", "/")
    return "/".join(filter(None, (name, str(write.key) if isinstance(write, SetItem) else "")))

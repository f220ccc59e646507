"""Symbolic values, in the protocols of this room.

The rooms below `symbolic` hand them on and ask them nothing, so here they are names only.  The classes are in `symbolic`."""
from __future__ import annotations

from typing import Any

#: An array of the graph: `symbolic.arrays`.
SymbolicArray = Any

#: A number of the graph: `symbolic.arrays`.
SymbolicScalar = Any

#: A Variable of the graph: `symbolic.variables`.
SymbolicVariable = Any

#: What only the host can use: `symbolic.host_objects`.
SymbolicObject = Any

#: A text that changes from call to call: `symbolic.known_texts`.
SymbolicText = Any

#: A list of which the graph knows the items: `symbolic.lists`.
StagedList = Any

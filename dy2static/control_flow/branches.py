"""What a decision on array values gives: captured blocks, and what says that a value is owed to it."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ..ir.graph import Node, Value
from ..symbolic.list_lengths import Length
from ..symbolic.rollback import Place, Snapshot
from ..symbolic.values import SymbolicVariable


class Decided:
    """Says which decision a value is owed to."""

    def __init__(self, decision: Any):
        self.decision = decision


class Branch:
    """One captured block: its nodes, what it returned and what it wrote.

    before: the state of things at its start; None for one that does nothing.  marks: of the path through it.  names: what
    some values are called outside.  values: what arrays in it held at its end.
    """

    def __init__(self, before: Optional[Snapshot], nodes: Sequence[Node], results: Tuple, writes: Dict[Place, Any],
                 marks: Mapping = {}, names: Mapping[Value, Value] = {}, values: Mapping[int, Tuple[Any, Any]] = {}):
        self.nodes, self.results, self.writes, self.marks, self.names = list(nodes), results, writes, marks, names
        self.before, self.values = before, values
        self.outputs: List[Value] = []
        self.merged: Dict[Tuple[int, int], Callable] = {}
        self.lengths: Dict[Any, Length] = {}            # of lists that the decision chooses

    def value_of(self, item: Any, is_kept: bool = True) -> Value:
        """What an array or Variable held at the end.  is_kept: whether what the decision gives keeps it."""
        array = item._data[0] if isinstance(item, SymbolicVariable) else item
        if is_kept:
            array.shared = "kept"
        value = self.values[id(item)][1] if id(item) in self.values else array.now()
        if value is None or array.capture.array_writes.is_written(array):
            array.capture.abort("a decision on array values chooses between arrays, and one of them is written in place")
        return value

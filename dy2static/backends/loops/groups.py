"""A group: the nodes of one loop nest, and the values that they make."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ...ir.graph import Node, Value
from ...ops.rules import reduced
from .layout import Place, broadcast, compact_strides

#: Reductions: what an accumulator starts with, by the kind of dtype where that matters, is in `loops`.
REDUCTIONS = ("sum", "max", "min", "any", "all", "prod")


@dataclass(eq=False)
class Group:
    """Nodes that run in one loop nest.

    shape: what it runs over.  split: the first axis of a row, None where nothing is reduced to rows.
    elements: values with one element per element; rows: those with one per row; totals: those ready at the end.
    sweep: when a value is made; of rows, the first sweep that may read them.
    """

    shape: Tuple[int, ...]
    nodes: List[Node] = field(default_factory=list)
    split: Optional[int] = None
    elements: Set[Value] = field(default_factory=set)
    rows: Set[Value] = field(default_factory=set)
    totals: Set[Value] = field(default_factory=set)
    sweep: Dict[Value, int] = field(default_factory=dict)

    @property
    def row_shape(self) -> Tuple[int, ...]:
        """The sizes of the axes outside of a row."""
        return self.shape[:self.split]

    @property
    def sweeps(self) -> int:
        """How many times it runs over each row."""
        return 1 + max([self.sweep[v] for v in (*self.elements, *self.totals)] + [
            self.sweep[v] - 1 for v in self.rows if self.sweep[v]], default=0)

    def values(self) -> Set[Value]:
        """All values that the group computes."""
        return self.elements | self.rows | self.totals

    def makes(self, value: Value) -> bool:
        """Whether the group computes a value."""
        return value in self.elements or value in self.rows or value in self.totals

    def part(self, nodes: Sequence[Node]) -> "Group":
        """The group of some of these nodes, in their order here; they read none of the others."""
        made, chosen = {v for node in nodes for v in node.outputs}, set(nodes)
        rows = self.rows & made
        return Group(self.shape, [node for node in self.nodes if node in chosen], self.split if rows else None,
                     self.elements & made, rows, self.totals & made, {v: at for v, at in self.sweep.items() if v in made})


def total_place(node: Node, value: Value) -> Place:
    """Where the result of a reduction is added to, for each element of the operand."""
    shape = node.inputs[0].shape
    kept = Place(value, reduced(shape, node.attrs["axis"], True), compact_strides(reduced(shape, node.attrs["axis"], True)))
    return broadcast(kept, shape)


def nodes_of(part: object) -> Sequence[Node]:
    """The nodes of a group, or the one that stands alone."""
    return part.nodes if isinstance(part, Group) else (part,)          # type: ignore[return-value]


def readers(order: Sequence[object]) -> Mapping[Value, List[int]]:
    """Which parts of a run read each value."""
    found: Dict[Value, List[int]] = {}
    for index, part in enumerate(order):
        for node in nodes_of(part):
            for value in node.inputs:
                found.setdefault(value, []).append(index)
    return found

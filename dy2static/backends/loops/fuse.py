"""Which nodes share a loop nest: elementwise nodes and reductions over elements of one shape.

A group runs over every element of its shape.  Reductions over the last axes (``split`` and on) are ready at the end of
each row and may be read by the next *sweep* over the same row: softmax is one group of three sweeps.  Other reductions
add up in memory and are ready when the whole group is over.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, FrozenSet, Mapping, Optional, Sequence, Tuple

from ...ir.graph import Node, Value
from .grouping import Grouping
from .groups import REDUCTIONS, Group, nodes_of, readers
from .layout import Places
from .merging import merge
from .tails import detach


@dataclass(frozen=True)
class Run:
    """Nodes without control flow in the order in which they run.

    parts: groups, and nodes that stand alone.  kept: values that something besides these nodes reads.  needed: those that must
    be in memory.  last: for each value, the last of the parts that reads of its memory.
    """

    parts: Tuple[object, ...]
    kept: FrozenSet[Value]
    needed: FrozenSet[Value]
    last: Mapping[Value, int]

    def is_read_behind(self, value: Value, index: int) -> bool:
        """Whether a part behind this one reads of the memory of a value."""
        return self.last.get(value, -1) > index


def fuse(nodes: Sequence[Node], places: Places, read_by: Mapping[Value, Collection[Optional[Node]]],
         large: Optional[int] = None, vectors: bool = False) -> Run:
    """Put the nodes into groups; those that only rename elements go into ``places``.

    read_by: what reads each value: nodes, and None for whatever else.  large: groups over so many elements hold no nodes that have
    nothing in common.  vectors: whether the innermost loop computes several elements at a time, which what comes between rows does
    not.

    Linear in nodes times groups.
    """
    grouping, inside = Grouping(places.of), set(nodes)
    for node in nodes:
        if not places.settle(node):
            is_loop = node.op.kind == "elementwise" or node.op.name in REDUCTIONS
            (grouping.add if is_loop else grouping.add_alone)(node)
    kept = {places.of(v).base for node in nodes for v in node.outputs if not inside.issuperset(read_by.get(v, ()))}
    if vectors:
        detach(grouping)
    merge(grouping)
    grouping.sink(kept)
    if large is not None:
        grouping.separate(large)
    return run_of(grouping.order, places, kept)


def run_of(parts: Sequence[object], places: Places, kept: Collection[Value]) -> Run:
    """These parts.  In memory must be values that are kept, and those that another part reads, or one that stands alone."""
    made_in = {v: index for index, part in enumerate(parts) for node in nodes_of(part) for v in node.outputs}
    needed, last = set(kept), {}
    for value, found in readers(parts).items():
        base = places.of(value).base
        last[base] = max(last.get(base, -1), found[-1])
        if any(base in made_in and made_in[base] != part or not isinstance(parts[part], Group) for part in found):
            needed.add(base)
    return Run(tuple(parts), frozenset(kept), frozenset(needed), last)

"""Groups of which one reads what another one makes, element by element, become one.

A node that has nothing in common with a group begins a group of its own.  Nodes that come later may connect the two: those of the
gradients of two operands, for example.  In one group, the values between them need no memory.
"""
from __future__ import annotations

from typing import List, Optional, Set

from ...ir.dims import is_known
from .grouping import Grouping
from .groups import Group

#: So many bytes between two groups are worth one group; where the number is not known, so few nodes may be in one.
_MANY_BYTES, _FEW_NODES = 1 << 16, 32

#: A group of so many nodes whose operations another group has in the same order is one more step of an unrolled loop.
_A_STEP = 4


def merge(grouping: Grouping) -> None:
    """Merge groups of a run, each pair of them where the first or the second one runs now."""
    parts = _Parts(grouping)
    for second in range(1, len(parts.order)):
        for first in sorted(parts.reads[second], reverse=True):
            if parts.merge(first, second) == first:
                break                                   # the second one is gone
    if parts.gone:
        grouping.arrange([part for index, part in enumerate(parts.order) if index not in parts.gone])


class _Parts:
    """The parts of a run by their places in it, which stay.  ``gone``: the places of groups that became part of others."""

    def __init__(self, grouping: Grouping):
        self.grouping = grouping
        self.order: List[object] = list(grouping.order)
        self.gone: Set[int] = set()
        self.reads: List[Set[int]] = [grouping.read_parts(index) for index in range(len(self.order))]
        self.read_by: List[Set[int]] = [set() for _ in self.order]
        for index, found in enumerate(self.reads):
            for each in found:
                self.read_by[each].add(index)

    def merge(self, first: int, second: int) -> Optional[int]:
        """Merge two groups, the second of which reads the first, if that is possible.  Returns where both are now."""
        one, other = self.order[first], self.order[second]
        if not (isinstance(one, Group) and isinstance(other, Group)) or one.shape != other.shape or one.split != other.split:
            return None
        if min(self.read_by[first]) == second:
            place, left = second, first
        elif max(self.reads[second]) == first and not any(node.recomputed for node in other.nodes):
            place, left = first, second                 # recomputed values would wait for what reads them
        else:
            return None
        merged = self.grouping.joined(one, other) if self._is_worthwhile(one, other) else None
        if merged is None:
            return None
        self.order[place] = merged
        self.gone.add(left)
        self._move(left, place)
        return place

    def _is_worthwhile(self, one: Group, other: Group) -> bool:
        """Whether the values between two groups are so large that they leave the nearest caches.

        Small groups are often those of the steps of an unrolled loop, which are compiled once as long as they are equal.  Of groups
        with much between them, a few steps become one: what a C compiler takes grows faster than the number of steps.
        """
        if len(one.nodes) + len(other.nodes) > _FEW_NODES and _is_another_step(one, other):
            return False
        between = {self.grouping.place(v).base for node in other.nodes for v in node.inputs} & one.elements
        sizes = [value.type.size * value.dtype.itemsize for value in between]
        if all(map(is_known, sizes)):
            return sum(sizes) >= _MANY_BYTES
        return len(one.nodes) + len(other.nodes) <= _FEW_NODES

    def _move(self, left: int, place: int) -> None:
        """What the part at one place reads, and what reads it, is now so at another place."""
        for index in self.reads[left]:
            self.read_by[index].discard(left)
            if index != place:
                self.read_by[index].add(place)
        for index in self.read_by[left]:
            self.reads[index].discard(left)
            if index != place:
                self.reads[index].add(place)
        self.reads[place] = (self.reads[place] | self.reads[left]) - {place, left}
        self.read_by[place] = (self.read_by[place] | self.read_by[left]) - {place, left}
        self.reads[left], self.read_by[left] = set(), set()


def _is_another_step(one: Group, other: Group) -> bool:
    """Whether the smaller of two groups does what a part of the other one does, operation by operation."""
    few, many = sorted((" ".join(["", *[node.op.name for node in group.nodes], ""]) for group in (one, other)), key=len)
    return few.count(" ") > _A_STEP and few in many

"""Which group a node belongs to: the first one that it fits and that comes after what it reads."""
from __future__ import annotations

import math
from bisect import bisect_left, insort
from typing import Callable, Collection, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ...ir.dims import is_known
from ...ir.graph import Node, Value
from .groups import REDUCTIONS, Group, nodes_of
from .layout import Place, broadcast, compact_strides

#: So many nodes may share a loop nest though they have nothing in common.
_SIDE_BY_SIDE = 4

#: So many bytes may be made long before they are read, of numbers for each row, and of anything.
_LITTLE_OF_ROWS, _LITTLE = 1 << 18, 1 << 12


class Grouping:
    """Puts nodes into groups, each into the first one it fits that comes after what it reads."""

    def __init__(self, place: Callable[[Value], Place]):
        self.place = place
        self.order: List[object] = []                    # groups, and nodes that stand alone
        self._ahead = 0                                  # how many of them were put in front of those that were there
        self._known: Dict[object, int] = {}              # `position`, less ``_ahead``
        self._read_by: Dict[Place, List[int]] = {}       # which groups read each place, by their positions less ``_ahead``
        self._small: List[int] = []                      # the groups that anything may join, likewise, in order

    def position(self, made: object) -> int:
        """Where the part stands that makes a value of this run, or finds an index of that name; -1 if none does."""
        found = self._known.get(made)
        return -1 if found is None else found + self._ahead

    def add(self, node: Node) -> None:
        """An elementwise node or a reduction."""
        shape = node.inputs[0].shape if node.op.name in REDUCTIONS else node.outputs[0].shape
        start = self._after(node)
        if node.recomputed and not _is_little(node):                   # near what reads it: until then it takes no memory
            start = max(start, len(self.order) - 1)
        reads = [self.place(v) for v in node.inputs]
        for index in self._candidates(max(start, 0), reads):
            group = self.order[index]
            if isinstance(group, Group) and (group.shape == shape or group.split is not None) and self.join(group, node, shape):
                self._note(group, index, reads)
                self._place(node, index)
                return
        group = Group(shape)
        if not self.join(group, node, shape):
            raise AssertionError(f"{node} does not fit a group of its own")
        index = 0 if start < 0 else len(self.order)               # what reads inputs only is there for all
        self.order.insert(index, group)
        self._ahead += not index
        self._note(group, index, reads)
        self._place(node, index)

    def _candidates(self, start: int, reads: Sequence[Place]) -> Sequence[int]:
        """From a position on, the parts that a node has to do with, and the small groups, but not all steps of an unrolled loop.

        reads: what the node reads.
        """
        first = start - self._ahead
        found = {self._known.get(place.base, first - 1) for place in reads}
        for there in (self._small, *[self._read_by.get(place, ()) for place in reads]):
            found.update(there[bisect_left(there, first):])
        return [at + self._ahead for at in sorted(found) if at >= first]

    def _note(self, group: Group, index: int, reads: Sequence[Place]) -> None:
        """A node that reads this has joined a group."""
        at = index - self._ahead
        for place in reads:
            if place.shape == group.shape and not _is_repeated(place):
                before = self._read_by.setdefault(place, [])
                number = bisect_left(before, at)
                if before[number:number + 1] != [at]:
                    before.insert(number, at)
        if len(group.nodes) == 1:
            insort(self._small, at)
        elif len(group.nodes) == _SIDE_BY_SIDE:
            self._small.remove(at)

    def add_alone(self, node: Node) -> None:
        """A node that is not a loop over elements."""
        self.order.append(node)
        self._place(node, len(self.order) - 1)

    def sink(self, kept: Collection[Value]) -> None:
        """Move elementwise nodes that only a later group reads there, where they need no memory.

        kept: values that must be in memory anyhow.
        """
        read: Dict[Value, Set[Node]] = {}
        where: Dict[Node, int] = {}
        for index, part in enumerate(self.order):
            for node in nodes_of(part):
                where[node] = index
                for value in node.inputs:
                    read.setdefault(self.place(value).base, set()).add(node)
        for group in reversed([part for part in self.order if isinstance(part, Group)]):
            for node in reversed(group.nodes):
                index = self._later(group, node, kept, read, where)
                if index is not None:
                    target = self.order[index]
                    assert isinstance(target, Group)
                    (value,) = node.outputs
                    group.nodes.remove(node)
                    group.elements.remove(value)
                    where[node] = index
                    target.nodes.insert(0, node)
                    target.elements.add(value)
                    target.sweep[value] = group.sweep.pop(value)
                    self._place(node, index)

    def _later(self, group: Group, node: Node, kept: Collection[Value], read: Mapping[Value, Set[Node]],
               where: Mapping[Node, int]) -> Optional[int]:
        """The place of the group that alone reads a node, if what the node reads needs no more memory there: one value at most."""
        (value,) = node.outputs
        found = {where[reader] for reader in read.get(value, ())}
        if value not in group.elements or value in kept or group.sweep[value] or len(found) != 1:
            return None
        (index,) = found
        target = self.order[index]
        if not isinstance(target, Group) or target is group or target.shape != group.shape:
            return None
        bases = {self.place(v).base for v in node.inputs}
        mine = [base for base in bases if base in group.elements and base not in kept]
        if bases & (group.rows | group.totals) or len(mine) > 1 or any(len(read[base]) > 1 for base in mine):
            return None
        fits = self._ready(target, node, target.shape) == 0
        return index if fits and all(self._reads_elements(target, reader, value) for reader in read[value]) else None

    def _reads_elements(self, group: Group, reader: Node, value: Value) -> bool:
        """Whether a node of a group reads the element of a value that is made at that place."""
        if reader.op.name not in REDUCTIONS and reader.outputs[0] not in group.elements:
            return False
        places = [(v, self.place(v)) for v in reader.inputs]
        return all((place if v.shape == group.shape else broadcast(place, group.shape)).whole
                   for v, place in places if place.base is value)

    def read_parts(self, index: int) -> Set[int]:
        """The places of the parts that one of them reads."""
        found = {self.position(x) for node in nodes_of(self.order[index]) for v in node.inputs for x in self._needed(v)}
        return found - {index, -1}

    def joined(self, first: Group, second: Group) -> Optional[Group]:
        """A group of the nodes of two of one shape; None if some of the second cannot follow in the loop nest of the first."""
        made = first.part(first.nodes)
        made.split = first.split
        for node in second.nodes:
            if not self.join(made, node, node.inputs[0].shape if node.op.name in REDUCTIONS else node.outputs[0].shape):
                return None
        return made

    def arrange(self, order: List[object]) -> None:
        """Let the parts be these, in this order."""
        self.order, self._known, self._ahead = order, {}, 0
        for index, part in enumerate(order):
            for node in nodes_of(part):
                self._place(node, index)

    def separate(self, large: int) -> None:
        """Make several groups of each one over so many elements whose nodes have nothing in common.

        Equal ones are compiled once, and the calls cost next to nothing beside so much work.
        """
        order: List[object] = []
        for part in self.order:
            is_large = isinstance(part, Group) and is_known(math.prod(part.shape)) and math.prod(part.shape) >= large
            order += self._separated(part) if is_large and isinstance(part, Group) else [part]
        if len(order) > len(self.order):
            self.arrange(order)

    def _separated(self, group: Group) -> List[Group]:
        """The nodes of a group, in one group for those that read each other, or the same elements."""
        found: List[Tuple[List[Node], Set[object]]] = []         # nodes, and what they make or read
        for node in group.nodes:
            places = map(self.place, node.inputs)
            seen = {place.base if place.base in group.sweep else place for place in places
                    if place.base in group.sweep or place.shape == group.shape and not _is_repeated(place)}
            joined, has = [node], seen.union(node.outputs)
            for one in [one for one in found if not seen.isdisjoint(one[1])]:
                found.remove(one)
                joined, has = one[0] + joined, has | one[1]
            found.append((joined, has))
        return [group.part(nodes) for nodes, _ in found] if len(found) > 1 else [group]

    def _place(self, node: Node, index: int) -> None:
        for value in node.outputs:
            self._known[value] = index - self._ahead
            for name, _ in self.place(value).terms:
                self._known.setdefault(name, index - self._ahead)

    def _after(self, node: Node) -> int:
        """The position of the last part that a node needs: what it reads may be a view, of a view at an index found in this run."""
        return max([self.position(x) for v in node.inputs for x in self._needed(v)], default=-1)

    def _needed(self, value: Value) -> Sequence[object]:
        place = self.place(value)
        return value, place.base, *[name for name, _ in place.terms]

    def join(self, group: Group, node: Node, shape: Tuple[int, ...]) -> bool:
        """Add a node over elements of this shape to a group, and say so; False where it does not fit."""
        if node.op.name in REDUCTIONS:
            return self._reduce(group, node) if group.shape == shape else False
        if group.shape == shape:
            ready = self._ready(group, node, shape)
            if ready is not None:
                (value,) = node.outputs
                group.nodes.append(node)
                group.elements.add(value)
                group.sweep[value] = ready
                return True
        return self._row_node(group, node)

    def _ready(self, group: Group, node: Node, shape: Tuple[int, ...]) -> Optional[int]:
        """The first sweep in which the operands are there, element by element; None if they never are."""
        ready = 0
        for operand in node.inputs:
            place = broadcast(self.place(operand), shape) if operand.shape != shape else self.place(operand)
            base = place.base
            if base in group.elements:
                if not place.whole:
                    return None
            elif base in group.rows:
                if not self._is_row(group, place):
                    return None
            elif base in group.totals:
                return None
            ready = max(ready, group.sweep.get(base, 0))
        return ready

    def _is_row(self, group: Group, place: Place) -> bool:
        """Whether each element of a row reads the value of that row."""
        wanted = compact_strides(group.row_shape)
        return not place.offset and not place.terms and all(
            n == 1 or s == w for n, s, w in zip(group.shape, place.strides, (*wanted, *(0,) * len(group.shape))))

    def _row_node(self, group: Group, node: Node) -> bool:
        """A node between sweeps: it reads results of this group's rows."""
        (value,) = node.outputs
        if group.split is None or math.prod(value.shape) != math.prod(group.row_shape):
            return False
        ready, joined = 0, False
        for operand in node.inputs:
            place = self.place(operand)
            if operand.shape != value.shape:
                place = broadcast(place, value.shape)
            if place.base in group.rows:
                if not place.whole:
                    return False
                joined = True
            elif place.base in group.elements or place.base in group.totals:
                return False
            ready = max(ready, group.sweep.get(place.base, 0))
        if not joined or any(n != 1 for n in value.shape) and _squeezed(value.shape) != _squeezed(group.row_shape):
            return False
        group.nodes.append(node)
        group.rows.add(value)
        group.sweep[value] = ready
        return True

    def _reduce(self, group: Group, node: Node) -> bool:
        (value,) = node.outputs
        ready = self._ready(group, node, group.shape)
        if ready is None:
            return False
        axes = node.attrs["axis"]
        split = _split_of(group.shape, axes)
        if split is not None and group.split in (None, split):
            group.split = split
            group.rows.add(value)
            group.sweep[value] = ready + 1
        else:
            group.totals.add(value)
            group.sweep[value] = ready
        group.nodes.append(node)
        return True


def _is_repeated(place: Place) -> bool:
    """Whether elements are seen several times."""
    return any(isinstance(s, int) and s == 0 and n != 1 for s, n in zip(place.strides, place.shape))


def _split_of(shape: Sequence[int], axes: Tuple[int, ...]) -> Optional[int]:
    """Where a row begins that is reduced whole; None if others than the last axes are reduced."""
    kept = [a for a, n in enumerate(shape) if a not in axes and n != 1]
    gone = [a for a, n in enumerate(shape) if a in axes and n != 1]
    if not gone or kept and max(kept) > min(gone):
        return None
    return max(kept) + 1 if kept else 0


def _squeezed(shape: Sequence[int]) -> Tuple[int, ...]:
    return tuple(n for n in shape if n != 1)


def _is_little(node: Node) -> bool:
    """Whether what a node makes takes next to no memory."""
    return all(is_known(v.type.size) and v.type.size * v.dtype.itemsize <= (_LITTLE_OF_ROWS if v.shape[-1:] == (1,) else _LITTLE)
               for v in node.outputs)

"""Elementwise values that are computed again where they are read, so that fewer bytes go through memory.

When the forward, the backward and the update are one program, the forward would store each value that the backward reads.  Many of
them follow by a few operations from arrays that are in memory anyhow.  For each loop nest, a minimum cut decides what it loads and
what it computes again.  The cut weighs bytes against operations.  Products, reductions and draws are never computed again.

A kernel that fills the device hides most of what it computes behind what it moves.  One with few threads waits for each operation
of a chain, while the loads of an element do not wait for each other.  So operations weigh more there, by as much as threads are
missing.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Callable, Collection, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from ...ir.dims import Size
from ...ir.graph import Node, Value
from ...ir.types import Tensor
from ...passes.memory.min_cut import Network
from .fuse import Run, run_of
from .groups import REDUCTIONS, Group, nodes_of
from .layout import Place, Places, broadcast, reshaped

#: Nests over fewer elements take no time that bytes decide.
_LEAST = 4096

#: The guess for a size that only the run knows.
_UNKNOWN = 256

#: Bytes that memory moves at once.
_SECTOR = 32

#: Operations from the values that a nest reads to those that it computes again at most.
_DEEPEST = 16

#: Of one element of 32 bits: bytes that a GPU moves in the time of an operation of its kind.
_PLAIN, _QUOTIENT, _DEAR = 0.1, 0.5, 2.0
_PLAIN_OPS = frozenset(
    "add sub mul neg abs square minimum maximum where mask cast relu sign equal not_equal less less_equal greater greater_equal "
    "logical_and logical_or logical_not logical_xor leaky_relu clipped_relu clip fill identity".split())
_QUOTIENT_OPS = frozenset("div sqrt reciprocal".split())

#: Elements that a GPU computes at once where it is full.  (On an H100, 10,000 threads need as much longer for an exponential.)
_FULL = 3 << 16

#: The rounds in which it is found out which values need no memory, and how much more memory at once is no matter.
_ROUNDS = 4
_GROWTH, _MORE = 1.03, 1 << 20


class Leaf(NamedTuple):
    """A part of a value that a nest reads in another way than element by element, such as a number for each row."""

    base: Value
    strides: Tuple[object, ...]
    offset: object


Key = Union[Value, Leaf]


def recompute(run: Run, places: Places, at_once: Callable[[Group], int], absent: Collection[Value] = (),
              fixed: Collection[Group] = ()) -> Run:
    """The run with elementwise nodes repeated in the groups that read what they make, where this takes less time on a GPU.

    at_once: how many elements the kernel of a group computes at the same time, if there is place for all.  absent: values that
    never are in memory, though a part makes them.  fixed: groups that stay as they are.
    What a group computes has the same bits as before.  Its copies of values have new identities.  Linear in nodes times the
    operations that are looked at for each group.
    """
    if not any(isinstance(part, Group) and _elements(part.shape) >= _LEAST for part in run.parts):
        return run
    search = _Search(run, places, at_once, absent, fixed)
    again = search.result()
    if not again:
        return run
    parts = [_with_copies(part, again[k], search) if k in again and isinstance(part, Group) else part
             for k, part in enumerate(run.parts)]
    parts = _without_dead(parts, places, run.kept)
    made = run_of(parts, places, run.kept)
    return made if _peak(made, places) <= _GROWTH * _peak(run, places) + _MORE else run


@dataclass
class _Reads:
    """What a group reads from memory.

    whole: values that it reads element by element only.  others: parts of values.  blocked: values that it reads in another way,
    too, or only.
    """

    whole: Set[Value]
    others: Set[Leaf]
    blocked: Set[Value]


class _Search:
    """Which values each group computes again."""

    def __init__(self, run: Run, places: Places, at_once: Callable[[Group], int], absent: Collection[Value],
                 fixed: Collection[Group]):
        self.run, self.places, self.at_once, self.absent = run, places, at_once, set(absent)
        self.made_in: Dict[Value, int] = {}
        self.makers: Dict[Value, Node] = {}
        self.order: Dict[Value, int] = {}
        self.reads: Dict[int, _Reads] = {}
        self.must_store: Set[Value] = set(run.kept)
        self.readers: Dict[Value, Set[int]] = {}
        for index, part in enumerate(run.parts):
            for node in nodes_of(part):
                for value in node.outputs:
                    self.made_in[value] = index
                    self.order[value] = len(self.order)
                    if isinstance(part, Group) and value in part.elements:
                        self.makers[value] = node
            if isinstance(part, Group) and part not in fixed:
                found = self.reads[index] = self._reads(part)
                self.must_store |= found.blocked
                for value in found.whole:
                    self.readers.setdefault(value, set()).add(index)
            else:
                self.must_store.update([places.of(v).base for node in nodes_of(part) for v in node.inputs])

    def _reads(self, group: Group) -> _Reads:
        found = _Reads(set(), set(), set())
        for node in group.nodes:
            is_element = node.op.name in REDUCTIONS or node.outputs[0] in group.elements
            for value in node.inputs:
                place = self.places.of(value)
                base = place.base
                if base in group.sweep or base.ndim == 0:
                    continue
                if is_element:
                    place = place if value.shape == group.shape else broadcast(place, group.shape)
                    if place.whole:
                        found.whole.add(base)
                        continue
                    found.others.add(Leaf(base, place.strides, place.offset))
                found.blocked.add(base)
        found.whole -= found.blocked
        return found

    def result(self) -> Dict[int, Set[Value]]:
        """The values that each group computes again, by its number."""
        must_store = set(self.must_store)
        again: Dict[int, Set[Value]] = {}
        for _ in range(_ROUNDS):
            again, readers = self._round(must_store)
            left = {v for values in again.values() for v in values if readers.get(v) and v not in must_store}
            if not left:
                break
            must_store |= left                                     # some group needs these in any case
        return again

    def _round(self, must_store: Set[Value]) -> Tuple[Dict[int, Set[Value]], Dict[Value, Set[int]]]:
        """What each group computes again, and what then reads each value, if these values are stored in any case."""
        readers = {value: set(indices) for value, indices in self.readers.items()}
        again: Dict[int, Set[Value]] = {}
        for index in sorted(self.reads, reverse=True):
            group = self.run.parts[index]
            if not isinstance(group, Group) or _elements(group.shape) < _LEAST or not any(
                    v in self.makers for v in self.reads[index].whole):
                continue
            cut = _Cut(self, index, group, must_store, readers).result()
            if not cut[0]:
                continue
            again[index] = cut[0]
            for value in cut[0]:
                readers.get(value, set()).discard(index)
            for value in cut[1]:
                readers.setdefault(value, set()).add(index)
        return again, readers

    def key(self, operand: Value, node: Node, group: Group) -> Tuple[bool, Optional[Key]]:
        """Whether a group can read what a node reads, and what that is; None for a number."""
        place = self.places.of(operand)
        if place.base.ndim == 0:
            return place.base not in self.absent, None
        at = self.placed(operand, node, group)
        if at is None or place.terms or place.base in self.absent or place.base in group.sweep:
            return False, None
        return (True, place.base) if at.whole else (_is_in_order(at), Leaf(place.base, at.strides, at.offset))

    def placed(self, operand: Value, node: Node, group: Group) -> Optional[Place]:
        """Where a group finds the operand of a node, for each element of the group; None where strides cannot say it."""
        (value,), place = node.outputs, self.places.of(operand)
        place = place if operand.shape == value.shape else broadcast(place, value.shape)
        return place if value.shape == group.shape else reshaped(place, group.shape)


class _Cut:
    """The minimum cut for one group: between what it reads and what would have to be known to compute that again."""

    def __init__(self, search: _Search, index: int, group: Group, must_store: Set[Value], readers: Dict[Value, Set[int]]):
        self.search, self.index, self.group = search, index, group
        self.must_store, self.readers, self.reads = must_store, readers, search.reads[index]
        self.wait = max(1.0, _FULL / max(1, search.at_once(group)))        # of an operation: how much longer it takes
        self.network = Network()
        self.seen: Set[Key] = set()

    def result(self) -> Tuple[Set[Value], Set[Value]]:
        """What the group computes again, and what it then loads element by element."""
        waiting: List[Tuple[Key, int]] = []
        for value in self.reads.whole:
            self.network.add((value, "out"), "group", math.inf)
            waiting.append((value, 0))
        while waiting:
            key, depth = waiting.pop(0)
            if key not in self.seen:
                self.seen.add(key)
                waiting += [(operand, depth + 1) for operand in self._vertex(key, depth)]
        behind = self.network.sink_side("memory", "group")
        values = [key for key in self.seen if isinstance(key, Value)]
        again = {v for v in values if (v, "in") in behind}
        return again, {v for v in values if (v, "out") in behind and v not in again}

    def _vertex(self, key: Key, depth: int) -> Sequence[Key]:
        """Add a value, and what it follows from; those are returned."""
        network = self.network
        network.add((key, "in"), (key, "out"), self._loading(key))
        operands = self._operands(key) if isinstance(key, Value) and depth < _DEEPEST else None
        if operands is None or not isinstance(key, Value):
            network.add("memory", (key, "in"), math.inf)
            return ()
        network.add("memory", (key, "in"), self.wait * _work(self.search.makers[key]))
        for operand in operands:
            network.add((operand, "out"), (key, "in"), math.inf)
        return operands

    def _operands(self, value: Value) -> Optional[List[Key]]:
        """What an elementwise value is computed from, without numbers; None where the group cannot compute it, or loads it anyhow.

        What only other groups load is not looked behind: an unrolled loop would be searched back to its first step.
        """
        node = self.search.makers.get(value)
        if value in self.search.run.needed and value not in self.reads.whole:
            return None
        if node is None or value.shape != self.group.shape and "shape" in node.attrs:
            return None
        found: List[Key] = []
        for operand in node.inputs:
            can, key = self.search.key(operand, node, self.group)
            if not can:
                return None
            if key is not None:
                found.append(key)
        return found

    def _loading(self, key: Key) -> float:
        """The bytes that are moved because the group loads something."""
        search = self.search
        if isinstance(key, Leaf):
            if key in self.reads.others:
                return 0.0
            return _touched(key, self.group.shape) + self._storing(key.base)
        if key in self.reads.blocked:
            return 0.0
        readers = self.readers.get(key, set())
        if key in search.makers and key not in self.must_store and key in search.run.needed and self.index in readers:
            return _bytes(key) * (1 + 1 / len(readers))            # without readers, it is not stored either
        return _bytes(key) + self._storing(key)

    def _storing(self, value: Value) -> float:
        """The bytes that are stored for the first time because a group loads a value."""
        search = self.search
        is_stored = value not in search.made_in or value in self.must_store or self.readers.get(value) \
            or not isinstance(search.run.parts[search.made_in[value]], Group)
        return 0.0 if is_stored else float(_bytes(value))


def _touched(leaf: Leaf, shape: Sequence[object]) -> float:
    """The bytes that are moved for a part of a value: whole sectors where elements are apart."""
    moving = [(guessed(n), guessed(stride)) for n, stride in zip(shape, leaf.strides) if n != 1 and stride != 0]
    size = leaf.base.dtype.itemsize
    each = max(size, min(_SECTOR, moving[-1][1] * size)) if moving else size
    return float(math.prod(n for n, _ in moving) * each)


def _work(node: Node) -> float:
    """The bytes that a GPU which is full moves in the time of an elementwise operation."""
    name, width = node.op.name, max(v.dtype.itemsize for v in (*node.inputs, *node.outputs)) / 4
    each = _PLAIN if name in _PLAIN_OPS else _QUOTIENT if name in _QUOTIENT_OPS else _DEAR
    return float(each * max(1.0, width * width)) * _elements(node.outputs[0].shape)


def _is_in_order(place: Place) -> bool:
    """Whether neighbours are read from neighbouring places, or all from one."""
    strides = [stride for n, stride in zip(place.shape, place.strides) if n != 1 and stride != 0]
    if not all(isinstance(stride, int) for stride in strides[-1:]):
        return False
    known = [stride for stride in strides if isinstance(stride, int)]
    return all(a >= b > 0 for a, b in zip(known, known[1:])) and (not known or known[-1] > 0)


def guessed(size: object) -> int:
    """A size, or a guess for one that only the run knows."""
    return size if isinstance(size, int) else _UNKNOWN


def _elements(shape: Iterable[object]) -> int:
    return math.prod(map(guessed, shape))


def _bytes(value: Value) -> int:
    return int(_elements(value.shape) * value.dtype.itemsize)


def _of_shape(value: Value, shape: Sequence[Size]) -> Value:
    """A new value of another shape."""
    type = value.type
    assert isinstance(type, Tensor)
    return Value(replace(type, shape=tuple(shape)), value.name)


def _with_copies(group: Group, again: Set[Value], search: _Search) -> Group:
    """A group that computes these values itself, in front of what reads them."""
    places, shape = search.places, group.shape
    copies: Dict[Value, Value] = {}
    nodes: List[Node] = []
    for value in sorted(again, key=search.order.__getitem__):
        node = search.makers[value]
        copies[value] = _of_shape(value, shape)
        nodes.append(replace(node, inputs=tuple([_operand(v, node, group, copies, search) for v in node.inputs]),
                             outputs=(copies[value],)))
    nodes += [replace(node, inputs=tuple([copies.get(places.of(v).base, v) for v in node.inputs]))
              if any(places.of(v).base in copies for v in node.inputs) else node for node in group.nodes]
    sweep = dict(group.sweep)
    mine = set(copies.values())
    for node in reversed(nodes):                                   # each just in time for the first sweep that reads it
        (made,) = node.outputs
        at = sweep[made] - (node.op.name in REDUCTIONS and made in group.rows)
        for value in mine.intersection(node.inputs):
            sweep[value] = min(sweep.get(value, at), at)
    return Group(shape, nodes, group.split, group.elements | mine, group.rows, group.totals, sweep)


def _operand(operand: Value, node: Node, group: Group, copies: Dict[Value, Value], search: _Search) -> Value:
    """What stands for an operand of a node in a copy of the node."""
    place = search.placed(operand, node, group)
    assert place is not None
    if place.base in copies and place.whole:
        return copies[place.base]
    if operand.ndim == 0 or node.outputs[0].shape == group.shape:
        return operand
    view = _of_shape(operand, group.shape)
    search.places.views[view] = place
    return view


def _without_dead(parts: Sequence[object], places: Places, kept: Collection[Value]) -> List[object]:
    """The parts without elementwise nodes that nothing reads any more."""
    live, found = set(kept), []
    for part in reversed(parts):
        nodes = []
        for node in reversed(nodes_of(part)):
            if not isinstance(part, Group) or not live.isdisjoint(node.outputs):
                nodes.append(node)
                live.update([places.of(v).base for v in node.inputs])
        if isinstance(part, Group) and len(nodes) < len(part.nodes):
            part = part.part(nodes)
        if not isinstance(part, Group) or part.nodes:
            found.append(part)
    return found[::-1]


def _peak(run: Run, places: Places) -> int:
    """About the most bytes of values that are in memory at once, besides those that something outside reads."""
    born: Dict[Value, int] = {}
    last: Dict[Value, int] = {}
    for index, part in enumerate(run.parts):
        for node in nodes_of(part):
            last.update(dict.fromkeys([places.of(v).base for v in node.inputs], index))
            born.update(dict.fromkeys([v for v in node.outputs if v not in run.kept and (
                v in run.needed or not isinstance(part, Group))], index))
    change = [0] * (len(run.parts) + 1)
    for value, index in born.items():
        change[index] += _bytes(value)
        change[last.get(value, index) + 1] -= _bytes(value)
    most = now = 0
    for step in change:
        now += step
        most = max(most, now)
    return most

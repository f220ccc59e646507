"""Where two sides of a decision cannot be joined, the rest of the function is captured once for each side.

The function is called again from its start on the same shadows, with the decision settled; what the calls have in
common up to there becomes the part before an ``if_``, what follows becomes its branches.
"""
from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ..capture_context import CaptureContext
from ..errors import Location
from ..heap.aborts import CaptureAborted
from ..heap.locations import user_location
from ..heap.regions import close, free_values
from ..ir.graph import Node, Value
from ..ir.op import OPS
from ..passes.rewriting import with_inputs
from ..record.builds import Build
from ..record.outcome import End
from ..record.variables import EscapingVariable

#: So many ends a function may have.
_MOST_ENDS = 8


class Path:
    """The decisions of one call of the function, or of one block of it, numbered as they come.

    sides: how the forked ones are settled.  outer: the path that the block lies on.  frame: stands for the block, in
    all the calls of it.  joined: the decision that is being joined.  marks: per forked one, how many nodes stand before
    it, what decides, and the user's line.  open, asked: of the others, the lines, and the numbers by what decides.
    """

    def __init__(self, sides: Mapping[int, bool], outer: Optional["Path"] = None, frame: Any = None):
        self.sides, self.outer, self.frame, self.count = sides, outer, frame, 0
        self.joined: Optional[int] = None
        self.marks: Dict[int, Tuple[int, Value, Optional[Location]]] = {}
        self.open: Dict[int, Optional[Location]] = {}
        self.asked: Dict[Value, int] = {}
        self._settled: Dict[Value, bool] = {} if outer is None else dict(outer._settled)

    def side(self, predicate: Value, nodes: Sequence[Node]) -> Optional[bool]:
        """How the next decision is settled; None if it is not."""
        if predicate in self._settled:
            return self._settled[predicate]
        number, self.count = self.count, self.count + 1
        if number not in self.sides:
            self.open[number], self.asked[predicate] = user_location(), number
            return None
        self.marks[number] = len(nodes), predicate, user_location()
        self._settled[predicate] = self.sides[number]
        return self.sides[number]

    def insert(self, place: int) -> None:
        """Count one node more behind the one at this place."""
        self.marks = {number: (count + (place < count), predicate, loc)
                      for number, (count, predicate, loc) in self.marks.items()}

    @contextlib.contextmanager
    def joining(self) -> Iterator[None]:
        """What cannot be captured inside the last decision may be where the decision is settled."""
        number = self.joined = self.count - 1
        try:
            yield
            self.joined = None
        except CaptureAborted as stop:
            if not stop.final and (stop.fork is None or not self.is_on(stop.fork[0])):
                stop.fork = self, number
            raise

    def was_here(self) -> bool:
        """Whether a decision of the same line has been settled, as in a loop of Python's."""
        here = user_location()
        seen = any(here is None if loc is None else loc.same_line(here) for _, _, loc in self.marks.values())
        return seen or self.outer is not None and self.outer.was_here()

    @property
    def decision(self) -> Optional[Tuple["Path", int]]:
        """The decision that is being joined."""
        return None if self.joined is None else (self, self.joined)

    def decision_by(self, predicate: Value) -> Optional[Tuple["Path", int]]:
        """The decision on this path that a value has made, if it is not settled."""
        if predicate in self.asked:
            return self, self.asked[predicate]
        return None if self.outer is None else self.outer.decision_by(predicate)

    def decision_behind(self, value: Value, makers: Mapping[Value, Node]) -> Optional[Tuple["Path", int]]:
        """The nearest decision that a value follows from, and that is not settled.  makers: the nodes that make the values."""
        waiting, seen = [value], {value}
        for made in waiting:
            decision = self.decision_by(made)
            if decision is not None:
                return decision
            operands = [v for v in dict.fromkeys(makers[made].inputs if made in makers else ()) if v not in seen]
            waiting += operands
            seen.update(operands)
        return None

    def is_on(self, other: "Path") -> bool:
        """Whether this path is the other one or lies on it."""
        return self is other or self.outer is not None and self.outer.is_on(other)


def number_of(stop: CaptureAborted, frame: Any, sides: Mapping[int, bool]) -> Optional[int]:
    """The decision of this frame to settle next, after the capture stopped; None if there is none."""
    if stop.fork is None or stop.fork[0].frame is not frame or stop.fork[1] in sides:
        return None
    return stop.fork[1] if all(stop.fork[1] > number for number in sides) else None


def common(first: Sequence[Node], other: Sequence[Node], start: int, end: int, capture: CaptureContext,
           at: Optional[Location]) -> Dict[Value, Value]:
    """The names in ``first`` of the values that these nodes make, by their names in ``other``.  at: the line that decides."""
    names: Dict[Value, Value] = {}
    if len(other) < end:
        capture.abort(_DIFFERS, at=at)
    for node, again in zip(first[start:end], other[start:end]):
        if node.op is not again.op or [v.type for v in node.outputs] != [v.type for v in again.outputs]:
            capture.abort(_DIFFERS, at=at)
        names.update(zip(again.outputs, node.outputs))
    return names


_DIFFERS = "a part of the function does something else when it is looked at again, for a decision on array values"


class Leaf(NamedTuple):
    """One call of the function: all its nodes, and its end."""

    path: Path
    nodes: List[Node]
    end: End


class Fork(NamedTuple):
    """A decision with the number ``number``, and what each side leads to."""

    number: int
    then: Union["Fork", Leaf]
    orelse: Union["Fork", Leaf]


Tree = Union[Fork, Leaf]


class Forks:
    """The calls of the function in one capture.

    call: ``call(path)`` calls it and gives a `Leaf`, or raises.
    """

    def __init__(self, capture: CaptureContext, call: Callable[[Path], Leaf]):
        self.capture, self.call, self.count = capture, call, 1

    def ends(self) -> Tuple[End, ...]:
        """Capture everything; the graph under construction then holds the whole, and these are its ends."""
        tree = self._tree()
        if isinstance(tree, Leaf):
            return (tree.end,)
        names: Dict[int, Dict[Value, Value]] = {id(leaf): {} for leaf in leaves(tree)}
        self._unify(tree, 0, names)
        self.capture.builder, self.capture.root.nodes = self.capture.root, []
        ends = _Merged(self.capture, names).emit(tree, 0)
        shared: Dict[Value, EscapingVariable] = {}
        for record in [record for end in ends for record in end.variables]:
            known = shared.setdefault(record.value, record)
            if (known.requires_grad, known.connected) != (record.requires_grad, record.connected):
                self.capture.abort("whether a Variable requires a gradient depends on a decision on array values")
            known.early = tuple(dict.fromkeys([*known.early, *record.early]))
        return tuple([renamed(end, {}, shared=shared) for end in ends])

    def _tree(self) -> Tree:
        """All calls; where there are too many ends, calls of the functions that decide are captured by themselves."""
        while True:
            try:
                return self._explore({})
            except CaptureAborted as stop:
                reason = stop
            if self.count < _MOST_ENDS or reason.fork is None or not self.capture.set_apart(reason):
                raise reason
            self.count = 1

    def _explore(self, sides: Dict[int, bool]) -> Tree:
        try:
            return self.call(Path(sides))
        except CaptureAborted as stop:
            reason = stop
        number = number_of(reason, None, sides)
        while number is not None and self.count < _MOST_ENDS:
            self.count += 1
            try:
                return Fork(number, self._explore({**sides, number: True}), self._explore({**sides, number: False}))
            except CaptureAborted as stop:      # a decision before this one must be settled first
                reason = stop
            number = number_of(reason, None, sides)
        raise reason

    def _unify(self, tree: Tree, start: int, names: Dict[int, Dict[Value, Value]]) -> None:
        """What the leaves of a fork have in common gets the names of the first of them."""
        if isinstance(tree, Leaf):
            return
        first, *others = leaves(tree)
        end, _, at = first.path.marks[tree.number]
        for leaf in others:
            names[id(leaf)].update(common(first.nodes, leaf.nodes, start, end, self.capture, at))
        self._unify(tree.then, end, names)
        self._unify(tree.orelse, end, names)


def leaves(tree: Tree) -> List[Leaf]:
    """The leaves, those of the true sides first."""
    return [tree] if isinstance(tree, Leaf) else leaves(tree.then) + leaves(tree.orelse)


class _Merged:
    """Writes the nodes of a tree into the graph.  names: per leaf, what its values are called in the whole."""

    def __init__(self, capture: CaptureContext, names: Dict[int, Dict[Value, Value]]):
        self.capture, self.names = capture, names

    def emit(self, tree: Tree, start: int) -> List[End]:
        """Add the nodes from ``start``; gives the ends, in values that can be read where the nodes stand."""
        builder = self.capture.builder
        leaf = leaves(tree)[0]
        if isinstance(tree, Leaf):
            builder.nodes += self._nodes(tree, start, len(tree.nodes))
            return [self._end(tree)]
        place, predicate, _ = leaf.path.marks[tree.number]
        predicate = self.names[id(leaf)].get(predicate, predicate)
        builder.nodes += self._nodes(leaf, start, place)
        sides = []
        for side in (tree.then, tree.orelse):
            with self.capture.staging.region() as nodes:
                ends = self.emit(side, place)
            sides.append(_Side(nodes, ends))
        builder.loc = leaf.path.marks[tree.number][2]
        for step in range(max(len(side.chunks) for side in sides)):
            self._branch(predicate, sides, step)
        return [renamed(end, side.outside, ((predicate, taken),))
                for side, taken in zip(sides, (True, False)) for end in side.ends]

    def _branch(self, predicate: Value, sides: Sequence["_Side"], step: int) -> None:
        """One ``if_`` with a chunk of each side; what the other side does not have, it leaves open."""
        parts = [side.nodes(step) for side in sides]
        wanted = [side.wanted(step) for side in sides]
        results = []
        for part, own in zip(parts, wanted):
            with self.capture.staging.region() as extra:
                results.append([v if values is own else OPS["nothing"](type=v.type) for values in wanted for v in values])
            part += extra
        captured = free_values([node for part in parts for node in part], [v for values in results for v in values])
        builder = self.capture.builder
        regions = tuple(close(builder, part, values, captured, name)
                        for part, values, name in zip(parts, results, ("then", "orelse")))
        made = iter(builder.add(OPS["if_"], (predicate, *captured), {}, regions, name="forked"))
        for side, values in zip(sides, wanted):
            side.outside.update(zip(values, made))

    def _nodes(self, leaf: Leaf, start: int, end: int) -> List[Node]:
        names = self.names[id(leaf)]
        return [with_inputs(node, tuple([names.get(v, v) for v in node.inputs])) for node in leaf.nodes[start:end]]

    def _end(self, leaf: Leaf) -> End:
        return renamed(leaf.end, self.names[id(leaf)])


class _Side:
    """One side of a fork, in chunks.  A Variable that leaves the function, and on which another one depends, ends a chunk,
    because the user can cut the graph there; so does one that the host has seen, because what follows may fail.

    outside: what the values of earlier chunks are called outside.
    """

    def __init__(self, nodes: List[Node], ends: List[End]):
        self.ends, self.chunks = ends, [[]]      # type: ignore[var-annotated]
        self.outside: Dict[Value, Value] = {}
        leaving = {r.value for end in ends for r in end.variables if r.requires_grad}
        reached, cuts = set(leaving), {v for end in ends for r in end.variables for v in r.early}
        for node in reversed(nodes):
            if not reached.isdisjoint(node.outputs):
                reached.update(node.inputs)
                cuts |= leaving.intersection(node.inputs)
        for node in nodes:
            self.chunks[-1].append(node)
            if not cuts.isdisjoint(node.outputs):
                self.chunks.append([])

    def nodes(self, step: int) -> List[Node]:
        """The nodes of a chunk."""
        chunk = self.chunks[step] if step < len(self.chunks) else []
        return [with_inputs(node, tuple([self.outside.get(v, v) for v in node.inputs])) for node in chunk]

    def wanted(self, step: int) -> List[Value]:
        """The values made in a chunk that later ones, or the ends, read."""
        if step >= len(self.chunks):
            return []
        made = {v for node in self.chunks[step] for v in node.outputs}
        read = [v for chunk in self.chunks[step + 1:] for node in chunk for v in node.inputs]
        return list(dict.fromkeys(v for v in [*read, *(v for end in self.ends for v in end.values())] if v in made))


def renamed(end: End, names: Mapping[Value, Value], decisions: Tuple[Tuple[Value, bool], ...] = (),
            shared: Mapping[Value, EscapingVariable] = {}) -> End:
    """The end in other names, after further decisions, with one record for each Variable.  shared: of all ends."""
    made: Dict[int, Any] = {}
    records: Dict[int, EscapingVariable] = {}
    keep: List[Any] = []

    def value(old: Optional[Value]) -> Any:
        return None if old is None else names.get(old, old)

    def record(old: EscapingVariable) -> EscapingVariable:
        if id(old) not in records:
            new = EscapingVariable(value(old.value), old.requires_grad, old.connected,
                                   tuple([value(v) for v in old.early]))
            records[id(old)] = shared.get(new.value, new)
        return records[id(old)]

    def part(old: Any) -> Any:
        if isinstance(old, Build):
            if id(old) not in made:
                keep.append(old)
                made[id(old)] = old.mapped(part)
            return made[id(old)]
        return record(old) if isinstance(old, EscapingVariable) else value(old) if isinstance(old, Value) else old

    return End(decisions + tuple((value(v), taken) for v, taken in end.decisions),
               tuple([record(r) for r in end.variables]),
               tuple([replace(w, built=None if w.built is None else part(w.built)) for w in end.writes]),
               None if end.result is None else part(end.result))

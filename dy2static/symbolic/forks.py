"""Where two sides of a decision cannot be joined, the rest of the function is captured once for each side.

The function is called again from its start on the same shadows, with the decision settled; what the calls have in
common up to there becomes the part before an ``if_``, what follows becomes its branches.
"""
from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from ..errors import Location
from ..ir.graph import Node, Value
from ..ir.op import OPS
from ..passes.rewriting import with_inputs
from .aborts import CaptureAborted
from .locations import user_location
from .outcome import Build, End, EscapingVariable
from .regions import close, free_values

#: So many ends a function may have.
_MOST_ENDS = 8

#: Builds that hold no values of the graph.
_FIXED = ("const", "source", "number")


class Path:
    """The decisions outside of any block in one call of the function, numbered as they come.

    sides: how the forked ones are settled.  joined: the one that is being joined.  marks: per forked one, how many nodes
    stand before it, what decides, and the user's line.
    """

    def __init__(self, sides: Dict[int, bool]):
        self.sides, self.count = sides, 0
        self.joined: Optional[int] = None
        self.marks: Dict[int, Tuple[int, Value, Optional[Location]]] = {}
        self._settled: Dict[Value, bool] = {}

    def side(self, predicate: Value, nodes: Sequence[Node]) -> Optional[bool]:
        """How the next decision is settled; None if it is not."""
        if predicate in self._settled:
            return self._settled[predicate]
        number, self.count = self.count, self.count + 1
        if number not in self.sides:
            return None
        self.marks[number] = len(nodes), predicate, user_location()
        self._settled[predicate] = self.sides[number]
        return self.sides[number]

    @contextlib.contextmanager
    def joining(self) -> Iterator[None]:
        """What cannot be captured inside the last decision may be where the decision is settled."""
        number = self.joined = self.count - 1
        try:
            yield
            self.joined = None
        except CaptureAborted as stop:
            if stop.fork is None and not stop.again:
                stop.fork = number
            raise


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

    def __init__(self, capture: Any, call: Callable[[Path], Leaf]):
        self.capture, self.call, self.count = capture, call, 1

    def ends(self) -> Tuple[End, ...]:
        """Capture everything; the graph under construction then holds the whole, and these are its ends."""
        tree = self._explore({})
        if isinstance(tree, Leaf):
            return (tree.end,)
        names: Dict[int, Dict[Value, Value]] = {id(leaf): {} for leaf in leaves(tree)}
        self._unify(tree, 0, names)
        self.capture.builder, self.capture.root.nodes = self.capture.root, []
        ends = _Merged(self.capture, names).emit(tree, 0)
        records = {record.value: record for end in ends for record in end.variables}
        if any(record is not records[record.value] for end in ends for record in end.variables):
            self.capture.abort("whether a Variable requires a gradient depends on a decision on array values")
        return tuple(ends)

    def _explore(self, sides: Dict[int, bool]) -> Tree:
        try:
            return self.call(Path(sides))
        except CaptureAborted as stop:
            reason = stop
        while self._is_next(reason, sides):
            number, self.count = reason.fork, self.count + 1
            try:
                return Fork(number, self._explore({**sides, number: True}), self._explore({**sides, number: False}))
            except CaptureAborted as stop:      # a decision before this one must be settled first
                reason = stop
        raise reason

    def _is_next(self, stop: CaptureAborted, sides: Dict[int, bool]) -> bool:
        """Whether to go on after settling the decision that the capture stopped at."""
        if stop.fork is None or stop.fork in sides or self.count >= _MOST_ENDS:
            stop.fork = None
            return False
        return all(stop.fork > number for number in sides)

    def _unify(self, tree: Tree, start: int, names: Dict[int, Dict[Value, Value]]) -> None:
        """What the leaves of a fork have in common gets the names of the first of them."""
        if isinstance(tree, Leaf):
            return
        first, *others = leaves(tree)
        end = first.path.marks[tree.number][0]
        for leaf in others:
            if leaf.path.marks[tree.number][0] != end:
                self._differs()
            for node, other in zip(first.nodes[start:end], leaf.nodes[start:end]):
                if node.op is not other.op or [v.type for v in node.outputs] != [v.type for v in other.outputs]:
                    self._differs()
                names[id(leaf)].update(zip(other.outputs, node.outputs))
        self._unify(tree.then, end, names)
        self._unify(tree.orelse, end, names)

    def _differs(self) -> None:
        self.capture.abort("the function does something else when it is captured again")


def leaves(tree: Tree) -> List[Leaf]:
    """The leaves, those of the true sides first."""
    return [tree] if isinstance(tree, Leaf) else leaves(tree.then) + leaves(tree.orelse)


class _Merged:
    """Writes the nodes of a tree into the graph.  names: per leaf, what its values are called in the whole."""

    def __init__(self, capture: Any, names: Dict[int, Dict[Value, Value]]):
        self.capture, self.names = capture, names
        self.records: Dict[Tuple, EscapingVariable] = {}

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
        return [renamed(end, side.outside, self.records, ((predicate, taken),))
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
        return renamed(leaf.end, self.names[id(leaf)], self.records)


class _Side:
    """One side of a fork, in chunks: a Variable that leaves the function, and on which another one depends, ends a chunk,
    because the user can cut the graph there.

    outside: what the values of earlier chunks are called outside.
    """

    def __init__(self, nodes: List[Node], ends: List[End]):
        self.ends, self.chunks = ends, [[]]      # type: ignore[var-annotated]
        self.outside: Dict[Value, Value] = {}
        leaving = {r.value for end in ends for r in end.variables if r.requires_grad}
        reached, cuts = set(leaving), set()
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


def renamed(end: End, names: Dict[Value, Value], records: Dict[Tuple, EscapingVariable],
            decisions: Tuple[Tuple[Value, bool], ...] = ()) -> End:
    """The end in other names, after further decisions; one record for each Variable, also of several ends."""
    made: Dict[int, Any] = {}
    keep: List[Any] = []

    def value(old: Optional[Value]) -> Any:
        return None if old is None else names.get(old, old)

    def record(old: EscapingVariable) -> EscapingVariable:
        new = EscapingVariable(value(old.value), old.requires_grad, old.connected, value(old.early))
        return records.setdefault((new.value, new.requires_grad, new.connected, new.early), new)

    def part(old: Any) -> Any:
        if isinstance(old, Build):
            if old.kind in _FIXED:
                return old
            if id(old) not in made:
                keep.append(old)
                made[id(old)] = replace(old, parts=tuple([part(p) for p in old.parts]))
            return made[id(old)]
        if isinstance(old, EscapingVariable):
            return record(old)
        if isinstance(old, Value):
            return value(old)
        return tuple([part(p) for p in old]) if type(old) is tuple else old

    return End(decisions + tuple((value(v), taken) for v, taken in end.decisions),
               tuple([record(r) for r in end.variables]),
               tuple([replace(w, built=None if w.built is None else part(w.built)) for w in end.writes]),
               None if end.result is None else part(end.result))

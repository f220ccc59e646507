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

    sides: how the forked ones are settled.  marks: per forked one, how many nodes stand before it, what decides, and
    the user's line.
    """

    def __init__(self, sides: Dict[int, bool]):
        self.sides, self.count = sides, 0
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
        number = self.count - 1
        try:
            yield
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
        self._check_independent(tree)
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
            if stop.fork is None or stop.fork in sides or self.count >= _MOST_ENDS:
                stop.fork = None
                raise
            number, self.count = stop.fork, self.count + 1
        return Fork(number, self._explore({**sides, number: True}), self._explore({**sides, number: False}))

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

    def _check_independent(self, tree: Fork) -> None:
        """Refuse Variables that leave from behind a fork and depend on each other: the user could cut between them."""
        for leaf in leaves(tree):
            begin = min(place for place, _, _ in leaf.path.marks.values())
            behind = {v for node in leaf.nodes[begin:] for v in node.outputs}
            ends = {r.value for r in leaf.end.variables if r.requires_grad and r.value in behind}
            reached = set(ends)
            for node in reversed(leaf.nodes[begin:]):
                if not reached.isdisjoint(node.outputs):
                    reached.update(node.inputs)
                    if not ends.isdisjoint(node.inputs):
                        self.capture.abort("Variables that leave the function after a decision on array values depend on "
                                           "each other, and the two sides cannot be joined")


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
            sides.append((nodes, ends, _wanted(nodes, ends)))
        builder.loc = leaf.path.marks[tree.number][2]
        made = self._branch(predicate, sides)
        ends = []
        for (_, inner, wanted), taken in zip(sides, (True, False)):
            outside = {v: made.pop(0) for v in wanted}
            ends += [renamed(end, outside, self.records, ((predicate, taken),)) for end in inner]
        return ends

    def _branch(self, predicate: Value, sides: List[Tuple[List[Node], List[End], List[Value]]]) -> List[Value]:
        results: List[List[Value]] = []
        for k, (nodes, _, _) in enumerate(sides):
            outputs: List[Value] = []
            for j, (_, _, wanted) in enumerate(sides):
                for value in wanted:
                    if j != k:
                        with self.capture.staging.region() as extra:
                            value = OPS["nothing"](type=value.type)
                        nodes += extra
                    outputs.append(value)
            results.append(outputs)
        captured = free_values([n for nodes, _, _ in sides for n in nodes], [v for part in results for v in part])
        builder = self.capture.builder
        regions = tuple(close(builder, nodes, part, captured, name)
                        for (nodes, _, _), part, name in zip(sides, results, ("then", "orelse")))
        return list(builder.add(OPS["if_"], (predicate, *captured), {}, regions, name="forked"))

    def _nodes(self, leaf: Leaf, start: int, end: int) -> List[Node]:
        names = self.names[id(leaf)]
        return [with_inputs(node, tuple([names.get(v, v) for v in node.inputs])) for node in leaf.nodes[start:end]]

    def _end(self, leaf: Leaf) -> End:
        return renamed(leaf.end, self.names[id(leaf)], self.records)


def _wanted(nodes: Sequence[Node], ends: Sequence[End]) -> List[Value]:
    """The values made by these nodes that the ends read."""
    made = {v for node in nodes for v in node.outputs}
    return list(dict.fromkeys(v for end in ends for v in end.values() if v in made))


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

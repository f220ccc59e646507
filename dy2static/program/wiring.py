"""How the FunctionNodes and the updates of a program are wired, as data: numbers of inputs, results, Variables and writes."""
from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from ..ir.graph import Value
from ..record.inputs import VariableInput
from ..record.outcome import Outcome
from .in_place import InPlace, Place
from .nodes import Differentiation, PlannedNodes, PlannedSegment


class Use(NamedTuple):
    """How one segment is wired: the inputs of its node, what it holds, and which Variables it makes.

    name: of its node.
    inputs: ("input", i) of the graph, ("variable", k) of the escaping Variables, or ("hidden", j) of earlier ones.
    held: ("node", i): the VariableNode of input i; ("input", i): its value; ("result", k): a result of the forward.
    outputs: ("variable", k), or ("hidden", j, result) for a value that only later segments read.
    """

    name: str
    inputs: Tuple[Tuple, ...]
    held: Tuple[Tuple, ...]
    outputs: Tuple[Tuple, ...]


class Wiring(NamedTuple):
    """The wiring of a program.

    uses: the segments of a call that succeeds, which leaves these Variables behind: their numbers are in ``left``.
    rescue: the segments of one that fails; None if they are the same.
    places: of each update, where its operands are.  writes: the numbers of the writes that the updates do.
    constant_bytes: of the arrays that the graph holds.
    """

    uses: Tuple[Use, ...]
    rescue: Optional[Tuple[Use, ...]]
    left: Tuple[int, ...]
    places: Tuple[Tuple[Place, ...], ...]
    writes: Tuple[int, ...]
    constant_bytes: int


def wiring_of(outcome: Outcome, parts: Differentiation, in_place: InPlace) -> Wiring:
    """The wiring of a program."""
    graph = parts.graph
    results = {v: k for k, v in reversed(list(enumerate([*graph.outputs, *parts.saved])))}
    uses = _Uses(outcome, parts, parts.nodes, results).all()
    rescue = None if parts.rescue is parts.nodes else _Uses(outcome, parts, parts.rescue, results).all()
    writes = [k for k, write in enumerate(outcome.ends[0].writes) if write in in_place.writes]
    constants = [node.attrs["value"] for node in graph.walk() if node.op.name == "constant"]
    return Wiring(uses, rescue, tuple([k for k, record in enumerate(outcome.variables) if record in parts.nodes.variables]),
                  tuple([places for _, places in in_place.updates]), tuple(writes), sum([int(array.nbytes) for array in constants]))


class _Uses:
    """Where the inputs, outputs and held values of the segments of one program are."""

    def __init__(self, outcome: Outcome, parts: Differentiation, nodes: PlannedNodes, results: Dict[Value, int]):
        self.outcome, graph = outcome, parts.graph
        self.results, self.segments, self.count = results, nodes.segments, len(nodes.segments)
        position = {value: i for i, value in enumerate(outcome.graph.outputs)}
        self.variable = {position[r.value]: k for k, r in enumerate(outcome.variables)}
        self.leaf = {v: next(k for i, k in self.variable.items() if graph.outputs[i] is v) for v in nodes.leaves}
        self.made: Dict[Tuple[int, int], Tuple] = {}

    def all(self) -> Tuple[Use, ...]:
        """The wiring of all segments."""
        return tuple([self._use(k, planned) for k, planned in enumerate(self.segments)])

    def _use(self, number: int, planned: PlannedSegment) -> Use:
        part, plan = planned.part, planned.plan
        origins = dict(zip(part.graph.inputs, part.inputs))
        outputs = [self._output(number, j, index, part.graph.outputs[j]) for j, index in enumerate(part.outputs)]
        inputs: List[Tuple] = [self._input(part.graph.inputs[i], origins) for i in plan.targets]
        return Use(self._name(number), tuple(inputs), tuple([self._held(v, origins) for v in plan.held]), tuple(outputs))

    def _name(self, number: int) -> str:
        name = self.outcome.graph.name
        return name if self.count == 1 else f"{name} ({number + 1} of {self.count})"

    def _input(self, value: Value, origins: Mapping[Value, Tuple]) -> Tuple:
        if value in self.leaf:
            return "variable", self.leaf[value]
        origin = origins[value]
        return origin if origin[0] == "input" else self.made[origin]

    def _held(self, value: Value, origins: Mapping[Value, Tuple]) -> Tuple:
        origin = origins.get(value)
        if origin is None or origin[0] != "input" or value in self.leaf:
            return "result", self.results[value]
        return ("node" if isinstance(self.outcome.inputs[origin[1]], VariableInput) else "input"), origin[1]

    def _output(self, number: int, j: int, index: Optional[int], value: Value) -> Tuple:
        if index is not None:
            self.made[number, j] = made = "variable", self.variable[index]
            return made
        self.made[number, j] = hidden = "hidden", len(self.made)
        return (*hidden, self.results[value])

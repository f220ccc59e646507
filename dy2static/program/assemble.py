"""A program put together: its forward, the wiring of its FunctionNodes, and the entry around them."""
from __future__ import annotations

import collections
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ..backends.base import Executable
from ..ir.graph import Graph, Value
from ..record.inputs import VariableInput
from ..record.outcome import Outcome
from ..runtime.host_calls import StateCall
from ..runtime.program import Program
from ..runtime.segment import Segment
from . import hotpath
from .backward import arenas_of
from .entry import Entry, SegmentUse, UpdateUses, compile_entry
from .guards import Guards, compile_diagnosis
from .nodes import PlannedNodes, PlannedSegment
from .recipe import Recipe


def assemble(recipe: Recipe, forward: Executable) -> Program:
    """The program of a recipe whose forward has been compiled: its entry, its segments and what is told about it."""
    outcome, nodes, graph = recipe.outcome, recipe.parts, recipe.parts.graph
    results = {v: k for k, v in reversed(list(enumerate([*graph.outputs, *nodes.saved])))}
    pool = arenas_of(forward)
    uses = _Wiring(recipe, nodes.nodes, results).uses()
    rescue = uses if nodes.rescue is nodes.nodes else _Wiring(recipe, nodes.rescue, results).uses()
    call, text = compile_entry(Entry(outcome, forward.call, pool, uses, rescue, nodes.nodes.variables, forward.results,
                                     forward.origins, _update_uses(recipe, forward)))
    if recipe.target.backend.has_native_calls:
        hotpath.note(call)
    counts = {"segments": len(uses), **_counts(outcome.graph), "native": forward.native_nodes}
    size = sum(int(node.attrs["value"].nbytes) for node in graph.walk() if node.op.name == "constant")
    return Program(call, _Diagnosis(outcome), forward.source, text, graph, outcome.guards,
                   tuple(use.segment for use in uses), pool, recipe, counts, outcome.events, _signature(outcome), size,
                   native_code=forward.native_code, footprint=forward.footprint)


def _update_uses(recipe: Recipe, forward: Executable) -> UpdateUses:
    """The functions of the updates, each with where all of its operands are."""
    updates = recipe.in_place.updates
    calls = tuple([(call.call, tuple([place for k in call.members for place in updates[k][1]])) for call in forward.updates])
    return UpdateUses(calls, recipe.in_place.writes)


def _counts(graph: Graph) -> Dict[str, int]:
    """How many nodes there are at all levels, of these kinds, and how many decisions and loops are staged."""
    nodes = list(graph.walk())
    stores = [node for node in nodes if isinstance(node.attrs.get("call"), StateCall)]
    found = collections.Counter([node.op.name for node in nodes])
    counts = {kind: found[kind] for kind in _KINDS}
    counts["host_call"] -= len(stores)
    return {"nodes": len(nodes), "regions": sum(bool(node.regions) for node in nodes), **counts, "stores": len(stores)}


#: What runs as the function it is, instead of as ops of ours.
_KINDS = ("host_call", "opaque", "numpy_call", "checked_call", "sized_call")


class _Diagnosis:
    """``diagnose(args, kwargs)`` of a program, compiled when it is first asked."""

    def __init__(self, outcome: Outcome):
        self.outcome = outcome
        self.function: Any = None

    def __call__(self, args: Tuple, kwargs: Mapping[str, Any]) -> Sequence[int]:
        if self.function is None:
            self.function = compile_diagnosis(Guards(self.outcome))
        return self.function(args, kwargs)


class _Wiring:
    """Where the inputs, outputs and held values of the segments of one program are."""

    def __init__(self, recipe: Recipe, nodes: PlannedNodes, results: Dict[Value, int]):
        self.outcome = outcome = recipe.outcome
        graph, self.target = recipe.parts.graph, recipe.target
        self.results, self.segments, self.count = results, nodes.segments, len(nodes.segments)
        position = {value: i for i, value in enumerate(outcome.graph.outputs)}
        self.variable = {position[r.value]: k for k, r in enumerate(outcome.variables)}
        self.leaf = {v: next(k for i, k in self.variable.items() if graph.outputs[i] is v) for v in nodes.leaves}
        self.made: Dict[Tuple[int, int], Tuple] = {}

    def uses(self) -> List[SegmentUse]:
        """The wiring of all segments."""
        return [self._use(k, planned) for k, planned in enumerate(self.segments)]

    def _use(self, number: int, planned: PlannedSegment) -> SegmentUse:
        part, plan = planned.part, planned.plan
        origins = dict(zip(part.graph.inputs, part.inputs))
        outputs = [self._output(number, j, index, part.graph.outputs[j]) for j, index in enumerate(part.outputs)]
        return SegmentUse(Segment(self._name(number), plan, self.target),
                          [self._input(part.graph.inputs[i], origins) for i in plan.targets],
                          [self._held(v, origins) for v in plan.held], outputs)

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


def _signature(outcome: Outcome) -> str:
    """The inputs of a program in words."""
    return ", ".join(f"{item.value.name}: {item.value.type}" for item in outcome.inputs)

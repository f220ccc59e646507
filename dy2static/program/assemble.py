"""A program put together: its forward, the wiring of its FunctionNodes, and the entry around them."""
from __future__ import annotations

import collections
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ..backends.base import Executable
from ..ir.graph import Graph
from ..record.outcome import Outcome
from ..runtime.host_calls import StateCall
from ..runtime.program import Program
from ..runtime.segment import Segment
from . import hotpath
from .backward import arenas_of
from .entry import Entry, SegmentUse, UpdateUses, compile_entry
from .guards import Guards, compile_diagnosis
from .keeping import part_of
from .nodes import PlannedNodes, SegmentPlan
from .recipe import Recipe
from .wiring import Use


def assemble(recipe: Recipe, forward: Executable) -> Program:
    """The program of a recipe whose forward has been compiled: its entry, its segments and what is told about it."""
    outcome, wiring = recipe.outcome, recipe.wiring
    pool = arenas_of(forward)
    uses = _uses(recipe, wiring.uses, "nodes")
    rescue = uses if wiring.rescue is None else _uses(recipe, wiring.rescue, "rescue")
    left = {outcome.variables[k] for k in wiring.left}
    call, text = compile_entry(Entry(outcome, forward.call, pool, uses, rescue, left, forward.results, forward.origins,
                                     _update_uses(recipe, forward)))
    if recipe.target.backend.has_native_calls:
        hotpath.note(call)
    counts = {"segments": len(uses), **_counts(outcome.graph), "native": forward.native_nodes}
    return Program(call, _Diagnosis(outcome), forward.source, text, outcome.guards,
                   tuple(use.segment for use in uses), pool, recipe, counts, outcome.events, _signature(outcome),
                   wiring.constant_bytes, native_text=forward.native_text, footprint=forward.footprint)


def _uses(recipe: Recipe, uses: Sequence[Use], which: str) -> List[SegmentUse]:
    """The segments of a program.  which: the ``nodes`` or the ``rescue`` of its differentiated graph."""
    def segment(number: int, use: Use) -> Segment:
        def plan() -> SegmentPlan:
            nodes: PlannedNodes = getattr(recipe.parts, which)
            return nodes.segments[number].plan
        return Segment(use.name, plan, recipe.target, part_of(recipe.key, which, number))
    return [SegmentUse(segment(number, use), use.inputs, use.held, use.outputs) for number, use in enumerate(uses)]


def _update_uses(recipe: Recipe, forward: Executable) -> UpdateUses:
    """The functions of the updates, each with where all of its operands are."""
    wiring = recipe.wiring
    calls = tuple([(call.call, tuple([place for k in call.members for place in wiring.places[k]])) for call in forward.updates])
    return UpdateUses(calls, frozenset([recipe.outcome.ends[0].writes[k] for k in wiring.writes]), forward.settle)


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


def _signature(outcome: Outcome) -> str:
    """The inputs of a program in words."""
    return ", ".join(f"{item.value.name}: {item.value.type}" for item in outcome.inputs)

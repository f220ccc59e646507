"""The whole compiler in one place: a Python function and a call of it in, a program out."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

import chainer

from . import passes
from .codegen.host import Entry, SegmentUse, compile_diagnosis, compile_entry
from .codegen.numpy import NumpyFunction, emit
from .conversion import convert
from .ir.graph import Graph, Value
from .passes.autodiff import active_values
from .passes.extract import extract
from .runtime import hooks
from .runtime.program import Program
from .runtime.segment import ArenaPool, BackwardProgram, Segment
from .symbolic.capture import Capture
from .symbolic.outcome import Outcome
from .symbolic.patches import capturing


def compile_call(function: Callable, args: Tuple, kwargs: Mapping[str, Any], varying: Set[Tuple] = frozenset(),
                 observed: Mapping[Tuple, Tuple] = {}) -> Program:
    """The program for one call: source → transformers → symbolic run → graph → passes → generated Python.

    Nothing real is changed.  Raises `CaptureAborted` where the call cannot be put into a graph, and whatever the
    user's code raises.
    """
    outcome = trace(function, args, kwargs, varying, observed)      # converts user code as it meets it
    graph = passes.run(passes.CLEAN, outcome.graph)
    plans = plan_segments(outcome, graph)
    forward = emit(graph, name="forward", escaping=set(graph.outputs), saved=saved_values(plans))
    return assemble(outcome, graph, plans, forward)


def trace(function: Callable, args: Tuple, kwargs: Mapping[str, Any], varying: Set[Tuple],
          observed: Mapping[Tuple, Tuple]) -> Outcome:
    """The symbolic run of one call."""
    capture = Capture(varying, observed, dict(chainer.config._local.__dict__))
    try:
        with capturing(capture):
            return capture.run(function, args, kwargs)
    finally:
        capture.world.dispose()


# --- differentiation --------------------------------------------------------------------------------------------------

class SegmentPlan:
    """What is known of one FunctionNode before its backward is needed.

    graph: what it computes.  targets: the inputs of the graph that are inputs of the node.  held: the values its
    node keeps for backward, in order; those that are inputs of the graph are held by reference.
    """

    def __init__(self, graph: Graph, targets: Sequence[int]):
        self.graph, self.targets = graph, tuple(targets)
        joint = passes.autodiff(graph, self.targets, range(len(graph.outputs))).graph
        parts = passes.split(joint, graph)
        self.saved = parts.saved
        self.held: Tuple[Value, ...] = tuple(dict.fromkeys(
            parts.saved + tuple(graph.inputs[i] for i in parts.inputs) + tuple(graph.outputs[j] for j in parts.outputs)))


class PlannedSegment:
    """A segment of a program with its plan and its place: origins and outputs as `passes.segments` gives them."""

    def __init__(self, part: passes.Segment, active: Set[Value]):
        self.part = part
        self.plan = SegmentPlan(part.graph, [i for i, v in enumerate(part.graph.inputs) if v in active])


def plan_segments(outcome: Outcome, graph: Graph) -> Tuple[Tuple[Value, ...], List[PlannedSegment]]:
    """The leaves made inside that are inputs of nodes, and the segments of a program."""
    position = {value: i for i, value in enumerate(outcome.graph.outputs)}
    escaping = [position[r.value] for r in outcome.variables if r.connected]
    leaves = tuple(dict.fromkeys(graph.outputs[position[r.value]] for r in outcome.variables
                                 if not r.connected and r.requires_grad))
    inputs = [graph.inputs[i] for i, item in enumerate(outcome.inputs) if item.requires_grad]
    active = active_values(graph, [*inputs, *leaves])
    cut = graph.with_(inputs=graph.inputs + leaves,
                      nodes=tuple(n for n in graph.nodes if not any(v in leaves for v in n.outputs)))
    return leaves, [PlannedSegment(part, active) for part in passes.segments(cut, escaping, active)]


def saved_values(plans: Tuple[Tuple[Value, ...], List[PlannedSegment]]) -> Tuple[Value, ...]:
    """What the forward returns besides its outputs: all that the segments keep."""
    return tuple(dict.fromkeys(v for planned in plans[1] for v in (*planned.plan.saved, *planned.part.graph.outputs)))


def compile_backward(segment: Segment, targets: Tuple[int, ...], given: Tuple[bool, ...], again: bool) -> BackwardProgram:
    """The gradients of a segment for some of its inputs, from gradients given for some of its outputs.

    again: also make it differentiable, as a segment of its own.
    """
    plan: SegmentPlan = segment.plan
    given_outputs = [j for j, is_given in enumerate(given) if is_given]
    gradients = passes.autodiff(plan.graph, [plan.targets[i] for i in targets], given_outputs)
    joint = gradients.graph
    arriving = joint.inputs[len(plan.graph.inputs):]
    following = None
    extras: Tuple[Value, ...] = ()
    if again and joint.outputs:
        following = SegmentPlan(joint, [*plan.targets, *range(len(plan.graph.inputs), len(joint.inputs))])
        extras = tuple(v for v in following.held if v not in plan.held and v not in arriving)
    wanted = joint.with_(outputs=joint.outputs + extras)
    backward = passes.run(passes.CLEAN, extract(wanted, (*plan.held, *arriving)))
    function = emit(backward, name="backward", escaping=set(backward.outputs[:len(joint.outputs)]),
                    saved=())
    origins = {v: ("given", i) for i, v in enumerate(arriving)}
    origins.update({v: ("held", k) for k, v in enumerate(plan.held)})
    program = BackwardProgram(function.bind(), tuple(origins[v] for v in backward.inputs), gradients.connected,
                              _pool(function), source=function.source)
    if following is not None:
        origins.update({v: ("extra", k) for k, v in enumerate(extras)})
        program.again = Segment(f"{segment.name}.backward", following)
        program.held = tuple(origins[v] for v in following.held)
    return program


# --- putting a program together -----------------------------------------------------------------------------------------

def _pool(function: NumpyFunction) -> Optional[ArenaPool]:
    return ArenaPool(function.make_arena) if function.slots else None


def assemble(outcome: Outcome, graph: Graph, plans: Tuple[Tuple[Value, ...], List[PlannedSegment]],
             forward: NumpyFunction) -> Program:
    """The program of an outcome: its entry, its segments and what is told about it."""
    leaves, planned = plans
    results = {v: k for k, v in reversed(list(enumerate([*graph.outputs, *saved_values(plans)])))}
    pool = _pool(forward)
    uses = _wire(outcome, graph, leaves, planned, results)
    entry = Entry(outcome, forward.bind(), pool, uses, len(forward.results), bool(planned))
    call, text = compile_entry(entry)
    diagnosis = Entry(outcome, None, None, (), 0, False)
    counts = {"nodes": len(graph.nodes), "segments": len(planned)}
    for kind in ("host_call", "opaque", "numpy_call"):
        counts[kind] = sum(node.op.name == kind for node in graph.nodes)
    diagnose: List[Any] = []

    def lazily(args: Tuple, kwargs: Mapping[str, Any]) -> Sequence[int]:
        if not diagnose:
            diagnose.append(compile_diagnosis(diagnosis))
        return diagnose[0](args, kwargs)
    size = sum(int(array.nbytes) for array in forward.make_arena()) if pool is not None else 0
    return Program(call, lazily, forward.source, text, graph, outcome.guards, tuple(u.segment for u in uses), pool, counts,
                   outcome.events, _signature(outcome), size)


def _wire(outcome: Outcome, graph: Graph, leaves: Tuple[Value, ...], planned: List[PlannedSegment],
          results: Dict[Value, int]) -> List[SegmentUse]:
    """How the nodes of the segments are connected to the inputs, the Variables and each other."""
    position = {value: i for i, value in enumerate(outcome.graph.outputs)}
    variable = {position[r.value]: k for k, r in enumerate(outcome.variables)}
    leaf = {v: next(k for i, k in variable.items() if graph.outputs[i] is v) for v in leaves}
    made: Dict[Tuple[int, int], Tuple] = {}
    uses = []
    for number, item in enumerate(planned):
        part, plan = item.part, item.plan
        where = dict(zip(part.graph.inputs, part.inputs))

        def entering(value: Value) -> Tuple:
            origin = where[value]
            if value in leaf:
                return "variable", leaf[value]
            return origin if origin[0] == "input" else made[origin]

        targets = {part.graph.inputs[i] for i in plan.targets}

        def holding(value: Value) -> Tuple:
            origin = where.get(value)
            if origin is None or origin[0] != "input" or value in leaf:
                return "result", results[value]
            is_variable = outcome.inputs[origin[1]].kind == "variable"
            return ("node", origin[1]) if is_variable else ("input", origin[1])
        outputs = []
        for j, index in enumerate(part.outputs):
            output = ("hidden", len(made), results[part.graph.outputs[j]]) if index is None else ("variable", variable[index])
            made[number, j] = output[:2]
            outputs.append(output)
        segment = Segment(part.graph.name, plan)
        uses.append(SegmentUse(segment, [entering(v) for v in part.graph.inputs if v in targets],
                               [holding(v) for v in plan.held], outputs))
    return uses


def _signature(outcome: Outcome) -> str:
    """The inputs of a program in words."""
    return ", ".join(f"{item.value.name}: {item.value.type}" for item in outcome.inputs)


def install() -> None:
    """Give the run time its three doors to the compiler."""
    hooks.convert = convert
    hooks.compile_backward = compile_backward


"""The FunctionNodes of a program and their backward programs, made when they are first needed."""
from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence, Set, Tuple

from .. import passes
from ..ir.graph import Graph, Value
from ..passes.autodiff import active_values
from ..passes.extract import extract
from ..runtime.segment import ArenaPool, BackwardProgram, Segment
from ..symbolic.outcome import Outcome
from .numpy import NumpyFunction, emit


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


class Differentiation(NamedTuple):
    """The FunctionNodes of a program.

    leaves: values of Variables made inside that the user can get hold of: inputs of nodes, where no gradient passes.
    segments: in an order in which each only reads from earlier ones.
    saved: what the forward returns besides its outputs, because a node keeps it or passes it on.
    """

    leaves: Tuple[Value, ...]
    segments: List[PlannedSegment]
    saved: Tuple[Value, ...]


def differentiate(outcome: Outcome, graph: Graph) -> Differentiation:
    """Where the FunctionNodes of a program are, and what they keep."""
    position = {value: i for i, value in enumerate(outcome.graph.outputs)}
    escaping = [position[r.value] for r in outcome.variables if r.connected]
    leaves = tuple(dict.fromkeys(graph.outputs[position[r.value]] for r in outcome.variables
                                 if not r.connected and r.requires_grad))
    inputs = [graph.inputs[i] for i, item in enumerate(outcome.inputs) if item.requires_grad]
    active = active_values(graph, [*inputs, *leaves])
    cut = graph.with_(inputs=graph.inputs + leaves,
                      nodes=tuple(n for n in graph.nodes if not any(v in leaves for v in n.outputs)))
    planned = [PlannedSegment(part, active) for part in passes.segments(cut, escaping, active)]
    saved = dict.fromkeys(v for item in planned for v in (*item.plan.saved, *item.part.graph.outputs))
    return Differentiation(leaves, planned, tuple(saved))


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
    function = emit(backward, name="backward", escaping=set(backward.outputs[:len(joint.outputs)]))
    origins = {v: ("given", i) for i, v in enumerate(arriving)}
    origins.update({v: ("held", k) for k, v in enumerate(plan.held)})
    program = BackwardProgram(function.bind(), tuple(origins[v] for v in backward.inputs), gradients.connected,
                              pool_of(function), source=function.source, origins=function.origins)
    if following is not None:
        origins.update({v: ("extra", k) for k, v in enumerate(extras)})
        program.again = Segment(f"{segment.name}.backward", following)
        program.held = tuple(origins[v] for v in following.held)
    return program


def pool_of(function: NumpyFunction) -> Optional[ArenaPool]:
    """A pool of arenas for a generated function; None if it needs none."""
    return ArenaPool(function.make_arena) if function.slots else None

"""Where the FunctionNodes of a program are, and what they keep for their backward programs."""
from __future__ import annotations

import functools
from dataclasses import replace
from typing import Collection, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from .. import passes
from ..backends.extents import extents_of
from ..errors import Location
from ..heap.aborts import CaptureAborted
from ..ir.building import Builder
from ..ir.graph import Graph, Node, Value
from ..ir.types import Tensor
from ..options import Recompute
from ..passes.differentiation.activity import active_values, has_gradient
from ..passes.differentiation.cotangents import continue_graph
from ..passes.effects import may_write
from ..passes.memory.aliases import held_values
from ..record.inputs import ArrayInput, VariableInput
from ..record.outcome import Outcome
from ..record.variables import EscapingVariable
from ..record.writes import WriteArray
from .survivors import survivors


class SegmentPlan:
    """What is known of one FunctionNode before its backward is needed.

    graph: what it computes, with what gradients read of its branches and loops.
    targets: the inputs of the graph that are inputs of the node.
    connected: per target, whether a gradient may reach it.
    extents: per symbol in its sizes, the value that hands it on to the backward.
    held: the values its node keeps for backward, in order; those that are inputs of the graph are held by reference.
        For a backward, it is told which values the node that is differentiated holds already.
    recompute: what is computed again in the backward instead of being held: see `passes.Saving`.  recomputes: whether anything is.
    fixed: values that nothing may be computed from again, because the call writes into their arrays.
    spent: where the function changed what a backward would read; None where it can be differentiated.
    intact: the outputs of the graph whose gradients read nothing of that.
    namer: names what branches and loops give besides; it is the same one for all segments of a graph.
    """

    def __init__(self, graph: Graph, targets: Sequence[int], extents: Optional[Mapping[str, Value]] = None,
                 held: Sequence[Value] = (), recompute: Recompute = "none", fixed: Collection[Value] = (),
                 namer: Optional[Builder] = None):
        self.targets = tuple(targets)
        given = [j for j, v in enumerate(graph.outputs) if has_gradient(v.type)]
        gradients = passes.autodiff(graph, self.targets, given, namer)
        # those of loops are of the graph before it also gave what gradients read
        self._of_all = (self.targets, given, gradients) if not any(node.regions for node in graph.nodes) else None
        self.graph = graph = gradients.forward
        self.connected = gradients.connected
        self.recompute, self.fixed, self.recomputes = recompute, fixed, False
        self.spent: Optional[Location] = None
        self.intact: Tuple[int, ...] = ()
        parts = passes.partition_joint(gradients.graph, graph, held=held)
        if recompute != "none":
            parts = self._with_less(parts, gradients.graph, held)
        self.extents = extents_of(graph) if extents is None else extents
        self.saved = parts.saved + tuple(self.extents.values())
        self.held: Tuple[Value, ...] = tuple(dict.fromkeys(
            self.saved + tuple(graph.inputs[i] for i in parts.inputs) + tuple(graph.outputs[j] for j in parts.outputs)))

    def spend(self, at: Location, intact: Tuple[int, ...]) -> None:
        """The function changed what a backward would read, there: without intact outputs, keep nothing for one, nor its graph."""
        self.spent, self.intact = at, intact
        if not intact:
            self.held, self.saved, self._of_all = (), (), None

    def _with_less(self, parts: passes.JointPartition, joint: Graph, held: Sequence[Value]) -> passes.JointPartition:
        """The split of the joint graph with less that is saved."""
        saving = passes.Saving(self.graph, parts.saved, {*held, *self.graph.outputs}, self.fixed,
                               passes.deciding_values(joint))
        kept = saving.kept(self.recompute)
        self.recomputes = kept is not None
        return parts if kept is None else passes.partition_joint(joint, self.graph, kept=kept, held=held)

    def gradients(self, targets: Sequence[int], given: List[int]) -> passes.Gradients:
        """The result of `passes.differentiation.autodiff`; that for all targets and all outputs is already known."""
        if self._of_all is not None and (tuple(targets), given) == self._of_all[:2]:
            return self._of_all[2]
        return passes.autodiff(self.graph, targets, given)


class PlannedSegment:
    """A segment of a program with its plan and its place: origins and outputs as `passes.differentiation.segments` gives them.

    borrowed: values it holds that are made in the forward, but are neither inputs nor in any segment with gradients.
    """

    def __init__(self, part: passes.Segment, active: Set[Value], recompute: Recompute, fixed: Collection[Value],
                 namer: Builder, spent: Optional[Location], intact: Collection[int]):
        self.part = part
        plan = functools.partial(SegmentPlan, part.graph, recompute=recompute, fixed=fixed, namer=namer)
        targets = [i for i, v in enumerate(part.graph.inputs) if v in active]
        reaching = _reaching(part.graph, active)
        targets = [i for i in targets if part.graph.inputs[i] in reaching] or targets
        self.plan = plan(targets)
        # what is only read past a `stop_gradient` is no input of the node: unchaining must not go on there
        connected = tuple(i for i, c in zip(targets, self.plan.connected) if c) or tuple(
            i for i in targets if part.inputs[i][0] != -1) or self.plan.targets
        if connected != self.plan.targets and any(node.regions for node in part.graph.nodes):
            self.plan = plan(connected)                         # branches and loops keep nothing for them either
        self.plan.targets = connected
        if spent is not None:
            self.plan.spend(spent, tuple([j for j, k in enumerate(part.outputs) if k in intact]))
        self.borrowed = [v for v, origin in zip(part.graph.inputs, part.inputs)
                         if origin[0] == -1 and v in self.plan.held]


def _reaching(graph: Graph, active: Set[Value]) -> Set[Value]:
    """The active values that lead to an output through active ones: no others can have a gradient."""
    found = active.intersection(graph.outputs)
    for node in reversed(graph.nodes):
        if not found.isdisjoint(node.outputs):
            found.update(active.intersection(node.inputs))
    return found


class PlannedNodes:
    """The FunctionNodes that some of the Variables of a call need.

    variables: those Variables.
    leaves: values of Variables made inside that the user can get hold of: inputs of nodes, where no gradient passes.
    segments: in an order in which each only reads from earlier ones.
    has_control: whether gradients go through branches or loops.
    """

    def __init__(self, outcome: Outcome, graph: Graph, variables: Set[EscapingVariable], recompute: Recompute,
                 namer: Builder):
        position = {value: i for i, value in enumerate(outcome.graph.outputs)}
        self.variables = variables
        records = [r for r in outcome.variables if r in variables]
        escaping = [position[r.value] for r in records if r.connected]
        self.leaves = tuple(dict.fromkeys(graph.outputs[position[r.value]] for r in records
                                          if not r.connected and r.requires_grad))
        inputs = [graph.inputs[i] for i, item in enumerate(outcome.inputs) if item.requires_grad]
        active = active_values(graph, [*inputs, *self.leaves])
        self.inside = {v: Value(v.type, namer.fresh(f"{v.name}_inside")) for v in self.leaves}
        leaves = set(self.leaves)
        cut = graph.with_(inputs=graph.inputs + self.leaves, nodes=tuple(
            _renamed(node, self.inside) for node in graph.nodes if not node.outputs or not leaves.issuperset(node.outputs)))
        parts = passes.segments(cut, escaping, active)
        if any(k is None and not isinstance(v.type, Tensor) for part in parts for k, v in zip(part.outputs, part.graph.outputs)):
            raise CaptureAborted("a gradient that is taken inside goes through a loop on array values that leads to a Variable "
                                 "which leaves the compiled function, too", final=True)
        if isinstance(recompute, int):
            recompute //= max(len(parts), 1)
        fixed = _written(outcome, graph) if recompute != "none" else frozenset()
        if recompute == "auto":
            seen = held_values(graph, graph.outputs)
            fixed = {*fixed, *seen, *(self.inside[v] for v in self.leaves if v in seen)}
        intact = {position[v] for v in outcome.intact if v in position}
        self.segments = [PlannedSegment(part, active, recompute, fixed, namer, outcome.spent, intact) for part in parts]
        self.has_control = any(node.regions and not active.isdisjoint(node.outputs) for node in graph.nodes)

    def saved(self) -> List[Value]:
        """What the nodes keep or pass on, besides the outputs of the graph."""
        return [v for item in self.segments for v in (*item.plan.saved, *item.part.graph.outputs, *item.borrowed)]

    def augmented(self, graph: Graph) -> Graph:
        """The graph with the branches and loops that the segments need."""
        names = {new: old for old, new in self.inside.items()}
        new = {names.get(v, v): node for item in self.segments for node in item.plan.graph.nodes if node.regions
               for v in node.outputs}
        return graph.with_(nodes=tuple(_renamed(next((new[v] for v in node.outputs if v in new), node), names)
                                       for node in graph.nodes))


class Differentiation(NamedTuple):
    """The FunctionNodes of a program.

    graph: the forward, whose branches and loops also give what the gradients read.
    nodes: those of a call that succeeds, for the Variables that are still somebody's then.
    rescue: those of a call that fails, for all Variables that it may have handed out by then.
    saved: what the forward returns besides its outputs, because a node keeps it or passes it on.
    """

    graph: Graph
    nodes: PlannedNodes
    rescue: PlannedNodes
    saved: Tuple[Value, ...]


def differentiate(outcome: Outcome, graph: Graph, recompute: Recompute = "none") -> Differentiation:
    """Where the FunctionNodes of a program are, and what they keep.

    recompute: see `passes.Saving`; of several nodes each has a part of a number of bytes.
    """
    variables, namer = set(outcome.variables), continue_graph(graph)
    make = functools.partial(PlannedNodes, outcome, graph, recompute=recompute, namer=namer)
    left, rescue = survivors(outcome), make(variables=variables)
    # of branches and loops, the forward keeps one kind of tape
    nodes = rescue if left == variables or rescue.has_control else make(variables=left)
    return Differentiation(nodes.augmented(graph), nodes, rescue, tuple(dict.fromkeys(nodes.saved() + rescue.saved())))


def _written(outcome: Outcome, graph: Graph) -> Set[Value]:
    """The inputs that the call writes into, whose arrays therefore have other contents in the backward, and what the host has."""
    written = {write.container for end in outcome.ends for write in end.writes if isinstance(write, WriteArray)}
    known = {item.source for item in outcome.inputs if isinstance(item, ArrayInput)}
    found = {value for item, value in zip(outcome.inputs, graph.inputs)
             if item.source in written or isinstance(item, VariableInput) and not written <= known}
    return found.union(v for node in graph.nodes if may_write(node)       # nobody else has what is drawn
                       for v in (*node.inputs, *(() if node.op.kind == "effect" else node.outputs)))


def _renamed(node: Node, names: Mapping[Value, Value]) -> Node:
    """The node with other values for some of its outputs."""
    return replace(node, outputs=tuple(names.get(v, v) for v in node.outputs)) if names.keys() & set(node.outputs) else node

"""From a joint graph to the backward graph and what the forward has to keep for it."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, Dict, List, Optional, Set, Tuple

from ...errors import InternalError
from ...ir.graph import Graph, Node, Value
from ..cleanup.cse import eliminate_common
from ..cleanup.dce import eliminate_dead
from ..cleanup.simplify import simplify
from ..effects import has_effect
from .copied_views import is_copied


@dataclass(frozen=True)
class JointPartition:
    """A backward graph and where its inputs come from.

    backward: inputs are the saved values, then the forward inputs, then the forward outputs named below, then every
        output gradient of the joint graph.  Outputs are those of the joint graph.
    saved: values of the forward graph that it must keep: intermediates the gradient formulas need as they were.
    inputs: indexes of the forward inputs that are read, by reference, when the backward runs.
    outputs: indexes of the forward outputs that are read, by reference, when the backward runs.
    """

    backward: Graph
    saved: Tuple[Value, ...]
    inputs: Tuple[int, ...]
    outputs: Tuple[int, ...]


def partition_joint(joint: Graph, forward: Graph, kept: Optional[Collection[Value]] = None,
                    held: Collection[Value] = ()) -> JointPartition:
    """Split a joint graph: what ``forward`` already computes is read or saved, the rest is the backward graph.

    kept: the intermediates that exist, if the forward has run already; others are recomputed.
    held: values that will exist in any case, so that nothing is saved to recompute them.

    Views (transpose, reshape, broadcast) and constants are recomputed in the backward graph instead of being saved,
    so what a forward input holds when the backward runs is what counts, as in eager.  What NumPy copies is no view.
    The backward graph is cleaned up, and only what it still reads after that is saved.  Linear in nodes + edges.

    Raises `InternalError` for a value that is not kept and cannot be recomputed: the result of an effect, or of unknown code.
    """
    known = set(forward.inputs).union(*(node.outputs for node in forward.nodes))
    forward_nodes = set(forward.nodes)
    own = eliminate_dead(joint.with_(nodes=tuple(node for node in joint.nodes if node not in forward_nodes))).nodes
    reached = _Reached(forward, {*forward.outputs, *held}, kept)
    for value in [v for node in own for v in node.inputs] + list(joint.outputs):
        if value in known:
            reached.add(value)
    gradients = tuple(v for v in joint.inputs if v not in known)
    backward = Graph(tuple(reached.inputs) + gradients, joint.outputs, tuple(reached.recomputed) + own, joint.name)
    return _sorted(eliminate_dead(eliminate_common(simplify(backward))), forward, gradients)


class _Reached:
    """The forward values that the backward graph needs: the inputs they become, and the nodes that recompute the others.

    Both are ordered sets.  available: values that exist in any case.  kept: as in `partition_joint`.
    """

    def __init__(self, forward: Graph, available: Set[Value], kept: Optional[Collection[Value]]):
        self.producers, self.available, self.kept = forward.producers(), available, kept
        self.inputs: Dict[Value, None] = {}
        self.recomputed: Dict[Node, None] = {}

    def add(self, value: Value) -> None:
        """Make a forward value available in the backward graph."""
        waiting = [value]
        while waiting:
            value = waiting[-1]
            producer = self.producers.get(value)
            if value in self.available or producer is None or not self._is_recomputed(producer, value):
                self.inputs[value] = None
                waiting.pop()
            elif producer in self.recomputed:
                waiting.pop()
            else:
                before = [v for v in producer.inputs if v not in self.inputs and self.producers.get(v) not in self.recomputed]
                waiting += reversed(before)
                if not before:
                    self.recomputed[producer] = None

    def _may_change(self, node: Node) -> bool:
        """Whether a view is of an array that the caller may write before the backward."""
        producer: Optional[Node] = node
        while producer is not None and producer.op.view:
            value = producer.inputs[0]
            producer = None if value in self.available else self.producers.get(value)
        return producer is None

    def _is_recomputed(self, node: Node, value: Value) -> bool:
        """Whether a forward node runs again in the backward: constants and views are cheaper to recompute than to save."""
        if node.op.name == "constant" or node.op.view and not (self._may_change(node) and is_copied(node, self.producers)):
            return True
        if self.kept is None or value in self.kept:
            return False
        if has_effect(node) or node.op.kind == "opaque":
            raise InternalError(f"{value.name} was not kept for the backward", node.loc)
        return True


def _sorted(backward: Graph, forward: Graph, gradients: Tuple[Value, ...]) -> JointPartition:
    """The partition for a clean backward graph: its inputs grouped, without those that nothing reads."""
    read = {v for node in backward.nodes for v in node.inputs}.union(backward.outputs)
    inputs = tuple(i for i, v in enumerate(forward.inputs) if v in read)
    given: Set[Value] = set(forward.inputs).union(gradients)
    outputs: List[int] = []
    for index, value in enumerate(forward.outputs):
        if value in read and value not in given:
            outputs.append(index)
            given.add(value)
    saved = tuple(v for v in backward.inputs if v in read and v not in given)
    order = saved + tuple(forward.inputs[i] for i in inputs) + tuple(forward.outputs[i] for i in outputs) + gradients
    return JointPartition(backward.with_(inputs=order), saved, inputs, tuple(outputs))

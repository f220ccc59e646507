"""From a joint graph to the backward graph and what the forward has to keep for it."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, Dict, List, Optional, Set, Tuple

from ..errors import InternalError
from ..ir.graph import Graph, Node, Value
from .cse import eliminate_common
from .dead import eliminate_dead
from .effects import has_effect
from .simplify import simplify


@dataclass(frozen=True)
class Split:
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


def split(joint: Graph, forward: Graph, kept: Optional[Collection[Value]] = None,
          held: Collection[Value] = ()) -> Split:
    """Part a joint graph: what ``forward`` already computes is read or saved, the rest is the backward graph.

    kept: the intermediates there are, if the forward has run already; others are computed again.  Raises
        InternalError for one that cannot be: the result of an effect, or of code we do not know.
    held: values that there will be in any case, so that nothing is kept to make them anew.

    Views (transpose, reshape, broadcast) and constants are made anew in the backward graph instead of being saved,
    so what a forward input holds when the backward runs is what counts, as in eager.  The backward graph is cleaned
    up, and only what it still reads after that is saved.  Linear in nodes + edges.
    """
    known = set(forward.inputs).union(*(node.outputs for node in forward.nodes))
    producers = forward.producers()
    there: Set[Value] = {*forward.outputs, *held}
    references: Dict[Value, None] = {}                         # ordered sets: forward values that become inputs,
    again: Dict[Node, None] = {}                               # and forward nodes that are repeated

    def reach(value: Value) -> None:
        """Make a forward value available in the backward graph."""
        waiting = [value]
        while waiting:
            value = waiting[-1]
            producer = producers.get(value)
            if value in there or producer is None or not _is_redone(producer, value, kept):
                references[value] = None
                waiting.pop()
            elif producer in again:
                waiting.pop()
            else:
                before = [v for v in producer.inputs if v not in references and producers.get(v) not in again]
                waiting += reversed(before)
                if not before:
                    again[producer] = None

    forward_nodes = set(forward.nodes)
    own = eliminate_dead(joint.with_(nodes=tuple(node for node in joint.nodes if node not in forward_nodes))).nodes
    for value in [v for node in own for v in node.inputs] + list(joint.outputs):
        if value in known:
            reach(value)
    gradients = tuple(v for v in joint.inputs if v not in known)
    backward = Graph(tuple(references) + gradients, joint.outputs, tuple(again) + own, joint.name)
    return _sorted(eliminate_dead(eliminate_common(simplify(backward))), forward, gradients)


def _is_redone(node: Node, value: Value, kept: Optional[Collection[Value]]) -> bool:
    """Whether a forward node is repeated: constants and views are cheaper to repeat than to keep."""
    if node.op.view or node.op.name == "constant":
        return True
    if kept is None or value in kept:
        return False
    if has_effect(node) or node.op.kind == "opaque":
        raise InternalError(f"{value.name} was not kept for the backward", node.loc)
    return True


def _sorted(backward: Graph, forward: Graph, gradients: Tuple[Value, ...]) -> Split:
    """The split of a clean backward graph: its inputs grouped, without those that nothing reads."""
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
    return Split(backward.with_(inputs=order), saved, inputs, tuple(outputs))

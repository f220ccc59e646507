"""Who may share memory with whom: what an array that leaves the graph may be a view of."""
from __future__ import annotations

from typing import Iterable, Set, Tuple

from ..ir.graph import Graph, Node, Value


def aliased_operands(node: Node) -> Tuple[Value, ...]:
    """The operands whose memory the outputs of a node may share."""
    if node.op.kind in ("opaque", "effect", "control"):
        return node.inputs
    return node.inputs[:1] if node.op.view else ()


def exposes_operands(node: Node) -> bool:
    """Whether code we do not know sees the operands of a node, and may keep them."""
    return node.op.kind in ("opaque", "effect")


def held_values(graph: Graph, escaping: Iterable[Value]) -> Set[Value]:
    """The values whose memory somebody outside can hold: those that escape, those seen by unknown code, and every
    value that one of them may be a view of.

    Linear in nodes + edges.
    """
    held = set(escaping)
    for node in reversed(graph.nodes):
        if exposes_operands(node):
            held.update(node.inputs)
        elif not held.isdisjoint(node.outputs):
            held.update(aliased_operands(node))
    return held

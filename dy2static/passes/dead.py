"""Dead code elimination."""
from __future__ import annotations

from ..ir.graph import Graph


def eliminate_dead(graph: Graph) -> Graph:
    """Drop nodes that no output depends on.  Nodes with effects stay, and what they need.

    Linear in nodes + edges.  Inputs stay, also those that nothing reads any more.
    """
    live, kept = set(graph.outputs), []
    for node in reversed(graph.nodes):
        if node.op.effect or not live.isdisjoint(node.outputs):
            live.update(node.inputs)
            kept.append(node)
    if len(kept) == len(graph.nodes):
        return graph
    return graph.with_(nodes=tuple(reversed(kept)))

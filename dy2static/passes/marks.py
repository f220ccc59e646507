"""Marks for differentiation: they read more than they give, and nothing of that is needed once a graph is about to be run."""
from __future__ import annotations

from dataclasses import replace
from typing import Dict, Tuple

from ..ir.graph import Graph, Node, Value
from ..ir.op import OPS
from .cleanup.dce import eliminate_dead
from .rewriting import with_regions

#: Ops that give their first operand.  The others are for gradients.
_MARKS = frozenset(("attached", "by_rule", "cross_entropy", "gradient_inside", "gradient_of", "last_gradient"))


def erase_marks(graph: Graph, saved: Tuple[Value, ...] = ()) -> Graph:
    """The graph with identities in place of marks for differentiation, and without what only these marks read.

    saved: what is read of the graph besides its outputs.  Without this pass, a program that takes the gradients of a cross entropy
    itself would keep the logarithms of all probabilities in memory: the mark reads them behind the loop nest that makes them.
    For graphs that are about to be run.  Values keep their identity.  Linear in nodes + edges.
    """
    changed: Dict[Node, Node] = {node: new for node in graph.nodes if (new := _erased(node)) is not node}
    if not changed:
        return graph
    nodes = tuple([changed.get(node, node) for node in graph.nodes])
    return eliminate_dead(graph.with_(nodes=nodes, outputs=graph.outputs + saved)).with_(outputs=graph.outputs)


def _erased(node: Node) -> Node:
    if node.op.name in _MARKS:
        return replace(node, op=OPS["identity"], inputs=node.inputs[:1], attrs={})
    return with_regions(node, erase_marks)

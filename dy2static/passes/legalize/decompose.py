"""Composite ops in terms of simpler ones, as their declarations say."""
from __future__ import annotations

import functools
from typing import Collection, List

from ...ir.graph import Graph, Node
from ..rewriting import steps_of, with_regions


def decomposes(node: Node) -> bool:
    """Whether the declaration of a node's op has a decomposition that holds for the types of its operands."""
    rule = node.op.decompose
    return rule is not None and rule.holds(*(v.type for v in node.inputs))


def decompose(graph: Graph, kept: Collection[str] = ()) -> Graph:
    """The graph with composite ops taken apart, in regions too.  Values keep their identity.

    kept: the names of ops that the backend has as a whole.  Linear in nodes.
    """
    nodes: List[Node] = []
    for node in graph.nodes:
        if node.op.name not in kept and decomposes(node):
            nodes += decomposed(node)
        else:
            nodes.append(with_regions(node, functools.partial(decompose, kept=kept)))
    return graph.with_(nodes=tuple(nodes))


def decomposed(node: Node) -> List[Node]:
    """The nodes that a node becomes whose op has a decomposition."""
    return steps_of(node, node.op.decompose.rule)       # type: ignore[union-attr]

"""Composite ops in terms of simpler ones, as their declarations say."""
from __future__ import annotations

import functools
from dataclasses import replace
from typing import Collection, List

from ...ir.building import Builder, building
from ...ir.graph import Graph, Node
from ..rewriting import with_regions


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
            nodes += steps_of(node)
        else:
            nodes.append(with_regions(node, functools.partial(decompose, kept=kept)))
    return graph.with_(nodes=tuple(nodes))


def steps_of(node: Node) -> List[Node]:
    """What a node becomes whose op has a decomposition."""
    builder = Builder("steps")
    builder.loc = node.loc
    with building(builder):
        results = node.op.decompose.rule(*node.inputs, **node.attrs)       # type: ignore[union-attr]
    results = results if isinstance(results, tuple) else (results,)
    names = dict(zip(results, node.outputs))
    return [replace(new, inputs=tuple(names.get(v, v) for v in new.inputs), outputs=tuple(names.get(v, v) for v in new.outputs),
                    recomputed=node.recomputed)
            for new in builder.nodes]

"""The part of a graph that is still to be computed when some of its values are there already."""
from __future__ import annotations

from typing import Dict, List, Sequence, Set

from ..errors import InternalError
from ..ir.graph import Graph, Node, Value
from .effects import has_effect


def extract(graph: Graph, available: Sequence[Value]) -> Graph:
    """The nodes that lead from the available values to the outputs; its inputs are those it reads, in that order.

    Raises InternalError where an output depends on an input that is not available.  Linear in nodes + edges.
    """
    producers = graph.producers()
    known = set(available)
    needed: Set[Node] = set()
    read: Set[Value] = set()
    waiting: List[Value] = list(graph.outputs)
    seen: Dict[Value, None] = {}
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen[value] = None
        if value in known:
            read.add(value)
            continue
        node = producers.get(value)
        if node is None or has_effect(node):
            raise InternalError(f"{value.name} of {graph.name} is needed again, but was not kept")
        if node not in needed:
            needed.add(node)
            waiting.extend(node.inputs)
    inputs = tuple(v for v in dict.fromkeys(available) if v in read)
    return Graph(inputs, graph.outputs, tuple(n for n in graph.nodes if n in needed), graph.name)

"""The part of a graph that is still to be computed when some of its values are there already."""
from __future__ import annotations

from dataclasses import replace
from typing import Callable, Collection, Dict, List, Sequence, Set, Tuple

from ..errors import InternalError
from ..ir.graph import Graph, Node, Value
from .cotangents import continue_graph
from .effects import has_effect


def extract(graph: Graph, available: Sequence[Value], clean: Callable[[Graph], Graph] = lambda graph: graph) -> Graph:
    """The nodes that lead from the available values to the outputs; its inputs are those it reads, in that order.

    clean: simplifies the nodes before it is known which inputs they read.
    Raises InternalError where an output depends on an input that is not available.  Linear in nodes + edges.
    """
    producers = graph.producers()
    known = set(available)
    needed: Set[Node] = set()
    leaves: Dict[Value, None] = {}
    waiting: List[Value] = list(graph.outputs)
    seen: Dict[Value, None] = {}
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen[value] = None
        node = producers.get(value)
        if value in known or node is None or has_effect(node):
            leaves[value] = None
        elif node not in needed:
            needed.add(node)
            waiting.extend(node.inputs)
    nodes = _made_again(graph, needed, leaves)
    part = clean(Graph(tuple(leaves), graph.outputs, nodes, graph.name))
    read = {v for node in part.nodes for v in node.inputs}.union(part.outputs)
    lacking = [v for v in part.inputs if v in read and v not in known]
    if lacking:
        raise InternalError(f"{lacking[0].name} of {graph.name} is needed again, but was not kept")
    return part.with_(inputs=tuple(v for v in dict.fromkeys(available) if v in read))


def _made_again(graph: Graph, needed: Collection[Node], there: Collection[Value]) -> Tuple[Node, ...]:
    """The needed nodes in their order; results of theirs that are there already become values of their own."""
    nodes = [node for node in graph.nodes if node in needed]
    if not any(v in there for node in nodes for v in node.outputs):
        return tuple(nodes)
    namer = continue_graph(graph)
    return tuple(replace(node, outputs=tuple(Value(v.type, namer.fresh(v.name)) if v in there else v for v in node.outputs))
                 for node in nodes)

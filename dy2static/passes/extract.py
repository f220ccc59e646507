"""The part of a graph that remains to be computed when some of its values are available."""
from __future__ import annotations

from dataclasses import replace
from typing import Collection, Dict, List, Sequence, Set, Tuple

from ..errors import InternalError
from ..ir.graph import Graph, Node, Value
from .differentiation.cotangents import continue_graph
from .effects import has_effect


def extract(graph: Graph, available: Sequence[Value]) -> Graph:
    """The nodes that lead from the available values to the outputs; its inputs are those it reads, in that order.

    Raises InternalError where an output depends on an input that is not available.  Linear in nodes + edges.
    """
    return with_read_inputs(leading_from(graph, available), available)


def leading_from(graph: Graph, available: Sequence[Value]) -> Graph:
    """Drop the nodes that need not run when some values are there already: these become inputs.

    Linear in nodes + edges.
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
    return Graph(tuple(leaves), graph.outputs, _made_again(graph, needed, leaves), graph.name)


def with_read_inputs(graph: Graph, available: Sequence[Value]) -> Graph:
    """Drop the inputs that nothing reads; the others stand in the order in which they are available.

    Raises InternalError where an output needs an input that is not available.
    """
    known = set(available)
    lacking = _lacking(graph, known)
    if lacking:
        graph = _without_readers(graph, lacking)
        lacking = _lacking(graph, known)
    if lacking:
        raise InternalError(f"{lacking[0].name} of {graph.name} is needed again, but was not kept")
    read = _read(graph)
    return graph.with_(inputs=tuple(v for v in dict.fromkeys(available) if v in read))


def _read(graph: Graph) -> Set[Value]:
    return {v for node in graph.nodes for v in node.inputs}.union(graph.outputs)


def _lacking(graph: Graph, known: Collection[Value]) -> List[Value]:
    """The inputs that are read and not known."""
    read = _read(graph)
    return [v for v in graph.inputs if v in read and v not in known]


def _without_readers(graph: Graph, lacking: Sequence[Value]) -> Graph:
    """Drop what depends on inputs that are not there, unless an output needs it.

    It may raise, but has run in the forward, which had these inputs.
    """
    depending = set(lacking)
    for node in graph.nodes:
        if not depending.isdisjoint(node.inputs):
            depending.update(node.outputs)
    live, kept = set(graph.outputs), []
    for node in reversed(graph.nodes):
        if not live.isdisjoint(node.outputs) or depending.isdisjoint(node.inputs):
            live.update(node.inputs)
            kept.append(node)
    return graph.with_(nodes=tuple(reversed(kept)))


def _made_again(graph: Graph, needed: Collection[Node], there: Collection[Value]) -> Tuple[Node, ...]:
    """The needed nodes in their order; results that are available already get new values, so that each has one producer."""
    nodes = [node for node in graph.nodes if node in needed]
    if not any(v in there for node in nodes for v in node.outputs):
        return tuple(nodes)
    namer = continue_graph(graph)
    return tuple(replace(node, outputs=tuple(Value(v.type, namer.fresh(v.name)) if v in there else v for v in node.outputs))
                 for node in nodes)

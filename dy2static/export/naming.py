"""Names that tell the values of a graph apart."""
from __future__ import annotations

from dataclasses import replace
from typing import Dict, Set

from ..ir.graph import Graph, Node, Value
from .program import unique


def uniquely_named(graph: Graph) -> Graph:
    """The graph with a name of its own for each value, in regions too; where names differ already, values stay as they are."""
    return _Naming().graph(graph)


class _Naming:
    def __init__(self) -> None:
        self.taken: Set[str] = set()
        self.renamed: Dict[Value, Value] = {}

    def graph(self, graph: Graph) -> Graph:
        """The graph, or a region."""
        inputs = tuple(map(self._defined, graph.inputs))
        nodes = tuple(map(self._node, graph.nodes))
        return graph.with_(inputs=inputs, nodes=nodes, outputs=tuple([self.renamed.get(v, v) for v in graph.outputs]))

    def _node(self, node: Node) -> Node:
        inputs = tuple([self.renamed.get(v, v) for v in node.inputs])
        regions = tuple(map(self.graph, node.regions))
        outputs = tuple(map(self._defined, node.outputs))
        return replace(node, inputs=inputs, regions=regions, outputs=outputs)

    def _defined(self, value: Value) -> Value:
        name, = unique([value.name], self.taken)
        if name != value.name:
            self.renamed[value] = Value(value.type, name)
        return self.renamed.get(value, value)

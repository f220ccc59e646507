"""Sizes that only the run knows as numbers that arrays are computed with, such as the count of a mean."""
from __future__ import annotations

from dataclasses import replace
from typing import Dict, List

from ...ir.dims import is_known
from ...ir.graph import Graph, Node, Value
from ...ir.op import OPS


def with_counts(graph: Graph) -> Graph:
    """The graph with `full` for each array that is made of a size: kernels are given sizes.  Linear in nodes."""
    if not any(node.op.name == "dimension" for node in graph.nodes):
        return graph
    sizes: Dict[Value, Node] = {node.outputs[0]: node for node in graph.nodes if node.op.name == "dimension"}
    nodes: List[Node] = []
    for node in graph.nodes:
        if node.op.name == "scalar_to_tensor" and node.inputs[0] in sizes and node.outputs[0].dtype.kind in "fiu":
            size = sizes[node.inputs[0]].attrs["size"]
            if not is_known(size):
                node = replace(node, op=OPS["full"], inputs=(), attrs={"shape": (), "value": size, "dtype": node.attrs["dtype"]})
        nodes.append(node)
    return graph.with_(nodes=tuple(nodes))

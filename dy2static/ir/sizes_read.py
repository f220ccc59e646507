"""Sizes that only the run knows: which nodes have them in types and attributes, and which give their symbols the numbers."""
from __future__ import annotations

from typing import Iterator, List, Set, Tuple

import numpy as np

from .dims import Dim
from .graph import Graph, Node, Value
from .types import Extent, Tensor, dims_in

#: Types of attributes in which there are no sizes.
_WITHOUT_SIZES = frozenset((int, float, bool, str, type(None), np.ndarray, type(np.dtype(np.float32))))


def dims_of(node: Node) -> Iterator[Dim]:
    """The sizes in a node, without its regions, that only the run knows."""
    for value in (*node.inputs, *node.outputs):
        if type(value.type) is Tensor:
            for size in value.type.shape:
                if type(size) is not int and isinstance(size, Dim):
                    yield size
        elif type(value.type) is not Extent:
            yield from dims_in(value.type)
    for attr in node.attrs.values():
        if type(attr) not in _WITHOUT_SIZES:
            yield from dims_in(attr)


def made_symbols(node: Node) -> List[Tuple[str, Value, int]]:
    """The symbols that a node gives their numbers: (symbol, array, axis), or (symbol, list, -1)."""
    if node.op.name in ("list_stack", "list_array"):
        return [(str(node.attrs["extent"]), node.inputs[0], -1)]
    if node.op.name == "scatter_span":
        return []                                       # the gradient of what has that size
    return [(symbol, node.outputs[i], axis) for symbol, i, axis in node.attrs.get("extents", ())]


def symbols_read(graph: Graph) -> Set[str]:
    """The symbols in the nodes of a graph, regions included, and those whose numbers its nodes take."""
    found = {symbol for node in graph.walk() for dim in dims_of(node) for symbol in dim.symbols}
    return found.union(v.type.symbol for node in graph.walk() for v in node.inputs if isinstance(v.type, Extent))

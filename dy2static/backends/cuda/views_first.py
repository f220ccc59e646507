"""Elementwise nodes whose results are only read in parts: computed part by part, where the parts are read.

The gates of an LSTM are such parts.  Without this pass, a kernel writes the sums that the gates are parts of, and another one reads
them.
"""
from __future__ import annotations

import math
from dataclasses import replace
from typing import Dict, List, Optional, Set

from ...ir.building import Builder, building
from ...ir.dims import is_known
from ...ir.graph import Graph, Node, Value
from ...ir.sizes_read import dims_of
from ...ops.broadcasting import broadcast_to
from ..loops.layout import Places

#: Views that pick elements, or give them another shape.
_VIEWS = ("getitem", "reshape", "split", "unstack")


def views_first(graph: Graph) -> Graph:
    """The graph with views of operands in place of views of results, where that spares an array.  Values keep their identity.

    Linear in nodes times views of one value.
    """
    return _Search(graph).result() if any(node.op.name in _VIEWS for node in graph.nodes) else graph


class _Search:
    """The nodes, from the last to the first, and what reads each value.  removed: nodes in whose place are others."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.removed: Set[Node] = set()
        self.places = Places(lambda: "")
        self.readers: Dict[Value, Dict[Node, None]] = {}
        self.producers: Dict[Value, Node] = {}
        for node in graph.nodes:
            self.places.settle(node)
            self._note(node)

    def result(self) -> Graph:
        """The new graph."""
        found: List[Node] = []
        for node in reversed(self.graph.nodes):
            if node not in self.removed:
                found += reversed(self._computed(node))
        return self.graph.with_(nodes=tuple([node for node in reversed(found) if node not in self.removed]))

    def _note(self, node: Node) -> None:
        for value in node.inputs:
            self.readers.setdefault(value, {})[node] = None
        for value in node.outputs:
            self.producers[value] = node

    def _computed(self, node: Node) -> List[Node]:
        """The nodes in place of one: itself, or its parts."""
        parts = self._parts(node) if self._is_read_in_parts(node) else None
        if parts is None:
            return [node]
        self._forget(node)
        for reader in list(self.readers[node.outputs[0]]):
            self._forget(reader)
        for part in parts:
            self._note(part)
        return [new for part in parts for new in self._computed(part)]

    def _forget(self, node: Node) -> None:
        self.removed.add(node)
        for value in node.inputs:
            self.readers[value].pop(node, None)

    def _is_read_in_parts(self, node: Node) -> bool:
        is_plain = node.op.kind == "elementwise" and len(node.outputs) == 1 and "shape" not in node.attrs
        if not is_plain or not all(map(is_known, dims_of(node))):
            return False
        (value,) = node.outputs
        readers = self.readers.get(value, {})
        are_parts = all(map(self._is_for_elements, readers)) and any(map(self._picks, readers))
        count = sum(math.prod(part.shape) for reader in readers for part in reader.outputs)
        return are_parts and count <= math.prod(value.shape) and value not in self.graph.outputs and not any(
            self._is_made_for_kernels(operand, node) for operand in node.inputs)

    def _is_for_elements(self, reader: Node) -> bool:
        """Whether a view, or views of it, are read by elementwise nodes only."""
        if reader.op.name not in _VIEWS or len(reader.inputs) != 1 or not all(map(is_known, dims_of(reader))):
            return False
        return all(value not in self.graph.outputs and all(
            behind.op.kind == "elementwise" or self._is_for_elements(behind) for behind in self.readers.get(value, ()))
            for value in reader.outputs)

    def _picks(self, reader: Node) -> bool:
        """Whether a view, or a view of it, is no mere shape: for such a one, a bias is not taken away from its product."""
        return reader.op.name in _VIEWS and (reader.op.name != "reshape" or any(
            map(self._picks, self.readers.get(reader.outputs[0], ()))))

    def _is_made_for_kernels(self, value: Value, node: Node) -> bool:
        """Whether an operand of a node may need no memory now, but would if views read it."""
        producer = self.producers.get(value)
        if producer is None:
            return False
        return producer.op.name == "philox" or producer.op.kind == "elementwise" and len(self.readers[value]) > 1

    def _parts(self, node: Node) -> Optional[List[Node]]:
        """An elementwise node for each part, behind views of the operands; None if memory would have to be copied for a view."""
        (value,) = node.outputs
        found: List[Node] = []
        operands: Dict[Value, Value] = {}
        for operand in node.inputs:
            operands[operand] = operand
            if operand.ndim and operand.shape != value.shape:
                builder = Builder("views")
                builder.loc = node.loc
                with building(builder):
                    operands[operand] = broadcast_to(operand, shape=value.shape)
                found += builder.nodes
        for reader in self.readers[value]:
            views: Dict[Value, Node] = {}
            for operand in operands.values():
                if operand.ndim and operand not in views:
                    made = [Value(replace(part.type, dtype=operand.dtype), operand.name) for part in reader.outputs]
                    views[operand] = replace(reader, inputs=(operand,), outputs=tuple(made))
            found += views.values()
            for k, part in enumerate(reader.outputs):
                inputs = [views[operands[x]].outputs[k] if operands[x] in views else x for x in node.inputs]
                found.append(replace(node, inputs=tuple(inputs), outputs=(part,)))
        views_only = [new for new in found if new.op.kind != "elementwise"]
        return found if all(map(self.places.settle, views_only)) else None

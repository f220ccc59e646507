"""Few elements that are picked of elementwise results: computed from the elements of what these are made of.

The logarithms of probabilities of a cross entropy are such results.  Without this pass, the kernel of a softmax stores all of them,
because one of each row is picked.
"""
from __future__ import annotations

import math
from dataclasses import replace
from typing import Dict, List, Mapping, Optional

from ...ir.building import Builder, building
from ...ir.dims import is_known
from ...ir.graph import Graph, Node, Value
from ...ir.sizes_read import dims_of
from ...ops.broadcasting import broadcast_to
from ...ops.gathering import take, take_along
from ...ops.movement import reshape
from ...passes.cleanup.dce import eliminate_dead
from ..loops import layout

#: Rules of views whose elements are those of the first operand at the same place, or are there several times.
_THROUGH = (layout.RULES["identity"], layout.RULES["broadcast_to"])

#: One of so many elements at most is picked, of an array that has so many at least: to store a smaller one takes no longer than
#: another launch.
_RARE, _LEAST = 16, 1 << 20

#: Operations that are done again for each element at most.
_MOST = 16


def picks_first(graph: Graph) -> Graph:
    """The graph with elements picked of operands, not of results, where that may spare an array.  Values keep their identity.

    Linear in nodes + picks times the operations that are done again.
    """
    picks = [node for node in graph.nodes if _is_rare(node)]
    if not picks:
        return graph
    producers = graph.producers()
    instead = {pick: found for pick in picks if (found := _Pick(pick, producers).nodes()) is not None}
    if not instead:
        return graph
    return eliminate_dead(graph.with_(nodes=tuple([new for node in graph.nodes for new in instead.get(node, (node,))])))


def _is_rare(node: Node) -> bool:
    if node.op.name != "take_along" or not all(map(is_known, dims_of(node))):
        return False
    (x, places), axis = node.inputs, node.attrs["axis"]
    is_even = x.ndim == places.ndim and all(n == m for a, (n, m) in enumerate(zip(x.shape, places.shape)) if a != axis % x.ndim)
    return is_even and math.prod(x.shape) >= max(_LEAST, math.prod(places.shape) * _RARE)


class _NotInMemory(Exception):
    """Elements would be picked of what may need no memory."""


class _Pick:
    """One pick.  left: operations that may be done again."""

    def __init__(self, node: Node, producers: Mapping[Value, Node]):
        self.node, self.producers, self.left = node, producers, _MOST
        (self.x, self.places), self.axis = node.inputs, node.attrs["axis"] % node.inputs[0].ndim
        self.builder = Builder("picks")
        self.builder.loc = node.loc
        self.picked: Dict[Value, Value] = {}

    def nodes(self) -> Optional[List[Node]]:
        """The nodes in place of the pick; None if it stays."""
        try:
            with building(self.builder):
                found = self._element(self.x)
        except _NotInMemory:
            return None
        *before, last = self.builder.nodes
        is_moved = last.op.kind == "elementwise" and last.outputs == (found,)
        return [*before, replace(last, outputs=self.node.outputs)] if is_moved else None

    def _element(self, value: Value) -> Value:
        """The elements of a value that are picked; of one that is broadcast to the shape of the others, too."""
        if value not in self.picked:
            self.picked[value] = self._new_element(value)
        return self.picked[value]

    def _new_element(self, value: Value) -> Value:
        producer = self.producers.get(value)
        if producer is not None and layout.RULES.get(producer.op.name) in _THROUGH:
            return self._element(producer.inputs[0])
        shape = (1,) * (self.x.ndim - value.ndim) + value.shape
        if shape[self.axis] == 1:
            return value if value.shape in ((), self.places.shape) else broadcast_to(value, shape=self.places.shape)
        if shape == self.x.shape and producer is not None and self._is_computed(producer):
            self.left -= 1
            if self.left < 0:
                raise _NotInMemory
            operands = tuple(map(self._element, producer.inputs))
            made = Value(replace(value.type, shape=self.places.shape), value.name)
            self.builder.nodes.append(replace(producer, inputs=operands, outputs=(made,)))
            return made
        if not self._is_in_memory(value):
            raise _NotInMemory
        if shape == self.x.shape:
            found: Value = take_along(value, self.places, axis=self.axis)
            return found
        if math.prod(shape) != shape[self.axis]:
            raise _NotInMemory
        found = take(reshape(value, shape=(shape[self.axis],)), self.places, axis=0)
        return found

    @staticmethod
    def _is_computed(node: Node) -> bool:
        return node.op.kind == "elementwise" and len(node.outputs) == 1 and "shape" not in node.attrs

    def _is_in_memory(self, value: Value) -> bool:
        """Whether a value, or what it is a view of, has memory anyhow."""
        producer = self.producers.get(value)
        while producer is not None and (producer.op.name == "reshape" or producer.op.name in layout.RULES):
            producer = self.producers.get(producer.inputs[0])
        return producer is None or producer.op.kind != "elementwise" and producer.op.name not in ("philox", "arange")

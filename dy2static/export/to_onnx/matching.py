"""Graphs read backwards: whether a value is computed in certain steps, and from what."""
from __future__ import annotations

import itertools
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple, Union

import numpy as np

from ...ir.graph import Graph, Node, Value

#: The steps of a value: the name of an op and the steps of its operands, a list of such alternatives, a number, or a name for a
#: value of any kind.
Steps = Union[str, float, Tuple[Any, ...], List[Any]]

#: Ops whose operands may be in the other order.
_EITHER_ORDER = ("add", "mul")
#: Ops that give the elements of their operand.
_SAME = ("broadcast_to", "identity", "stop_gradient")


class Match(NamedTuple):
    """What has certain steps.

    values: by the names in the steps, before they are repeated to a shape.  nodes: of the steps, the last one first.
    """

    values: Dict[str, Value]
    nodes: Tuple[Node, ...]

    def of(self, name: str) -> List[Node]:
        """The nodes of an op."""
        return [node for node in self.nodes if node.op.name == name]


class Reading:
    """The nodes of one graph: who makes a value, and who reads it."""

    def __init__(self, graph: Graph):
        self._made: Dict[Value, Node] = {v: node for node in graph.nodes for v in node.outputs}
        self._readers: Dict[Value, Set[Node]] = {}
        for node in graph.walk():
            for value in node.inputs:
                self._readers.setdefault(value, set()).add(node)
            for region in node.regions:
                for value in region.outputs:
                    self._readers.setdefault(value, set()).add(node)
        self._results = set(graph.outputs)

    def made_by(self, value: Value) -> Optional[Node]:
        """The node that makes a value in this graph."""
        return self._made.get(value)

    def number(self, value: Value) -> Optional[float]:
        """The number that all elements of a value are."""
        node = self._made.get(self._unrepeated(value)[0])
        if node is None or node.op.name != "constant" or np.size(node.attrs["value"]) != 1:
            return None
        return float(np.ravel(node.attrs["value"])[0])

    def match(self, steps: Steps, node: Node) -> Optional[Match]:
        """What the result of a node is computed from, if these are its steps and nothing else reads the values between them."""
        for found in self._steps(steps, node.outputs[0], Match({}, ())):
            if all(self._is_read_only_by(inner, set(found.nodes)) for inner in found.nodes if inner is not node):
                return found
        return None

    def _is_read_only_by(self, node: Node, readers: Set[Node]) -> bool:
        return all(v not in self._results and self._readers.get(v, set()) <= readers for v in node.outputs)

    def _unrepeated(self, value: Value) -> Tuple[Value, Tuple[Node, ...]]:
        """The value before it is repeated to a shape or passed on, and the nodes that do so."""
        passed: Tuple[Node, ...] = ()
        node = self._made.get(value)
        while node is not None and node.op.name in _SAME:
            value, passed = node.inputs[0], (*passed, node)
            node = self._made.get(value)
        return value, passed

    def _steps(self, steps: Steps, value: Value, found: Match) -> Iterator[Match]:
        if isinstance(steps, list):
            for alternative in steps:
                yield from self._steps(alternative, value, found)
            return
        if isinstance(steps, float):
            if self.number(value) == float(value.dtype.type(steps)):
                yield found
            return
        value, passed = self._unrepeated(value)
        if isinstance(steps, str):
            if found.values.get(steps, value) is value:
                yield found._replace(values={**found.values, steps: value})
            return
        node = self._made.get(value)
        if node is None or node.op.name != steps[0] or len(node.inputs) != len(steps) - 1:
            return
        orders = itertools.permutations(node.inputs) if steps[0] in _EITHER_ORDER else (node.inputs,)
        for operands in orders:
            yield from self._all(steps[1:], operands, found._replace(nodes=(*found.nodes, *passed, node)))

    def _all(self, steps: Tuple[Steps, ...], values: Tuple[Value, ...], found: Match) -> Iterator[Match]:
        if not steps:
            yield found
            return
        for first in self._steps(steps[0], values[0], found):
            yield from self._all(steps[1:], values[1:], first)

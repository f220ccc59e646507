"""Weights that many small products read transposed, turned in memory once: in front of loops, or of all the products."""
from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Collection, Dict, List, Mapping

from ..ir.building import Builder
from ..ir.graph import Graph, Node, Value
from ..ir.op import OPS
from ..ops.control import loop_of
from .batching import is_product
from .rewriting import with_regions

#: A matrix is turned for so many products or more; a product in a loop counts as so many.
_MANY = 4
#: Rows of the products that gain by it, and the fewest elements of their matrices.
_ROWS, _SMALL = range(7, 65), 1 << 10


def turn_matrices(graph: Graph, fixed: Collection[Value] = ()) -> Graph:
    """The graph in which a matrix that several small products read transposed is turned in memory, once.

    fixed: the inputs that are the same in every iteration, where the graph is the body of a loop.

    Our kernel turns the matrix for each ``x @ W.T``, which of few rows takes a third to half of the time.  Weights that
    a loop does not change are turned in front of it.  For native code.  Linear in nodes + edges.
    """
    counts = Counter(node.inputs[1] for node in graph.nodes if _reads_turned(node))
    counts.update({value: counts[value] * (_MANY - 1) for value in fixed})
    work = _Turning(graph, counts)
    for node in graph.nodes:
        work.add(node)
    if all(a is b for a, b in zip(work.builder.nodes, graph.nodes)):
        return graph
    return graph.with_(nodes=tuple(work.builder.nodes))


class _Turning:
    """The nodes so far, and the matrices that have been turned."""

    def __init__(self, graph: Graph, counts: Mapping[Value, int]):
        self.counts = counts
        self.builder = Builder(graph.name)
        self.turned: Dict[Value, Value] = {}
        for value in graph.values():
            self.builder.fresh(value.name)

    def add(self, node: Node) -> None:
        """The node, behind what it needs."""
        self.builder.loc = node.loc
        if node.op.name in ("while_", "scan"):
            node = self._loop(node)
        elif node.regions:
            node = with_regions(node, turn_matrices)
        elif _reads_turned(node) and self.counts[node.inputs[1]] >= _MANY:
            x, matrix = node.inputs
            node = replace(node, inputs=(x, self._turn(matrix)), attrs={**node.attrs, "transb": False})
        self.builder.nodes.append(node)

    def _turn(self, matrix: Value) -> Value:
        if matrix not in self.turned:
            (self.turned[matrix],) = self.builder.add(OPS["turned"], (matrix,))
        return self.turned[matrix]

    def _loop(self, node: Node) -> Node:
        """The loop, whose invariants are turned outside."""
        loop = loop_of(node)
        first = len(loop.state) + len(loop.stacks)
        outside = dict(zip(loop.body.inputs[first:], loop.invariants))
        body = turn_matrices(loop.body, outside)
        if body is loop.body:
            return node
        moved = [inner for inner in body.nodes if inner.op.name == "turned" and inner.inputs[0] in outside]
        inside: List[Value] = [v for inner in moved for v in inner.outputs]
        body = body.with_(inputs=body.inputs + tuple(inside), nodes=tuple(n for n in body.nodes if n not in moved))
        test = loop.test and loop.test.with_(inputs=loop.test.inputs + tuple(Value(v.type, v.name) for v in inside))
        invariants = loop.invariants + tuple(self._turn(outside[inner.inputs[0]]) for inner in moved)
        return loop._replace(body=body, test=test, invariants=invariants).node(node)


def _reads_turned(node: Node) -> bool:
    """Whether a node is a product that gains if its second matrix is turned."""
    if not is_product(node) or not node.attrs["transb"] or node.attrs["transa"]:
        return False
    x, matrix = node.inputs
    return x.shape[0] in _ROWS and matrix.shape[0] * matrix.shape[1] >= _SMALL

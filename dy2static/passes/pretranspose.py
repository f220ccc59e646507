"""Transposes weights that many small products read transposed in memory once, before the loop or the first product."""
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

#: A matrix is transposed for so many products or more; a product in a loop counts as so many.
_MANY = 4
#: Rows of the products that gain by it, and the fewest elements of their matrices.
_ROWS, _SMALL = range(7, 65), 1 << 10


def pretranspose(graph: Graph, fixed: Collection[Value] = ()) -> Graph:
    """Transpose each matrix that several small products read transposed in memory once.

    fixed: the inputs that are the same in every iteration, where the graph is the body of a loop.

    Our kernel transposes the matrix for each ``x @ W.T``; with few rows that takes a third to half of the time.  Weights that
    a loop does not change are transposed before it.  For native code.  Linear in nodes + edges.
    """
    counts = Counter(node.inputs[1] for node in graph.nodes if _reads_transposed(node))
    counts.update({value: counts[value] * (_MANY - 1) for value in fixed})
    work = _Pretranspose(graph, counts)
    for node in graph.nodes:
        work.add(node)
    if all(a is b for a, b in zip(work.builder.nodes, graph.nodes)):
        return graph
    return graph.with_(nodes=tuple(work.builder.nodes))


class _Pretranspose:
    """The nodes so far, and the transposed matrices."""

    def __init__(self, graph: Graph, counts: Mapping[Value, int]):
        self.counts = counts
        self.builder = Builder(graph.name)
        self.made: Dict[Value, Value] = {}
        for value in graph.values():
            self.builder.fresh(value.name)

    def add(self, node: Node) -> None:
        """Add a node, after the transposed matrix that it reads."""
        self.builder.loc = node.loc
        if node.op.name in ("while_", "scan"):
            node = self._loop(node)
        elif node.regions:
            node = with_regions(node, pretranspose)
        elif _reads_transposed(node) and self.counts[node.inputs[1]] >= _MANY:
            x, matrix = node.inputs
            node = replace(node, inputs=(x, self._transposed(matrix)), attrs={**node.attrs, "transb": False})
        self.builder.nodes.append(node)

    def _transposed(self, matrix: Value) -> Value:
        if matrix not in self.made:
            (self.made[matrix],) = self.builder.add(OPS["pretransposed"], (matrix,))
        return self.made[matrix]

    def _loop(self, node: Node) -> Node:
        """The loop, with its invariants transposed outside."""
        loop = loop_of(node)
        first = len(loop.state) + len(loop.stacks)
        outside = dict(zip(loop.body.inputs[first:], loop.invariants))
        body = pretranspose(loop.body, outside)
        if body is loop.body:
            return node
        moved = [inner for inner in body.nodes if inner.op.name == "pretransposed" and inner.inputs[0] in outside]
        inside: List[Value] = [v for inner in moved for v in inner.outputs]
        body = body.with_(inputs=body.inputs + tuple(inside), nodes=tuple(n for n in body.nodes if n not in moved))
        test = loop.test and loop.test.with_(inputs=loop.test.inputs + tuple(Value(v.type, v.name) for v in inside))
        invariants = loop.invariants + tuple(self._transposed(outside[inner.inputs[0]]) for inner in moved)
        return loop._replace(body=body, test=test, invariants=invariants).node(node)


def _reads_transposed(node: Node) -> bool:
    """Whether a node is a product that is faster with its second matrix transposed in memory."""
    if not is_product(node) or not node.attrs["transb"] or node.attrs["transa"]:
        return False
    x, matrix = node.inputs
    return x.shape[0] in _ROWS and matrix.shape[0] * matrix.shape[1] >= _SMALL

"""Sums that a loop makes for gradients: weight gradients in one product after it, gradients of rows where these belong."""
from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, NamedTuple, Optional, Tuple

from ..ir.building import Builder
from ..ir.graph import Graph, Node, Value
from ..ir.op import OPS
from ..ir.template import AT
from ..ir.types import Stack
from ..ops.control import loop_of
from .batching import is_product, is_worth_joining
from .cleanup.dce import eliminate_dead
from .differentiation.cotangents import continue_graph
from .rewriting import with_regions


def weight_gradients(graph: Graph, saved: Tuple[Value, ...] = ()) -> Graph:
    """Move sums out of ``scan`` loops: the loop pushes what is added, and one node after it gives the sum.

    saved: what is read of the graph besides its outputs.

    A state variable to which an iteration only adds ``x.T @ y`` (the gradient of a matrix that every iteration reads) is
    removed: ``x`` and ``y`` go onto stacks, and after the loop one `stack_product` adds all products.  So is one to which it
    adds one row (the gradient of an array of which every iteration reads a row): rows and their numbers go onto stacks for one
    `stack_scatter`, and no iteration touches the other rows.  The stacks are as
    long as those that a scan reads, so memory grows by a factor only; a ``while_`` is left as it is.  Sums of floats are
    reassociated.  For graphs that are about to be run.  Linear in nodes + edges.
    """
    builder = Builder(graph.name)
    for value in graph.values():
        builder.fresh(value.name)
    for node in graph.nodes:
        node = with_regions(node, weight_gradients)
        if node.op.name == "scan":
            _DeferredSums(node, builder).add()
        else:
            builder.nodes.append(node)
    same = len(builder.nodes) == len(graph.nodes) and all(a is b for a, b in zip(builder.nodes, graph.nodes))
    if same:
        return graph
    return eliminate_dead(graph.with_(nodes=tuple(builder.nodes), outputs=graph.outputs + saved)).with_(outputs=graph.outputs)


class _Sum(NamedTuple):
    """A state variable to which an iteration adds products or rows: its index, what makes these, and what else is added."""

    index: int
    parts: Tuple[Node, ...]
    rest: Tuple[Value, ...]


class _DeferredSums:
    """One scan."""

    def __init__(self, node: Node, builder: Builder):
        self.node, self.builder, self.loop = node, builder, loop_of(node)
        body = self.loop.body
        self.producer = body.producers()
        self.uses: Dict[Value, int] = {}
        for value in (*body.outputs, *(v for inner in body.nodes for v in inner.inputs)):
            self.uses[value] = self.uses.get(value, 0) + 1

    def add(self) -> None:
        """Add the loop, and what follows it, to the builder."""
        loop, builder = self.loop, self.builder
        sums = [found for found in map(self._sum, range(len(loop.state))) if found is not None]
        if not sums:
            builder.nodes.append(self.node)
            return
        builder.loc = self.node.loc
        stacks = dict(zip(loop.items, loop.pushed))
        more = {v: Value(Stack(v.type), builder.fresh(f"{v.name}_stack"))
                for found in sums for part in found.parts for v in part.inputs if v not in stacks}
        stacks.update(more)
        following, last = list(loop.next), list(loop.last)
        inner = continue_graph(loop.body)
        for found in sums:
            total = loop.body.inputs[found.index]
            for value in found.rest:
                (total,) = inner.add(OPS["add"], (total, value), name="sum")
            following[found.index] = total
            last[found.index] = Value(loop.last[found.index].type, builder.fresh("sum"))
        moved = {part for found in sums for part in found.parts}
        inner.nodes[:] = [node for node in inner.nodes if node not in moved]
        body = inner.build((*following, *loop.items, *more))
        builder.nodes.append(loop._replace(body=body, last=tuple(last), pushed=loop.pushed + tuple(more.values())).node(self.node))
        for found in sums:
            self._behind(found, last[found.index] if found.rest else loop.state[found.index], stacks)

    def _behind(self, found: _Sum, begin: Value, stacks: Dict[Value, Value]) -> None:
        """Add the products and rows that the loop no longer adds to its state."""
        maker = next((node for node in self.builder.nodes if begin in node.outputs), None)
        total = None if maker is not None and maker.op.name == "full" and maker.attrs["value"] == 0 else begin
        for node in found.parts:
            operands = tuple(stacks[v] for v in node.inputs)
            (part,) = self.builder.add(OPS["stack_product"], operands) if is_product(node) else \
                self.builder.add(OPS["stack_scatter"], operands, {"shape": node.attrs["shape"]})
            total = part if total is None else self.builder.add(OPS["add"], (total, part), name="sum")[0]
        self.builder.nodes.append(replace(self.builder.nodes.pop(), outputs=(self.loop.last[found.index],)))

    def _sum(self, index: int) -> Optional[_Sum]:
        """What an iteration adds to a state variable; None if it does anything else with it, or adds no such part."""
        inside, result = self.loop.body.inputs[index], self.loop.next[index]
        if self.uses.get(inside) != 1 or self.uses[result] != 1:
            return None
        parts: List[Node] = []
        rest: List[Value] = []
        waiting, seen = [result], False
        while waiting:
            value = waiting.pop()
            node = self.producer.get(value)
            alone = self.uses[value] == 1
            if value is inside:
                seen = True
            elif node is not None and alone and node.op.name == "add":
                waiting += node.inputs
            elif node is not None and alone and (_is_weight_gradient(node) or _is_row(node)):
                parts.append(node)
            else:
                rest.append(value)
        return _Sum(index, tuple(parts), tuple(rest)) if seen and parts else None


def _is_weight_gradient(node: Node) -> bool:
    return is_product(node) and node.attrs["transa"] and not node.attrs["transb"] and is_worth_joining(node)


def _is_row(node: Node) -> bool:
    """Whether a node gives zeros with one whole row of another array in them, of which the run knows the number."""
    if node.op.name != "scatter_at" or node.attrs["index"][:1] != (AT,):
        return False
    row, shape = node.inputs[0], node.attrs["shape"]
    return row.shape == tuple(shape[1:]) and all(isinstance(n, int) and n for n in row.shape) and \
        node.attrs["index"][1:] == tuple([(0, n, 1) for n in row.shape])

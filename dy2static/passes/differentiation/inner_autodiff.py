"""Gradients inside a graph that is still being built: `chainer.grad` and `backward` of the user's own code."""
from __future__ import annotations

import operator
from dataclasses import replace
from functools import reduce
from typing import AbstractSet, Collection, Dict, List, Mapping, Sequence, Set, Tuple

from ...ir.building import Builder, infer
from ...ir.graph import Graph, Node, Value
from ...ir.op import OPS
from ...ir.types import Tensor
from ...ops.control import Loop, loop_of, returns
from ..rewriting import with_regions
from .activity import active_results, active_values, has_gradient
from .cotangents import Cotangent
from .residuals import add_residuals
from .reverse import accumulate, sweep

#: Ops that leave Chainer's graph: their operands are arrays.
_ENDS = ("stop_gradient", "numpy_call", "checked_call", "host_call")


def ancestors(nodes: Sequence[Node], outputs: Collection[Value], stops: Collection[Value],
              given: Collection[Value] = ()) -> Tuple[List[Node], Set[Value]]:
    """The nodes that lead to these values, in order, and all values on the way, without going past ``stops`` or arrays.

    given: values that no node makes.  Linear in the nodes from the first that is found on.
    """
    reached = set(outputs)
    needed = reached.difference(stops, given)
    found = []
    for node in reversed(nodes):
        if not needed:
            break
        if needed.isdisjoint(node.outputs):
            continue
        needed.difference_update(node.outputs)
        found.append(node)
        if node.op.name not in _ENDS:
            reached.update(node.inputs)
            for value in node.inputs:
                if value not in stops and value not in given:
                    needed.add(value)
    return found[::-1], reached


def inner_autodiff(builders: Sequence[Builder], nodes: Sequence[Node], seeds: Mapping[Value, Value],
                         wanted: Collection[Value], stops: Collection[Value]) -> Tuple[Dict[Value, Cotangent], List[Node]]:
    """The gradients of some values of a graph that is being built, and the nodes they are computed from.

    builders: the present one last, before it those of the regions around it.
    nodes: nodes of these, in order: what leads to the values in ``seeds``, whose gradients are given.  Branches and loops
        among them are replaced in their builders by such as give what their gradients read.
    stops: values where no gradient goes on; those that are wanted, too, get one.

    The gradient nodes are added to the present builder.  Raises `CaptureError` as `add_residuals` does.
    """
    graph = add_residuals(Graph((), (), tuple(nodes)), wanted)
    graph = graph.with_(nodes=tuple([new if old is new else with_regions(new, _without_gaps)
                                     for old, new in zip(nodes, graph.nodes)]))
    replaced = {old: new for old, new in zip(nodes, graph.nodes) if old is not new}
    for builder in builders if replaced else ():
        builder.nodes[:] = [replaced.get(node, node) for node in builder.nodes]
    builder = builders[-1]
    start = len(builder.nodes)
    cotangents: Dict[Value, Cotangent] = {}
    for value, seed in seeds.items():
        accumulate(cotangents, value, Cotangent(seed, True))
    sweep(graph.nodes, active_values(graph, wanted), cotangents, stops, wanted)
    return cotangents, [*graph.nodes, *builder.nodes[start:]]


def requires_grad(nodes: Sequence[Node], sources: Collection[Value], certainly: bool) -> Set[Value]:
    """The values that eager would mark ``requires_grad``, where it marks the sources.

    certainly: only those that it marks whichever way branches and loops go; otherwise also those that it may mark.
    """
    active = {v for v in sources if has_gradient(v.type)}
    for node in nodes:
        if not active.isdisjoint(node.inputs):
            active.update(marked_by(node, active, certainly))
    return active


def requires_grad_of_each(nodes: Sequence[Node], sources: Sequence[Value], wanted: Collection[Value],
                     certainly: bool) -> List[Set[Value]]:
    """Per source, those of the wanted values that `requires_grad` gives for it alone; and the source.

    In one pass for all sources.
    """
    marks = marks_of(sources)
    for node in nodes:
        mark_results(node, marks, certainly)
    return [{v for v in wanted if marks.get(v, 0) >> k & 1} | {source} for k, source in enumerate(sources)]


def marks_of(sources: Sequence[Value]) -> Dict[Value, int]:
    """A number for each source that has a gradient: its bits are the sources that mark it, at first it alone."""
    marks: Dict[Value, int] = {}
    for k, value in enumerate(sources):
        if has_gradient(value.type):
            marks[value] = marks.get(value, 0) | 1 << k
    return marks


def mark_results(node: Node, marks: Dict[Value, int], certainly: bool) -> None:
    """Add the numbers of the results of a node to these, each with the bits of the sources that mark it.

    certainly: as of `requires_grad`.
    """
    reaching = [(v, marks[v]) for v in node.inputs if v in marks and has_gradient(v.type)]
    if not reaching:
        return
    every = reduce(operator.or_, [bits for _, bits in reaching])
    groups = {(): every}                                # sources by the operands that they mark, where that matters
    if node.op.name in BY_OPERAND:
        groups = {}
        while every:
            bit = every & -every
            operands = tuple([v for v, bits in reaching if bits & bit])
            groups[operands] = groups.get(operands, 0) | bit
            every ^= bit
    for operands, bits in groups.items():
        for value in marked_by(node, set(operands or [v for v, _ in reaching]), certainly):
            marks[value] = marks.get(value, 0) | bits


#: Ops some of whose results may not depend on all operands, or not in each run.
BY_OPERAND = ("if_", "while_", "scan", "tape_vjp")


def marked_by(node: Node, active: AbstractSet[Value], certainly: bool) -> Collection[Value]:
    """The outputs of a node that eager would mark ``requires_grad`` where it marks these values, an operand among them.

    certainly: as of `requires_grad`.
    """
    active = {v for v in node.inputs if v in active and has_gradient(v.type)}
    if not active:
        return ()
    if node.op.name == "if_":
        sides = [(region, requires_grad(region.nodes, [v for v, x in zip(region.inputs, node.inputs[1:]) if x in active],
                                   certainly)) for region in node.regions if returns(region)]
        choose = all if certainly else any
        return [y for k, y in enumerate(node.outputs) if choose(region.outputs[k] in found for region, found in sides)]
    if node.op.name == "tape_vjp" and node.attrs["reads"] is not None:
        return [y for y, places in zip(node.outputs, node.attrs["reads"])
                if has_gradient(y.type) and any(node.inputs[1 + k] in active for k in places)]
    if node.op.name == "tape_vjp" and certainly and active.isdisjoint(node.inputs[1:1 + len(node.attrs["given"])]):
        return ()                                   # its gradients may depend on the given ones only
    if node.op.name in ("while_", "scan") and certainly:
        return _required_after(loop_of(node), active)
    return active_results(node, active)


def _required_after(loop: Loop, active: Set[Value]) -> Set[Value]:
    """The results of a loop that are marked however often it runs."""
    entering = loop.state + loop.stacks + loop.invariants
    marked = {v for v, x in zip(loop.body.inputs, entering) if x in active}
    items = set(loop.items)                                 # that each iteration so far has marked
    if loop.runs:
        inside = requires_grad(loop.body.nodes, marked, True)
        items &= inside
        marked -= set(loop.body.inputs[:len(loop.state)])
        marked.update(v for v, after in zip(loop.body.inputs, loop.next) if after in inside)
    while True:
        inside = requires_grad(loop.body.nodes, marked, True)
        lost = {v for v, after in zip(loop.body.inputs, loop.next) if v in marked and after not in inside}
        if not lost:
            break
        marked -= lost
    found = {y for y, v in zip(loop.last, loop.body.inputs) if v in marked}
    return found.union(y for y, v in zip(loop.pushed, loop.items) if v in items & inside)


def _without_gaps(region: Graph) -> Graph:
    """The region with zeros for what only another side has: what has gradients may become the input of a FunctionNode."""
    return region.with_(nodes=tuple([_filled(with_regions(node, _without_gaps)) for node in region.nodes]))


def _filled(node: Node) -> Node:
    type = node.attrs.get("type") if node.op is OPS["nothing"] else None
    if not isinstance(type, Tensor) or not has_gradient(type) or not all(isinstance(n, int) for n in type.shape):
        return node
    attrs, _ = infer(OPS["full"], (), {"shape": type.shape, "value": 0, "dtype": type.dtype})
    return replace(node, op=OPS["full"], attrs=attrs)

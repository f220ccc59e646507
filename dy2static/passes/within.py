"""Gradients inside a graph that is still being built: `chainer.grad` and `backward` of the user's own code."""
from __future__ import annotations

from typing import Collection, Dict, List, Mapping, Sequence, Set, Tuple

from ..ir.building import Builder
from ..ir.graph import Graph, Node, Value
from .active import active_values
from .augment import augment
from .cotangents import Cotangent
from .reverse import accumulate, sweep

#: Ops that leave Chainer's graph: their operands are arrays.
_ENDS = ("stop_gradient", "numpy_call", "checked_call", "host_call")


def ancestors(nodes: Sequence[Node], outputs: Collection[Value], stops: Collection[Value]) -> Tuple[List[Node], Set[Value]]:
    """The nodes that lead to these values, in order, and all values on the way, without going past ``stops`` or arrays.

    Linear in nodes + edges.
    """
    reached = set(outputs)
    needed = reached.difference(stops)
    found = []
    for node in reversed(nodes):
        if needed.isdisjoint(node.outputs):
            continue
        found.append(node)
        if node.op.name in _ENDS:
            continue
        reached.update(node.inputs)
        needed.update(v for v in node.inputs if v not in stops)
    return found[::-1], reached


def differentiate_within(builders: Sequence[Builder], nodes: Sequence[Node], seeds: Mapping[Value, Value],
                         wanted: Collection[Value], stops: Collection[Value]) -> Tuple[Dict[Value, Cotangent], List[Node]]:
    """The gradients of some values of a graph that is being built, and the nodes they are computed from.

    builders: the present one last, before it those of the regions around it.
    nodes: nodes of these, in order: what leads to the values in ``seeds``, whose gradients are given.  Branches and loops
        among them are replaced in their builders by such as give what their gradients read.
    stops: values where no gradient goes on; those that are wanted, too, get one.

    The gradient nodes are added to the present builder.  Raises `CaptureError` as `augment` does.
    """
    graph = augment(Graph((), (), tuple(nodes)), wanted)
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

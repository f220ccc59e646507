"""Adds outputs to branches and loops for what their backward reads: the residuals."""
from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterable, List, Optional, Sequence, Set

from ...ir.building import Builder
from ...ir.graph import Graph, Node, Value
from ...ir.op import OPS
from ...ir.types import Stack, python_scalar
from ...ops.control import loop_of, returns
from .activity import active_in_body, active_values
from .cotangents import continue_graph, missing_values
from .reverse import reverse


def add_residuals(graph: Graph, sources: Iterable[Value], namer: Optional[Builder] = None) -> Graph:
    """Add to branches and loops, as further outputs, the inner values that a gradient to the sources reads.

    A branch gives intermediate values, a loop pushes them (with the state as it was) and counts.  They are enough for
    gradients of any order: also what the gradients of these outputs read is there.  The old outputs are the same
    values as before; nodes that need nothing more are the same nodes.

    namer: names the outputs; a builder that knows the names of the graph, by default those of this graph only.
    """
    active = active_values(graph, sources)
    namer = continue_graph(graph) if namer is None else namer
    nodes = tuple(_RULES[node.op.name](node, active, namer)
                  if node.op.name in _RULES and not active.isdisjoint(node.inputs) else node for node in graph.nodes)
    return graph if nodes == graph.nodes else graph.with_(nodes=nodes)


def _branch(node: Node, active: Set[Value], namer: Builder) -> Node:
    regions = []
    extras: List[List[Value]] = []
    for region in node.regions:
        found: List[Value] = []
        if returns(region):
            targets = [j for j, x in enumerate(node.inputs[1:]) if x in active]
            region = add_residuals(region, [region.inputs[j] for j in targets])
            found = _closure(region, targets, region.outputs, {*region.inputs, *region.outputs})
        regions.append(region)
        extras.append(found)
    if not any(extras) and all(a is b for a, b in zip(regions, node.regions)):
        return node
    for side, (region, other) in enumerate(zip(regions, extras[::-1])):
        if returns(region):
            builder = continue_graph(region)
            fillers = [builder.add(OPS["nothing"], (), {"type": v.type}, name=v.name)[0] for v in other]
            pair = (extras[0], fillers) if side == 0 else (fillers, extras[1])
            regions[side] = builder.build((*region.outputs, *pair[0], *pair[1])).with_(name=region.name)
    outputs = node.outputs + tuple(Value(v.type, namer.fresh(v.name)) for found in extras for v in found)
    return replace(node, outputs=outputs, regions=tuple(regions))


def _loop(node: Node, active: Set[Value], namer: Builder) -> Node:
    loop = loop_of(node)
    if not returns(loop.body):
        return node
    n = len(loop.state)
    targets = active_in_body(node, active)
    body = add_residuals(loop.body, [loop.body.inputs[i] for i in targets])
    extras = _closure(body, targets, body.outputs, set(body.inputs[n + len(loop.stacks):]).union(body.outputs[n:]))
    counted = loop.counted
    if loop.count is None and not counted:
        counted = (Value(python_scalar("py_int"), namer.fresh("count")),)
    if not extras and counted == loop.counted and body is loop.body:
        return node
    pushed = loop.pushed + tuple(Value(Stack(v.type), namer.fresh(f"{v.name}_stack")) for v in extras)
    return loop._replace(body=body.with_(outputs=body.outputs + tuple(extras)), pushed=pushed,
                         counted=counted).node(node)


def _closure(region: Graph, targets: Sequence[int], outputs: Sequence[Value], available: Set[Value]) -> List[Value]:
    """What the backward of a region reads besides what is available, when all of that may have gradients, too."""
    extras: Dict[Value, None] = {}
    while True:
        graph = region.with_(outputs=(*outputs, *extras))
        active = active_values(graph, [graph.inputs[i] for i in targets])
        given = [k for k, v in enumerate(graph.outputs) if v in active]
        more = missing_values(reverse(graph, targets, given).graph, graph, available.union(extras))
        if not more:
            return list(extras)
        extras.update(dict.fromkeys(more))


_RULES = {"if_": _branch, "while_": _loop, "scan": _loop}

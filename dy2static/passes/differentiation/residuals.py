"""Adds outputs to branches and loops for what their backward reads: the residuals."""
from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterable, List, Optional, Sequence, Set, Tuple

from ...ir.building import Builder
from ...ir.dims import Dim
from ...ir.graph import Graph, Node, Value
from ...ir.op import OPS
from ...ir.sizes_read import made_symbols
from ...ir.types import Extent, Stack, python_scalar
from ...ops.control import loop_of, returns
from .activity import active_in_body, active_values
from .cotangents import continue_graph, missing_sizes, missing_values, sizes_in
from .reverse import reverse


def add_residuals(graph: Graph, sources: Iterable[Value], namer: Optional[Builder] = None, in_loop: bool = False) -> Graph:
    """Add to branches and loops, as further outputs, the inner values that a gradient to the sources reads.

    A branch gives intermediate values, a loop pushes them (with the state as it was) and counts.  They are enough for
    gradients of any order: also what the gradients of these outputs read is there, and the sizes that each iteration
    finds out.  The old outputs are the same values as before; nodes that need nothing more are the same nodes.

    namer: names the outputs; a builder that knows the names of the graph, by default those of this graph only.
    in_loop: whether the graph is in the body of a loop.
    """
    active = active_values(graph, sources)
    namer = continue_graph(graph) if namer is None else namer
    nodes = tuple(_RULES[node.op.name](node, active, namer, in_loop)
                  if node.op.name in _RULES and not active.isdisjoint(node.inputs) else node for node in graph.nodes)
    return graph if nodes == graph.nodes else graph.with_(nodes=nodes)


def _branch(node: Node, active: Set[Value], namer: Builder, in_loop: bool) -> Node:
    regions = []
    extras: List[List[Value]] = []
    for region in node.regions:
        found: List[Value] = []
        if returns(region):
            targets = [j for j, x in enumerate(node.inputs[1:]) if x in active]
            region = add_residuals(region, [region.inputs[j] for j in targets], in_loop=in_loop)
            region = _with_sizes(region) if in_loop else region
            found = _closure(region, targets, region.outputs, {*region.inputs, *region.outputs})
        regions.append(region)
        extras.append(found)
    if not any(extras) and all(a is b for a, b in zip(regions, node.regions)):
        return node
    results = _paired(*extras)
    for side, region in enumerate(regions):
        if returns(region):
            builder = continue_graph(region)
            own = [pair[side] or builder.add(OPS["nothing"], (), {"type": pair[1 - side].type}, name=pair[1 - side].name)[0]
                   for pair in results]
            regions[side] = builder.build((*region.outputs, *own)).with_(name=region.name)
    outputs = node.outputs + tuple(Value(v.type, namer.fresh(v.name)) for v in [a or b for a, b in results])
    return replace(node, outputs=outputs, regions=tuple(regions))


def _paired(then: Sequence[Value], orelse: Sequence[Value]) -> List[Tuple[Optional[Value], Optional[Value]]]:
    """What a branch gives besides its results: values of one side each, but the numbers of one symbol, of both."""
    sizes = {v.type.symbol: v for v in orelse if isinstance(v.type, Extent)}
    first = [(v, sizes.pop(v.type.symbol, None) if isinstance(v.type, Extent) else None) for v in then]
    paired = {b for _, b in first}
    return [*first, *[(None, v) for v in orelse if v not in paired]]


def _loop(node: Node, active: Set[Value], namer: Builder, in_loop: bool) -> Node:
    loop = loop_of(node)
    if not returns(loop.body):
        return node
    n = len(loop.state)
    targets = active_in_body(node, active)
    body = _with_sizes(add_residuals(loop.body, [loop.body.inputs[i] for i in targets], in_loop=True))
    extras = _closure(body, targets, body.outputs, set(body.inputs[n + len(loop.stacks):]).union(body.outputs[n:]))
    counted = loop.counted
    if loop.count is None and not counted:
        counted = (Value(python_scalar("py_int"), namer.fresh("count")),)
    if not extras and counted == loop.counted and body is loop.body:
        return node
    pushed = loop.pushed + tuple(Value(Stack(v.type), namer.fresh(f"{v.name}_stack")) for v in extras)
    return loop._replace(body=body.with_(outputs=body.outputs + tuple(extras)), pushed=pushed,
                         counted=counted).node(node)


def _with_sizes(region: Graph) -> Graph:
    """The region of a loop with a value for the number of each symbol that it finds out: it differs by iteration."""
    known = sizes_in(region)
    builder = continue_graph(region.with_(nodes=()))
    for value in region.values():
        builder.fresh(value.name)
    for node in region.nodes:
        builder.nodes.append(node)
        for symbol, _, _ in made_symbols(node):
            if symbol not in known:
                builder.add(OPS["extent"], (), {"size": Dim(symbol)}, name="extent")
    return region if len(builder.nodes) == len(region.nodes) else builder.build(region.outputs).with_(name=region.name)


def _closure(region: Graph, targets: Sequence[int], outputs: Sequence[Value], available: Set[Value]) -> List[Value]:
    """What the backward of a region reads besides what is available, when all of that may have gradients, too."""
    extras: Dict[Value, None] = {}
    while True:
        graph = region.with_(outputs=(*outputs, *extras))
        active = active_values(graph, [graph.inputs[i] for i in targets])
        given = [k for k, v in enumerate(graph.outputs) if v in active]
        joint, there = reverse(graph, targets, given).graph, available.union(extras)
        more = [*missing_values(joint, graph, there), *missing_sizes(joint, graph, there)]
        if not more:
            return list(extras)
        extras.update(dict.fromkeys(more))


_RULES = {"if_": _branch, "while_": _loop, "scan": _loop}

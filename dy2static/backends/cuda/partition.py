"""The regions of a graph that become kernels: each is one ``native`` node of it."""
from __future__ import annotations

from dataclasses import replace
from typing import Collection, Dict, List, Sequence, Set

from ...ir.gpus import gpus_of
from ...ir.graph import Graph, Node, Value
from ...ir.sizes_read import made_symbols
from ...ir.types import Extent
from ...passes.effects import must_run
from ..compiled_calls import NATIVE
from ..cupy.several_gpus import gpu_of
from ..loops import layout
from ..run_sizes import symbols_of
from .emit import supported

#: Ops that only rename elements, or make numbers that stand in the text.
_RENAMING = frozenset((*layout.RULES, "reshape", "constant", "full"))


def divide(graph: Graph, kept: Collection[Value] = ()) -> Graph:
    """The graph with a node for each group of nodes that become kernels together, also inside of loops and branches.

    kept: values besides the outputs that are read afterwards.  Values keep their identity.  If there are several GPUs, each group
    is of one of them.  Linear in nodes times regions.
    """
    wanted = set(kept) | set(graph.outputs)
    are_several = len(gpus_of(graph)) > 1
    on_device = {node for node in graph.nodes if supported(node) and not _is_ordered(node) and (gpu_of(node) or not are_several)}
    by_level: Dict[int, List[Node]] = {}
    for node, level in _levels(graph, on_device).items():
        by_level.setdefault(level, []).append(node)
    nodes: List[Node] = []
    for level in sorted(by_level):
        inside: Dict[str, List[Node]] = {}
        for node in by_level[level]:
            if node in on_device:
                inside.setdefault(gpu_of(node) if are_several else "", []).append(node)
        for together in inside.values():
            nodes += _region(graph, together, on_device, wanted)
        nodes += [replace(node, regions=tuple(map(divide, node.regions))) if node.regions else node
                  for node in by_level[level] if node not in on_device]
    return graph.with_(nodes=tuple(nodes))


def _is_ordered(node: Node) -> bool:
    """Whether a node does something besides what it gives: it writes, draws, or calls Python."""
    return any(inner.op.effect for inner in node.walk())


def _levels(graph: Graph, on_device: Set[Node]) -> Dict[Node, int]:
    """The number of the region that each node is in: one more behind each node that is not on the device, and behind each that is
    ordered.  Nodes of one level that are on the device run first."""
    producer: Dict[object, Node] = {v: node for node in graph.nodes for v in node.outputs}
    producer.update({symbol: node for node in graph.nodes for inner in node.walk() for symbol, _, _ in made_symbols(inner)})
    found: Dict[Node, int] = {}
    barrier = highest = 0
    for node in graph.nodes:
        level = barrier
        for read in {*[v for inner in node.walk() for v in inner.inputs], *symbols_of(node)}:
            before = producer.get(read)
            if before is not None and before is not node:
                level = max(level, found[before] + (before not in on_device and node in on_device))
        highest = max(highest, level)
        if node not in on_device and (_is_ordered(node) or must_run(node)):
            level, barrier = highest, highest + 1
        found[node] = level
    return found


def _region(graph: Graph, nodes: Sequence[Node], on_device: Set[Node], wanted: Set[Value]) -> List[Node]:
    """The node for a region, and views that others read: behind it those of what the region gives, before it others."""
    inside, made = set(nodes), {v for node in nodes for v in node.outputs}
    readers: Dict[Value, List[Node]] = {}
    for node in graph.nodes:
        for value in {v for inner in node.walk() for v in inner.inputs}:
            readers.setdefault(value, []).append(node)
    leaving = {v for v in made if v in wanted or any(node not in inside for node in readers.get(v, ()))}
    views: List[Node] = []
    for node in reversed(nodes):
        if node.op.name in _RENAMING and not leaving.isdisjoint(node.outputs):
            views.insert(0, node)
            leaving -= set(node.outputs)
            leaving |= {v for v in node.inputs if v in made}
    live = set(leaving)
    kept: List[Node] = []
    for node in reversed(nodes):
        if not live.isdisjoint(node.outputs):
            kept.insert(0, node)
            live.update(node.inputs)
    if not any(node.op.name not in _RENAMING for node in kept):
        return list(nodes)
    kept = _with_sources(graph, kept, on_device)
    made = {v for node in kept for v in node.outputs}
    inputs = tuple(dict.fromkeys(v for node in kept for v in node.inputs if v not in made))
    inputs += tuple([Value(Extent(symbol), symbol) for symbol in sorted(set().union(*map(symbols_of, kept)))])
    outputs = tuple(v for node in kept for v in node.outputs if v in leaving)
    region = Graph(inputs, outputs, tuple(kept), "device")
    given, behind = set(outputs), []
    for view in views:
        if not given.isdisjoint(view.inputs):
            given.update(view.outputs)
            behind.append(view)
    node = Node(NATIVE, inputs, outputs, {"region": region}, (), kept[0].loc)
    return [*[view for view in views if view not in behind], node, *behind]


def _with_sources(graph: Graph, nodes: Sequence[Node], on_device: Set[Node]) -> List[Node]:
    """The nodes, and before them those of earlier regions that only rename elements, or are numbers."""
    producer = {v: node for node in graph.nodes for v in node.outputs}
    order = {node: k for k, node in enumerate(graph.nodes)}
    made, found = {v for node in nodes for v in node.outputs}, []
    waiting = [v for node in reversed(nodes) for v in node.inputs]
    while waiting:
        value = waiting.pop()
        source = producer.get(value)
        if value not in made and source in on_device and source.op.name in _RENAMING:
            made.update(source.outputs)
            found.append(source)
            waiting += source.inputs
    return sorted(found, key=order.__getitem__) + list(nodes)

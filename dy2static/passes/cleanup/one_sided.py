"""Decisions of which one side raises: the other side stands behind them."""
from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Optional, Tuple

from ...ir.graph import Graph, Node, Value
from ..effects import raises_always
from ..rewriting import with_inputs


def inline_returning_sides(graph: Graph) -> Graph:
    """Move the nodes of a decision's side behind it if the other side raises, as where a loop may leave `F.stack` nothing.

    Only the side that raises stays in the ``if_``, which has no results then.  What has been moved belongs to no decision any more:
    it may be native code, with its loops.  Decisions in loops stay as they are.  Linear in nodes + edges.
    """
    replaced: Dict[Value, Value] = {}

    def now(value: Value) -> Value:
        while value in replaced:
            value = replaced[value]
        return value

    nodes: List[Node] = []
    waiting = list(reversed(graph.nodes))
    while waiting:
        node = waiting.pop()
        node = with_inputs(node, tuple(map(now, node.inputs))) if replaced else node
        side = _returning(node)
        if side is None:
            nodes.append(node)
            continue
        region = node.regions[side]
        nodes.append(replace(node, outputs=(), regions=tuple([
            each.with_(nodes=() if each is region else _until_raised(each), outputs=()) for each in node.regions])))
        replaced.update(zip(region.inputs, node.inputs[1:]))
        replaced.update(zip(node.outputs, region.outputs))
        waiting += reversed(region.nodes)
    if not replaced:
        return graph
    return graph.with_(nodes=tuple(nodes), outputs=tuple(map(now, graph.outputs)))


def _returning(node: Node) -> Optional[int]:
    """The number of the side that does not raise, where the other one does."""
    if node.op.name != "if_":
        return None
    raising = [any(map(raises_always, region.nodes)) for region in node.regions]
    side = raising.index(False) if raising.count(True) == 1 else None
    if side is None or [v.type for v in node.regions[side].outputs] != [v.type for v in node.outputs]:
        return None
    return side


def _until_raised(region: Graph) -> Tuple[Node, ...]:
    last = next(k for k, node in enumerate(region.nodes) if raises_always(node))
    return region.nodes[:last + 1]

"""Which values may share memory: what an array that leaves the graph may be a view of."""
from __future__ import annotations

from typing import Iterable, Set, Tuple

from ...ir.graph import Graph, Node, Value
from ...ir.types import List, Stack
from ...ops.control import loop_of
from ..effects import OPEN_KINDS


def aliased_operands(node: Node) -> Tuple[Value, ...]:
    """The operands whose memory the outputs of a node may share."""
    if node.op.kind in OPEN_KINDS:
        return node.inputs
    return node.inputs[:1] if node.op.view else ()


def exposed_operands(node: Node) -> Tuple[Value, ...]:
    """The operands that unknown code sees, and may keep."""
    if node.op.kind in ("opaque", "effect"):
        return node.inputs
    if not node.regions:
        if node.op.kind != "native" and any([isinstance(v.type, (List, Stack)) for v in node.outputs]):
            return node.inputs                                 # its items outlive any plan
        return ()
    exposed: Set[Value] = set()
    for region in node.regions:
        held = held_values(region, ())
        exposed.update(x for x, inside in _entering(node, region) if inside in held)
    return tuple(v for v in node.inputs if v in exposed)


def held_values(graph: Graph, escaping: Iterable[Value]) -> Set[Value]:
    """The values whose memory code outside of the graph can hold.

    They are those that escape, those that unknown code sees, and every value that one of them may be a view of.
    Linear in nodes + edges, times the depth of regions.
    """
    held = set(escaping)
    for node in reversed(graph.nodes):
        exposed = exposed_operands(node)
        if exposed:
            held.update(exposed)
        if not held.isdisjoint(node.outputs):
            held.update(aliased_operands(node))
    return held


def _entering(node: Node, region: Graph) -> Iterable[Tuple[Value, Value]]:
    """The operands of a node with the inputs of a region that stand for them."""
    if node.op.name == "if_":
        return zip(node.inputs[1:], region.inputs)
    loop = loop_of(node)
    return zip(loop.state + loop.stacks + loop.invariants, region.inputs)

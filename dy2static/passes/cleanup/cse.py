"""Common subexpression elimination."""
from __future__ import annotations

from typing import Any, Dict, Hashable, List, Optional

import numpy as np

from ...ir.graph import Graph, Node, Value
from ...ir.types import place_of
from ..differentiation.activity import has_gradient
from ..effects import OPEN_KINDS, may_write
from ..memory.aliases import held_values
from ..rewriting import with_inputs, with_regions


def eliminate_common(graph: Graph) -> Graph:
    """Compute nodes of the same op, operands and attributes once.

    Linear in nodes + edges + bytes of the constants.  Nodes with effects, control flow and opaque nodes stay;
    in their regions the same is done.
    Nor are two sums of an input, whose gradients the user sees.
    Two values that somebody outside can hold are never merged: a user who gets two arrays may write into one of them.
    """
    held, entering = held_values(graph, graph.outputs), set(graph.inputs)
    replaced: Dict[Value, Value] = {}
    seen: Dict[Hashable, Node] = {}
    nodes: List[Node] = []
    changed = False
    for node in graph.nodes:
        before = node
        if replaced:
            node = with_inputs(node, tuple([replaced.get(v, v) for v in node.inputs]))
        node = with_regions(node, eliminate_common)
        changed = changed or node is not before
        if may_write(node):
            seen.clear()                            # it may have written into any array
        if node.op.view and node.inputs[0] in entering:
            entering.update(node.outputs)
        key = None if _is_spread(node) and node.inputs[0] in entering else _key(node)
        first = node if key is None else seen.setdefault(key, node)
        if first is node or not held.isdisjoint(node.outputs) and not held.isdisjoint(first.outputs):
            nodes.append(node)
            continue
        replaced.update(zip(node.outputs, first.outputs))
        held.update(replaced[v] for v in node.outputs if v in held)
    if not (replaced or changed):
        return graph
    return graph.with_(nodes=tuple(nodes), outputs=tuple(replaced.get(v, v) for v in graph.outputs))


def _is_spread(node: Node) -> bool:
    """Whether the gradient is one number seen many times, that cannot be written to; that of two such nodes can be."""
    return node.op.name in ("sum", "mean") and has_gradient(node.outputs[0].type)


def _key(node: Node) -> Optional[Hashable]:
    """What makes two nodes the same computation; None for a node that equals no other."""
    if node.op.effect or node.op.kind in OPEN_KINDS and node.op.name != "nothing" or node.op.name == "stop_gradient":
        return None                                     # behind each `stop_gradient` is a leaf of its own
    places = () if node.inputs else tuple([place_of(v.type) for v in node.outputs])        # those with operands are where these are
    key = (node.op.name, node.inputs, places, tuple([(name, frozen(node.attrs[name])) for name in sorted(node.attrs)]))
    try:
        hash(key)
    except TypeError:
        return None
    return key


#: Types whose values are the same where they are equal.
_EXACT = frozenset((bool, int, str, type(None)))


def frozen(attr: Any) -> Hashable:
    """An attribute as a key.  The bits of a number count, not its value: 0.0 is not -0.0, and 1 is not 1.0."""
    if attr.__class__ in _EXACT:
        return attr.__class__, attr
    if isinstance(attr, (np.ndarray, np.generic)):
        array = np.asarray(attr)
        return ("array", array.shape, array.dtype.str, array.tobytes() if array.dtype.kind != "O" else id(attr))
    if isinstance(attr, (tuple, list)):
        return (type(attr).__name__, tuple(frozen(item) for item in attr))
    if isinstance(attr, (bool, int, float)):
        return (type(attr).__name__, repr(attr))
    if isinstance(attr, slice):
        return ("slice", frozen(attr.start), frozen(attr.stop), frozen(attr.step))
    return attr

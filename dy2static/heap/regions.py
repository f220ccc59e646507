"""Regions: parts of the graph that a decision or a loop runs, closed over what they read from outside."""
from __future__ import annotations

from types import MappingProxyType
from typing import Mapping, Sequence, Tuple

from ..ir.building import Builder
from ..ir.graph import Graph, Node, Value
from ..passes.rewriting import with_inputs


def free_values(nodes: Sequence[Node], outputs: Sequence[Value]) -> Tuple[Value, ...]:
    """The values that nodes read, or that are outputs, and that none of the nodes makes; in order."""
    made = {v for node in nodes for v in node.outputs}
    read = [v for node in nodes for v in node.inputs] + list(outputs)
    return tuple(dict.fromkeys(v for v in read if v not in made))


def close(builder: Builder, nodes: Sequence[Node], outputs: Sequence[Value], captured: Sequence[Value], name: str,
          same: Mapping[Value, Value] = MappingProxyType({})) -> Graph:
    """The region of these nodes: what it reads from outside becomes its inputs.  same: what is read in place of some of them."""
    inner = {v: Value(v.type, builder.fresh(v.name)) for v in captured}
    inputs = tuple(inner.values())
    inner.update({v: inner[other] for v, other in same.items()})
    closed = tuple(with_inputs(node, tuple(inner.get(v, v) for v in node.inputs)) for node in nodes)
    return Graph(inputs, tuple(inner.get(v, v) for v in outputs), closed, name)

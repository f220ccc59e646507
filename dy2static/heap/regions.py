"""Regions: parts of the graph that a decision or a loop runs, closed over what they read from outside."""
from __future__ import annotations

from typing import Sequence, Tuple

from ..ir.building import Builder
from ..ir.graph import Graph, Node, Value
from ..passes.rewriting import with_inputs


def free_values(nodes: Sequence[Node], outputs: Sequence[Value]) -> Tuple[Value, ...]:
    """The values that nodes read, or that are outputs, and that none of the nodes makes; in order."""
    made = {v for node in nodes for v in node.outputs}
    read = [v for node in nodes for v in node.inputs] + list(outputs)
    return tuple(dict.fromkeys(v for v in read if v not in made))


def close(builder: Builder, nodes: Sequence[Node], outputs: Sequence[Value], captured: Sequence[Value], name: str) -> Graph:
    """The region of these nodes: what it reads from outside becomes its inputs."""
    inner = {v: Value(v.type, builder.fresh(v.name)) for v in captured}
    closed = tuple(with_inputs(node, tuple(inner.get(v, v) for v in node.inputs)) for node in nodes)
    return Graph(tuple(inner.values()), tuple(inner.get(v, v) for v in outputs), closed, name)

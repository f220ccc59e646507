"""What passes that replace nodes share: a node with other operands or regions, and a node as several others."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, List, Optional, Tuple

from ..ir.building import Builder, building
from ..ir.graph import Graph, Node, Value


def with_inputs(node: Node, inputs: Tuple[Value, ...]) -> Node:
    """The node with these operands; the node itself if they are the ones it has."""
    if node.inputs == inputs:                           # values are compared by identity
        return node
    return replace(node, inputs=inputs)


def with_regions(node: Node, change: Callable[[Graph], Graph]) -> Node:
    """The node with its regions changed; the node itself if nothing is."""
    if not node.regions:
        return node
    regions = tuple(change(region) for region in node.regions)
    if all(a is b for a, b in zip(node.regions, regions)):
        return node
    return replace(node, regions=regions)


def steps_of(node: Node, rule: Callable[..., Any], builder: Optional[Builder] = None) -> List[Node]:
    """The nodes that compute the values of a node; rule: makes them of its operands and attributes.

    builder: gives the values in between their names; by default one that knows no others.
    """
    builder = Builder("steps") if builder is None else builder
    builder.loc, before = node.loc, len(builder.nodes)
    with building(builder):
        results = rule(*node.inputs, **node.attrs)
    results = results if isinstance(results, tuple) else (results,)
    names = dict(zip(results, node.outputs))
    return [replace(new, inputs=tuple(names.get(v, v) for v in new.inputs), outputs=tuple(names.get(v, v) for v in new.outputs),
                    recomputed=node.recomputed)
            for new in builder.nodes[before:]]

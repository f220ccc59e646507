"""What passes that replace nodes share: a node with other operands or regions, values traced to what replaced them."""
from __future__ import annotations

from dataclasses import replace
from typing import Callable, Tuple

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

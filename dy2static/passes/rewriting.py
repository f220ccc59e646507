"""What passes that replace nodes share: a node with other operands, values traced to what they became."""
from __future__ import annotations

from dataclasses import replace
from typing import Tuple

from ..ir.graph import Node, Value


def with_inputs(node: Node, inputs: Tuple[Value, ...]) -> Node:
    """The node with these operands; the node itself if they are the ones it has."""
    if all(a is b for a, b in zip(node.inputs, inputs)):
        return node
    return replace(node, inputs=inputs)

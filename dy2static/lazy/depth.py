"""The bound on how many operations in a row wait to be computed."""
from __future__ import annotations

from typing import Dict

from . import nodes
from .evaluation import evaluate_nodes
from .nodes import TRACED, Node

#: An expression this deep is computed before more is built upon it.
MOST_DEPTH = 128


def keep_shallow(node: Node) -> None:
    """Compute a node whose depth is above the bound, unless operands that have been computed since have made it shallow."""
    with nodes.lock:
        depth = _depth(node, {})
    if depth > MOST_DEPTH:
        evaluate_nodes((node,))


def _depth(node: Node, known: Dict[Node, int]) -> int:
    """How many operations lead to a node now.  Depths that were noted when nodes were built are brought up to date."""
    if node.result is not None:
        return 0
    if node.depth >= TRACED:                            # below a gradient, whose expression counts as one operation
        return 1
    found = known.get(node)
    if found is None:
        found = 1 + max([_depth(arg, known) for arg in node.args if type(arg) is Node], default=0)
        node.depth = known[node] = found
    return found

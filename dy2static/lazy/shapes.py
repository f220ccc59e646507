"""Shape and dtype of a node that has not been computed: by the types of its operands, or by the graph of its program."""
from __future__ import annotations

from typing import Any, Tuple

import numpy as np

from . import nodes
from .evaluation import chosen_backend, result_of
from .nodes import Node
from .structures import Plan, structures


def type_of(node: Node) -> Tuple[Tuple[int, ...], np.dtype]:
    """Shape and dtype of a node.  Where only its values tell, it is computed.

    Raises what NumPy raises for operands that do not fit.
    """
    result = node.result
    if result is not None:
        return result.shape, result.dtype
    if node.type is None:
        node.type = _of_graph(node)
    if node.type is None:
        result = result_of(node)
        return result.shape, result.dtype
    found: Tuple[Tuple[int, ...], np.dtype] = node.type
    return found


def _of_graph(node: Node) -> Any:
    """Shape and dtype that the compiled function of a node gives; None where it does not say."""
    with nodes.lock:
        if node.result is not None:
            return node.result.shape, node.result.dtype
        plan = Plan((node,), only=True)
        structure = structures.of(plan.key)
    return structure.type_of_result(plan.leaves, chosen_backend.get())

"""Shape and dtype of a node that has not been computed: by its value if that is small, or by the graph of its program."""
from __future__ import annotations

from typing import Any, Tuple

import numpy as np

from . import nodes
from .evaluation import chosen_backend, compute_small, result_of
from .nodes import Node, as_result
from .structures import Plan, structures


def type_of(node: Node) -> Tuple[Tuple[int, ...], np.dtype]:
    """Shape and dtype of a node.  Where only its values tell, it is computed.

    Raises what NumPy raises for operands that do not fit.
    """
    result = node.result
    if result is not None:
        return result.shape, result.dtype
    if node.type is None:
        _find(node)
    known = node.type
    if known is None:
        known = result_of(node)
    return known if type(known) is tuple else (known.shape, known.dtype)


def _find(node: Node) -> None:
    """Find out the type of a node: by its value if that is small, else by the program that would compute it, if that says."""
    if compute_small((node,), _note):
        return
    with nodes.lock:
        if node.result is not None:
            return
        plan = Plan((node,), only=True)
        structure = structures.of(plan.key)
    node.type = structure.type_of_result(plan.leaves, chosen_backend.get())


def _note(node: Node, value: Any) -> None:
    """Keep a value for the type.  How it is computed is kept, too: gradients may be taken."""
    if node.result is None:
        node.type = as_result(value)

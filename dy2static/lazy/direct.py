"""Evaluation without a program: NumPy computes each operation, as if the line that built it ran now."""
from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from . import nodes
from .calls import applied
from .nodes import TRACED, Node, as_result, settle
from .sites import caller_of, show_place, site_of

_lock = nodes.lock


class _Left(Exception):
    """Something is left to a program."""


def compute(wanted: Sequence[Node], most: float, store: Callable[[Node, Any], None] = settle) -> bool:
    """Compute nodes and what they need, operands first, and store each value at once, so that it goes when nobody needs it.

    store: is called with a node and its value while the lock of `nodes` is held.

    False where a value has more than ``most`` elements, and for gradients, which only programs know: the rest is left.
    Raises what NumPy raises, with the line that built the operation.
    """
    try:
        for node in wanted:
            if node.result is None:
                _value(node, most, store)
    except _Left:
        return False
    return True


def _value(node: Node, most: float, store: Callable[[Node, Any], None]) -> Any:
    """The value of a node.  `depth` bounds how deep it calls itself."""
    op, args = node.op, node.args                       # before the result, which another thread may store now
    value = node.result if node.result is not None else node.type
    if value is None or type(value) is tuple:
        if node.depth >= TRACED:
            raise _Left
        given = []
        for arg in args:
            if type(arg) is Node:
                there = arg.result
                if there is None:
                    there = _value(arg, most, store)
                if there.size > most:
                    raise _Left
                given.append(there)
            else:
                given.append(arg)
        try:
            value = applied(op, given, caller_of(node))
        except Exception as error:
            raise show_place(error, site_of(node)) from error.__cause__
        if type(value) is not np.ndarray:
            value = as_result(value)
    with _lock:
        store(node, value)
    return value

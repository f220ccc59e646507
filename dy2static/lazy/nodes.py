"""One value of a lazy expression: what computes it, from which other values, and what it is once that has been computed."""
from __future__ import annotations

from typing import Any, Tuple

import numpy as np

from ..threads import locks

#: Held while an expression is read or results are stored; computing happens outside of it.
lock = locks.lock()

#: Held while an array gets a new version, so that no write of another thread is lost.  It is taken before ``lock``, not behind it.
writing = locks.lock()

#: The depth of what gradients are taken by and of all that is built of it: such nodes keep how they are computed.
TRACED = 1 << 20

_new = object.__new__

#: The operation of a node that was computed, and no longer says how.
COMPUTED = "computed"

#: The operation of what stands for an array by which gradients are taken.
FRESH = "({}).copy()"

#: Python's numbers, which enter expressions as they are.
NUMBERS = frozenset({int, float, complex, bool})


class Node:
    """A value that never changes.  Writes to a lazy array give it another node.

    op: what computes it: the text of an operator with holes, a ufunc, or a `Call`; None of a value that is there.
    args: its operands: nodes and numbers.  code, last: the code object that built it, and the instruction there.
    depth: how many operations lead to it, at most; 0 of a value that is there.
    result: an array or a NumPy scalar; None before it has been computed.  type: once somebody asked, shape and dtype, or
    the value that tells them (how it is computed is kept: gradients may be taken).  Of an element of a value that is there: a weak
    reference to that node, the `Call` and its numbers; gradients go through it while that one is there.
    origin: of a `FRESH` node, which of the arrays that gradients are taken by it stands for.
    """

    __slots__ = ("op", "args", "code", "last", "depth", "result", "type", "origin", "__weakref__")

    op: Any
    args: Tuple[Any, ...]
    code: Any
    last: int
    depth: int
    result: Any
    type: Any
    origin: Any


def leaf(result: Any, op: Any = None) -> Node:
    """The node of an array or NumPy scalar that exists already and is never changed.

    op: `COMPUTED` of what was made of other nodes.
    """
    node: Node = _new(Node)
    node.op, node.args, node.code, node.last, node.depth, node.result, node.type = op, (), None, 0, 0, result, None
    return node


def call_node(op: Any, args: Tuple[Any, ...], frame: Any) -> Node:
    """The node of an operation that is called in a frame."""
    depth = 0
    for arg in args:
        if type(arg) is Node and arg.depth > depth:
            depth = arg.depth
    node: Node = _new(Node)
    node.op, node.args, node.code, node.last, node.depth = op, args, frame.f_code, frame.f_lasti, depth + 1
    node.result = node.type = None
    return node


def as_result(value: Any) -> Any:
    """A value as an array or NumPy scalar."""
    return value if isinstance(value, (np.ndarray, np.generic)) else np.asarray(value)[()]


def settle(node: Node, result: Any) -> None:
    """Give a node its result, if it has none yet, and let go of what it was computed from.  The lock is held."""
    if node.result is None:
        node.result = as_result(result)
        if node.depth < TRACED:
            node.op, node.args, node.depth, node.type = COMPUTED, (), 0, None

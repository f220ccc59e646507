"""Operands that lie the other way round, such as a transposed array that is added to one in order.

A loop over neighbouring elements of the result would read one element of each line of such an operand.  So the two innermost
loops run in squares: what they read of the operand is turned first, into a buffer in which neighbours stand side by side.
"""
from __future__ import annotations

from typing import List, Mapping

from ..loops.ir import Accumulate, Address, Apply, Expression, Load, LoopNest, Part, Sweep
from ..loops.order import LEAST_TURNED, may_turn
from ..loops.schedule import OWN_BYTES

#: Rows and columns of a square at most.
HEIGHT, WIDTH = 16, 64


def turned_loads(nest: LoopNest, sweep: Sweep) -> List[Load]:
    """The loads to turn: elements are apart along the innermost loop, and side by side along the loop around it.

    Empty unless all that the sweep does is to fill memory in the order of the innermost loop, or if buffers would be too large.
    """
    if nest.split is not None or len(nest.inner) < 2 or sweep.block or sweep.reductions:
        return []
    *_, axis, inner = nest.inner
    if not all(isinstance(a.size, int) and a.size >= LEAST_TURNED for a in (axis, inner)):
        return []
    found: List[Load] = []
    for statement in sweep.body:
        if isinstance(statement, Accumulate):
            return []
        store = getattr(statement, "store", None)
        if store is not None and _stride(store, inner.name) != 1:
            return []
        _collect(statement.expression, axis.name, inner.name, found)
    loads = list(dict.fromkeys(found))
    return loads if sum(load.array.dtype.itemsize for load in loads) * HEIGHT * WIDTH <= OWN_BYTES else []


def corner(load: Load, starts: Mapping[str, str]) -> Address:
    """Where a load finds the first element of a square; starts: where the square begins, by loops."""
    address = load.address
    return Address(address.offset, tuple((index if isinstance(index, Part) else starts.get(index, index), stride)
                                         for index, stride in address.terms))


def _collect(expression: Expression, axis: str, inner: str, found: List[Load]) -> None:
    if isinstance(expression, Apply):
        for operand in expression.operands:
            _collect(operand, axis, inner, found)
    elif isinstance(expression, Load) and may_turn(expression.array.dtype):
        address = expression.address
        if _stride(address, axis) == 1 and _stride(address, inner) not in (0, 1):
            found.append(expression)


def _stride(address: Address, loop: str) -> object:
    """How far apart elements are from one turn of a loop to the next."""
    return next((stride for index, stride in address.terms if index == loop), 0)

"""``item in items`` where the run decides: of numbers, and of arrays, for backends that ask."""
from __future__ import annotations

from functools import reduce
from typing import Any, Optional

from ... import ops
from ...ir.graph import Value
from ...ir.types import Scalar, Tensor
from ...ops import scalar
from .elements import compared
from .operands import is_array, operand

#: A number is compared with so many others one by one.
_MOST_COMPARED = 64


def in_array(type_: Tensor, x: Any, item: Any) -> Optional[Value]:
    """The rule of ``item in x``: whether some element is equal to a number."""
    if not is_array(x) or x.dtype.kind not in "biuf" or is_array(item) and item.ndim:
        return None
    number = operand(item, x.dtype)
    found = ops.equal(x, number) if number is not None else compared(ops.equal)(type_, x, item)
    return None if found is None else ops.any(found)


def is_among(items: Any, item: Any) -> Optional[Value]:
    """A bool of Python's: whether a number is equal to one of these, each of which is known or one that the run computes.

    None where that cannot be said in ops.  Texts and None, which no number is equal to, are left out.
    """
    if type(items) is range and items.step == 1 and len(items) > 1:
        low, high = _compared(item, items.start, ">="), _compared(item, items.stop, "<")
        return None if low is None or high is None else scalar.py_and(low, high)     # type: ignore[no-any-return]
    if type(items) not in (tuple, range) or len(items) > _MOST_COMPARED:
        return None
    found = [_compared(item, other, "==") for other in items if not (other is None or isinstance(other, str))]
    if any(one is None for one in found):
        return None
    return reduce(scalar.py_or, found) if found else scalar.py_constant(value=False)     # type: ignore[arg-type]


def _compared(a: Any, b: Any, op: str) -> Optional[Value]:
    a, b = _number(a), _number(b)
    return None if a is None or b is None else scalar.py_compare(a, b, op=op)     # type: ignore[no-any-return]


def _number(item: Any) -> Optional[Value]:
    """A number of Python's in the graph; of NumPy's, ints and bools, whose values it has."""
    if type(item) in (bool, int, float):
        return scalar.py_constant(value=item)           # type: ignore[no-any-return]
    if not isinstance(item, Value):
        return None
    if isinstance(item.type, Scalar) and item.type.kind != "numpy":
        return item
    if item.dtype.kind not in "bi" or item.shape != ():
        return None
    return scalar.item(item if is_array(item) else ops.scalar_to_tensor(item, dtype=item.dtype))     # type: ignore[no-any-return]

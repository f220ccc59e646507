"""Rules for functions of each element that several ops compute.  They are for backends that ask: the last bits may differ."""
from __future__ import annotations

import math
from typing import Any, Callable, Optional, Sequence, Tuple

import numpy as np

from ... import ops
from ...ir.building import constant
from ...ir.graph import Value
from ...ir.op import OpDef
from ...ir.types import Tensor
from .exact import Rule
from .operands import is_array, operand, operands

#: The most values that an array is compared with one by one.
_MOST_COMPARED = 64
#: The kinds of arrays that are compared in the dtype that holds both, in the order of the alphabet; and those without a number, of
#: which NumPy 1 looks at the value.
_COMPARED, _COMPARED_ARRAYS = ("b", "f", "i", "u", "bf", "bi", "bu"), ("fi", "fu")
#: The most decimals by which a point is shifted: powers of ten up to this one are exact in double precision.
_MOST_DECIMALS = 22


def in_result_dtype(op: Any, kinds: str = "f") -> Rule:
    """The rule of a function that computes in the dtype of its result: arrays, numbers and NumPy's numbers are cast to it."""
    def rule(type_: Tensor, *args: Any) -> Optional[Value]:
        values = _cast(args, type_.dtype) if type_.dtype.kind in kinds else None
        return None if values is None else op(*values)
    return rule


def compared(op: OpDef) -> Rule:
    """The rule of a comparison of arrays that differ in dtype, where both fit into one, and with True or False."""
    def rule(type_: Tensor, a: Any, b: Any) -> Optional[Value]:
        a, b = (constant(np.bool_(x)) if type(x) is bool else x for x in (a, b))
        kinds = "".join(sorted({x.dtype.kind for x in (a, b)})) if is_array(a) and is_array(b) else ""
        if kinds not in _COMPARED and not (kinds in _COMPARED_ARRAYS and a.ndim and b.ndim):
            return None
        values = _cast((a, b), np.promote_types(a.dtype, b.dtype))
        return None if values is None else op(*values)
    return rule


def of_truths(op: Callable[..., Value]) -> Rule:
    """The rule of a function of truths: an element is true if it is not zero."""
    def rule(type_: Tensor, *args: Any) -> Optional[Value]:
        truths = [truth(x) for x in args]
        return None if type_.dtype.kind != "b" or any(x is None for x in truths) else op(*truths)
    return rule


def of_bits(of_bools: Callable[..., Value], of_ints: OpDef) -> Rule:
    """The rule of an operator on bits, of bools and of ints."""
    truths, ints = of_truths(of_bools), in_result_dtype(of_ints, "iu")

    def rule(type_: Tensor, *args: Any) -> Optional[Value]:
        return (truths if all(is_array(x) and x.dtype.kind == "b" for x in args) else ints)(type_, *args)
    return rule


def truth(x: Any) -> Optional[Value]:
    """Which elements of an array are not zero."""
    if not is_array(x) or x.dtype.kind not in "biuf":
        return None
    return x if x.dtype.kind == "b" else ops.not_equal(x, constant(x.dtype.type(0)))


def tested(op: OpDef) -> Rule:
    """The rule of a question about floats."""
    return lambda type_, x: op(x) if is_array(x) and x.dtype.kind == "f" else None


def isinf(x: Value) -> Value:
    """Which elements are infinite."""
    return ops.equal(ops.abs(x), constant(x.dtype.type(np.inf)))


def rounded(type_: Tensor, a: Any, decimals: Any = 0) -> Optional[Value]:
    """The rule of ``np.round``, which shifts the point, rounds, and shifts it back."""
    if not is_array(a) or a.dtype.kind != "f" or type(decimals) is not int:
        return None
    power = operand(10 ** abs(decimals), a.dtype) if abs(decimals) <= _MOST_DECIMALS else None
    if power is None:
        return None
    first, second = (ops.mul, ops.div) if decimals > 0 else (ops.div, ops.mul)
    return second(ops.rint(first(a, power)), power) if decimals else ops.rint(a)


def nan_to_num(type_: Tensor, x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Optional[Value]:
    """The rule of ``np.nan_to_num``."""
    if not is_array(x) or x.dtype.kind != "f" or copy is not True:
        return None
    largest, infinity = float(np.finfo(x.dtype).max), x.dtype.type(np.inf)
    high, low = largest if posinf is None else posinf, -largest if neginf is None else neginf
    numbers = [operand(given, x.dtype) for given in (nan, high, low)]
    if any(number is None for number in numbers):
        return None
    y = ops.where(ops.isnan(x), numbers[0], x)
    y = ops.where(ops.equal(x, constant(infinity)), numbers[1], y)
    return ops.where(ops.equal(x, constant(-infinity)), numbers[2], y)


def where(type_: Tensor, condition: Any, a: Any, b: Any) -> Optional[Value]:
    """The rule of ``np.where`` of values that are cast, by any condition."""
    keep, values = truth(condition), _cast((a, b), type_.dtype, needs_array=False)
    return None if keep is None or values is None else ops.where(keep, *values)


def selected(type_: Tensor, condlist: Any, choicelist: Any, default: Any = 0) -> Optional[Value]:
    """The rule of ``np.select``: the first choice whose condition holds."""
    if not all(type(items) in (list, tuple) for items in (condlist, choicelist)) or not all(
            is_array(x) and x.dtype.kind == "b" for x in condlist):
        return None
    values = _cast((*choicelist, default), type_.dtype, needs_array=False)
    if values is None:
        return None
    y = ops.broadcast_to(values[-1], shape=type_.shape)
    for keep, value in reversed(list(zip(condlist, values))):
        y = ops.where(keep, value, y)
    return y


def chosen(compare: OpDef) -> Rule:
    """The rule of Python's ``max`` or ``min`` of numbers of NumPy: the first of the largest, or of the smallest."""
    def rule(type_: Tensor, *numbers: Any) -> Optional[Value]:
        values = operands(numbers, type_.dtype) if len(numbers) > 1 and not type_.shape else None
        if values is None or not all(is_array(x) for x in numbers):
            return None
        y = values[0]
        for value in values[1:]:
            y = ops.where(compare(value, y), value, y)
        return y
    return rule


def heaviside(x: Value, at_zero: Value) -> Value:
    """0 below zero, 1 above, a value at zero."""
    zero, one = (constant(x.dtype.type(n)) for n in (0, 1))
    y = ops.where(ops.greater(x, zero), one, ops.where(ops.less(x, zero), zero, x))
    return ops.where(ops.equal(x, zero), at_zero, y)


def negated(x: Value) -> Value:
    """0 - x, which unsigned ints take round."""
    return ops.sub(constant(x.dtype.type(0)), x)


def reciprocal(x: Value) -> Value:
    """1 / x."""
    return ops.div(constant(x.dtype.type(1)), x)


def hypot(a: Value, b: Value) -> Value:
    """The root of the sum of squares, which does not overflow where the root does not: of the larger number, and the quotient."""
    a, b = ops.abs(a), ops.abs(b)
    large, small = ops.maximum(a, b), ops.minimum(a, b)
    zero, one, infinity = (constant(large.dtype.type(n)) for n in (0, 1, np.inf))
    quotient = small / ops.where(ops.equal(large, zero), one, large)
    root = large * ops.sqrt(quotient * quotient + 1.0)
    is_infinite = ops.logical_or(ops.equal(a, infinity), ops.equal(b, infinity))
    return ops.where(is_infinite, infinity, root)


def sinc(x: Value) -> Value:
    """The quotient sin(pi x) / (pi x), and 1 at zero, for which NumPy takes a small number."""
    y = ops.where(ops.equal(x, constant(x.dtype.type(0))), constant(x.dtype.type(1e-20)), x) * math.pi
    return ops.sin(y) / y


def multiplied(factor: float) -> Callable[[Value], Value]:
    """The function that multiplies by a number."""
    return lambda x: x * factor


def among(type_: Tensor, element: Any, test_elements: Any) -> Optional[Value]:
    """The rule of ``np.isin`` with a few known numbers."""
    if not is_array(element) or type(test_elements) not in (list, tuple) or not 0 < len(test_elements) <= _MOST_COMPARED:
        return None
    values = [operand(item, element.dtype) for item in test_elements]
    if any(value is None for value in values):
        return None
    found = [ops.equal(element, value) for value in values]
    y = found[0]
    for other in found[1:]:
        y = ops.logical_or(y, other)
    return y


def _cast(items: Sequence[Any], dtype: np.dtype, needs_array: bool = True) -> Optional[Tuple[Value, ...]]:
    """All operands in this dtype; None where one does not fit, or may lose something but digits."""
    if needs_array and not any(map(is_array, items)):
        return None
    found = []
    for item in items:
        if is_array(item) and item.dtype != dtype:
            if item.dtype.kind not in "biuf" or not np.can_cast(item.dtype, dtype, "same_kind") or (
                    not item.ndim and item.dtype.kind == dtype.kind == "f" and item.dtype.itemsize > dtype.itemsize):
                return None
            item = ops.cast(item, dtype=dtype)
        elif type(item) is bool and dtype.kind == "b":
            item = constant(np.bool_(item))
        elif isinstance(item, np.generic):
            item = constant(dtype.type(item)) if np.can_cast(item.dtype, dtype, "same_kind") else None
        else:
            item = operand(item, dtype)
        if item is None:
            return None
        found.append(item)
    return tuple(found)

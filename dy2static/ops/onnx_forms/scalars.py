"""Numbers as nodes of ONNX: a number is a 0-d array, an int of Python's has 64 bits."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ...ir.onnx_forms import Form, Name, NotInOnnx, OnnxWriter
from ...ir.types import Type
from .arithmetic import Rule, apply, int_power, power, truth


def of_numbers(form: Form) -> Rule:
    """The form for numbers in the dtype of the result."""
    def rule(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], *operands: Name, **attrs: Any) -> Any:
        return apply(form, o, types, results, [o.cast(x, results[0].dtype) for x in operands], attrs)
    return rule


def compare(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], a: Name, b: Name, *, op: str) -> Name:
    """A comparison, in the dtype that NumPy takes for both."""
    dtype = np.promote_types(o.dtype(a), o.dtype(b))
    a, b = o.cast(a, dtype), o.cast(b, dtype)
    names = {"<": "Less", "<=": "LessOrEqual", ">": "Greater", ">=": "GreaterOrEqual", "==": "Equal", "!=": "Equal"}
    y = o.node(names[op], a, b)
    return o.node("Not", y) if op == "!=" else y


def power_of_numbers(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], a: Name, b: Name) -> Name:
    """``a ** b``; an int has no negative power here."""
    dtype = results[0].dtype
    if dtype.kind in "iu":
        return int_power(o, o.cast(a, dtype), o.cast(b, dtype))
    return power(o, types, results, o.cast(a, dtype), o.cast(b, dtype))


def py_not(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name) -> Name:
    """Whether a number is zero."""
    return o.node("Not", truth(o, x))


def py_constant(o: OnnxWriter, types: Sequence[Type], results: Sequence[Any], *, value: Any) -> Name:
    """A number."""
    if isinstance(value, int) and not -2 ** 63 <= value < 2 ** 63:
        raise NotInOnnx(f"{value} has more than 64 bits")
    return o.constant(value, results[0].dtype)


def converted(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, **attrs: Any) -> Name:
    """A number, or the one in an array, in the dtype of the result."""
    if types[0].shape != ():
        x = o.node("Reshape", x, o.constant(np.zeros(0, np.int64)))
    return o.cast(x, results[0].dtype)


def size(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], x: Name, *, axis: int) -> Name:
    """The size of an axis."""
    return o.node("Gather", o.shape_of(x), o.constant(axis, np.int64), axis=0)


def dimension(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], *, size: Any) -> Name:
    """A size as a number."""
    return o.size(size)

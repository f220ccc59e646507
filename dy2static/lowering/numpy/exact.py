"""Rules that do exactly what a call of NumPy does: the same bits, the same dtype, the same memory."""
from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

import numpy as np

from ... import ops
from ...ir.graph import Value
from ...ir.types import Tensor
from .operands import is_array, is_basic, operand, operands, stacked, widened

#: ``rule(type, *args, **kwargs) -> Value | None``: emits ops for a call whose arrays are values, and whose result has
#: this type.  None declines.  A rule has no parameters but those that it heeds.
Rule = Callable[..., Optional[Value]]


def elementwise(op: Any, kinds: str = "f") -> Rule:
    """The rule of a function that computes in the dtype of its result, to which NumPy casts its operands."""
    def rule(type_: Tensor, *args: Any) -> Optional[Value]:
        values = operands([widened(x, type_.dtype) for x in args], type_.dtype) if type_.dtype.kind in kinds else None
        return None if values is None else op(*values)
    return rule


def comparison(op: Any) -> Rule:
    """The rule of a function that compares its operands in the dtype of the first array.

    NumPy 1 compares floats in float64 with a number of Python's that does not fit, and its own floats (no axes) with any number.
    """
    def rule(type_: Tensor, a: Any, b: Any) -> Optional[Value]:
        values = operands(_compared(a, b))
        return None if values is None else op(*values)
    return rule


def _compared(a: Any, b: Any) -> Tuple[Any, ...]:
    """The operands of a comparison; an array of floats beside a number of Python's in the dtype that NumPy takes for both."""
    arrays = [x for x in (a, b) if is_array(x)]
    if len(arrays) != 1 or arrays[0].dtype.kind != "f":
        return a, b
    number = next((x for x in (a, b) if type(x) in (int, float)), 1.0)
    dtype = np.result_type(np.zeros((1,) * min(arrays[0].ndim, 1), arrays[0].dtype), number)
    return tuple([ops.cast(x, dtype=dtype) if x is arrays[0] and dtype.kind == "f" and x.dtype != dtype else x for x in (a, b)])


def of_bools(op: Any) -> Rule:
    """The rule of a function of truths, which takes arrays of bools only."""
    def rule(type_: Tensor, *args: Any) -> Optional[Value]:
        are_bools = all(is_array(x) and x.dtype.kind == "b" for x in args)
        return op(*args) if are_bools else None
    return rule


def astype(type_: Tensor, x: Value, dtype: Any, copy: bool = True) -> Optional[Value]:
    """The rule of ``x.astype(dtype)``."""
    if x.dtype != type_.dtype:
        return ops.cast(x, dtype=type_.dtype)
    return ops.copy(x) if copy is True else ops.identity(x) if copy is False else None


def copy(type_: Tensor, x: Value) -> Value:
    """The rule of ``x.copy()``."""
    return ops.copy(x)


def reshape(type_: Tensor, x: Value, *shape: Any) -> Optional[Value]:
    """The rule of ``x.reshape(*shape)``: the shape is that of the result.  An order may come last."""
    has_order = shape and isinstance(shape[-1], str)
    return None if has_order or not is_array(x) else ops.reshape(x, shape=type_.shape)


def getitem(type_: Tensor, x: Value, key: Any) -> Optional[Value]:
    """The rule of ``x[key]`` for a key of known ints and slices."""
    entries = key if type(key) is tuple else (key,)
    return ops.getitem(x, index=entries) if all(map(is_basic, entries)) else None


def transpose(type_: Tensor, x: Value, *axes: Any) -> Optional[Value]:
    """The rule of ``x.transpose(*axes)``."""
    axes = axes[0] if len(axes) == 1 and type(axes[0]) in (tuple, list) else axes
    return ops.transpose(x, axes=tuple(axes) or None) if all(type(axis) is int for axis in axes) else None


def reduction(op: Any) -> Rule:
    """The rule of a reduction over known axes."""
    def rule(type_: Tensor, x: Any, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
        x = stacked(x)
        axes = axis if type(axis) is tuple else () if axis is None else (axis,)
        is_plain = all(type(a) is int for a in axes) and type(keepdims) is bool
        return op(x, axis=axis, keepdims=keepdims) if is_plain and is_array(x) else None
    return rule


def full(value: Any) -> Rule:
    """The rule of a function that makes an array of this value only."""
    def rule(type_: Tensor, shape: Any, dtype: Any = None) -> Value:
        return ops.full(shape=type_.shape, value=value, dtype=type_.dtype)
    return rule


def filled(type_: Tensor, shape: Any, fill_value: Any, dtype: Any = None) -> Optional[Value]:
    """The rule of ``np.full`` with a number that is known."""
    number = operand(fill_value, type_.dtype) if type(fill_value) in (int, float) else None
    return None if number is None else ops.full(shape=type_.shape, value=fill_value, dtype=type_.dtype)


def broadcast_to(type_: Tensor, x: Value, shape: Any) -> Value:
    """The rule of ``np.broadcast_to``."""
    return ops.broadcast_to(x, shape=type_.shape)


def argument(op: Any) -> Rule:
    """The rule of ``argmax`` or ``argmin`` along one axis."""
    def rule(type_: Tensor, x: Value, axis: Any = None) -> Optional[Value]:
        return op(x, axis=axis) if type(axis) is int else None
    return rule


def joined(op: Any) -> Rule:
    """The rule of a function that joins a sequence of arrays of one dtype along an axis."""
    def rule(type_: Tensor, arrays: Any, axis: Any = 0) -> Optional[Value]:
        values = operands(arrays, type_.dtype) if type(arrays) in (tuple, list) and type(axis) is int else None
        same = values is not None and all(isinstance(x, Value) for x in arrays)
        return op(*values, axis=axis) if values is not None and same else None
    return rule


def where(type_: Tensor, condition: Value, a: Any, b: Any) -> Optional[Value]:
    """The rule of ``np.where`` with an array of bools and two values of the dtype of the result."""
    values = operands((a, b), type_.dtype)
    return None if values is None or condition.dtype.kind != "b" else ops.where(condition, *values)

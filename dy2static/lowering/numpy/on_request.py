"""Rules for backends that ask for more: their last bits differ from NumPy's, or they take several nodes."""
from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from ... import ops
from ...ir.building import constant
from ...ir.graph import Value
from ...ir.op import OpDef
from ...ir.template import AT
from ...ir.types import Scalar, Tensor
from ...ops.indexing import picked
from . import exact
from .exact import Rule
from .operands import is_array, is_basic, operand, operands


def item_at(type_: Tensor, x: Any, key: Any) -> Optional[Value]:
    """``x[key]`` where the key holds ints, slices and lists of ints, also ints and arrays of ints that only the run knows."""
    entries = tuple(map(_listed, key)) if type(key) is tuple else (_listed(key),)
    place = place_in(x, entries)
    if place is None:
        return None
    index, numbers = place
    return picked(x, *numbers, index=index)


def place_in(x: Any, key: Any) -> Optional[Tuple[Tuple[Any, ...], Tuple[Value, ...]]]:
    """An index with `AT` in place of its numbers, and these numbers; if one is an array, all are."""
    entries = key if type(key) is tuple else (key,)
    if not is_array(x) or not all(map(_is_basic_or_int, entries)):
        return None
    numbers = [entry for entry in entries if isinstance(entry, Value)]
    if any(map(is_array, numbers)):
        numbers = [n if is_array(n) else ops.scalar_to_tensor(n, dtype=np.dtype("int64")) for n in numbers]
    return tuple(AT if isinstance(entry, Value) else entry for entry in entries), tuple(numbers)


def _listed(entry: Any) -> Any:
    """A list of ints in a key as an array of the graph."""
    return constant(np.array(entry)) if type(entry) is list and entry and all(type(n) is int for n in entry) else entry


def _is_basic_or_int(entry: Any) -> bool:
    if isinstance(entry, Value):
        return is_array(entry) and entry.dtype.kind in "iu" or isinstance(entry.type, Scalar) and (
            entry.type.kind in ("py_int", "numpy") and entry.dtype.kind in "iu")
    return is_basic(entry)


def number_of(function: Any) -> Optional[Rule]:
    """The rule for casts such as ``np.float32``: a number in another type."""
    if not isinstance(function, type) or not issubclass(function, np.generic) or np.dtype(function).kind not in "iuf":
        return None
    dtype = np.dtype(function)

    def rule(type_: Tensor, item: Any) -> Optional[Value]:
        if not isinstance(item, Value) or type_ != Tensor((), dtype):
            return None
        if item.type.kind == "numpy" if isinstance(item.type, Scalar) else is_array(item):
            array = item if is_array(item) else ops.scalar_to_tensor(item, dtype=item.dtype)
            return ops.cast(array, dtype=dtype) if array.ndim == 0 and array.dtype.kind == dtype.kind == "f" else None
        is_plain = item.type.kind in ("py_int", "py_float") and (dtype.kind == "f" or item.type.kind == "py_int")
        return ops.scalar_to_tensor(item, dtype=dtype) if is_plain else None
    return rule


def fixed(type_: Tensor, item: Any) -> Optional[Value]:
    """``np.positive``, or ``np.bool_``, of a number that is known: the number."""
    return constant(type_.dtype.type(item)) if type(item) in (int, float) or isinstance(item, np.generic) else None


def filled(type_: Tensor, shape: Any, fill_value: Any, dtype: Any = None) -> Optional[Value]:
    """``np.full``, also with a number that only the run knows."""
    if not isinstance(fill_value, Value):
        return exact.filled(type_, shape, fill_value)
    is_plain = fill_value.shape == () and fill_value.dtype.kind in "biuf"
    if not is_plain or not np.can_cast(fill_value.dtype, type_.dtype, "same_kind"):
        return None
    to_array = ops.cast if is_array(fill_value) else ops.scalar_to_tensor
    return ops.broadcast_to(to_array(fill_value, dtype=type_.dtype), shape=type_.shape)


def power(type_: Tensor, a: Any, b: Any) -> Optional[Value]:
    """The rule of powers of floats, and of ints to exponents that are known."""
    if is_array(a) and a.dtype == type_.dtype and type(b) in (int, float) and (a.dtype.kind == "f" or b >= 0):
        return ops.power_const(a, exponent=b) if operand(b, a.dtype) is not None else None
    values = operands((a, b), type_.dtype) if type_.dtype.kind == "f" else None
    return None if values is None else ops.power(*values)


def ravel(type_: Tensor, x: Any, order: str = "C") -> Optional[Value]:
    """All elements in the order of C, as one axis: a view, as NumPy's is where it can be."""
    return ops.reshape(x, shape=type_.shape) if is_array(x) and order == "C" else None


def triangle(lower: bool) -> Rule:
    """The rule of ``np.tril`` or ``np.triu``: zeros above, or below, a diagonal of the last two axes."""
    def rule(type_: Tensor, m: Any, k: Any = 0) -> Optional[Value]:
        if not is_array(m) or m.ndim < 2 or m.type != type_ or m.dtype.kind not in "biuf" or type(k) is not int \
                or abs(k) >= 2 ** 31:
            return None
        rows, columns = m.shape[-2:]
        diagonal = ops.arange(start=k, stop=rows + k, step=1, dtype=np.dtype("int64"))
        at = ops.broadcast_to(ops.reshape(diagonal, shape=(rows, 1)), shape=m.shape)
        column = ops.broadcast_to(ops.arange(start=0, stop=columns, step=1, dtype=np.dtype("int64")), shape=m.shape)
        kept = ops.less_equal(column, at) if lower else ops.greater_equal(column, at)
        return ops.where(kept, m, ops.broadcast_to(constant(m.dtype.type(0)), shape=m.shape))
    return rule


def _is_int(x: Any) -> bool:
    return type(x) is int or isinstance(x, np.integer)


def divided(op: OpDef) -> Rule:
    """A quotient, or the rest, of one type; a division by zero raises the flag that makes native code decline."""
    def rule(type_: Tensor, a: Any, b: Any) -> Optional[Value]:
        if type_.dtype.kind == "f":
            values = operands((a, b), type_.dtype)
            return None if values is None else op(*values)
        numbers = [constant(type_.dtype.type(x)) if _is_int(x) and abs(int(x)) < 2 ** 31 and x else x for x in (a, b)]
        is_plain = type_.dtype.kind in "iu" and all(is_array(x) and x.dtype == type_.dtype for x in numbers)
        return op(*numbers) if is_plain else None
    return rule

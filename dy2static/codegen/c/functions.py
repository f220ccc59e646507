"""NumPy functions as ops where only C takes them so: their last bits differ, or they are several nodes."""
from __future__ import annotations

import operator
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np

from ... import ops
from ...ir.building import constant
from ...ir.graph import Value
from ...ir.op import OpDef
from ...ir.template import AT
from ...ir.types import Scalar, Tensor
from ...lowering.host import Call
from ...ops.indexing import picked, shape_of_part
from ...ops.movement import getitem_at
from .orders import argsort, selection

#: ``rule(type, *args, **kwargs) -> Value | None``, as in `lowering.numpy_calls`.
_Rule = Callable[..., Optional[Value]]

#: ``contents`` with ``item`` in the place of ``contents[index]``; numbers stand where the index has `AT`.
PUT = OpDef("put", ("contents", "item", "*numbers"), {"index": ()}, "movement", lambda contents, *_, index: contents)


def is_array(item: Any) -> bool:
    """Whether an operand is a value that is an array."""
    return isinstance(item, Value) and isinstance(item.type, Tensor)


def item_at(x: Any, key: Any) -> Optional[Value]:
    """``x[key]`` where the key holds ints and slices, also ints and arrays of ints that only the run knows."""
    place = _place(x, key)
    if place is None:
        return None
    index, numbers = place
    return picked(x, *numbers, index=index)


def _place(x: Any, key: Any) -> Optional[Tuple[Tuple[Any, ...], Tuple[Value, ...]]]:
    """An index with `AT`, and the numbers that stand there: all arrays if one is."""
    entries = key if type(key) is tuple else (key,)
    if not is_array(x) or not all(map(_is_basic, entries)):
        return None
    numbers = [entry for entry in entries if isinstance(entry, Value)]
    if any(map(is_array, numbers)):
        numbers = [n if is_array(n) else ops.scalar_to_tensor(n, dtype=np.dtype("int64")) for n in numbers]
    return tuple(AT if isinstance(entry, Value) else entry for entry in entries), tuple(numbers)


def _is_basic(entry: Any) -> bool:
    if isinstance(entry, Value):
        return is_array(entry) and entry.dtype.kind in "iu" or isinstance(entry.type, Scalar) and (
            entry.type.kind in ("py_int", "numpy") and entry.dtype.kind in "iu")
    parts = (entry.start, entry.stop, entry.step) if type(entry) is slice else (entry,)
    return all(part is None or part is Ellipsis or type(part) is int for part in parts)


# Writes -------------------------------------------------------------------------------------------------------------


def _written(type_: Tensor, contents: Value, steps: Tuple, function: Any, args: Tuple, kwargs: Dict) -> Optional[Value]:
    """A write into an array as its new contents."""
    if steps or kwargs or function is not operator.setitem and function not in _IN_PLACE:
        return None
    if function is not operator.setitem:
        return _combined(contents, _IN_PLACE[function], *args)
    place, item = _place(contents, args[0]), _fitting(args[1], contents.dtype)
    if place is None or item is None:
        return None
    index, numbers = place
    is_picked = any(n.shape for n in numbers)
    index = (ops.pick if is_picked else getitem_at).canonical(contents.type, *(n.type for n in numbers), index=index)["index"]
    shape = shape_of_part(contents.type, *(n.type for n in numbers), index=index) if is_picked else \
        getitem_at.infer(contents.type, *(n.type for n in numbers), index=index).shape
    if item.shape != shape:
        if len(item.shape) > len(shape):
            return None
        item = ops.broadcast_to(item, shape=shape)
    return PUT(contents, item, *numbers, index=index)


def _fitting(item: Any, dtype: np.dtype) -> Optional[Value]:
    """What is written, in the dtype that it gets; None where that may warn, raise or cut something off."""
    if not isinstance(item, Value):
        fits = type(item) in (bool, int, float) and np.can_cast(np.min_scalar_type(item), dtype, "same_kind")
        return constant(dtype.type(item)) if fits else None
    if is_array(item) or item.type.kind == "numpy":
        value = item if is_array(item) else ops.scalar_to_tensor(item, dtype=item.dtype)
        if item.dtype == dtype:
            return value
        return ops.cast(value, dtype=dtype) if item.dtype.kind + dtype.kind in ("ff", "ii", "if", "uf", "bf", "bi") else None
    kinds = {"py_int": "iuf", "py_float": "f", "py_bool": "b"}
    return ops.scalar_to_tensor(item, dtype=dtype) if dtype.kind in kinds.get(item.type.kind, "") else None


_IN_PLACE: Dict[Any, OpDef] = {operator.iadd: ops.add, operator.isub: ops.sub, operator.imul: ops.mul,
                               operator.itruediv: ops.div}


def _combined(contents: Value, op: OpDef, item: Any) -> Optional[Value]:
    """Floats, in the dtype that NumPy computes in: the versions differ where a number has more digits than the array."""
    if not isinstance(item, Value) or contents.dtype.kind != "f":
        return None
    is_number = not is_array(item)
    value = _fitting(item, item.dtype if is_array(item) or item.type.kind == "numpy" else contents.dtype)
    if value is None or value.dtype.kind != "f" or len(value.shape) > contents.ndim:
        return None
    wide = np.result_type(np.empty(1, contents.dtype), value.dtype.type(0) if is_number else np.empty(1, value.dtype))
    result = op(*(v if v.dtype == wide else ops.cast(v, dtype=wide) for v in (contents, value)))
    return result if wide == contents.dtype else ops.cast(result, dtype=contents.dtype)


# Numbers and sums ---------------------------------------------------------------------------------------------------


def number_of(function: Any) -> Optional[_Rule]:
    """The rule of ``np.float32`` and its kin: a number in another type."""
    if not isinstance(function, type) or not issubclass(function, np.generic) or np.dtype(function).kind not in "iuf":
        return None
    dtype = np.dtype(function)

    def rule(type_: Tensor, item: Any) -> Optional[Value]:
        if not isinstance(item, Value) or type_ != Tensor((), dtype):
            return None
        if is_array(item):
            return ops.cast(item, dtype=dtype) if item.ndim == 0 and item.dtype.kind == dtype.kind == "f" else None
        is_plain = item.type.kind in ("py_int", "py_float") and (dtype.kind == "f" or item.type.kind == "py_int")
        return ops.scalar_to_tensor(item, dtype=dtype) if is_plain else None
    return rule


def _fixed(type_: Tensor, item: Any) -> Optional[Value]:
    """``np.positive`` of a number that is known: the number."""
    return constant(type_.dtype.type(item)) if type(item) in (int, float) or isinstance(item, np.generic) else None


def _dot(type_: Tensor, a: Any, b: Any) -> Optional[Value]:
    """Products of vectors and matrices of floats."""
    if not (is_array(a) and is_array(b)) or a.dtype != b.dtype or a.dtype.kind != "f" or not {a.ndim, b.ndim} <= {1, 2}:
        return None
    if a.ndim == b.ndim == 2:
        return ops.matmul(a, b)
    if b.ndim == 1:
        return ops.sum(a * (b if a.ndim == 1 else ops.broadcast_to(b, shape=a.shape)), axis=(a.ndim - 1,))
    return ops.reshape(ops.matmul(ops.reshape(a, shape=(1, *a.shape)), b), shape=(b.shape[1],))


def _over_bools(op: OpDef) -> _Rule:
    def rule(type_: Tensor, x: Any, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
        is_plain = is_array(x) and x.dtype.kind == "b" and (axis is None or type(axis) is int) and type(keepdims) is bool
        return op(x, axis=axis, keepdims=keepdims) if is_plain else None
    return rule


def _mean(type_: Tensor, x: Any, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
    is_plain = is_array(x) and x.dtype.kind == "f" and (axis is None or type(axis) is int) and type(keepdims) is bool
    return ops.mean(x, axis=axis, keepdims=keepdims) if is_plain and x.type.size else None


def _of_ints(op: OpDef) -> _Rule:
    """A quotient, or the rest, of ints of one type; a division by zero raises the flag that makes native code decline."""
    def rule(type_: Tensor, a: Any, b: Any) -> Optional[Value]:
        operands = [constant(type_.dtype.type(x)) if type(x) is int and abs(x) < 2 ** 31 and x else x for x in (a, b)]
        is_plain = type_.dtype.kind == "i" and all(is_array(x) and x.dtype == type_.dtype for x in operands)
        return op(*operands) if is_plain else None
    return rule


_RULES: Dict[Any, _Rule] = {
    np.positive: _fixed, np.dot: _dot, operator.matmul: _dot, np.matmul: _dot, ("method", "dot"): _dot,
    ("method", "all"): _over_bools(ops.all), ("method", "any"): _over_bools(ops.any), np.all: _over_bools(ops.all),
    np.any: _over_bools(ops.any), ("method", "mean"): _mean, np.mean: _mean,
    operator.floordiv: _of_ints(ops.floor_divide), np.floor_divide: _of_ints(ops.floor_divide),
    operator.mod: _of_ints(ops.remainder), np.remainder: _of_ints(ops.remainder),
    np.argsort: argsort, ("method", "argsort"): argsort}


def rule_for(call: Call, key: Any) -> Optional[_Rule]:
    """The rule for a call whose function has this key."""
    if getattr(call.function, "in_place", None) is not None:
        return _written
    chosen = selection(call)
    if chosen is not None:
        return chosen
    try:
        return _RULES.get(key) or number_of(call.function)
    except TypeError:                                          # a function without hash
        return None

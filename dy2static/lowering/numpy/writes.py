"""Writes into arrays as their new contents."""
from __future__ import annotations

import operator
from typing import Any, Dict, Optional, Tuple

import numpy as np

from ... import ops
from ...ir.building import constant
from ...ir.graph import Value
from ...ir.op import OpDef
from ...ir.types import Tensor
from ...ops.indexing import shape_of_part
from ...ops.slicing import normal_index
from .on_request import place_in
from .operands import is_array

#: What writes into a whole array, and the op that computes its new contents.
LOWERED_IN_PLACE: Dict[Any, OpDef] = {
    operator.iadd: ops.add, operator.isub: ops.sub, operator.imul: ops.mul, operator.itruediv: ops.div,
    operator.iand: ops.bitwise_and, operator.ior: ops.bitwise_or, operator.ixor: ops.bitwise_xor,
    operator.ilshift: ops.left_shift, operator.irshift: ops.right_shift}
#: Those for ints, and those also for bools.
_OF_INTS = (ops.add, ops.sub, ops.mul, ops.left_shift, ops.right_shift)
_OF_BITS = (ops.bitwise_and, ops.bitwise_or, ops.bitwise_xor)


def written(type_: Tensor, contents: Value, steps: Tuple, function: Any, args: Tuple, kwargs: Dict) -> Optional[Value]:
    """A write into an array as its new contents."""
    if kwargs or function is not operator.setitem and function not in LOWERED_IN_PLACE:
        return None
    if steps:
        return _in_part(contents, *steps[0], function, args) if len(steps) == 1 else None
    if function is not operator.setitem:
        return _combined(contents, LOWERED_IN_PLACE[function], *args)
    place, item = place_in(contents, args[0]), fitting(args[1], contents.dtype)
    if place is None or item is None:
        return None
    index, numbers = normal_index(place[0], contents.shape), place[1]
    shape = shape_of_part(contents.type, *(n.type for n in numbers), index=index)
    if item.shape != shape:
        if len(item.shape) > len(shape):
            return None
        item = ops.broadcast_to(item, shape=shape)
    if not contents.shape:
        return ops.copy(item)
    return ops.put(contents, item, *numbers, index=index)


def _in_part(contents: Value, step: Any, key: Tuple, more: Dict, function: Any, args: Tuple) -> Optional[Value]:
    """A write into a part of an array, such as ``a[::2] *= 2``.  The numbers of its index are known."""
    place = place_in(contents, key[0]) if step is operator.getitem and not more else None
    if place is None or place[1]:
        return None
    index = normal_index(place[0], contents.shape)
    part = ops.getitem(contents, index=index)
    if function in LOWERED_IN_PLACE and type(args[0]) in (int, float) and part.dtype.kind == "f":
        number = part.dtype.type(args[0])
        args = (constant(number),) if np.isfinite(number) else args
    new = written(part.type, part, (), function, args, {})
    return None if new is None or new.type != part.type else ops.put(contents, new, index=index)


def fitting(item: Any, dtype: np.dtype) -> Optional[Value]:
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


def _combined(contents: Value, op: OpDef, item: Any) -> Optional[Value]:
    """Floats, in the dtype that NumPy computes in: the versions differ where a number has more digits than the array."""
    if contents.dtype.kind != "f":
        known = _OF_BITS if contents.dtype.kind == "b" else _OF_INTS + _OF_BITS
        return _combined_ints(contents, op, item) if op in known else None
    if not isinstance(item, Value) or op in _OF_BITS:
        return None
    is_number = not is_array(item)
    value = fitting(item, item.dtype if is_array(item) or item.type.kind == "numpy" else contents.dtype)
    if value is None or value.dtype.kind != "f" or len(value.shape) > contents.ndim:
        return None
    wide = np.result_type(np.empty(1, contents.dtype), value.dtype.type(0) if is_number else np.empty(1, value.dtype))
    result = op(*(v if v.dtype == wide else ops.cast(v, dtype=wide) for v in (contents, value)))
    return result if wide == contents.dtype else ops.cast(result, dtype=contents.dtype)


def _combined_ints(contents: Value, op: OpDef, item: Any) -> Optional[Value]:
    """Ints and bools, where NumPy computes in the dtype of the array."""
    if isinstance(item, Value) and (is_array(item) or item.type.kind == "numpy"):
        other = np.empty(1, item.dtype) if is_array(item) else item.dtype.type(0)
        if len(item.shape) > contents.ndim or np.result_type(np.empty(1, contents.dtype), other) != contents.dtype:
            return None
    value = fitting(item, contents.dtype)
    return None if value is None else op(contents, value)

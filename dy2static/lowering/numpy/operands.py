"""The operands of calls of NumPy, as rules see them: values of the graph, and what stands in the call."""
from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from ... import ops
from ...ir.building import constant
from ...ir.graph import Value
from ...ir.op import OPS
from ...ir.size_bounds import is_positive
from ...ir.types import Scalar, Tensor


def is_array(item: Any) -> bool:
    """Whether an operand is a value that is an array."""
    return isinstance(item, Value) and isinstance(item.type, Tensor)


def has_known_shape(type_: Any) -> bool:
    """Whether a type is that of an array whose shape is known."""
    return isinstance(type_, Tensor) and all(isinstance(n, int) for n in type_.shape)


def is_of_unknown_size(item: Any) -> bool:
    """Whether an operand is an array of a size that only the run knows."""
    return is_array(item) and not has_known_shape(item.type)


def operand(item: Any, dtype: np.dtype) -> Optional[Value]:
    """An array of this dtype, or a number of Python's that NumPy takes for one of this dtype."""
    if isinstance(item, Value):
        if isinstance(item.type, Tensor):
            return item if item.dtype == dtype else None
        is_python = isinstance(item.type, Scalar) and item.type.kind in ("py_float", "py_int")
        return OPS["scalar_to_tensor"](item, dtype=dtype) if is_python and dtype.kind == "f" else None
    if type(item) not in (int, float) or dtype.kind not in "fiu" or type(item) is float and dtype.kind != "f":
        return None
    if dtype.kind in "iu":
        return constant(item, dtype) if np.iinfo(dtype).min <= item <= np.iinfo(dtype).max else None
    with np.errstate(all="ignore"):
        number = dtype.type(item)
    return constant(number) if np.isfinite(number) or not np.isfinite(item) else None


def operands(items: Sequence[Any], dtype: Optional[np.dtype] = None) -> Optional[Tuple[Value, ...]]:
    """All operands in the dtype of the first array; None if they do not fit."""
    arrays = [item for item in items if is_array(item)]
    if not arrays or dtype is not None and arrays[0].dtype != dtype:
        return None
    found = [operand(item, arrays[0].dtype) for item in items]
    return None if any(value is None for value in found) else tuple(found)      # type: ignore[arg-type]


def widened(item: Any, dtype: np.dtype) -> Any:
    """An array that NumPy casts to this dtype without loss, cast; others as they are."""
    narrow = is_array(item) and item.dtype != dtype and item.dtype.kind in "biuf" and np.can_cast(item.dtype, dtype)
    return ops.cast(item, dtype=dtype) if narrow else item


def stacked(item: Any) -> Any:
    """A list of arrays of one type as the array that NumPy makes of it; others as they are."""
    are_alike = type(item) is list and all(map(is_array, item)) and len({part.type for part in item}) == 1
    return ops.stack(*item) if are_alike else item


def axes_of(x: Any, axis: Any, keepdims: Any) -> Optional[Tuple[int, ...]]:
    """The axes of a reduction of an array that has elements, all for None; None for what is no array or axis."""
    if not is_array(x) or not is_positive(x.type.size) or x.dtype.kind not in "biuf" or type(keepdims) is not bool:
        return None
    axes = tuple(range(x.ndim)) if axis is None else axis if type(axis) is tuple else (axis,)
    return tuple(a % x.ndim for a in axes) if all(type(a) is int for a in axes) else None


def is_basic(entry: Any) -> bool:
    """Whether an entry of an index is known, and selects a view."""
    parts = (entry.start, entry.stop, entry.step) if type(entry) is slice else (entry,)
    return all(part is None or part is Ellipsis or type(part) is int for part in parts)


def as_arrays(values: Sequence[Value], wanted: Tensor) -> List[Value]:
    """The operands with numbers as arrays: Python's take the dtype of the result, or of the first array where they are compared.

    They stay numbers where they are of a greater kind than that.  NumPy 1 also rounds its own numbers to the precision of arrays.
    """
    arrays = [_as_array(v, wanted.dtype) for v in values]
    dtype = next((v.dtype for v in arrays if isinstance(v.type, Tensor)), None)
    if dtype is not None and wanted.dtype.kind in "iuf" and np.can_cast(dtype, wanted.dtype):
        dtype = wanted.dtype
    kinds = {"py_int": "iuf", "py_float": "f"}
    return [ops.scalar_to_tensor(v, dtype=dtype) if dtype is not None and isinstance(v.type, Scalar)
            and dtype.kind in kinds.get(v.type.kind, "") else v for v in arrays]


def _as_array(value: Value, wanted: np.dtype) -> Value:
    if not isinstance(value.type, Scalar) or value.type.kind != "numpy" or value.dtype.kind not in "biuf":
        return value
    array = ops.scalar_to_tensor(value, dtype=value.dtype)
    is_rounded = wanted.kind == value.dtype.kind == "f" and wanted.itemsize < value.dtype.itemsize
    return ops.cast(array, dtype=wanted) if is_rounded else array

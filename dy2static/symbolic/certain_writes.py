"""Writes into arrays that succeed whatever the arrays hold."""
from __future__ import annotations

import operator
from typing import Any, Callable, Tuple

import numpy as np

from ..runtime.array_writes import Into
from .values import SymbolicArray, SymbolicScalar

#: Below it, numbers are finite in every dtype.
_SMALL = 2 ** 15


def cannot_fail(array: SymbolicArray, function: Callable[..., Any], args: Tuple) -> bool:
    """Whether a write succeeds whatever the arrays hold."""
    if function is operator.setitem:
        return not _decides(args[0]) or _is_small(array, args[1]) and (_is_mask_of(array, args[0]) or _is_in_range(array, args[0]))
    if isinstance(function, Into):
        function = function.function
    elif getattr(function, "__name__", "") in ("copyto", "fill") or isinstance(function, type(operator.iadd)):
        return True
    return isinstance(function, np.ufunc)


def _decides(key: Any) -> bool:
    """Whether an index may be out of bounds, for what an array or a number holds."""
    if type(key) is tuple:
        return any(map(_decides, key))
    return type(key) is SymbolicScalar or type(key) is SymbolicArray


def _is_small(array: SymbolicArray, item: Any) -> bool:
    """Whether an array of floats is given a small number."""
    return array.dtype.kind == "f" and type(item) in (int, float) and abs(item) < _SMALL


def _is_mask_of(array: SymbolicArray, key: Any) -> bool:
    """Whether this is a mask of the array's own shape."""
    return type(key) is SymbolicArray and key.dtype == bool and key.shape == array.shape and not key.is_scalar


def _is_in_range(array: SymbolicArray, key: Any) -> bool:
    """Whether this is the number of an element along the first axis, for sure."""
    if type(key) is SymbolicScalar and key.text is None and key.kind == "py_int":
        place = key.value
    elif type(key) is SymbolicArray and key.is_scalar:
        place = key.now()
    else:
        return False
    return bool(array.type.shape) and array.capture.index_ranges.is_in_axis(place, array.type.shape[0])

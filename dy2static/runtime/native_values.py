"""Values on their way into native code and out of it: lists and stacks as one array, numbers of NumPy as arrays."""
from __future__ import annotations

import math
from typing import Any, List, Optional, Tuple

import numpy as np

from ..ir.types import List as ListType
from ..ir.types import Stack, Tensor


def as_array(items: Optional[List[Any]], type: Any) -> np.ndarray:
    """A Python list, or a stack that is one, as an array for native code.

    None becomes zeros, and no items in place of a list that is not there, which is not read then.  Behind arrays of a list
    there is, as `list_bytes` says, which are None.
    """
    items = [] if items is None else items
    shape = (len(items), *type.elem.shape)
    if has_marks(type):
        return np.frombuffer(list_bytes(items, type), type.elem.dtype, math.prod(shape)).reshape(shape)
    result = np.zeros(shape, type.elem.dtype)
    _fill(result, items)
    return result


def has_marks(type: Any) -> bool:
    """Whether lists of this type have a byte for each item in native code that says whether it is there."""
    return isinstance(type, ListType) and isinstance(type.elem, Tensor)


def list_bytes(items: List[Any], type: ListType) -> bytearray:
    """A list in the memory of native code: the items; behind arrays a byte for each, which is 0 for None."""
    if not has_marks(type):
        return bytearray(as_array(items, type).tobytes())
    elem, count = type.elem, len(items)
    data = bytearray(count * (elem.size * elem.dtype.itemsize + 1))
    _fill(np.frombuffer(data, elem.dtype, count * elem.size).reshape(count, *elem.shape), items)
    data[len(data) - count:] = bytes([item is not None for item in items])
    return data


def _fill(array: np.ndarray, items: List[Any]) -> None:
    """Put items into zeros; None leaves them."""
    if not any([item is None for item in items]):
        if items:
            array[...] = items
        return
    for k, item in enumerate(items):
        if item is not None:
            array[k] = item


def as_number(number: Any, dtype: np.dtype) -> np.ndarray:
    """A number of NumPy's as an array; zero for what is not there, which is not read then."""
    return np.zeros((), dtype) if number is None else np.asarray(number)


def as_stack(items: Any, type: Stack) -> np.ndarray:
    """A stack as one array: what a loop has pushed as a list, or in native code."""
    return items if isinstance(items, np.ndarray) else as_array(items, type)


def as_items(data: Any, type: ListType) -> List[Any]:
    """The bytes of a list that native code has made, as a Python list."""
    elem = type.elem
    if not has_marks(type):
        return np.frombuffer(data, elem.dtype).tolist()
    memory = memoryview(data)
    count = memory.nbytes // (elem.size * elem.dtype.itemsize + 1)
    items = np.frombuffer(data, elem.dtype, count * elem.size).reshape(count, *elem.shape)
    return [item.copy() if there else None for item, there in zip(items, memory[memory.nbytes - count:])]


def pushed(data: Any, type: Stack) -> Any:
    """The bytes of a stack that a native loop has pushed: an array of items, or a list of Python numbers."""
    items = np.frombuffer(data, type.elem.dtype).reshape(-1, *type.elem.shape)
    return items if isinstance(type.elem, Tensor) else items.tolist()


def grown(data: Any, dtype: np.dtype, shape: Tuple[Any, ...]) -> np.ndarray:
    """The bytes of an array whose size native code found out."""
    return np.frombuffer(data, dtype).reshape(shape)

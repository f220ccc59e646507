"""Values on their way into native code and out of it: lists and stacks as one array, numbers of NumPy as arrays."""
from __future__ import annotations

from typing import Any, List, Tuple

import numpy as np

from ..ir.types import List as ListType
from ..ir.types import Scalar, Stack


def as_array(items: List[Any], type: Any) -> np.ndarray:
    """A Python list, or a stack that is one, as an array for native code; None becomes zeros."""
    elem = type.elem
    if None not in map(_none, items):
        return np.array(items, elem.dtype).reshape(len(items), *elem.shape)
    result = np.zeros((len(items), *elem.shape), elem.dtype)
    for k, item in enumerate(items):
        if item is not None:
            result[k] = item
    return result


def _none(item: Any) -> Any:
    return None if item is None else 0


def as_stack(items: Any, type: Stack) -> np.ndarray:
    """A stack as one array: what a loop has pushed as a list, or in native code."""
    return items if isinstance(items, np.ndarray) else as_array(items, type)


def as_items(data: Any, type: ListType) -> List[Any]:
    """The bytes of a list that native code has made, as a Python list."""
    items = np.frombuffer(data, type.elem.dtype).reshape(-1, *type.elem.shape)
    return items.tolist() if isinstance(type.elem, Scalar) else [item.copy() for item in items]


def pushed(data: Any, type: Stack) -> Any:
    """The bytes of a stack that a native loop has pushed: an array of items, or a list of Python numbers."""
    items = np.frombuffer(data, type.elem.dtype).reshape(-1, *type.elem.shape)
    return items.tolist() if isinstance(type.elem, Scalar) else items


def grown(data: Any, dtype: np.dtype, shape: Tuple[Any, ...]) -> np.ndarray:
    """The bytes of an array whose size native code found out."""
    return np.frombuffer(data, dtype).reshape(shape)

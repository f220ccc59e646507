"""What ``.flat`` and ``.data`` of an array do, as functions of the array."""
from __future__ import annotations

from typing import Any

import numpy as np


def flat_item(array: np.ndarray, key: Any) -> Any:
    """``array.flat[key]``."""
    return array.flat[key]


def set_flat_item(array: np.ndarray, key: Any, item: Any) -> None:
    """``array.flat[key] = item``."""
    array.flat[key] = item


def set_flat(array: np.ndarray, items: Any) -> None:
    """``array.flat = items``."""
    array.flat = items


def of_flat(array: np.ndarray) -> np.ndarray:
    """``np.asarray(array.flat)``: a view, if the elements are in memory in the order of the iteration."""
    return np.asarray(array.flat)


def array_of_flat(array: np.ndarray, *args: Any, **kwargs: Any) -> np.ndarray:
    """``np.array(array.flat)``, of which not every version of NumPy makes a copy."""
    return np.array(array.flat, *args, **kwargs)


def of_buffer(array: np.ndarray) -> np.ndarray:
    """``np.asarray(array.data)``: another array of the same memory."""
    return np.asarray(array.data)

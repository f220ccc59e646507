"""Where in the memory of an array a view of it is: the same place of another array is found by it, whose contents differ."""
from __future__ import annotations

from typing import Any, Dict, NamedTuple, Tuple

import numpy as np


class Place(NamedTuple):
    """Where a view is.

    layout: the strides of the array, in bytes.  offset: from its first element to that of the view, in bytes.  shape, strides,
    dtype: of the view.
    """

    layout: Tuple[int, ...]
    offset: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    dtype: np.dtype

    def of(self, array: np.ndarray) -> np.ndarray:
        """The view of an array of the same shape and dtype; of a copy of it if that is laid out otherwise."""
        if array.strides != self.layout:
            array = laid_out(array, self.layout)
        return _placed(array, self.offset, self.shape, self.strides, self.dtype)


def place_of(view: np.ndarray, array: np.ndarray) -> Place:
    """Where in an array a view of it is."""
    offset = view.__array_interface__["data"][0] - array.__array_interface__["data"][0]
    return Place(array.strides, offset, view.shape, view.strides, view.dtype)


def laid_out(array: np.ndarray, layout: Tuple[int, ...]) -> np.ndarray:
    """A copy of an array with these strides."""
    copy = array.copy(order="K")
    if copy.strides == layout or not array.size:
        return copy
    reaches = [stride * (size - 1) for stride, size in zip(layout, array.shape)]
    first, last = [sum([reach for reach in reaches if (reach < 0) is is_before]) for is_before in (True, False)]
    memory = np.empty((last - first) // array.itemsize + 1, array.dtype)
    copy = _placed(memory, -first, array.shape, layout, array.dtype)
    copy[...] = array
    return copy


class _Memory:
    """What NumPy takes for an array that begins elsewhere in the memory of another one, which it holds."""

    def __init__(self, array: np.ndarray, interface: Dict[str, Any]):
        self.array, self.__array_interface__ = array, interface


def _placed(array: np.ndarray, offset: int, shape: Tuple[int, ...], strides: Tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    first, is_fixed = array.__array_interface__["data"]
    found = np.asarray(_Memory(array, {"version": 3, "data": (first + offset, is_fixed), "shape": shape, "strides": strides,
                                       "typestr": dtype.str}))
    # of fields, and of libraries' own numbers, the text says only the size
    return found if found.dtype == dtype else found.view(dtype)

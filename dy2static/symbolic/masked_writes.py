"""Writes where a mask holds, of an array that has as many elements because the same mask chose them."""
from __future__ import annotations

from typing import Any

from ..capture_context import CaptureContext
from ..ir.dims import Dim
from ..ir.shapes import same_shape
from ..runtime.functions import true_rows
from .values import SymbolicArray


def by_places(capture: CaptureContext, array: SymbolicArray, key: Any, item: Any) -> Any:
    """The index of ``array[key] = item`` with places in place of a mask that holds at as many as there are items.

    For a mask of one axis, and one before whole numbers.  A mask of more axes is faster as it is, and NumPy has other messages for
    one that does not fit.
    """
    mask, *numbers = key if type(key) is tuple and key else (key,)
    if type(mask) is not SymbolicArray or mask.dtype != bool or mask.ndim != 1 or any([type(n) is not int for n in numbers]) \
            or type(item) is not SymbolicArray or not item.ndim:
        return key
    count, _ = capture.sizes_of.get(capture.value_numbering.first(mask.value), (None, None))
    if not isinstance(count, Dim) or not same_shape(mask.type.shape, array.type.shape[:1]) or \
            not same_shape(item.type.shape, (count, *array.type.shape[1 + len(numbers):])):
        return key
    return (capture.numpy.call(true_rows, (mask,), {}), *numbers)

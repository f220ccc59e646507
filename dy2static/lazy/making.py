"""Ways into lazy arrays, and out of them."""
from __future__ import annotations

import sys
from typing import Any, Optional, Tuple

import numpy as np

from .arrays import LazyArray, array_of
from .evaluation import evaluate_nodes
from .ownership import owned


def array(x: Any, dtype: Any = None, *, copy: Optional[bool] = None) -> LazyArray:
    """A lazy array with the values of ``x``: an array, a number, or lists of numbers.

    An array is copied, except if nothing else can change it: it is read-only, or only the call refers to it, as in
    ``array(np.ones(3))``.
    copy: True always copies.  False uses the array itself, which the caller then must not change.

    >>> x = array([1.0, 2.0, 3.0])
    >>> float((x - x.mean()).sum())
    0.0

    Raises TypeError for a masked array, and ValueError if ``copy=False`` is given with an array that must be converted.
    """
    count = sys.getrefcount(x)                          # before anything else refers to it
    if type(x) is LazyArray:
        return x.copy() if dtype is None else x.astype(dtype)
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("lazy arrays have no masks: give the data and the mask as two arrays")
    if type(x) is np.ndarray and (dtype is None or x.dtype == dtype):
        return array_of(owned(x, copy, count))
    if copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    return array_of(np.array(x, dtype))


def evaluate(*arrays: LazyArray) -> Tuple[Any, ...]:
    """Compute several lazy arrays by one program.  Returns a tuple of read-only arrays.

    Raises what NumPy raises for the operations, with the line that built the failing one.
    """
    evaluate_nodes([each._node for each in arrays])
    return tuple([each.evaluate() for each in arrays])

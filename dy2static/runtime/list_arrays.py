"""Arrays of lists of numbers, and of arrays of one shape, as `np.array` makes them; and such that have a number as their size."""
from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

#: The dtypes that may be asked for; None where that is left to NumPy.
DTYPES = (None, *[np.dtype(kind).str for kind in (np.int32, np.int64, np.float32, np.float64)])

_NUMBERS = frozenset((bool, int, float, np.bool_, np.int32, np.int64, np.float32, np.float64))

#: A list of more arrays is a memory of which a call reads a few: they are not copied at every call.
_MOST_ARRAYS = 1024


#: No larger number is taken to be a size.
MOST_ELEMENTS = 1 << 16


def array_of_size(number: int) -> np.ndarray:
    """An array of so many elements, whatever they are.  Raises ValueError where the number is no size."""
    if number > MOST_ELEMENTS:
        raise ValueError(f"{number} is too large for a size")
    return np.empty(number, np.bool_)


def array_of_list(items: Any, dtype: Optional[str]) -> Optional[np.ndarray]:
    """``np.array(items, dtype)`` of a list of numbers; None of others, and where NumPy would raise or warn.

    Of a list of arrays of one shape and dtype, too, where ``dtype`` is None.
    """
    kinds = {*map(type, items)}
    if kinds == {np.ndarray}:
        return _stack(items) if dtype is None else None
    if not _NUMBERS.issuperset(kinds):
        return None
    try:
        array = np.array(items)
        if array.dtype.kind not in "bif":               # of ints that are too large for one
            return None
        if array.dtype.str == dtype or dtype is None:
            return array
        with np.errstate(over="raise", invalid="raise"):
            made = np.array(items, dtype) if dtype[1] == "f" else array.astype(dtype)       # which does not warn
    except (OverflowError, FloatingPointError, ValueError):
        return None
    return made if made.dtype.kind == "f" or (made == array).all() else None


def _stack(arrays: Sequence[np.ndarray]) -> Optional[np.ndarray]:
    """Arrays of one shape and dtype as one; None of others, and of very many."""
    first = arrays[0]
    is_alike = len(arrays) <= _MOST_ARRAYS and first.ndim > 0 and first.dtype.kind in "biuf" and first.dtype.isnative and all(
        [array.shape == first.shape and array.dtype == first.dtype for array in arrays])
    return np.array(arrays) if is_alike else None

"""Arrays of lists of numbers, as `np.array` makes them."""
from __future__ import annotations

from typing import Any, Optional

import numpy as np

#: The dtypes that may be asked for; None where that is left to NumPy.
DTYPES = (None, *[np.dtype(kind).str for kind in (np.int32, np.int64, np.float32, np.float64)])

_NUMBERS = frozenset((bool, int, float, np.bool_, np.int32, np.int64, np.float32, np.float64))


def array_of_list(items: Any, dtype: Optional[str]) -> Optional[np.ndarray]:
    """``np.array(items, dtype)`` of a list of numbers; None of others, and where NumPy would raise or warn."""
    if not _NUMBERS.issuperset(map(type, items)):
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

"""Lists of numbers that only the run knows, as an index of a Variable: they are arrays, as NumPy takes them."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Tuple

import numpy as np

from ..symbolic.values import SymbolicArray, SymbolicScalar

if TYPE_CHECKING:
    from .protocols import Capture


def with_arrays(capture: Capture, slices: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """The index with an array for each list of whole numbers of which some are known at run time only."""
    return tuple([capture.numpy.call(np.array, (entry,), {}) if isinstance(entry, list) and _is_of_run(entry) else entry
                  for entry in slices])


def _is_of_run(entry: Any) -> bool:
    items = list(_items(entry))
    return any([type(item) in (SymbolicScalar, SymbolicArray) for item in items]) and all(map(_is_whole, items))


def _items(entry: Any) -> Iterator[Any]:
    """What a list and the lists in it hold."""
    for item in entry:
        yield from _items(item) if isinstance(item, list) else (item,)


def _is_whole(item: Any) -> bool:
    """Whether this is a whole number: truth values are masks."""
    if type(item) is SymbolicArray:                     # a number of NumPy's
        return item.ndim == 0 and item.dtype.kind in "iu"
    return isinstance(item, (int, np.integer)) and not isinstance(item, bool)

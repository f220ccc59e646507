"""Creation functions of the array API standard.  Their results have values at once."""
from __future__ import annotations

from typing import Any, List

import numpy as np

from ..arrays import LazyArray
from ..making import array
from .calls import call, made, on_cpu


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> LazyArray:
    """A lazy array of an array, a number, nested sequences, or an object with a buffer; of a lazy array itself, if it fits.

    copy: as `dy2static.lazy.array` has it.  Raises ValueError for a device other than ``"cpu"``, and where ``copy=False`` meets
    what must be converted.
    """
    on_cpu(device)
    if isinstance(obj, LazyArray):
        if copy is not True and (dtype is None or obj.dtype == dtype):
            return obj
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
    return array(obj, dtype, copy=copy)


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> LazyArray:
    """A lazy array with the values of an object that has ``__dlpack__``; copied, unless ``copy=False``.

    Raises ValueError for a device other than ``"cpu"``.
    """
    on_cpu(device)
    return array(np.from_dlpack(x), copy=copy)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> LazyArray:
    """Numbers from ``start`` (or 0) up to ``stop``, without it.  Raises ValueError for a device other than ``"cpu"``."""
    on_cpu(device)
    return made(np.arange(0, start, step, dtype=dtype) if stop is None else np.arange(start, stop, step, dtype=dtype))


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: Any = True) -> LazyArray:
    """``num`` numbers at even distances.  Raises ValueError for a device other than ``"cpu"``."""
    on_cpu(device)
    return made(np.linspace(start, stop, num, dtype=dtype, endpoint=endpoint))


def eye(n_rows: int, n_cols: Any = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> LazyArray:
    """A matrix with ones on the ``k``-th diagonal.  Raises ValueError for a device other than ``"cpu"``."""
    on_cpu(device)
    return made(np.eye(n_rows, n_cols, k, dtype=float if dtype is None else dtype))


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> LazyArray:
    """An array of any values.  Raises ValueError for a device other than ``"cpu"``."""
    on_cpu(device)
    return made(np.empty(shape, dtype))


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> LazyArray:
    """An array of zeros.  Raises ValueError for a device other than ``"cpu"``."""
    on_cpu(device)
    return made(np.zeros(shape, dtype))


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> LazyArray:
    """An array of ones.  Raises ValueError for a device other than ``"cpu"``."""
    on_cpu(device)
    return made(np.ones(shape, dtype))


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> LazyArray:
    """An array of one value.  Raises ValueError for a device other than ``"cpu"``."""
    on_cpu(device)
    return made(np.full(shape, fill_value, dtype))


def empty_like(x: LazyArray, /, *, dtype: Any = None, device: Any = None) -> LazyArray:
    """An array of any values with the shape of ``x``.  Raises ValueError for a device other than ``"cpu"``."""
    return empty(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)


def zeros_like(x: LazyArray, /, *, dtype: Any = None, device: Any = None) -> LazyArray:
    """An array of zeros with the shape of ``x``.  Raises ValueError for a device other than ``"cpu"``."""
    return zeros(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)


def ones_like(x: LazyArray, /, *, dtype: Any = None, device: Any = None) -> LazyArray:
    """An array of ones with the shape of ``x``.  Raises ValueError for a device other than ``"cpu"``."""
    return ones(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)


def full_like(x: LazyArray, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> LazyArray:
    """An array of one value with the shape of ``x``.  Raises ValueError for a device other than ``"cpu"``."""
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device)


def meshgrid(*arrays: LazyArray, indexing: str = "xy") -> List[LazyArray]:
    """Coordinates of a grid: an array per axis.  Raises ValueError for an ``indexing`` other than ``"xy"`` and ``"ij"``."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    places = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        places[:2] = [1, 0]
    sizes = [each.size for each in arrays]
    shape = tuple([sizes[place] for place in places])
    grids = []
    for axis, each in zip(places, arrays):
        column = tuple([-1 if place == axis else 1 for place in range(len(arrays))])
        grids.append(call(_spread, each, column, shape))
    return grids


def _spread(x: Any, column: Any, shape: Any) -> Any:
    return np.broadcast_to(x.reshape(column), shape)


def tril(x: LazyArray, /, *, k: int = 0) -> LazyArray:
    """The lower triangle of matrices: zeros above the ``k``-th diagonal."""
    return call(np.tril, x, k)                          # type: ignore[no-any-return]


def triu(x: LazyArray, /, *, k: int = 0) -> LazyArray:
    """The upper triangle of matrices: zeros below the ``k``-th diagonal."""
    return call(np.triu, x, k)                          # type: ignore[no-any-return]


__all__ = """
    asarray from_dlpack arange linspace eye empty zeros ones full empty_like zeros_like ones_like full_like meshgrid
    tril triu
""".split()

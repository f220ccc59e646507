"""Statistical functions of the array API standard, and ``all``, ``any`` and ``diff``."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import LazyArray
from .calls import call


def sum(x: LazyArray, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> LazyArray:
    """The sum of elements.  Small integers are added as the default integers are."""
    return call(np.sum, x, axis=axis, dtype=dtype, keepdims=keepdims)   # type: ignore[no-any-return]


def prod(x: LazyArray, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> LazyArray:
    """The product of elements.  Small integers are multiplied as the default integers are."""
    return call(np.prod, x, axis=axis, dtype=dtype, keepdims=keepdims)  # type: ignore[no-any-return]


def max(x: LazyArray, /, *, axis: Any = None, keepdims: Any = False) -> LazyArray:
    """The greatest elements."""
    return call(np.max, x, axis=axis, keepdims=keepdims)        # type: ignore[no-any-return]


def min(x: LazyArray, /, *, axis: Any = None, keepdims: Any = False) -> LazyArray:
    """The least elements."""
    return call(np.min, x, axis=axis, keepdims=keepdims)        # type: ignore[no-any-return]


def mean(x: LazyArray, /, *, axis: Any = None, keepdims: Any = False) -> LazyArray:
    """The means of elements."""
    return call(np.mean, x, axis=axis, keepdims=keepdims)       # type: ignore[no-any-return]


def var(x: LazyArray, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> LazyArray:
    """The variances of elements: sums of squares divided by their number less ``correction``."""
    return call(np.var, x, axis=axis, ddof=_whole(correction), keepdims=keepdims)       # type: ignore[no-any-return]


def std(x: LazyArray, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> LazyArray:
    """The standard deviations of elements: the square roots of what `var` gives."""
    return call(np.std, x, axis=axis, ddof=_whole(correction), keepdims=keepdims)       # type: ignore[no-any-return]


def _whole(number: float) -> Any:
    return int(number) if number == int(number) else number


def cumulative_sum(x: LazyArray, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False) -> LazyArray:
    """Sums of the elements so far along an axis; with ``include_initial`` a zero in front.

    Raises ValueError for an array of several axes without ``axis``.
    """
    return call(_cumulative, x, _axis(x, axis), dtype, include_initial, True)   # type: ignore[no-any-return]


def cumulative_prod(x: LazyArray, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False) -> LazyArray:
    """Products of the elements so far along an axis; with ``include_initial`` a one in front.

    Raises ValueError for an array of several axes without ``axis``.
    """
    return call(_cumulative, x, _axis(x, axis), dtype, include_initial, False)  # type: ignore[no-any-return]


def _axis(x: LazyArray, axis: Any) -> int:
    if axis is None and x.ndim != 1:
        raise ValueError("an array of several axes needs axis=")
    return 0 if axis is None else axis                  # type: ignore[no-any-return]


def _cumulative(x: Any, axis: Any, dtype: Any, include_initial: Any, is_sum: Any) -> Any:
    found = np.cumsum(x, axis=axis, dtype=dtype) if is_sum else np.cumprod(x, axis=axis, dtype=dtype)
    if not include_initial:
        return found
    shape = tuple([1 if place == axis % x.ndim else size for place, size in enumerate(x.shape)])
    first = np.zeros(shape, dtype=found.dtype) if is_sum else np.ones(shape, dtype=found.dtype)
    return np.concatenate([first, found], axis=axis)


def diff(x: LazyArray, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> LazyArray:
    """The differences of neighbours along an axis, taken ``n`` times."""
    ends = {name: part for name, part in (("prepend", prepend), ("append", append)) if part is not None}
    return call(np.diff, x, n=n, axis=axis, **ends)     # type: ignore[no-any-return]


def all(x: LazyArray, /, *, axis: Any = None, keepdims: Any = False) -> LazyArray:
    """Whether all elements are true."""
    return call(np.all, x, axis=axis, keepdims=keepdims)        # type: ignore[no-any-return]


def any(x: LazyArray, /, *, axis: Any = None, keepdims: Any = False) -> LazyArray:
    """Whether some element is true."""
    return call(np.any, x, axis=axis, keepdims=keepdims)        # type: ignore[no-any-return]


__all__ = """
    sum prod max min mean var std cumulative_sum cumulative_prod diff all any
""".split()

"""Manipulation, searching, sorting and set functions of the array API standard."""
from __future__ import annotations

from typing import Any, List, NamedTuple, Tuple

import numpy as np

from ..arrays import LazyArray
from .calls import at_once, call

# --- manipulation -------------------------------------------------------------------------------------------------------------


def broadcast_arrays(*arrays: LazyArray) -> List[LazyArray]:
    """The arrays with the shape that they have together.  Raises ValueError where there is none."""
    shape = np.broadcast_shapes(*[each.shape for each in arrays])
    return [call(np.broadcast_to, each, shape) for each in arrays]


def broadcast_to(x: LazyArray, /, shape: Tuple[int, ...]) -> LazyArray:
    """The array repeated along new axes and those of size 1."""
    return call(np.broadcast_to, x, shape)              # type: ignore[no-any-return]


def concat(arrays: Any, /, *, axis: Any = 0) -> LazyArray:
    """The arrays one behind the other along an axis; with ``axis=None`` their elements in one row."""
    return call(np.concatenate, tuple(arrays), axis=axis)       # type: ignore[no-any-return]


def expand_dims(x: LazyArray, /, axis: int = 0) -> LazyArray:
    """The array with an axis of size 1 more.

    Raises IndexError for a place that there is not.
    """
    if not -x.ndim - 1 <= axis <= x.ndim:
        raise IndexError(f"axis {axis} is out of bounds for array of dimension {x.ndim + 1}")
    return call(np.expand_dims, x, axis=axis)           # type: ignore[no-any-return]


def flip(x: LazyArray, /, *, axis: Any = None) -> LazyArray:
    """The array with the elements along some axes, or all, in reverse order."""
    return call(np.flip, x, axis=axis)                  # type: ignore[no-any-return]


def moveaxis(x: LazyArray, source: Any, destination: Any, /) -> LazyArray:
    """The array with axes at other places."""
    return call(np.moveaxis, x, source, destination)    # type: ignore[no-any-return]


def permute_dims(x: LazyArray, /, axes: Tuple[int, ...]) -> LazyArray:
    """The array with its axes in another order."""
    return call(np.transpose, x, axes)                  # type: ignore[no-any-return]


def repeat(x: LazyArray, repeats: Any, /, *, axis: Any = None) -> LazyArray:
    """Each element as often as ``repeats`` says: a number, or an array, which is read at once."""
    return (call if isinstance(repeats, int) else at_once)(np.repeat, x, repeats, axis=axis)    # type: ignore[no-any-return]


def reshape(x: LazyArray, /, shape: Tuple[int, ...], *, copy: Any = None) -> LazyArray:
    """The elements in another shape.  copy: True gives an array of its own."""
    return call(_reshaped_copy if copy else np.reshape, x, shape)       # type: ignore[no-any-return]


def _reshaped_copy(x: Any, shape: Any) -> Any:
    return x.copy().reshape(shape)


def roll(x: LazyArray, /, shift: Any, *, axis: Any = None) -> LazyArray:
    """The elements moved along axes; what falls out comes back at the other end."""
    return call(np.roll, x, shift, axis=axis)           # type: ignore[no-any-return]


def squeeze(x: LazyArray, /, axis: Any) -> LazyArray:
    """The array without some axes of size 1.  Raises ValueError where one has another size."""
    return call(np.squeeze, x, axis=axis)               # type: ignore[no-any-return]


def stack(arrays: Any, /, *, axis: int = 0) -> LazyArray:
    """The arrays side by side along a new axis."""
    return call(np.stack, tuple(arrays), axis=axis)     # type: ignore[no-any-return]


def tile(x: LazyArray, repetitions: Tuple[int, ...], /) -> LazyArray:
    """The whole array repeated along each axis."""
    return call(np.tile, x, repetitions)                # type: ignore[no-any-return]


def unstack(x: LazyArray, /, *, axis: int = 0) -> Tuple[LazyArray, ...]:
    """The parts of an array along an axis, which they do not have."""
    first = call(np.moveaxis, x, axis, 0)
    return tuple([first[place] for place in range(first.shape[0])])


# --- searching ----------------------------------------------------------------------------------------------------------------

def argmax(x: LazyArray, /, *, axis: Any = None, keepdims: Any = False) -> LazyArray:
    """The places of the greatest elements."""
    return call(np.argmax, x, axis=axis, keepdims=keepdims)     # type: ignore[no-any-return]


def argmin(x: LazyArray, /, *, axis: Any = None, keepdims: Any = False) -> LazyArray:
    """The places of the least elements."""
    return call(np.argmin, x, axis=axis, keepdims=keepdims)     # type: ignore[no-any-return]


def nonzero(x: LazyArray, /) -> Tuple[LazyArray, ...]:
    """The places of elements that are not zero: an array per axis.  They are found at once."""
    return at_once(np.nonzero, x)                       # type: ignore[no-any-return]


def count_nonzero(x: LazyArray, /, *, axis: Any = None, keepdims: Any = False) -> LazyArray:
    """How many elements are not zero."""
    return call(_count_nonzero, x, axis, keepdims)      # type: ignore[no-any-return]


def _count_nonzero(x: Any, axis: Any, keepdims: Any) -> Any:
    return np.sum(x != 0, axis=axis, keepdims=keepdims, dtype=np.intp)


def searchsorted(x1: LazyArray, x2: LazyArray, /, *, side: str = "left", sorter: Any = None) -> LazyArray:
    """Where elements of ``x2`` belong in ``x1``, which is in order."""
    return call(np.searchsorted, x1, x2, side=side, sorter=sorter)      # type: ignore[no-any-return]


def where(condition: LazyArray, x1: Any, x2: Any, /) -> LazyArray:
    """Elements of ``x1`` where the condition holds, of ``x2`` elsewhere."""
    return call(np.where, condition, x1, x2)            # type: ignore[no-any-return]


def take(x: LazyArray, indices: LazyArray, /, *, axis: Any = None) -> LazyArray:
    """The elements at some places along an axis.

    Raises ValueError for an array of several axes without ``axis``.
    """
    if axis is None and x.ndim != 1:
        raise ValueError("take needs axis= for an array of several axes")
    return call(np.take, x, indices, axis=axis)         # type: ignore[no-any-return]


def take_along_axis(x: LazyArray, indices: LazyArray, /, *, axis: int = -1) -> LazyArray:
    """The elements at the places that ``indices`` has for each row along an axis."""
    return call(np.take_along_axis, x, indices, axis)   # type: ignore[no-any-return]


# --- sorting and sets ---------------------------------------------------------------------------------------------------------

def argsort(x: LazyArray, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> LazyArray:
    """The places of elements in order.  Equal ones stay in their order, whatever ``stable`` says."""
    if descending:
        return call(_places_from_the_end, x, axis)      # type: ignore[no-any-return]
    return call(np.argsort, x, axis=axis, kind="stable")        # type: ignore[no-any-return]


def _places_from_the_end(x: Any, axis: Any) -> Any:
    turned = np.argsort(np.flip(x, axis=axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - turned, axis=axis)


def sort(x: LazyArray, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> LazyArray:
    """The elements in order along an axis."""
    if descending:
        return call(_sorted_from_the_end, x, axis)      # type: ignore[no-any-return]
    return call(np.sort, x, axis=axis, kind="stable")   # type: ignore[no-any-return]


def _sorted_from_the_end(x: Any, axis: Any) -> Any:
    return np.flip(np.sort(x, axis=axis, kind="stable"), axis=axis)


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: LazyArray
    indices: LazyArray
    inverse_indices: LazyArray
    counts: LazyArray


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: LazyArray
    counts: LazyArray


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: LazyArray
    inverse_indices: LazyArray


def unique_all(x: LazyArray, /) -> UniqueAll:
    """The different values, where each is first, which of them each element is, and how many of each there are: found at once."""
    return UniqueAll(*at_once(_unique, x, True, True, True))


def unique_counts(x: LazyArray, /) -> UniqueCounts:
    """The different values, and how many of each there are: found at once."""
    return UniqueCounts(*at_once(_unique, x, False, False, True))


def unique_inverse(x: LazyArray, /) -> UniqueInverse:
    """The different values, and which of them each element is: found at once."""
    return UniqueInverse(*at_once(_unique, x, False, True, False))


def unique_values(x: LazyArray, /) -> LazyArray:
    """The distinct values, sorted; computed immediately.  Each NaN counts as distinct."""
    return at_once(_unique, x, False, False, False)[0]  # type: ignore[no-any-return]


def _unique(x: Any, indices: Any, inverse: Any, counts: Any) -> Tuple[Any, ...]:
    found = np.unique(x, return_index=indices, return_inverse=inverse, return_counts=counts, equal_nan=False)
    found = list(found) if isinstance(found, tuple) else [found]
    if inverse:
        place = 2 if indices else 1
        found[place] = found[place].reshape(np.shape(x))        # NumPy 1 and 2.0 give a row
    return tuple(found)


__all__ = """
    broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile
    unstack argmax argmin nonzero count_nonzero searchsorted where take take_along_axis argsort sort unique_all
    unique_counts unique_inverse unique_values
""".split()

"""Writes into arrays as functions of their contents, and whether arrays that are written share memory."""
from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Sequence, Tuple

import numpy as np


def overlap(written: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> bool:
    """Whether an array that is written is read-only, has elements in one place, or may share memory with another one.

    The native function of this name gives the same answers.
    """
    if any([is_read_only(array) or overlaps_itself(array) for array in written]):
        return True
    places = sorted([(*bounds(array), is_written) for arrays, is_written in ((written, True), (others, False))
                     for array in arrays if array.size])
    end = written_end = 0                               # of all arrays so far, and of those that are written
    for low, high, is_written in places:
        if low < (end if is_written else written_end):
            return True
        end = max(end, high)
        written_end = max(written_end, high) if is_written else written_end
    return False


def is_read_only(array: Any) -> bool:
    """Whether an array is read-only; arrays of CuPy never are."""
    return isinstance(array, np.ndarray) and not array.flags.writeable


def address(array: Any) -> int:
    """Where the first element of an array is in the memory of its device."""
    place: int = array.__array_interface__["data"][0] if isinstance(array, np.ndarray) else array.data.ptr
    return place


def bounds(array: np.ndarray) -> Tuple[int, int]:
    """Where the memory of an array that is not empty begins and ends."""
    low = high = address(array)
    for length, stride in zip(array.shape, array.strides):
        reach = (length - 1) * stride
        low, high = (low + reach, high) if reach < 0 else (low, high + reach)
    return low, high + array.itemsize


def may_share_memory(array: Any, other: Any) -> bool:
    """Whether the stretches of memory of two arrays that are not empty have a place in common, on the host or on a GPU."""
    low, high = bounds(array)
    first, last = bounds(other)
    return low < last and first < high


def overlaps_itself(array: np.ndarray) -> bool:
    """Whether two elements of an array may lie in one place."""
    if array.flags.forc or not array.size:
        return False
    reached = array.itemsize
    for stride, length in sorted((abs(stride), length) for stride, length in zip(array.strides, array.shape) if length > 1):
        if stride < reached:
            return True
        reached += stride * (length - 1)
    return False


#: How two arrays lie in memory: the bytes from the first element of the one to that of the other, and the strides of both.
Relation = Tuple[int, Tuple[int, ...], Tuple[int, ...]]


def relation(array: np.ndarray, other: np.ndarray) -> Relation:
    """How two arrays lie in memory that may share it."""
    return address(other) - address(array), array.strides, other.strides


@functools.lru_cache(maxsize=64)
def common_places(shape: Tuple[int, ...], other_shape: Tuple[int, ...], apart: int, strides: Tuple[int, ...],
                  other_strides: Tuple[int, ...]) -> Tuple[np.ndarray, np.ndarray]:
    """Which elements of two arrays are the same memory, as positions in the order of C; no two of the other one's are."""
    mine, theirs = _offsets(shape, strides), _offsets(other_shape, other_strides) + apart
    order = np.argsort(theirs)
    places = np.searchsorted(theirs, mine, sorter=order)
    places[places == len(theirs)] = 0
    found = np.flatnonzero(theirs[order[places]] == mine) if len(theirs) else np.zeros(0, np.intp)
    return found, order[places[found]]


def _offsets(shape: Tuple[int, ...], strides: Tuple[int, ...]) -> np.ndarray:
    found = np.zeros((), np.int64)
    for length, stride in zip(shape, strides):
        found = np.add.outer(found, np.arange(length) * stride)
    return found.ravel()


def overlaid(contents: np.ndarray, other: np.ndarray, apart: int, strides: Tuple[int, ...],
             other_strides: Tuple[int, ...]) -> np.ndarray:
    """A copy of what an array holds, with what another one holds where both are the same memory (see `Relation`)."""
    mine, theirs = common_places(contents.shape, other.shape, apart, strides, other_strides)
    made = contents.copy(order="K")
    made.flat[mine] = other.flat[theirs]
    return made


class Into:
    """``function(*args, out=array)`` as a function that writes into its first operand."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __call__(self, array: np.ndarray, *args: Any, **kwargs: Any) -> None:
        self.function(*args, out=array, **kwargs)


def write_at(contents: np.ndarray, steps: Tuple, function: Callable[..., Any], args: Tuple, kwargs: Dict[str, Any]) -> np.ndarray:
    """A copy of the contents after ``function`` wrote into the view at the end of the steps."""
    return write_in_place(contents.copy(order="K"), steps, function, args, kwargs)


def write_in_place(contents: np.ndarray, steps: Tuple, function: Callable[..., Any], args: Tuple,
                kwargs: Dict[str, Any]) -> np.ndarray:
    """The contents after ``function`` wrote into the view at the end of the steps; no copy is made."""
    view = contents
    for step, step_args, step_kwargs in steps:
        view = step(view, *step_args, **step_kwargs)
    function(view, *args, **kwargs)
    return contents


def write_at_checked(*args: Any) -> np.ndarray:
    """The same, for what may fail on what arrays hold."""
    return write_at(*args)


def write_by_numpy(*args: Any) -> np.ndarray:
    """The same, for what NumPy computes in a wider dtype than that of the array: no other code does."""
    return write_at(*args)


#: What generated code calls instead where the contents are its own and the old ones are not read again.
write_at.in_place = write_at_checked.in_place = write_in_place         # type: ignore[attr-defined]


def itself(array: np.ndarray) -> np.ndarray:
    """The array; as a step, nothing is changed."""
    return array

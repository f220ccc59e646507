"""Rules for what NumPy does with whole arrays: other orders of axes and elements, joins, repetitions, borders.

They are for backends that ask.  Where a function gives a view, so does the last op of its rule; where it gives a new array, that op
gives no view.
"""
from __future__ import annotations

import functools
from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from ... import ops
from ...ir.building import constant
from ...ir.dims import equal, is_known
from ...ir.graph import Value
from ...ir.shapes import with_axes
from ...ir.types import Tensor
from ...ops.scalar import size_as_number
from .exact import Rule
from .operands import is_array, operand

_PLACES = np.dtype("int64")


def fresh(rule: Rule) -> Rule:
    """The rule of a function that gives a new array: a copy of what the other rule gives, which may be a view."""
    @functools.wraps(rule)
    def copied(type_: Tensor, *args: Any, **kwargs: Any) -> Optional[Value]:
        made = rule(type_, *args, **kwargs)
        return None if made is None else ops.copy(made)
    return copied


# Views --------------------------------------------------------------------------------------------------------------------


def permuted(function: Callable[..., Any]) -> Rule:
    """The rule of a function that puts axes into another order."""
    def rule(type_: Tensor, x: Any, *axes: Any) -> Optional[Value]:
        if not is_array(x) or not all(map(_is_fixed, axes)):
            return None
        numbered = np.broadcast_to(np.int8(0), tuple(range(1, x.ndim + 1)))
        return ops.transpose(x, axes=tuple(n - 1 for n in function(numbered, *axes).shape))
    return rule


def reshaped(type_: Tensor, x: Any, axis: Any = None) -> Optional[Value]:
    """The same elements in the same order: axes of one element come or go."""
    return ops.reshape(x, shape=type_.shape) if is_array(x) and _is_fixed(axis) else None


def flattened(type_: Tensor, x: Any, order: str = "C") -> Optional[Value]:
    """The rule of ``x.flatten()``."""
    return ops.reshape(x, shape=type_.shape) if is_array(x) and order == "C" else None


def flipped(type_: Tensor, m: Any, axis: Any = None) -> Optional[Value]:
    """The rule of ``np.flip``."""
    axes = _normal(m, axis)
    return None if axes is None else _backwards(m, axes)


def flipped_along(axis: int) -> Rule:
    """The rule of ``np.flipud`` or ``np.fliplr``."""
    return lambda type_, m: flipped(type_, m, axis)


def rotated(type_: Tensor, m: Any, k: Any = 1, axes: Any = (0, 1)) -> Optional[Value]:
    """The rule of ``np.rot90``."""
    plane = _normal(m, tuple(axes)) if type(axes) in (tuple, list) else None
    if plane is None or len(plane) != 2 or type(k) is not int:
        return None
    order = list(range(m.ndim))
    order[plane[0]], order[plane[1]] = order[plane[1]], order[plane[0]]
    if k % 4 == 0:
        return ops.getitem(m, index=(slice(None),) * m.ndim)
    if k % 4 == 2:
        return _backwards(m, plane)
    if k % 4 == 1:
        return ops.transpose(_backwards(m, plane[1:]), axes=tuple(order))
    return _backwards(ops.transpose(m, axes=tuple(order)), plane[1:])


def _backwards(x: Value, axes: Sequence[int]) -> Value:
    return ops.getitem(x, index=tuple(slice(None, None, -1 if axis in axes else None) for axis in range(x.ndim)))


# Joins ----------------------------------------------------------------------------------------------------------------------


def joined(axis_of: Callable[[int], int], axes: int = 0) -> Rule:
    """The rule of a function that joins arrays along an axis.

    axis_of: the axis, of parts of this many axes.  axes: parts with fewer get axes of one element, as by ``np.atleast_2d``.
    """
    def rule(type_: Tensor, arrays: Any) -> Optional[Value]:
        if is_array(arrays):
            axis = axis_of(max(arrays.ndim - 1, axes))
            return _rows_joined(type_, arrays, axis) if arrays.ndim > max(axis + 1, axes) else None
        parts = _parts(arrays, type_.dtype)
        if parts is None:
            return None
        parts = [ops.reshape(x, shape=with_axes(x.shape, axes)) for x in parts]
        return ops.concat(*parts, axis=axis_of(parts[0].ndim))
    return rule


def columns(type_: Tensor, arrays: Any) -> Optional[Value]:
    """The rule of ``np.column_stack``."""
    parts = _parts(arrays, type_.dtype)
    if parts is None:
        return None
    return ops.concat(*[ops.reshape(x, shape=(x.shape[0], 1)) if x.ndim == 1 else x for x in parts], axis=1)


def concatenated(type_: Tensor, arrays: Any, axis: Any = 0) -> Optional[Value]:
    """The rule of ``np.concatenate`` of arrays of several dtypes, or of the rows of one array."""
    if is_array(arrays):
        return _rows_joined(type_, arrays, axis) if type(axis) is int and arrays.ndim > 1 else None
    parts = _parts(arrays, type_.dtype)
    if parts is None or type(axis) not in (int, type(None)):
        return None
    return ops.concat(*parts, axis=axis) if axis is not None else ops.concat(*[_flat(x) for x in parts], axis=0)


def stacked(type_: Tensor, arrays: Any, axis: Any = 0) -> Optional[Value]:
    """The rule of ``np.stack`` of arrays of several dtypes, or of the rows of one array."""
    if is_array(arrays):
        return ops.copy(_first_at(arrays, axis % arrays.ndim)) if type(axis) is int else None
    parts = _parts(arrays, type_.dtype)
    return ops.stack(*parts, axis=axis) if parts is not None and type(axis) is int else None


def array(type_: Tensor, items: Any, dtype: Any = None) -> Optional[Value]:
    """The rule of ``np.array`` of a list of numbers, of arrays of one shape, or of such lists."""
    if type(items) not in (list, tuple):
        return None
    parts = [array(Tensor(type_.shape[1:], type_.dtype), item) if type(item) in (list, tuple) else item for item in items]
    return stacked(type_, parts)


def appended(type_: Tensor, arr: Any, values: Any, axis: Any = None) -> Optional[Value]:
    """The rule of ``np.append``, also of a number of the dtype of an array."""
    if type(values) in (int, float) and is_array(arr):
        number = operand(values, type_.dtype)
        values = None if number is None else ops.reshape(number, shape=(1,))
    return concatenated(type_, (arr, values), axis)


def _rows_joined(type_: Tensor, x: Value, axis: int) -> Value:
    """The rows of an array, joined along an axis that they have."""
    return ops.copy(ops.reshape(_first_at(x, axis % (x.ndim - 1)), shape=type_.shape))


def _first_at(x: Value, axis: int) -> Value:
    """The array with its first axis at another place."""
    return ops.transpose(x, axes=(*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


def _parts(arrays: Any, dtype: np.dtype) -> Optional[List[Value]]:
    """Arrays of this dtype; None where one is no array, or may lose something."""
    if type(arrays) not in (tuple, list) or not arrays or not all(map(is_array, arrays)) or \
            not all(np.can_cast(x.dtype, dtype) for x in arrays):
        return None
    return [x if x.dtype == dtype else ops.cast(x, dtype=dtype) for x in arrays]


# Repetitions ----------------------------------------------------------------------------------------------------------------


def tiled(type_: Tensor, A: Any, reps: Any) -> Optional[Value]:
    """The rule of ``np.tile``."""
    counts = reps if type(reps) in (tuple, list) else (reps,)
    if not is_array(A) or not all(type(n) is int for n in counts):
        return None
    axes = max(len(counts), A.ndim)
    shape, counts = (1,) * (axes - A.ndim) + A.shape, (1,) * (axes - len(counts)) + tuple(counts)
    apart = ops.reshape(A, shape=tuple(m for n in shape for m in (1, n)))
    spread = ops.broadcast_to(apart, shape=tuple(m for pair in zip(counts, shape) for m in pair))
    return ops.reshape(spread, shape=type_.shape)


def repeated(type_: Tensor, a: Any, repeats: Any, axis: Any = None) -> Optional[Value]:
    """The rule of ``np.repeat`` by one number."""
    if not is_array(a) or type(repeats) is not int or type(axis) not in (int, type(None)):
        return None
    a = _flat(a) if axis is None else a
    at = (axis or 0) % max(a.ndim, 1) + 1
    before, behind = a.shape[:at], a.shape[at:]
    spread = ops.broadcast_to(ops.reshape(a, shape=(*before, 1, *behind)), shape=(*before, repeats, *behind))
    return ops.reshape(spread, shape=type_.shape)


def rolled(type_: Tensor, a: Any, shift: Any, axis: Any = None) -> Optional[Value]:
    """The rule of ``np.roll``."""
    whole = a if axis is not None or not is_array(a) else _flat(a)
    axes = _normal(whole, axis)
    shifts = shift if type(shift) in (tuple, list) else (shift,) * (0 if axes is None else len(axes))
    if axes is None or len(shifts) != len(axes) or not all(type(n) is int and abs(n) < 2 ** 31 for n in shifts):
        return None
    for by, at in zip(shifts, axes):
        size = whole.shape[at]
        if not is_known(size):                          # where each element comes from, also round several times
            places = ops.arange(start=0, stop=size, step=1, dtype=_PLACES) - constant(_PLACES.type(by))
            whole = ops.take(whole, ops.remainder(places, size_as_number(size, _PLACES)), axis=at)
            continue
        before = (slice(None),) * at
        cut = size - by % size if size else 0
        if cut % max(size, 1):
            whole = ops.concat(ops.getitem(whole, index=(*before, slice(cut, None))),
                               ops.getitem(whole, index=(*before, slice(0, cut))), axis=at)
    return ops.reshape(whole, shape=type_.shape)


def padded(type_: Tensor, array: Any, pad_width: Any, mode: Any = "constant", constant_values: Any = 0) -> Optional[Value]:
    """The rule of ``np.pad`` with a number, or with elements of the array along axes whose sizes are known."""
    if not is_array(array) or not _is_fixed(pad_width) or not array.ndim:
        return None
    width = tuple((int(a), int(b)) for a, b in np.broadcast_to(pad_width, (array.ndim, 2)))
    if mode == "constant":
        if type(constant_values) not in (int, float) or array.dtype.type(constant_values) != constant_values:
            return None
        return ops.pad(array, width=width, keywords=(("constant_values", constant_values),))
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        return None
    for axis, (size, (before, behind)) in enumerate(zip(array.shape, width)):
        if not before and not behind:
            continue
        if not isinstance(size, int):
            return None
        array = ops.take(array, constant(np.pad(np.arange(size), (before, behind), mode=mode)), axis=axis)
    return array


def deleted(type_: Tensor, arr: Any, obj: Any, axis: Any = None) -> Optional[Value]:
    """The rule of ``np.delete`` along an axis whose size is known."""
    if not is_array(arr) or type(axis) is not int or not _is_fixed(obj) or not isinstance(arr.shape[axis], int):
        return None
    return ops.take(arr, constant(np.delete(np.arange(arr.shape[axis]), obj)), axis=axis)


# Elements that indices pick -------------------------------------------------------------------------------------------------


def taken(type_: Tensor, a: Any, indices: Any, axis: Any = None) -> Optional[Value]:
    """The rule of ``np.take``."""
    index = _index(indices)
    if not is_array(a) or index is None or type(axis) not in (int, type(None)):
        return None
    return ops.take(_flat(a), index, axis=0) if axis is None else ops.take(a, index, axis=axis)


def taken_along(type_: Tensor, arr: Any, indices: Any, axis: Any) -> Optional[Value]:
    """The rule of ``np.take_along_axis``."""
    index = _index(indices)
    if not is_array(arr) or index is None or type(axis) is not int or arr.ndim != index.ndim:
        return None
    axis %= arr.ndim
    for a, (n, m) in enumerate(zip(arr.shape, index.shape)):
        if a == axis or equal(n, m):
            continue
        if m == 1:
            index = ops.broadcast_to(index, shape=(*index.shape[:a], n, *index.shape[a + 1:]))
        elif n == 1:
            arr = ops.broadcast_to(arr, shape=(*arr.shape[:a], m, *arr.shape[a + 1:]))
        else:
            return None
    return ops.take_along(arr, index, axis=axis)


def _index(item: Any) -> Optional[Value]:
    """Ints that pick elements, as an array of the graph."""
    if is_array(item):
        return item if item.dtype.kind in "iu" else None
    if type(item) is int or type(item) in (list, tuple) and item and all(type(n) is int for n in item):
        return constant(np.array(item))
    return None


# Diagonals ------------------------------------------------------------------------------------------------------------------


def diagonal(type_: Tensor, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Optional[Value]:
    """The rule of ``np.diagonal``."""
    is_plain = is_array(a) and type(offset) is int and type(axis1) is type(axis2) is int
    return ops.diagonal(a, offset=offset, axes=(axis1, axis2)) if is_plain else None


def diag(type_: Tensor, v: Any, k: Any = 0) -> Optional[Value]:
    """The rule of ``np.diag``: the diagonal of a matrix, or a matrix of it."""
    if not is_array(v) or type(k) is not int:
        return None
    return ops.diagonal(v, offset=k) if v.ndim == 2 else ops.put_diagonal(v, offset=k, shape=type_.shape)


def trace(type_: Tensor, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Optional[Value]:
    """The rule of ``np.trace``."""
    part = diagonal(type_, a, offset, axis1, axis2)
    return None if part is None else ops.sum(part, axis=(part.ndim - 1,))


# New arrays -----------------------------------------------------------------------------------------------------------------


def counted(type_: Tensor, *ends: Any, dtype: Any = None) -> Optional[Value]:
    """The rule of ``np.arange`` from a known int, by a known step, up to a size that only the run knows."""
    start, step = (ends[0] if len(ends) > 1 else 0), (ends[2] if len(ends) > 2 else 1)
    if type(start) is not int or type(step) is not int or step < 1 or type_.dtype.kind not in "iuf":
        return None
    return ops.arange(start=start, stop=type_.shape[0] * step + start, step=step, dtype=type_.dtype)


def diagonal_of_ones(type_: Tensor, N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Optional[Value]:
    """The rule of ``np.eye`` and ``np.identity`` of a size that only the run knows."""
    return _compared(type_, k, ops.equal)


def ones_below(type_: Tensor, N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Optional[Value]:
    """The rule of ``np.tri`` of a size that only the run knows."""
    return _compared(type_, k, ops.less_equal)


def _compared(type_: Tensor, k: Any, compare: Any) -> Optional[Value]:
    if type(k) is not int or abs(k) >= 2 ** 31:
        return None
    rows, across = type_.shape
    row = ops.arange(start=k, stop=rows + k, step=1, dtype=np.dtype("int64"))
    column = ops.arange(start=0, stop=across, step=1, dtype=np.dtype("int64"))
    row = ops.broadcast_to(ops.reshape(row, shape=(rows, 1)), shape=type_.shape)
    found = compare(ops.broadcast_to(column, shape=type_.shape), row)
    return found if type_.dtype.kind == "b" else ops.cast(found, dtype=type_.dtype)


def _flat(x: Value) -> Value:
    return ops.reshape(x, shape=(x.type.size,))


def _normal(x: Any, axis: Any) -> Optional[Tuple[int, ...]]:
    """The axes, counted from the front; all for None; None for what is no array or axis."""
    axes = axis if type(axis) is tuple else (axis,)
    if not is_array(x) or axis is not None and not all(type(a) is int for a in axes):
        return None
    return tuple(range(x.ndim)) if axis is None else tuple(a % x.ndim for a in axes)


def _is_fixed(item: Any) -> bool:
    """Whether an argument is made of ints and None."""
    return item is None or type(item) is int or type(item) in (tuple, list) and all(map(_is_fixed, item))

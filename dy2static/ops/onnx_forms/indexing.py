"""Indexing as nodes of ONNX.

What writes to parts of an array does so by the numbers that its elements have in memory, which the same index picks from a
counted array: ``numbers = arange(size).reshape(shape)[index]``.  Where shapes are known, onnxruntime computes these once.
"""
from __future__ import annotations

import functools
from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from ...ir.onnx_forms import Name, OnnxWriter
from ...ir.template import AT, is_window
from ...ir.types import Tensor, Type
from .movement import axes, filled, reshaped

Index = Tuple[Any, ...]

#: The end of a slice that runs down to the first element.
_BELOW = -2 ** 62

#: The entry of an index for all of an axis.
_WHOLE = (0, None, 1)


def basic(o: OnnxWriter, x: Name, index: Index, numbers: Sequence[Name] = ()) -> Name:
    """``x[index]``, in which 0-d ``numbers`` stand where the index has `AT`, or begin a window."""
    given = iter(numbers)
    parts: List[Tuple[int, Any, Any, int]] = []
    picked: List[Tuple[int, Name]] = []
    new: List[int] = []
    axis = place = 0
    for entry in index:
        if entry is None:
            new.append(place)
            place += 1
            continue
        if is_window(entry):
            first = o.node("Unsqueeze", o.cast(next(given), np.int64), axes(o, 0))
            x = o.node("Slice", x, first, o.node("Add", first, axes(o, entry[1])), axes(o, axis))
            place += 1
        elif isinstance(entry, tuple):
            start, stop, step = entry
            if entry != _WHOLE:
                parts.append((axis, start, _BELOW if stop is None else stop, 1 if step is None else step))
            place += 1
        else:
            picked.append((axis, next(given) if entry == AT else o.size(entry)))
        axis += 1
    if parts:
        starts, stops = o.shape([p[1] for p in parts]), o.shape([p[2] for p in parts])
        x = o.node("Slice", x, starts, stops, axes(o, *[p[0] for p in parts]), axes(o, *[p[3] for p in parts]))
    for axis, number in reversed(picked):
        x = o.node("Gather", x, number, axis=axis)
    return o.node("Unsqueeze", x, axes(o, *new)) if new else x


def getitem(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], x: Name, *numbers: Name, index: Index) -> Name:
    """A part of an array."""
    return basic(o, x, _without_whole(index, types[0].shape), numbers)


def _without_whole(index: Index, shape: Sequence[Any]) -> Index:
    """The index with slices of whole axes in one form, which needs no node."""
    sizes = iter(shape)
    found: List[Any] = []
    for entry in index:
        size = None if entry is None else next(sizes)
        whole = isinstance(entry, tuple) and not is_window(entry) and entry[0] == 0 and entry[1] == size and entry[2] in (None, 1)
        found.append(_WHOLE if whole else entry)
    return tuple(found)


def _bounds(o: OnnxWriter, given: str, bounds: Sequence[Name]) -> Tuple[Name, Name]:
    ends = {end: o.node("Unsqueeze", o.cast(b, np.int64), axes(o, 0)) for end, b in zip(given, bounds)}
    return ends.get("<", axes(o, 0)), ends.get(">", axes(o, 2 ** 62))


def getitem_span(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, *bounds: Name, axis: int, given: str,
                 extents: Any) -> Name:
    """``x[..., start:stop]`` along one axis."""
    return o.node("Slice", x, *_bounds(o, given, bounds), axes(o, axis))


# Writing to parts -----------------------------------------------------------------------------------------------


def counted(o: OnnxWriter, shape: Sequence[Any]) -> Name:
    """The numbers of all elements of an array of this shape."""
    if all(isinstance(n, int) for n in shape):
        return o.constant(np.arange(int(np.prod(shape, dtype=int))).reshape(shape))
    total: Any = 1
    for n in shape:
        total = total * n
    numbers = o.node("Range", o.constant(0, np.int64), o.size(total), o.constant(1, np.int64))
    return reshaped(o, numbers, shape)


def flat(o: OnnxWriter, x: Name) -> Name:
    """The elements along one axis."""
    return o.node("Reshape", x, axes(o, -1))


def written(o: OnnxWriter, whole: Name, shape: Sequence[Any], part: Name, places: Name, add: bool = False) -> Name:
    """The array ``whole`` with ``part`` put, or added, where the elements of these numbers are."""
    y = o.node("ScatterElements", flat(o, whole), flat(o, places), flat(o, part), axis=0, reduction="add" if add else "none")
    return reshaped(o, y, shape)


def zeros(o: OnnxWriter, x: Name, shape: Sequence[Any]) -> Name:
    """Zeros in the dtype of ``x``."""
    return filled(o, 0, o.dtype(x), shape)


def _border(sizes: Sequence[Any], index: Index, shape: Sequence[Any]) -> Optional[List[int]]:
    """The numbers of zeros before and behind an array on each axis, where the index picks one block of known sizes."""
    before, behind = [], []
    for n, entry, whole in zip(sizes, (*index, *[_WHOLE] * (len(shape) - len(index))), shape):
        if not isinstance(entry, tuple) or is_window(entry) or entry[2] not in (None, 1):
            return None
        start = 0 if n == whole else entry[0]
        rest = 0 if n == whole else whole - start - n
        if type(start) is not int or type(rest) is not int or min(start, rest) < 0:
            return None
        before.append(start)
        behind.append(rest)
    return [*before, *behind]


def scatter_slice(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], x: Name, *numbers: Name, index: Index,
                  shape: Sequence[Any]) -> Name:
    """Zeros with ``x`` at an index."""
    border = _border(types[0].shape, index, shape) if types[0].ndim == len(shape) else None
    if border is not None and o.takes("Pad", o.dtype(x)):
        return o.node("Pad", x, o.constant(border, np.int64), o.like(0, x))
    return written(o, zeros(o, x, shape), shape, x, basic(o, counted(o, shape), index, numbers))


def scatter_span(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, *bounds: Name, axis: int, given: str,
                 extents: Any, shape: Sequence[Any]) -> Name:
    """Zeros with ``x`` in a slice."""
    places = o.node("Slice", counted(o, shape), *_bounds(o, given, bounds), axes(o, axis))
    return written(o, zeros(o, x, shape), shape, x, places)


# Arrays of ints as indices --------------------------------------------------------------------------------------


def picked(o: OnnxWriter, x: Name, type_: Tensor, index: Index, numbers: Sequence[Name], ndims: Sequence[int]) -> Name:
    """``x[index]`` with arrays of ints, of so many axes, for each `AT`: the axes they make stand together."""
    places = [p for p, entry in enumerate(index) if not (entry is None or isinstance(entry, tuple))]
    adjacent = bool(places) and places[-1] - places[0] < len(places)
    # a number beside arrays is one more of them
    given = iter(zip(numbers, ndims))
    arrays = [next(given) if index[p] == AT else (o.size(index[p]), 0) for p in places]
    kept = tuple(_WHOLE if p in places else entry for p, entry in enumerate(index) if entry is not None)
    x = basic(o, x, _without_whole(kept, type_.shape))
    real = [entry for entry in index if entry is not None]
    at = [a for a, entry in enumerate(real) if not isinstance(entry, tuple)]
    rest = [a for a in range(len(real)) if a not in at]
    together = max([n for _, n in arrays], default=0)
    if len(arrays) == 1:
        x = o.node("Gather", x, o.cast(arrays[0][0], np.int64), axis=at[0])
        order = [*range(at[0], at[0] + together), *(a for a in range(together + len(rest)) if not at[0] <= a < at[0] + together)]
    else:
        if at != list(range(len(at))):
            x = o.node("Transpose", x, perm=at + rest)
        x = o.node("GatherND", x, _tuples(o, [name for name, _ in arrays]))
        order = list(range(together + len(rest)))
    # now `order` tells where the joint axes, then the others, are in x; in the result the new axes come in between
    before = len([p for p in range(places[0]) if index[p] is not None]) if adjacent else 0
    wanted = [*order[together:together + before], *order[:together], *order[together + before:]]
    if wanted != sorted(wanted):
        x = o.node("Transpose", x, perm=wanted)
    return _with_new_axes(o, x, index, places, adjacent, together)


def _with_new_axes(o: OnnxWriter, x: Name, index: Index, places: Sequence[int], adjacent: bool, together: int) -> Name:
    layout: List[str] = []
    if not adjacent:
        layout += ["joint"] * together
    for p, entry in enumerate(index):
        if p in places:
            layout += ["joint"] * together if adjacent and p == places[0] else []
        else:
            layout.append("new" if entry is None else "axis")
    new = [a for a, what in enumerate(layout) if what == "new"]
    return o.node("Unsqueeze", x, axes(o, *new)) if new else x


def _tuples(o: OnnxWriter, arrays: Sequence[Name]) -> Name:
    """Arrays that broadcast, as one whose last axis has an element of each."""
    wide = [o.cast(name, np.int64) for name in arrays]
    like = o.shape_of(functools.reduce(lambda a, b: o.node("Add", a, b), wide))
    columns = [o.node("Unsqueeze", o.node("Expand", name, like), axes(o, -1)) for name in wide]
    return o.node("Concat", *columns, axis=-1)


def _ndims(types: Sequence[Any]) -> List[int]:
    return [len(t.shape) for t in types]


def pick(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], x: Name, *numbers: Name, index: Index) -> Name:
    """Elements picked by arrays of ints."""
    return picked(o, x, types[0], index, numbers, _ndims(types[1:]))


def _put(add: bool) -> Callable[..., Name]:
    def rule(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], whole: Name, part: Name, *numbers: Name,
             index: Index) -> Name:
        """Write the nodes that put a part, or add it, where an index says."""
        type_, ndims = types[0], _ndims(types[2:])
        places = counted(o, type_.shape)
        places = picked(o, places, type_, index, numbers, ndims) if any(ndims) else basic(o, places, index, numbers)
        return written(o, whole, type_.shape, part, places, add)
    return rule


put, add_at = _put(False), _put(True)


def take(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, indices: Name, *, axis: int) -> Name:
    """Whole rows picked by ints."""
    return o.node("Gather", x, o.cast(indices, np.int64), axis=axis)


def scatter_add(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], x: Name, indices: Name, *, axis: int,
                shape: Sequence[Any]) -> Name:
    """Zeros with rows added."""
    if axis == 0:
        column = o.node("Unsqueeze", o.cast(indices, np.int64), axes(o, types[1].ndim))
        return o.node("ScatterND", zeros(o, x, shape), column, x, reduction="add")
    places = o.node("Gather", counted(o, shape), o.cast(indices, np.int64), axis=axis)
    return written(o, zeros(o, x, shape), shape, x, places, add=True)


def take_along(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, indices: Name, *, axis: int) -> Name:
    """One element for each index along an axis."""
    return o.node("GatherElements", x, o.cast(indices, np.int64), axis=axis)


def add_along(o: OnnxWriter, types: Sequence[Type], results: Sequence[Any], x: Name, indices: Name, *, axis: int,
              size: Any) -> Name:
    """Zeros with elements added along an axis."""
    return o.node("ScatterElements", zeros(o, x, results[0].shape), o.cast(indices, np.int64), x, axis=axis, reduction="add")


def decrement_along(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, indices: Name, *, axis: int) -> Name:
    """``x``, less 1 at the index of each row."""
    indices = o.cast(indices, np.int64)
    less = o.node("Expand", o.like(-1, x), o.shape_of(indices))
    return o.node("ScatterElements", x, indices, less, axis=axis, reduction="add")


def stack_scatter(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], items: Name, numbers: Name, *,
                  shape: Sequence[Any]) -> Name:
    """Zeros with the items of a stack added to rows."""
    column = o.node("Unsqueeze", o.cast(flat(o, numbers), np.int64), axes(o, 1))
    return o.node("ScatterND", zeros(o, items, shape), column, items, reduction="add")


# Diagonals ------------------------------------------------------------------------------------------------------


def _diagonal(o: OnnxWriter, x: Name, shape: Sequence[Any], offset: int, pair: Tuple[int, int], size: Any) -> Name:
    others = [a for a in range(len(shape)) if a not in pair]
    rows, columns = shape[pair[0]], shape[pair[1]]
    x = o.node("Transpose", x, perm=[*others, *pair])
    x = reshaped(o, x, [*(shape[a] for a in others), rows * columns])
    start = max(-offset, 0) * columns + max(offset, 0)
    steps = o.node("Range", o.constant(0, np.int64), o.size(size), o.constant(1, np.int64))
    places = o.node("Add", o.node("Mul", steps, o.size(columns + 1)), o.size(start))
    return o.node("Gather", x, places, axis=len(others))


def diagonal(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, *, offset: int, axes: Tuple[int, int]) -> Name:
    """The diagonal of two axes, as the last axis."""
    return _diagonal(o, x, types[0].shape, offset, axes, results[0].shape[-1])


def put_diagonal(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], x: Name, *, offset: int, axes: Tuple[int, int],
                 shape: Sequence[Any]) -> Name:
    """Zeros with ``x`` on a diagonal."""
    places = _diagonal(o, counted(o, shape), shape, offset, axes, types[0].shape[-1])
    return written(o, zeros(o, x, shape), shape, x, places)


def put_diagonals(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, *, letters: str,
                  shape: Sequence[Any]) -> Name:
    """Zeros with ``x`` where the axes of equal letters have equal indices."""
    places, names, sizes = counted(o, shape), letters, list(shape)
    while len(set(names)) < len(names):
        k = next(k for k, letter in enumerate(names) if letter in names[:k])
        first = names.index(names[k])
        places = _diagonal(o, places, sizes, 0, (first, k), sizes[k])
        left = [a for a in range(len(names)) if a not in (first, k)]
        sizes, names = [*(sizes[a] for a in left), sizes[k]], "".join(names[a] for a in left) + names[k]
    order = [names.index(letter) for letter in dict.fromkeys(letters)]
    places = o.node("Transpose", places, perm=order)
    return written(o, zeros(o, x, shape), shape, x, places)

"""Lowerings of `chainer.functions.array`: parts of an array, by any index NumPy takes."""
from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
from chainer.functions.array.get_item import GetItem
from chainer.functions.array.scatter_add import ScatterAdd

from .. import ops
from ..ir.building import constant, current, new_extent
from ..ir.dims import Dim, less
from ..ir.graph import Value
from ..ir.size_symbols import FREE
from ..ir.template import AT
from ..ir.types import Tensor
from .registry import known_array, lowers, symbolic_value

#: Types of ends of slices that are known now.
_INTS = (int, np.int32, np.int64)


class Window(NamedTuple):
    """A slice of ``count`` elements between ``ends`` that only the run knows; all of them are inside of the array."""

    ends: slice
    count: int


@lowers(GetItem)
def get_item(node: Any, x: Value) -> Optional[Value]:
    # an index that selects one element gives a copy, not a view; equal entries of an index array add up in backward
    *before, last = node.slices or (Ellipsis,)
    first = len(before) < x.ndim and all(isinstance(entry, slice) and entry == slice(None) for entry in before)
    spans = {place: span for place, entry in enumerate(node.slices) if (span := _span(entry)) is not None}
    others = [entry for place, entry in enumerate(node.slices) if place not in spans]
    if len(spans) == 1 and len(node.slices) <= x.ndim and all(_is_int(entry) or _is_basic(entry) and type(entry) is slice
                                                              for entry in others):
        (place, span), = spans.items()
        if any(entry != slice(None) for entry in others):       # of the other axes, parts that are known now
            x = ops.indexing.picked(x, index=(*others[:place], slice(None), *others[place:]))
        axis = sum(type(entry) is slice for entry in others[:place])
        extents = _extents_like(x, span, axis) or ((str(new_extent()), 0, axis),)
        return ops.getitem_span(x, *span.values(), axis=axis, given="".join(span), extents=extents)
    found = _index(node.slices, x.shape)
    if found is None:
        return None
    index, numbers = found
    is_rows = first and len(numbers) == 1 and index[-1] == AT and isinstance(numbers[0].type, Tensor) and numbers[0].ndim > 0
    if is_rows and x.shape[len(before)] != 0 and not isinstance(x.shape[len(before)], Dim):     # of none, another error
        return ops.take(x, numbers[0], axis=len(before))
    y = ops.indexing.picked(x, *numbers, index=index)
    return ops.copy(y) if len(node.slices) == x.ndim and all(map(_is_int, node.slices)) else y


@lowers(ScatterAdd)
def scatter_add(node: Any, a: Value, b: Value) -> Optional[Value]:
    # what does not fit is an error: it is not broadcast
    found = _index(node.slices, a.shape)
    if found is None or a.dtype != b.dtype:
        return None
    index, numbers = found
    picked = ops.indexing.shape_of_part(a.type, *(n.type for n in numbers), index=ops.normal_index(index, a.shape))
    return ops.add_at(a, b, *numbers, index=index) if picked == b.shape else None


def _index(slices: Tuple[Any, ...], shape: Tuple[Any, ...]) -> Optional[Tuple[Tuple[Any, ...], List[Value]]]:
    """An index with `AT` for what are operands, and these; None if part of it is of another kind."""
    entries = [_known(entry) for entry in slices]
    index: List[Any] = []
    numbers: List[Value] = []
    for place, entry in enumerate(entries):
        value = symbolic_value(entry)
        if type(entry) is Window:
            index.append((AT, entry.count))
            numbers.append(symbolic_value(entry.ends.start))
            continue
        if value is not None:
            found: Tuple[Value, ...] = (value,)
        elif isinstance(entry, np.ndarray):
            if entry.dtype.kind == "b" and not _fits(entry, entries, place, shape):
                return None
            found = tuple(map(constant, entry.nonzero() if entry.dtype.kind == "b" else (entry,)))
        elif _is_basic(entry) and not _is_found_by_run(entry):
            index.append(entry)
            continue
        else:
            return None
        if any(n.dtype.kind not in "iu" for n in found):
            return None
        index += [AT] * len(found)
        numbers += found
    return tuple(index), numbers


def _known(entry: Any) -> Any:
    """A list of ints and bools that are known now as an array; everything else as it is."""
    if not isinstance(entry, list) or not _is_nested(entry):
        return entry
    return np.array(entry) if np.size(entry) else np.zeros(np.shape(entry), np.intp)


def _fits(mask: np.ndarray, entries: List[Any], place: int, shape: Tuple[Any, ...]) -> bool:
    """Whether a mask has the sizes of the axes that it is about."""
    axes = [0 if entry is None or entry is Ellipsis else
            entry.ndim if isinstance(entry, np.ndarray) and entry.dtype.kind == "b" else 1 for entry in entries]
    behind_dots = any(entry is Ellipsis for entry in entries[:place])
    axis = len(shape) - sum(axes[place:]) if behind_dots else sum(axes[:place])
    return mask.ndim > 0 and mask.shape == shape[axis:axis + mask.ndim]


def _is_nested(entry: Any) -> bool:
    """Whether lists hold nothing but ints and bools known now."""
    if isinstance(entry, list):
        return all(map(_is_nested, entry))
    return isinstance(entry, (int, np.integer, np.bool_))


def _is_basic(entry: Any) -> bool:
    """Whether an entry of an index is known now and selects a view."""
    if isinstance(entry, slice):
        return all(part is None or _is_int(part) for part in (entry.start, entry.stop, entry.step))
    return entry is None or entry is Ellipsis or _is_int(entry)


def _is_found_by_run(entry: Any) -> bool:
    """Whether contents of arrays decide from which end a slice is counted; for sizes of the caller's, `SizeNeeded` is raised."""
    ends = (entry.start, entry.stop) if isinstance(entry, slice) else ()
    return any(isinstance(end, Dim) and less(end.plain, 0) is None and not all(symbol.startswith(FREE) for symbol in end.symbols)
               for end in ends)


def _is_int(entry: Any) -> bool:
    return isinstance(entry, (int, np.integer)) and not isinstance(entry, bool)


def _span(entry: Any) -> Optional[Dict[str, Value]]:
    """The ends of a slice, ``<`` and ``>``, if the run knows one of them; the other may be an int, or left out."""
    if not isinstance(entry, slice) or entry.step is not None:
        return None
    ends = {"<": _number(entry.start), ">": _number(entry.stop)}
    if not any([_is_number_of_run(end) and not (isinstance(end, Dim) and less(end.plain, 0) is not None) for end in ends.values()]):
        return None
    if any(not (end is None or _is_number_of_run(end) or type(end) in _INTS) for end in ends.values()):
        return None
    for end in filter(_is_number_of_run, ends.values()):
        end.capture.deciding.sizes(end)
    return {side: ops.py_constant(value=int(end)) if type(end) in _INTS else symbolic_value(end)
            for side, end in ends.items() if end is not None}


def _extents_like(x: Value, span: Dict[str, Value], axis: int) -> Any:
    """The size of an earlier slice between the same ends, of an axis as long."""
    for node in current().nodes:
        if node.op is ops.getitem_span and node.inputs[1:] == tuple(span.values()) and \
                node.attrs["given"] == "".join(span) and node.inputs[0].shape[node.attrs["axis"]] == x.shape[axis]:
            return ((node.attrs["extents"][0][0], 0, axis),)
    return None


def _number(end: Any) -> Any:
    """An end of a slice; an int for an array of no dimensions whose contents are known."""
    known = known_array(end) if hasattr(end, "type") and end.type.shape == () else None
    return int(known) if known is not None and known.dtype.kind in "iu" else end


def _is_number_of_run(entry: Any) -> bool:
    """Whether an entry of an index is an integer that only the run knows."""
    value = symbolic_value(entry)
    return value is not None and value.shape == () and value.dtype.kind in "iu"

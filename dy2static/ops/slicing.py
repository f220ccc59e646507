"""Basic indexing: slices and elements as views, and what puts them back."""
from __future__ import annotations

from typing import Any, Dict, List, Tuple

import numpy as np

from ..ir.dims import Dim, less
from ..ir.op import OpDef, declare, sample
from ..ir.shapes import show
from ..ir.size_bounds import maximum, minimum, not_negative
from ..ir.size_needed import SizeNeeded
from ..ir.size_symbols import FREE
from ..ir.template import AT, count_numbers, index_source, is_window
from ..ir.types import Tensor, Type
from .onnx_forms import indexing
from .rules import canonical_shape, need_tensor, sizes


def normal_index(index: Any, shape: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """A basic index (ints, slices, None, Ellipsis, or a tuple of them) in its one, hashable form.

    Ints count from the front, None is a new axis, slices are ``(start, stop, step)`` with bounds inside the array
    (stop is None for one that runs down to the first element), and every axis has its entry.  Raises IndexError as
    NumPy does.
    """
    entries = list(index) if isinstance(index, tuple) else [index]
    used = len([e for e in entries if e is not None and e is not Ellipsis])
    if used > len(shape):
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {used} were indexed")
    rest = [slice(None)] * (len(shape) - used)
    dots = [i for i, e in enumerate(entries) if e is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    at = dots[0] if dots else len(entries)
    normal: List[Any] = []
    axis = 0
    for entry in entries[:at] + rest + entries[at + 1:]:
        if entry is None:
            normal.append(None)
            continue
        normal.append(_normal_entry(entry, shape[axis], axis))
        axis += 1
    return tuple(normal)


def _normal_entry(entry: Any, n: Any, axis: int) -> Any:
    if isinstance(entry, slice):
        return _normal_slice(entry.start, entry.stop, entry.step, n)
    if isinstance(entry, tuple):
        return entry                                    # a slice in its normal form already, or a window
    if isinstance(entry, str) and entry == AT:
        return AT
    if isinstance(entry, (bool, np.bool_)) or not isinstance(entry, (int, np.integer, Dim)):
        raise TypeError(f"not a basic index: {entry!r}")
    if isinstance(entry, Dim) or isinstance(n, Dim):
        if not isinstance(entry, Dim) and any(symbol.startswith(FREE) for symbol in n.symbols) and \
                not less(entry if entry >= 0 else -entry - 1, n):
            raise SizeNeeded(f"whether there is an element {entry}", n)
        return entry if isinstance(entry, Dim) or entry >= 0 else n + int(entry)
    if not -n <= entry < n:
        raise IndexError(f"index {entry} is out of bounds for axis {axis} with size {n}")
    return int(entry) % n


def _normal_slice(start: Any, stop: Any, step: Any, n: Any) -> Tuple[Any, Any, int]:
    step = 1 if step is None else int(step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step > 0:
        return _bound(0 if start is None else start, n, n), _bound(n if stop is None else stop, n, n), step
    last = n - 1
    start = last if start is None else minimum(last, _bound(start, n, n))
    if stop is None or (isinstance(stop, int) and isinstance(n, int) and stop < -n):
        return start, None, step
    return start, _bound(stop, n, n), step


def _bound(position: Any, n: Any, top: Any) -> Any:
    """A slice bound counted from the front and kept inside ``0 .. top``."""
    position = position if isinstance(position, Dim) else int(position)
    is_from_behind = less(position, 0)
    if is_from_behind is None:
        raise SizeNeeded("from which end a slice is counted", position)
    return minimum(top, maximum(0, n + position if is_from_behind else position))


def _slice_size(start: Any, stop: Any, step: int) -> Any:
    if step > 0:
        return not_negative((stop - start + (step - 1)) // step)
    return not_negative((start - (-1 if stop is None else stop) - step - 1) // -step)


def _getitem_infer(x: Tensor, *, index: Tuple[Any, ...]) -> Tensor:
    need_tensor(x)
    shape: List[Any] = []
    for entry in index:
        if entry is None:
            shape.append(1)
        elif isinstance(entry, tuple):
            shape.append(entry[1] if is_window(entry) else _slice_size(*entry))
    return Tensor(tuple(shape), x.dtype)


def _index_holes(*_: Any, index: Tuple[Any, ...], **attrs: Any) -> Dict[str, str]:
    return {"index": index_source(index), "read": index_source(index, "int({})")}


getitem = declare(
    "getitem", "x", {"index": ()}, kind="view", view=True,
    canonical=lambda x, *, index: {"index": normal_index(index, x.shape)},
    infer=_getitem_infer,
    vjp=lambda g, y, x, *, index: (scatter_slice(g, index=index, shape=x.shape),),
    numpy="{x}[{index}]", holes=_index_holes,
    onnx=indexing.getitem,
    samples=tuple(sample(shape, index=index) for shape, index in (
        ((4, 3), 1), ((4, 3), (slice(1, 3), -1)), ((4, 3), (slice(None, None, -2),)), ((5,), 2),
        ((5,), slice(-3, None)), ((2, 3, 4), (Ellipsis, None, 0)), ((), None), ((), ()), ((0, 3), slice(0, 2)),
        ((6,), slice(4, 1, -1)), ((6,), slice(3, 1)), ((2, 3), (None, Ellipsis, slice(0, 100, 2))), ((1,), (0,)))),
)


def _scatter_slice_infer(x: Tensor, *, index: Tuple[Any, ...], shape: Tuple[Any, ...]) -> Tensor:
    whole = Tensor(shape, x.dtype)
    if _getitem_infer(whole, index=index) != x:
        raise ValueError(f"an array of shape {show(x.shape)} does not fit the index {index}")
    return whole


#: Zeros of ``shape``, with ``x`` at the basic index: the derivative of `getitem`.
scatter_slice: OpDef = declare(
    "scatter_slice", "x", {"index": (), "shape": ()}, kind="movement",
    canonical=lambda x, *, index, shape: {"index": normal_index(index, sizes(shape)), "shape": sizes(shape)},
    infer=_scatter_slice_infer,
    vjp=lambda g, y, x, *, index, shape: (getitem(g, index=index),),
    numpy="{out}[...] = 0\n{out}[{index}] = {x}", holes=_index_holes,
    onnx=indexing.scatter_slice,
    samples=(sample((3,), index=1, shape=(4, 3)), sample((2,), index=(slice(1, 3), -1), shape=(4, 3)),
             sample((), index=0, shape=(1,)), sample((0, 3), index=slice(0, 2), shape=(0, 3)),
             sample((2, 3), index=slice(None, None, -2), shape=(4, 3))),
)


def _at_numbers(x: Tensor, *numbers: Type, index: Tuple[Any, ...], **_: Any) -> Tensor:
    if len(numbers) != count_numbers(index) or any(n.shape != () or n.dtype.kind not in "iu" for n in numbers):
        raise TypeError("a number of integer type is needed for each place in the index")
    return _getitem_infer(x, index=index)


def _scatter_at_infer(x: Tensor, *numbers: Type, index: Tuple[Any, ...], shape: Tuple[Any, ...]) -> Tensor:
    whole = Tensor(shape, x.dtype)
    if _at_numbers(whole, *numbers, index=index) != x:
        raise ValueError(f"an array of shape {show(x.shape)} does not fit the index {index}")
    return whole


#: `getitem` where some ints are operands: those stand where the index has `AT`, or ``(AT, n)`` for a window: ``n`` elements from
#: the number on, all of which are inside of the array.
getitem_at: OpDef = declare(
    "getitem_at", "x *numbers", {"index": ()}, kind="view", view=True, may_raise=True,
    canonical=lambda x, *numbers, index: {"index": normal_index(index, x.shape)}, infer=_at_numbers,
    vjp=lambda g, y, x, *numbers, index: (scatter_at(g, *numbers, index=index, shape=x.shape), *[None] * len(numbers)),
    numpy="{x}[{index}]", cupy="{x}[{read}]", holes=_index_holes,
    onnx=indexing.getitem,
    samples=(sample((3, 2), np.array(1), index=AT), sample((3, 2), np.array(2), np.array(-1), index=(AT, AT)),
             sample((2, 3, 4), np.array(1), index=(0, AT, slice(1, 3))), sample((2, 3), np.array(-2), index=(None, Ellipsis, AT)),
             sample((2, 5, 4), np.array(2), np.array(0), index=(slice(None), (AT, 3), (AT, 2))),
             sample((4, 3, 2), np.array(0), np.array(-1), index=((AT, 4), None, AT))),
)
scatter_at: OpDef = declare(
    "scatter_at", "x *numbers", {"index": (), "shape": ()}, kind="movement", may_raise=True,
    canonical=lambda x, *numbers, index, shape: {"index": normal_index(index, sizes(shape)), "shape": sizes(shape)},
    infer=_scatter_at_infer,
    vjp=lambda g, y, x, *numbers, index, shape: (getitem_at(g, *numbers, index=index), *[None] * len(numbers)),
    numpy="{out}[...] = 0\n{out}[{index}] = {x}", cupy="{out}[...] = 0\n{out}[{read}] = {x}", holes=_index_holes,
    onnx=indexing.scatter_slice,
    samples=(sample((2,), np.array(1), index=AT, shape=(3, 2)), sample((), np.array(2), np.array(-1), index=(AT, AT), shape=(3, 2)),
             sample((4,), np.array(1), index=(0, AT), shape=(2, 3, 4)),
             sample((3, 2, 2), np.array(1), np.array(0), index=(slice(None), (AT, 2), (AT, 2)), shape=(3, 4, 3))),
)


def _span_infer(x: Tensor, *bounds: Type, axis: int, given: str, extents: Tuple[Any, ...]) -> Tensor:
    if len(bounds) != len(given) or any(b.shape != () or b.dtype.kind not in "iu" for b in bounds):
        raise TypeError("a number of integer type is needed for each end of the slice")
    return Tensor((*x.shape[:axis], Dim(extents[0][0]), *x.shape[axis + 1:]), x.dtype)


def _span_holes(x: Tensor, *bounds: Type, axis: int, given: str, **_: Any) -> Dict[str, str]:
    names = {end: f"{{bounds_{k}}}" for k, end in enumerate(given)}
    return {"span": ":, " * axis + f"{names.get('<', '')}:{names.get('>', '')}"}


#: ``x[..., start:stop]`` along ``axis`` where the run knows the ends.  given: which ends are operands, of ``<>``.
#: extents: the symbol for how many there are.
getitem_span: OpDef = declare(
    "getitem_span", "x *bounds", {"axis": 0, "given": ">", "extents": ()}, kind="view", view=True, may_raise=True,
    infer=_span_infer, numpy="{x}[{span}]", holes=_span_holes,
    vjp=lambda g, y, x, *bounds, axis, given, extents: (
        scatter_span(g, *bounds, axis=axis, given=given, extents=extents, shape=x.shape), *[None] * len(bounds)),
    onnx=indexing.getitem_span,
)
scatter_span: OpDef = declare(
    "scatter_span", "x *bounds", {"axis": 0, "given": ">", "extents": (), "shape": ()}, kind="movement",
    canonical=canonical_shape,
    infer=lambda x, *bounds, axis, given, extents, shape: Tensor(shape, x.dtype),
    vjp=lambda g, y, x, *bounds, axis, given, extents, shape: (
        getitem_span(g, *bounds, axis=axis, given=given, extents=extents), *[None] * len(bounds)),
    numpy="{out}[...] = 0\n{out}[{span}] = {x}", holes=_span_holes,
    onnx=indexing.scatter_span,
)

"""Ops that move elements: views, slices, gathers and scatters, joins."""
from __future__ import annotations

from typing import Any, Dict, List, Tuple

import numpy as np

from ..ir.dims import FREE, Dim, SizeNeeded, equal, less, maximum, minimum, same_shape, show
from ..ir.op import OpDef, declare, sample
from ..ir.template import AT, index_source
from ..ir.types import Tensor, Type
from .creation import zeros_like
from .rules import (
    canonical_axis,
    canonical_shape,
    need_dtype,
    need_tensor,
    normal_axis,
    one_dtype,
    same_as_input,
    sizes,
)

# Views ----------------------------------------------------------------------------------------------------------


def _transpose_canonical(x: Tensor, *, axes: Any) -> Dict[str, Any]:
    if axes is None:
        return {"axes": tuple(reversed(range(x.ndim)))}
    normal = tuple(normal_axis(a, x.ndim) for a in axes)
    if sorted(normal) != list(range(x.ndim)):
        raise ValueError("axes don't match array")
    return {"axes": normal}


def _transpose_vjp(g, y, x, *, axes):
    return (transpose(g, axes=tuple(int(a) for a in np.argsort(axes))),)


transpose: OpDef = declare(
    "transpose", "x", {"axes": None}, kind="view", view=True, canonical=_transpose_canonical,
    infer=lambda x, *, axes: Tensor(tuple(x.shape[a] for a in axes), x.dtype),
    vjp=_transpose_vjp,
    numpy="{x}.transpose({axes})",
    samples=(sample((2, 3)), sample((2, 3, 4), axes=(1, 2, 0)), sample(()), sample((0, 3)),
             sample((2, 1, 3), axes=(0, -1, 1))),
)


def _reshape_canonical(x: Tensor, *, shape: Any) -> Dict[str, Any]:
    shape = sizes(shape)
    if -1 not in shape:
        return {"shape": shape}
    known: Any = 1
    for n in shape:
        known = known * (1 if isinstance(n, int) and n == -1 else n)
    if shape.count(-1) > 1 or known == 0 or equal(x.size % known, 0) is False:
        raise ValueError(f"cannot reshape array of size {x.size} into shape {show(shape)}")
    return {"shape": tuple(x.size // known if isinstance(n, int) and n == -1 else n for n in shape)}


def _reshape_infer(x: Tensor, *, shape: Tuple[Any, ...]) -> Tensor:
    result = Tensor(shape, x.dtype)
    if equal(result.size, x.size) is False:
        raise ValueError(f"cannot reshape array of size {x.size} into shape {show(shape)}")
    return result


reshape: OpDef = declare(
    "reshape", "x", {"shape": ()}, kind="view", view=True, canonical=_reshape_canonical, infer=_reshape_infer,
    vjp=lambda g, y, x, *, shape: (reshape(g, shape=x.shape),),
    numpy="{x}.reshape({shape})",
    samples=(sample((2, 6), shape=(3, 4)), sample((2, 6), shape=(-1, 2)), sample((), shape=(1, 1)),
             sample((1,), shape=()), sample((0, 3), shape=(3, 0)), sample((4, 3), shape=(4, -1))),
)


#: The same value; as the result of one, an array is a view of its operand.
identity = declare(
    "identity", "x", kind="view", view=True, infer=same_as_input,
    vjp=lambda g, y, x: (g,),
    numpy="{x}",
    samples=(sample((2, 3)), sample(()), sample((0,))),
)

#: The same value, for which no gradient is asked.
stop_gradient = declare(
    "stop_gradient", "x", kind="view", view=True, infer=same_as_input,
    numpy="{x}",
    samples=(sample((2, 3)), sample(()), sample((0,))),
)

#: ``x``, which is a gradient: differentiated, it gives zeros to ``of``, which it does not depend on.
gradient_of = declare(
    "gradient_of", "x of", kind="view", view=True, infer=same_as_input, numpy="{x}",
    vjp=lambda g, y, x, of: (g, zeros_like(of)),
)

#: ``x``; its gradient is a `gradient_of` ``on``, as where Chainer's backward is one function that reads it.
attached = declare(
    "attached", "x on", kind="view", view=True, infer=same_as_input, numpy="{x}",
    vjp=lambda g, y, x, on: (gradient_of(g, on), None),
)

# Basic indexing -------------------------------------------------------------------------------------------------


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
        return entry                                    # a slice in its normal form already
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
    if isinstance(position, int) and position < 0:
        position = n + position
    return minimum(top, maximum(0, position))


def _slice_size(start: Any, stop: Any, step: int) -> Any:
    if step > 0:
        return maximum(0, (stop - start + (step - 1)) // step)
    return maximum(0, (start - (-1 if stop is None else stop) - step - 1) // -step)


def _getitem_infer(x: Tensor, *, index: Tuple[Any, ...]) -> Tensor:
    need_tensor(x)
    shape: List[Any] = []
    for entry in index:
        if entry is None:
            shape.append(1)
        elif isinstance(entry, tuple):
            shape.append(_slice_size(*entry))
    return Tensor(tuple(shape), x.dtype)


def _index_holes(*_: Any, index: Tuple[Any, ...], **attrs: Any) -> Dict[str, str]:
    return {"index": index_source(index)}


getitem = declare(
    "getitem", "x", {"index": ()}, kind="view", view=True,
    canonical=lambda x, *, index: {"index": normal_index(index, x.shape)},
    infer=_getitem_infer,
    vjp=lambda g, y, x, *, index: (scatter_slice(g, index=index, shape=x.shape),),
    numpy="{x}[{index}]", holes=_index_holes,
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
    samples=(sample((3,), index=1, shape=(4, 3)), sample((2,), index=(slice(1, 3), -1), shape=(4, 3)),
             sample((), index=0, shape=(1,)), sample((0, 3), index=slice(0, 2), shape=(0, 3)),
             sample((2, 3), index=slice(None, None, -2), shape=(4, 3))),
)


def _at_numbers(x: Tensor, *numbers: Type, index: Tuple[Any, ...], **_: Any) -> Tensor:
    if len(numbers) != index.count(AT) or any(n.shape != () or n.dtype.kind not in "iu" for n in numbers):
        raise TypeError("a number of integer type is needed for each place in the index")
    return _getitem_infer(x, index=index)


def _scatter_at_infer(x: Tensor, *numbers: Type, index: Tuple[Any, ...], shape: Tuple[Any, ...]) -> Tensor:
    whole = Tensor(shape, x.dtype)
    if _at_numbers(whole, *numbers, index=index) != x:
        raise ValueError(f"an array of shape {show(x.shape)} does not fit the index {index}")
    return whole


#: `getitem` where some ints are operands: those stand where the index has `AT`.
getitem_at: OpDef = declare(
    "getitem_at", "x *numbers", {"index": ()}, kind="view", view=True, may_raise=True,
    canonical=lambda x, *numbers, index: {"index": normal_index(index, x.shape)}, infer=_at_numbers,
    vjp=lambda g, y, x, *numbers, index: (scatter_at(g, *numbers, index=index, shape=x.shape), *[None] * len(numbers)),
    numpy="{x}[{index}]", holes=_index_holes,
    samples=(sample((3, 2), np.array(1), index=AT), sample((3, 2), np.array(2), np.array(-1), index=(AT, AT)),
             sample((2, 3, 4), np.array(1), index=(0, AT, slice(1, 3))), sample((2, 3), np.array(-2), index=(None, Ellipsis, AT))),
)
scatter_at: OpDef = declare(
    "scatter_at", "x *numbers", {"index": (), "shape": ()}, kind="movement", may_raise=True,
    canonical=lambda x, *numbers, index, shape: {"index": normal_index(index, sizes(shape)), "shape": sizes(shape)},
    infer=_scatter_at_infer,
    vjp=lambda g, y, x, *numbers, index, shape: (getitem_at(g, *numbers, index=index), *[None] * len(numbers)),
    numpy="{out}[...] = 0\n{out}[{index}] = {x}", holes=_index_holes,
    samples=(sample((2,), np.array(1), index=AT, shape=(3, 2)), sample((), np.array(2), np.array(-1), index=(AT, AT), shape=(3, 2)),
             sample((4,), np.array(1), index=(0, AT), shape=(2, 3, 4))),
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
)
scatter_span: OpDef = declare(
    "scatter_span", "x *bounds", {"axis": 0, "given": ">", "extents": (), "shape": ()}, kind="movement",
    canonical=canonical_shape,
    infer=lambda x, *bounds, axis, given, extents, shape: Tensor(shape, x.dtype),
    vjp=lambda g, y, x, *bounds, axis, given, extents, shape: (
        getitem_span(g, *bounds, axis=axis, given=given, extents=extents), *[None] * len(bounds)),
    numpy="{out}[...] = 0\n{out}[{span}] = {x}", holes=_span_holes,
)

# Gathers and scatters -------------------------------------------------------------------------------------------


def _take_infer(x: Tensor, indices: Tensor, *, axis: int) -> Tensor:
    need_dtype(indices, "iu", "an index")
    return Tensor(x.shape[:axis] + indices.shape + x.shape[axis + 1:], x.dtype)


_ROWS = np.array([[0, 2], [2, 1]])

#: ``x[:, ..., indices]``: whole rows of ``x`` along ``axis``, picked by an integer array of any shape.
take = declare(
    "take", "x indices", {"axis": 0}, kind="movement", may_raise=True, canonical=canonical_axis, infer=_take_infer,
    vjp=lambda g, y, x, indices, *, axis: (scatter_add(g, indices, axis=axis, shape=x.shape), None),
    numpy="np.take({x}, {indices}, axis={axis}, out={out})",
    samples=(sample((3, 2), _ROWS), sample((2, 3), _ROWS, axis=1), sample((3,), np.array(2)),
             sample((3, 2), np.zeros((0,), int)), sample((2, 4, 3), np.array([-1, 0, -1]), axis=1),
             sample((3, 2), np.array([1, 2], np.int32))),
)


def _scatter_add_infer(x: Tensor, indices: Tensor, *, axis: int, shape: Tuple[Any, ...]) -> Tensor:
    if _take_infer(Tensor(shape, x.dtype), indices, axis=axis) != x:
        raise ValueError(f"an array of shape {show(x.shape)} does not fit indices of shape {show(indices.shape)}")
    return Tensor(shape, x.dtype)


#: Zeros of ``shape``, with the rows of ``x`` added along ``axis``; rows of equal index add up.
scatter_add: OpDef = declare(
    "scatter_add", "x indices", {"axis": 0, "shape": ()}, kind="movement", canonical=canonical_shape,
    infer=_scatter_add_infer,
    vjp=lambda g, y, x, indices, *, axis, shape: (take(g, indices, axis=axis), None),
    numpy="{out}[...] = 0\nnp.add.at({out}, {where}, {x})",
    holes=lambda x, indices, *, axis, shape: {"where": "(" + "slice(None), " * axis + "{indices},)"},
    samples=(sample((2, 2, 2), _ROWS, shape=(3, 2)), sample((2, 2, 2), _ROWS, axis=1, shape=(2, 3)),
             sample((0, 2), np.zeros((0,), int), shape=(3, 2)), sample((), np.array(1), shape=(3,))),
)


def _take_along_infer(x: Tensor, indices: Tensor, *, axis: int) -> Tensor:
    need_dtype(indices, "iu", "an index")
    if x.ndim != indices.ndim:
        raise ValueError("`indices` and `x` must have the same number of dimensions")
    for a, (n, m) in enumerate(zip(x.shape, indices.shape)):
        if a != axis and not equal(n, m):
            raise ValueError(f"shapes differ: {show(x.shape)} {show(indices.shape)}")
    return Tensor(indices.shape, x.dtype)


def _along(indices: Tensor, axis: int) -> str:
    """The index of the elements that ``indices`` pick along ``axis``: the other axes are counted."""
    return ", ".join("{indices}" if a == axis else
                     f"np.arange({n}).reshape({', '.join('-1' if b == a else '1' for b in range(indices.ndim))})"
                     for a, n in enumerate(indices.shape))


_PICKS = np.array([[2], [0], [2], [1]])

#: One element per position of ``indices``, picked along ``axis``: ``y[i, j] = x[i, indices[i, j]]`` for axis 1.
take_along = declare(
    "take_along", "x indices", {"axis": 1}, kind="movement", may_raise=True, canonical=canonical_axis, infer=_take_along_infer,
    vjp=lambda g, y, x, indices, *, axis: (add_along(g, indices, axis=axis, size=x.shape[axis]), None),
    numpy="{x}[{where}]", holes=lambda x, indices, *, axis: {"where": _along(indices, axis)},
    samples=(sample((4, 3), _PICKS), sample((2, 3), np.array([[0, 0, 2, 0], [1, 1, 1, -1]])),
             sample((3, 2), np.array([[1, 0]]), axis=0), sample((0, 3), np.zeros((0, 1), int))),
)


def _add_along_infer(x: Tensor, indices: Tensor, *, axis: int, size: Any) -> Tensor:
    result = Tensor(x.shape[:axis] + (size,) + x.shape[axis + 1:], x.dtype)
    if _take_along_infer(result, indices, axis=axis) != x:
        raise ValueError(f"shapes differ: {show(x.shape)} {show(indices.shape)}")
    return result


def _add_along_holes(x: Tensor, indices: Tensor, *, axis: int, size: Any) -> Dict[str, str]:
    """One pick per row cannot meet another; several may, and then they add up."""
    where = _along(indices, axis)
    return {"put": f"{{out}}[{where}] = {{x}}" if indices.shape[axis] == 1 else f"np.add.at({{out}}, ({where}), {{x}})"}


#: Zeros with ``size`` along ``axis``, the elements of ``x`` added at ``indices``: the derivative of `take_along`.
add_along: OpDef = declare(
    "add_along", "x indices", {"axis": 1, "size": 1}, kind="movement", canonical=canonical_axis,
    infer=_add_along_infer,
    vjp=lambda g, y, x, indices, *, axis, size: (take_along(g, indices, axis=axis), None),
    numpy="{out}[...] = 0\n{put}", holes=_add_along_holes,
    samples=(sample((4, 1), _PICKS, size=3), sample((2, 4), np.array([[0, 0, 2, 0], [1, 1, 1, -1]]), size=3),
             sample((1, 2), np.array([[1, 0]]), axis=0, size=3), sample((0, 1), np.zeros((0, 1), int), size=3)),
)

# Joins ----------------------------------------------------------------------------------------------------------


def _concat_infer(*xs: Tensor, axis: int) -> Tensor:
    if not xs:
        raise ValueError("need at least one array to concatenate")
    one_dtype(*xs)
    total: Any = 0
    for x in xs:
        others = [equal(n, m) for a, (n, m) in enumerate(zip(x.shape, xs[0].shape)) if a != axis]
        if x.ndim != xs[0].ndim or not all(others):
            raise ValueError("all the input array dimensions except for the concatenation axis must match exactly")
        total = total + x.shape[axis]
    return Tensor(xs[0].shape[:axis] + (total,) + xs[0].shape[axis + 1:], xs[0].dtype)


def _concat_vjp(g, y, *xs, axis):
    gradients, start = [], 0
    for x in xs:
        stop = start + x.shape[axis]
        gradients.append(getitem(g, index=(slice(None),) * axis + (slice(start, stop),)))
        start = stop
    return tuple(gradients)


concat = declare(
    "concat", "*xs", {"axis": 1}, kind="movement", canonical=canonical_axis, infer=_concat_infer,
    vjp=_concat_vjp,
    numpy="np.concatenate(({xs},), axis={axis}, out={out})",
    samples=(sample((2, 3), (2, 1), (2, 0)), sample((2,), (3,), axis=0), sample((1, 2, 3), axis=-1),
             sample((0, 2), (0, 3))),
)


def _stack_infer(*xs: Tensor, axis: int) -> Tensor:
    if not xs:
        raise ValueError("need at least one array to stack")
    one_dtype(*xs)
    if not all(same_shape(x.shape, xs[0].shape) for x in xs):
        raise ValueError("all input arrays must have the same shape")
    return Tensor(xs[0].shape[:axis] + (len(xs),) + xs[0].shape[axis:], xs[0].dtype)


def _stack_vjp(g, y, *xs, axis):
    return tuple(getitem(g, index=(slice(None),) * axis + (i,)) for i in range(len(xs)))


stack = declare(
    "stack", "*xs", {"axis": 0}, kind="movement",
    canonical=lambda *xs, axis: {"axis": normal_axis(axis, xs[0].ndim + 1) if xs else axis},
    infer=_stack_infer,
    vjp=_stack_vjp,
    numpy="np.stack(({xs},), axis={axis}, out={out})",
    samples=(sample((2, 3), (2, 3)), sample((), ()), sample((2, 3), (2, 3), (2, 3), axis=-1),
             sample((0,), (0,), axis=1)),
)

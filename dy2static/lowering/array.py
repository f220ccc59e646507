"""Lowerings of `chainer.functions.array`: views and copies of elements."""
from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple

import chainer
import numpy as np
from chainer.functions.array.broadcast import Broadcast, BroadcastTo
from chainer.functions.array.cast import Cast
from chainer.functions.array.concat import Concat
from chainer.functions.array.copy import Copy
from chainer.functions.array.diagonal import Diagonal
from chainer.functions.array.dstack import Dstack
from chainer.functions.array.expand_dims import ExpandDims
from chainer.functions.array.flip import Flip
from chainer.functions.array.fliplr import FlipLR
from chainer.functions.array.flipud import FlipUD
from chainer.functions.array.hstack import Hstack
from chainer.functions.array.moveaxis import Moveaxis
from chainer.functions.array.repeat import Repeat
from chainer.functions.array.reshape import Reshape
from chainer.functions.array.rollaxis import Rollaxis
from chainer.functions.array.select_item import SelectItem
from chainer.functions.array.separate import Separate
from chainer.functions.array.split_axis import SplitAxis
from chainer.functions.array.squeeze import Squeeze
from chainer.functions.array.stack import Stack
from chainer.functions.array.swapaxes import Swapaxes
from chainer.functions.array.tile import Tile
from chainer.functions.array.transpose import Transpose
from chainer.functions.array.vstack import Vstack
from chainer.functions.array.where import Where

from .. import ops
from ..ir.building import broadcast, constant
from ..ir.devices import HOST
from ..ir.dims import equal
from ..ir.graph import Value
from ..ir.size_bounds import not_below
from ..ir.types import Scalar
from ..runtime.devices import device_named
from .registry import are_ints, ints, lowers, size_of, symbolic_value

# Shapes ---------------------------------------------------------------------------------------------------------


@lowers(Reshape)
def reshape(node: Any, x: Value) -> Optional[Value]:
    shape = ints(node.shape)
    return None if shape is None or bool in map(type, node.shape) else ops.reshape(x, shape=shape)


@lowers(ExpandDims)
def expand_dims(node: Any, x: Value) -> Value:
    axis = node.axis if node.axis >= 0 else node.axis + x.ndim + 1
    return ops.reshape(x, shape=x.shape[:axis] + (1,) + x.shape[axis:])


@lowers(Squeeze)
def squeeze(node: Any, x: Value) -> Optional[Value]:
    # an axis that is not of size 1 is NumPy's error
    if node.axis is None and any(equal(n, 1) is None for n in x.shape):
        return None
    axes = [i for i, n in enumerate(x.shape) if n == 1] if node.axis is None else [a % x.ndim for a in node.axis]
    if any(x.shape[a] != 1 for a in axes) or len(set(axes)) < len(axes):
        return None
    return ops.reshape(x, shape=tuple(n for i, n in enumerate(x.shape) if i not in axes))


@lowers(BroadcastTo)
def broadcast_to(node: Any, x: Value) -> Optional[Value]:
    shape = ints(node._shape)
    return None if shape is None else ops.broadcast_to(x, shape=shape)


_ONES = np.ones(1)
_VIEWS = np.broadcast_arrays(_ONES, np.ones(()))[0] is not _ONES


@lowers(Broadcast)
def broadcast_all(node: Any, *xs: Value) -> Tuple[Value, ...]:
    # what has the shape already is the result itself, or a view of it where NumPy 1 repeats others
    ys = broadcast(*xs)
    views = _VIEWS and any(y is not x for x, y in zip(xs, ys))
    return tuple((ops.getitem(x, index=(slice(None),) * x.ndim) if views else ops.identity(x)) if y is x else y
                 for x, y in zip(xs, ys))


# The order of axes ----------------------------------------------------------------------------------------------


@lowers(Transpose)
def transpose(node: Any, x: Value) -> Optional[Value]:
    axes = None if node.axes is None else ints(node.axes)
    return None if axes is None and node.axes is not None else ops.transpose(x, axes=axes)


def _moved(x: Value, move: Callable[[np.ndarray], np.ndarray]) -> Value:
    """The transposition that does what a NumPy function does to the axes."""
    sizes = tuple(range(1, x.ndim + 1))                # all different, so that the result tells where each one went
    return ops.transpose(x, axes=tuple(n - 1 for n in move(np.broadcast_to(0, sizes)).shape))


@lowers(Swapaxes)
def swapaxes(node: Any, x: Value) -> Optional[Value]:
    if not are_ints(node.axis1, node.axis2):
        return None
    return _moved(x, lambda a: a.swapaxes(node.axis1, node.axis2))


@lowers(Rollaxis)
def rollaxis(node: Any, x: Value) -> Value:
    return _moved(x, lambda a: np.rollaxis(a, node.axis, node.start))


@lowers(Moveaxis)
def moveaxis(node: Any, x: Value) -> Optional[Value]:
    source, destination = ints(node.source), ints(node.destination)
    if source is None or destination is None:
        return None
    return _moved(x, lambda a: np.moveaxis(a, source, destination))


@lowers(Flip)
def flip(node: Any, x: Value) -> Value:
    return _flipped(x, node.axis % x.ndim)


@lowers(FlipLR)
def fliplr(node: Any, x: Value) -> Value:
    return _flipped(x, 1)


@lowers(FlipUD)
def flipud(node: Any, x: Value) -> Value:
    return _flipped(x, 0)


def _flipped(x: Value, axis: int) -> Value:
    return ops.getitem(x, index=(slice(None),) * axis + (slice(None, None, -1),))


# Parts ----------------------------------------------------------------------------------------------------------


@lowers(SplitAxis)
def split_axis(node: Any, x: Value) -> Any:
    # outputs without a gradient count as zero; parts that overlap or leave elements out are an error in backward
    if not are_ints(node.axis):
        return None
    size = x.shape[node.axis]
    if node.indices is None:
        if not are_ints(node.sections) or node.sections <= 0:
            return None
        return _as_tuple(ops.split(x, sizes=(size // node.sections,) * node.sections, axis=node.axis))
    indices = ints(node.indices.tolist() if isinstance(node.indices, np.ndarray) else node.indices)
    bounds = [0, *(indices or ()), size]
    if indices is None or not all(map(not_below, bounds[1:], bounds)):
        return None
    return _as_tuple(ops.split(x, sizes=tuple(b - a for a, b in zip(bounds, bounds[1:])), axis=node.axis))


@lowers(Separate)
def separate(node: Any, x: Value) -> Any:
    if not are_ints(node.axis) or x.shape[node.axis] == 0:
        return None
    return _as_tuple(ops.unstack(x, axis=node.axis))


def _as_tuple(values: Any) -> Tuple[Value, ...]:
    return values if isinstance(values, tuple) else (values,)


@lowers(SelectItem)
def select_item(node: Any, x: Value, t: Value) -> Optional[Value]:
    # in debug mode the labels are checked
    if chainer.is_debug():
        return None
    return ops.reshape(ops.take_along(x, ops.reshape(t, shape=(t.shape[0], 1)), axis=1), shape=t.shape)


@lowers(Diagonal)
def diagonal(node: Any, x: Value) -> Optional[Value]:
    if not are_ints(node.offset, node.axis1, node.axis2) or node.axis1 % x.ndim == node.axis2 % x.ndim:
        return None
    return ops.diagonal(x, offset=node.offset, axes=(node.axis1, node.axis2))


# Joins and repetition -------------------------------------------------------------------------------------------


@lowers(Concat)
def concat(node: Any, *xs: Value) -> Value:
    return ops.concat(*xs, axis=node.axis)


@lowers(Stack)
def stack(node: Any, *xs: Value) -> Optional[Value]:
    return ops.stack(*xs, axis=node.axis) if are_ints(node.axis) else None


@lowers(Hstack)
def hstack(node: Any, *xs: Value) -> Value:
    # axis 1, but the only axis of vectors; numbers become vectors
    xs = tuple(x if x.ndim else ops.reshape(x, shape=(1,)) for x in xs)
    return ops.concat(*xs, axis=0 if xs[0].ndim == 1 else 1)


@lowers(Vstack)
def vstack(node: Any, *xs: Value) -> Value:
    # vectors and numbers become rows
    xs = tuple(x if x.ndim > 1 else ops.reshape(x, shape=(1, size_of(x))) for x in xs)
    return ops.concat(*xs, axis=0)


@lowers(Dstack)
def dstack(node: Any, *xs: Value) -> Value:
    # along a third axis; numbers, vectors and matrices get one
    shapes = {0: lambda: (1, 1, 1), 1: lambda n: (1, n, 1), 2: lambda n, m: (n, m, 1)}
    xs = tuple(ops.reshape(x, shape=shapes[x.ndim](*x.shape)) if x.ndim < 3 else x for x in xs)
    return ops.concat(*xs, axis=2)


def _repeated(x: Value, shape: Sequence[int], repeats: Sequence[int], after: bool, result: Tuple[int, ...]) -> Value:
    """``x`` as an array of ``shape``, each axis repeated as a whole, or (``after``) each element of it."""
    narrow: List[int] = []
    wide: List[int] = []
    for n, r in zip(shape, repeats):
        narrow += [n, 1] if after else [1, n]
        wide += [n, r] if after else [r, n]
    y = ops.reshape(ops.broadcast_to(ops.reshape(x, shape=narrow), shape=wide), shape=result)
    # where NumPy need not copy to reshape, the result would be a view of x
    return ops.copy(y) if all(r == 1 or n == 1 for n, r in zip(shape, repeats)) else y


@lowers(Tile)
def tile(node: Any, x: Value) -> Optional[Value]:
    repeats = ints(node.reps)
    if repeats is None:
        return None
    ndim = max(x.ndim, len(repeats))
    shape = (1,) * (ndim - x.ndim) + x.shape
    repeats = (1,) * (ndim - len(repeats)) + repeats
    return _repeated(x, shape, repeats, False, tuple(n * r for n, r in zip(shape, repeats)))


@lowers(Repeat)
def repeat(node: Any, x: Value) -> Optional[Value]:
    # several numbers of repeats repeat each element as often as its own says; without an axis x is flat
    shape, axis = ((size_of(x),), 0) if node.axis is None else (x.shape, node.axis % x.ndim)
    if len(node.repeats) != 1:
        if len(node.repeats) != shape[axis]:
            return None
        rows = constant(np.repeat(np.arange(shape[axis]), node.repeats))
        return ops.take(ops.reshape(x, shape=shape), rows, axis=axis)
    repeats = [node.repeats[0] if i == axis else 1 for i in range(len(shape))]
    return _repeated(x, shape, repeats, True, tuple(n * r for n, r in zip(shape, repeats)))


# Others ---------------------------------------------------------------------------------------------------------


@lowers(Cast)
def cast(node: Any, x: Value) -> Value:
    # to its own dtype an array is not copied; an integer operand gets no gradient
    dtype = np.dtype(node.type)
    return ops.identity(x) if dtype == x.dtype else ops.cast(x, dtype=dtype)


@lowers(Copy)
def copy(node: Any, x: Value) -> Optional[Value]:
    # where it is already, nothing is copied
    device = device_named(node.out_device)
    if device is None:
        return None
    return ops.identity(x) if (x.type.device or HOST) == device else ops.to_device(x, device=device)


@lowers(Where)
def where(node: Any, x: Value, y: Value) -> Optional[Value]:
    # the condition is an operand hidden in an attribute
    condition = symbolic_value(node.condition)
    if condition is None and isinstance(node.condition, np.ndarray):
        condition = constant(node.condition)
    if condition is None or condition.dtype != bool:
        return None
    if isinstance(condition.type, Scalar):
        condition = ops.scalar_to_tensor(condition, dtype=condition.dtype)
    return ops.where(condition, x, y)

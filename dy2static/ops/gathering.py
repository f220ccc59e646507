"""Elements picked along one axis by an array of indices, and sums that put them back."""
from __future__ import annotations

from typing import Any, Dict, Tuple

import numpy as np

from ..ir.dims import equal
from ..ir.op import OpDef, declare, sample
from ..ir.shapes import show
from ..ir.types import Tensor
from .onnx_forms import indexing
from .rules import canonical_axis, canonical_shape, need_dtype


def _take_infer(x: Tensor, indices: Tensor, *, axis: int) -> Tensor:
    need_dtype(indices, "iu", "an index")
    return Tensor(x.shape[:axis] + indices.shape + x.shape[axis + 1:], x.dtype)


_ROWS = np.array([[0, 2], [2, 1]])

#: ``x[:, ..., indices]``: whole rows of ``x`` along ``axis``, picked by an integer array of any shape.
take = declare(
    "take", "x indices", {"axis": 0}, kind="movement", may_raise=True, canonical=canonical_axis, infer=_take_infer,
    vjp=lambda g, y, x, indices, *, axis: (scatter_add(g, indices, axis=axis, shape=x.shape), None),
    numpy="np.take({x}, {indices}, axis={axis}, out={out})",
    onnx=indexing.take,
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
    onnx=indexing.scatter_add,
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


def along(indices: Tensor, axis: int) -> str:
    """The index of the elements that ``indices`` pick along ``axis``: the other axes are counted."""
    return ", ".join("{indices}" if a == axis else
                     f"np.arange({n}).reshape({', '.join('-1' if b == a else '1' for b in range(indices.ndim))})"
                     for a, n in enumerate(indices.shape))


_PICKS = np.array([[2], [0], [2], [1]])

#: One element per position of ``indices``, picked along ``axis``: ``y[i, j] = x[i, indices[i, j]]`` for axis 1.
take_along = declare(
    "take_along", "x indices", {"axis": 1}, kind="movement", may_raise=True, canonical=canonical_axis, infer=_take_along_infer,
    vjp=lambda g, y, x, indices, *, axis: (add_along(g, indices, axis=axis, size=x.shape[axis]), None),
    numpy="{x}[{where}]", holes=lambda x, indices, *, axis: {"where": along(indices, axis)},
    onnx=indexing.take_along,
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
    where = along(indices, axis)
    return {"put": f"{{out}}[{where}] = {{x}}" if indices.shape[axis] == 1 else f"np.add.at({{out}}, ({where}), {{x}})"}


#: Zeros with ``size`` along ``axis``, the elements of ``x`` added at ``indices``: the derivative of `take_along`.
add_along: OpDef = declare(
    "add_along", "x indices", {"axis": 1, "size": 1}, kind="movement", canonical=canonical_axis,
    infer=_add_along_infer,
    vjp=lambda g, y, x, indices, *, axis, size: (take_along(g, indices, axis=axis), None),
    numpy="{out}[...] = 0\n{put}", holes=_add_along_holes,
    onnx=indexing.add_along,
    samples=(sample((4, 1), _PICKS, size=3), sample((2, 4), np.array([[0, 0, 2, 0], [1, 1, 1, -1]]), size=3),
             sample((1, 2), np.array([[1, 0]]), axis=0, size=3), sample((0, 1), np.zeros((0, 1), int), size=3)),
)

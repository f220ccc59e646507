"""Elements picked by arrays, in any way NumPy has, and diagonals; the derivatives put them back."""
from __future__ import annotations

from typing import Any, Dict, Tuple

import numpy as np

from ..ir.graph import Value
from ..ir.op import OpDef, declare, sample
from ..ir.shapes import broadcast_shapes, same_shape, show
from ..ir.size_bounds import maximum, minimum
from ..ir.template import AT, attr_source, index_source
from ..ir.types import Tensor
from .creation import zeros_like
from .onnx_forms import indexing as forms
from .rules import need_dtype, normal_axis, one_dtype, sizes
from .slicing import getitem, getitem_at, normal_index


def picked(x: Value, *numbers: Value, index: Tuple[Any, ...]) -> Value:
    """``x[index]`` by the op for it: a view for a basic index, else a copy.

    numbers: the ints and int arrays that stand where the index has `AT`.
    """
    if not numbers:
        return getitem(x, index=index)
    return (pick if any(n.shape for n in numbers) else getitem_at)(x, *numbers, index=index)


def shape_of_part(x: Tensor, *numbers: Tensor, index: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """The shape of ``x[index]``: axes that int arrays make stand together, in front if they are apart in the index."""
    if len(numbers) != index.count(AT):
        raise TypeError("an array of ints is needed for each place in the index")
    together: Tuple[Any, ...] = ()
    for array in numbers:
        need_dtype(array, "iu", "an index")
        together = broadcast_shapes(together, array.shape)
    places = [p for p, entry in enumerate(index) if not (entry is None or isinstance(entry, tuple))]
    rest = getitem.infer(x, index=tuple(0 if p in places else entry for p, entry in enumerate(index))).shape
    adjacent = bool(places) and places[-1] - places[0] < len(places)
    before = places[0] if adjacent else 0
    return (*rest[:before], *together, *rest[before:])


def _canonical(x: Tensor, *_: Any, index: Any) -> Dict[str, Any]:
    return {"index": normal_index(index, x.shape)}


_PAIRS = (np.array([[0, 1], [2, 2]]), np.array([1, 0]))

#: ``x[index]`` with an array of ints for each `AT` in the index; they broadcast.
pick: OpDef = declare(
    "pick", "x *numbers", {"index": (AT,)}, kind="movement", may_raise=True, canonical=_canonical,
    infer=lambda x, *numbers, index: Tensor(shape_of_part(x, *numbers, index=index), x.dtype),
    vjp=lambda g, y, x, *numbers, index: (add_at(zeros_like(x), g, *numbers, index=index), *[None] * len(numbers)),
    numpy="{x}[{index}]", holes=lambda *_, index: {"index": index_source(index)},
    onnx=forms.pick,
    samples=(sample((3, 2), *_PAIRS, index=(AT, AT)), sample((4, 3, 5), _PAIRS[1], index=(0, slice(None, None, 2), AT)),
             sample((2, 4, 3), *_PAIRS, index=(slice(None), AT, AT)), sample((3, 2), _PAIRS[0], index=(AT, None)),
             sample((3, 4, 2), *_PAIRS, index=(AT, slice(1, 3), AT)), sample((3, 0), _PAIRS[1], index=(AT,))),
)


def _add_at_infer(a: Tensor, b: Tensor, *numbers: Tensor, index: Tuple[Any, ...]) -> Tensor:
    if not same_shape(b.shape, shape_of_part(a, *numbers, index=index)):
        raise ValueError(f"an array of shape {show(b.shape)} does not fit the index {index}")
    return a


def _add_at_holes(a: Tensor, b: Tensor, *numbers: Tensor, index: Tuple[Any, ...]) -> Dict[str, str]:
    """A basic index picks no element twice."""
    where = index_source(index)
    if numbers:
        return {"add": f"np.add.at({{out}}, np.s_[{where}], {{b}})"}
    return {"add": f"np.add({{out}}[{where}], {{b}}, out={{out}}[{where}])"}


#: A copy of ``a`` with ``b`` added at ``a[index]``; what is picked several times adds up.
add_at: OpDef = declare(
    "add_at", "a b *numbers", {"index": (AT,)}, kind="movement", may_raise=True, canonical=_canonical, infer=_add_at_infer,
    vjp=lambda g, y, a, b, *numbers, index: (g, picked(g, *numbers, index=index), *[None] * len(numbers)),
    numpy="np.copyto({out}, {a})\n{add}", holes=_add_at_holes,
    onnx=forms.add_at,
    samples=(sample((3, 2), (2, 2), *_PAIRS, index=(AT, AT)), sample((4, 3), (2, 3), index=(slice(1, 3),)),
             sample((4, 3), (), np.array(2), index=(AT, -1)), sample((2, 4, 3), (2, 4, 3), _PAIRS[1], index=(AT,)),
             sample((3, 0), (2, 0), _PAIRS[1], index=(AT,)), sample((), (), index=())),
)


def _put_infer(contents: Tensor, item: Tensor, *numbers: Tensor, index: Tuple[Any, ...]) -> Tensor:
    one_dtype(contents, item)
    return _add_at_infer(contents, item, *numbers, index=index)


#: A copy of ``contents`` with ``item`` at ``contents[index]``.
put: OpDef = declare(
    "put", "contents item *numbers", {"index": ()}, kind="movement", may_raise=True, canonical=_canonical, infer=_put_infer,
    numpy="np.copyto({out}, {contents})\n{out}[{index}] = {item}",
    holes=lambda *_, index: {"index": index_source(index)},
    onnx=forms.put,
    samples=(sample((3, 2), (2, 2), np.array([2, 0]), index=(AT,)), sample((4, 3), (2, 3), index=(slice(1, 3),)),
             sample((4, 3), (), np.array(2), index=(AT, -1)), sample((3, 0), (2, 0), _PAIRS[1], index=(AT,)),
             sample((), (), index=())),
)

# Diagonals ------------------------------------------------------------------------------------------------------


def _diagonal_canonical(x: Tensor, *, offset: Any, axes: Any) -> Dict[str, Any]:
    return {"offset": int(offset), "axes": tuple(normal_axis(a, x.ndim) for a in axes)}


def _diagonal_infer(x: Tensor, *, offset: int, axes: Tuple[int, int]) -> Tensor:
    if axes[0] == axes[1]:
        raise ValueError("axis1 and axis2 cannot be the same")
    rows, columns = (x.shape[a] for a in axes)
    size = maximum(0, minimum(rows + min(offset, 0), columns - max(offset, 0)))
    return Tensor((*(n for a, n in enumerate(x.shape) if a not in axes), size), x.dtype)


#: The diagonal of two axes, as the last axis.
diagonal: OpDef = declare(
    "diagonal", "x", {"offset": 0, "axes": (0, 1)}, kind="view", view=True, canonical=_diagonal_canonical,
    infer=_diagonal_infer,
    vjp=lambda g, y, x, *, offset, axes: (put_diagonal(g, offset=offset, axes=axes, shape=x.shape),),
    numpy="{x}.diagonal({offset}, {row}, {column})",
    holes=lambda x, *, offset, axes: {"row": str(axes[0]), "column": str(axes[1])},
    onnx=forms.diagonal,
    samples=(sample((3, 4)), sample((3, 4), offset=2), sample((2, 3, 4), offset=-1, axes=(-1, 1)), sample((3, 0)),
             sample((2, 3), offset=5), sample((1, 1))),
)


def _put_diagonal_canonical(x: Tensor, *, offset: Any, axes: Any, shape: Any) -> Dict[str, Any]:
    return {"offset": int(offset), "axes": tuple(normal_axis(a, len(shape)) for a in axes), "shape": sizes(shape)}


def _put_diagonal_infer(x: Tensor, *, offset: int, axes: Tuple[int, int], shape: Tuple[Any, ...]) -> Tensor:
    whole = Tensor(shape, x.dtype)
    if not same_shape(_diagonal_infer(whole, offset=offset, axes=axes).shape, x.shape):
        raise ValueError(f"an array of shape {show(x.shape)} is no diagonal of one of shape {show(shape)}")
    return whole


def _put_diagonal_holes(x: Tensor, *, offset: int, axes: Tuple[int, int], shape: Tuple[Any, ...]) -> Dict[str, str]:
    count = attr_source(x.shape[-1])
    places = [f"np.arange({count})" + (f" + {start}" if start else "") for start in (max(-offset, 0), max(offset, 0))]
    return {"where": ", ".join(places)}


#: Zeros of ``shape``, with ``x`` on the diagonal: the derivative of `diagonal`.
put_diagonal: OpDef = declare(
    "put_diagonal", "x", {"offset": 0, "axes": (0, 1), "shape": ()}, kind="movement",
    canonical=_put_diagonal_canonical, infer=_put_diagonal_infer,
    vjp=lambda g, y, x, *, offset, axes, shape: (diagonal(g, offset=offset, axes=axes),),
    numpy="{out}[...] = 0\nnp.moveaxis({out}, {axes}, (0, 1))[{where}] = np.moveaxis({x}, -1, 0)",
    holes=_put_diagonal_holes,
    onnx=forms.put_diagonal,
    samples=(sample((5, 3), axes=(1, 2), shape=(5, 3, 4)), sample((5, 2), offset=2, axes=(1, 2), shape=(5, 3, 4)),
             sample((0,), shape=(3, 0)),
             sample((3, 2), offset=-1, axes=(-1, 1), shape=(3, 2, 5)), sample((1,), shape=(1, 1))),
)

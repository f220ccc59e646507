"""Matrix products."""
from __future__ import annotations

from typing import Any, Dict, Tuple

import numpy as np

from ..ir.dims import equal
from ..ir.op import declare, sample
from ..ir.shapes import same_shape, show
from ..ir.types import Stack, Tensor, Type
from .onnx_forms import indexing, movement
from .rules import canonical_shape, one_dtype


def _infer(a: Tensor, b: Tensor, *, transa: bool, transb: bool) -> Tensor:
    one_dtype(a, b)
    if a.ndim < 2 or b.ndim < 2 or not same_shape(a.shape[:-2], b.shape[:-2]):
        raise ValueError(f"matmul: matrices, or stacks of one shape, are needed: {show(a.shape)} {show(b.shape)}")
    rows, inner = _transposed(a.shape, transa)
    inner_b, columns = _transposed(b.shape, transb)
    if not equal(inner, inner_b):
        raise ValueError(f"matmul: {inner} columns do not fit {inner_b} rows")
    return Tensor(a.shape[:-2] + (rows, columns), a.dtype)


def _transposed(shape: Tuple[Any, ...], turn: bool) -> Tuple[Any, Any]:
    return (shape[-1], shape[-2]) if turn else (shape[-2], shape[-1])


def _vjp(g, y, a, b, *, transa, transb):
    ga = matmul(b, g, transa=transb, transb=True) if transa else matmul(g, b, transb=not transb)
    gb = matmul(g, a, transa=True, transb=transa) if transb else matmul(a, g, transa=not transa)
    return ga, gb


def _holes(a: Tensor, b: Tensor, *, transa: bool, transb: bool) -> Dict[str, str]:
    """For two matrices `numpy.dot`: it has less overhead than `numpy.matmul` and reads transposed views as they are."""
    turn = ".T" if a.ndim == 2 else ".swapaxes(-1, -2)"
    return {"function": "dot" if a.ndim == 2 else "matmul",
            "left": "{a}" + turn if transa else "{a}", "right": "{b}" + turn if transb else "{b}"}


#: Matrix product, for stacks one per pair.  ``transa``, ``transb``: read the operand's matrices transposed, so that a
#: linear layer is ``matmul(x, W, transb=True)`` and its derivatives are the products Chainer makes.
matmul = declare(
    "matmul", "a b", {"transa": False, "transb": False}, kind="contraction", infer=_infer,
    vjp=_vjp,
    numpy="np.{function}({left}, {right}, out={out})", holes=_holes,
    onnx=movement.matmul,
    samples=(sample((4, 3), (3, 2)), sample((3, 4), (3, 2), transa=True), sample((4, 3), (2, 3), transb=True),
             sample((3, 4), (2, 3), transa=True, transb=True), sample((2, 4, 3), (2, 3, 5)),
             sample((2, 3, 4), (2, 5, 3), transa=True, transb=True), sample((1, 1), (1, 1)), sample((0, 3), (3, 2)),
             sample((2, 0), (0, 3))),
)


def _pretransposed_infer(x: Tensor) -> Tensor:
    if x.ndim != 2:
        raise ValueError(f"pretransposed: a matrix is needed, not {show(x.shape)}")
    return Tensor(x.shape[::-1], x.dtype)


#: A matrix transposed in memory: the same numbers as ``transpose`` gives, for products that read it many times.
pretransposed = declare(
    "pretransposed", "x", kind="movement", infer=_pretransposed_infer, vjp=lambda g, y, x: (pretransposed(g),),
    numpy="np.copyto({out}, {x}.T)",
    onnx=movement.pretransposed,
    samples=(sample((4, 3)), sample((37, 18)), sample((1, 5)), sample((0, 3)), sample((3, 2), dtype="int64")),
)


def _stack_product_infer(a: Type, b: Type) -> Tensor:
    if not (isinstance(a, Stack) and isinstance(b, Stack)):
        raise TypeError(f"stack_product takes two stacks, not {a} and {b}")
    return _infer(a.elem, b.elem, transa=True, transb=False)


def stack_product(a: Any, b: Any, out: np.ndarray) -> None:
    """Fill ``out`` with the sum of ``x.T @ y`` over the items ``x`` and ``y`` of two stacks of one length."""
    if len(a) == 0:
        out[...] = 0
        return
    rows, columns = (np.asarray(items).reshape(-1, size) if isinstance(items, np.ndarray) else np.concatenate(items)
                     for items, size in zip((a, b), out.shape))
    np.dot(rows.T, columns, out=out)


#: The sum of ``x.T @ y`` over the items of two stacks of one length, matrices; zeros where they are empty.
product_of_stacks = declare(
    "stack_product", "a b", kind="contraction", infer=_stack_product_infer,
    numpy="stack_product({a}, {b}, {out})", calls=(stack_product,),
    onnx=movement.product_of_stacks,
)


def _stack_scatter_infer(items: Type, numbers: Type, *, shape: Tuple[Any, ...]) -> Tensor:
    if not (isinstance(items, Stack) and isinstance(numbers, Stack) and isinstance(items.elem, Tensor)):
        raise TypeError(f"stack_scatter takes a stack of arrays and one of numbers, not {items} and {numbers}")
    if items.elem.shape != tuple(shape[1:]):
        raise ValueError(f"items of shape {show(items.elem.shape)} are no rows of an array of shape {show(shape)}")
    return Tensor(shape, items.elem.dtype)


def stack_scatter(items: Any, numbers: Any, out: np.ndarray) -> None:
    """Fill ``out`` with zeros, and add each item of a stack to the row whose number the other stack has."""
    out[...] = 0
    for item, number in zip(items, numbers):
        out[number] += item


#: Zeros of ``shape``, with the items of a stack added to the rows of which another stack of one length has the numbers.
rows_of_stack = declare(
    "stack_scatter", "items numbers", {"shape": ()}, kind="movement", may_raise=True, canonical=canonical_shape,
    infer=_stack_scatter_infer, numpy="stack_scatter({items}, {numbers}, {out})", calls=(stack_scatter,),
    onnx=indexing.stack_scatter,
)

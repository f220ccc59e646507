"""Matrix products."""
from __future__ import annotations

from typing import Any, Dict, Tuple

from ..ir.dims import equal, same_shape, show
from ..ir.op import declare, sample
from ..ir.types import Tensor
from .rules import one_dtype


def _infer(a: Tensor, b: Tensor, *, transa: bool, transb: bool) -> Tensor:
    one_dtype(a, b)
    if a.ndim < 2 or b.ndim < 2 or not same_shape(a.shape[:-2], b.shape[:-2]):
        raise ValueError(f"matmul: matrices, or stacks of one shape, are needed: {show(a.shape)} {show(b.shape)}")
    rows, inner = _turned(a.shape, transa)
    inner_b, columns = _turned(b.shape, transb)
    if not equal(inner, inner_b):
        raise ValueError(f"matmul: {inner} columns do not fit {inner_b} rows")
    return Tensor(a.shape[:-2] + (rows, columns), a.dtype)


def _turned(shape: Tuple[Any, ...], turn: bool) -> Tuple[Any, Any]:
    return (shape[-1], shape[-2]) if turn else (shape[-2], shape[-1])


def _vjp(g, y, a, b, *, transa, transb):
    ga = matmul(b, g, transa=transb, transb=True) if transa else matmul(g, b, transb=not transb)
    gb = matmul(g, a, transa=True, transb=transa) if transb else matmul(a, g, transa=not transa)
    return ga, gb


def _holes(a: Tensor, b: Tensor, *, transa: bool, transb: bool) -> Dict[str, str]:
    """For two matrices `numpy.dot`: it has less overhead than `numpy.matmul` and takes turned views as they are."""
    turn = ".T" if a.ndim == 2 else ".swapaxes(-1, -2)"
    return {"function": "dot" if a.ndim == 2 else "matmul",
            "left": "{a}" + turn if transa else "{a}", "right": "{b}" + turn if transb else "{b}"}


#: Matrix product, for stacks one per pair.  ``transa``, ``transb``: take the operand's matrices turned, so that a
#: linear layer is ``matmul(x, W, transb=True)`` and its derivatives are the products Chainer makes.
matmul = declare(
    "matmul", "a b", {"transa": False, "transb": False}, kind="contraction", infer=_infer,
    vjp=_vjp,
    numpy="np.{function}({left}, {right}, out={out})", holes=_holes,
    samples=(sample((4, 3), (3, 2)), sample((3, 4), (3, 2), transa=True), sample((4, 3), (2, 3), transb=True),
             sample((3, 4), (2, 3), transa=True, transb=True), sample((2, 4, 3), (2, 3, 5)),
             sample((2, 3, 4), (2, 5, 3), transa=True, transb=True), sample((1, 1), (1, 1)), sample((0, 3), (3, 2)),
             sample((2, 0), (0, 3))),
)

"""Matrix products, and sums over products with named axes."""
from __future__ import annotations

from typing import Any, Dict, Tuple

import numpy as np

from ..ir.dims import equal, same_shape, show
from ..ir.graph import Value
from ..ir.op import OpDef, declare, sample
from ..ir.types import Stack, Tensor, Type
from .broadcasting import broadcast_to
from .movement import reshape
from .rules import canonical_shape, one_dtype


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


def _turned_infer(x: Tensor) -> Tensor:
    if x.ndim != 2:
        raise ValueError(f"turned: a matrix is needed, not {show(x.shape)}")
    return Tensor(x.shape[::-1], x.dtype)


#: A matrix turned in memory: the same numbers as ``transpose`` gives, for products that read it many times.
turned = declare(
    "turned", "x", kind="movement", infer=_turned_infer, vjp=lambda g, y, x: (turned(g),),
    numpy="np.copyto({out}, {x}.T)",
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
)


# Sums over products with named axes -----------------------------------------------------------------------------


def _sizes_by_letter(xs: Tuple[Any, ...], inputs: Tuple[str, ...]) -> Dict[str, Any]:
    sizes: Dict[str, Any] = {}
    for x, letters in zip(xs, inputs):
        if x.ndim != len(letters):
            raise ValueError(f"an array of {x.ndim} axes is not {letters}")
        for letter, n in zip(letters, x.shape):
            if not equal(sizes.setdefault(letter, n), n):
                raise ValueError(f"{letter} is of size {sizes[letter]} and {n}")
    return sizes


def _einsum_infer(*xs: Tensor, inputs: Tuple[str, ...], output: str) -> Tensor:
    one_dtype(*xs)
    sizes = _sizes_by_letter(xs, inputs)
    if len(xs) != len(inputs) or len(set(output)) < len(output) or not set(output) <= set(sizes):
        raise ValueError(f"einsum: {','.join(inputs)}->{output} of {len(xs)} arrays")
    return Tensor(tuple(sizes[letter] for letter in output), xs[0].dtype)


def _einsum_vjp(g, y, *xs, inputs, output):
    gradients = []
    for i, (x, letters) in enumerate(zip(xs, inputs)):
        operands = (*xs[:i], g, *xs[i + 1:])
        gradients.append(_spread(operands, (*inputs[:i], output, *inputs[i + 1:]), letters, x.shape))
    return tuple(gradients)


def _spread(xs: Tuple[Value, ...], inputs: Tuple[str, ...], letters: str, shape: Tuple[Any, ...]) -> Value:
    """An einsum whose result has axes that no operand has, along which it is repeated, or one axis twice: a diagonal."""
    sizes = dict(zip(letters, shape))
    found = "".join(letter for letter in sizes if any(letter in other for other in inputs))
    y = xs[0] if inputs == (found,) else einsum(*xs, inputs=inputs, output=found)
    if len(found) < len(sizes):
        y = reshape(y, shape=tuple(n if letter in found else 1 for letter, n in sizes.items()))
        y = broadcast_to(y, shape=tuple(sizes.values()))
    return y if len(sizes) == len(letters) else put_diagonals(y, letters=letters, shape=shape)


def _einsum_holes(*xs: Tensor, inputs: Tuple[str, ...], output: str) -> Dict[str, str]:
    """What Chainer calls; a copy where NumPy gives a view."""
    optimize = ", optimize=True" if len(xs) > 2 else ""
    views = len(xs) == 1 and set(inputs[0]) == set(output)
    text = f'np.einsum("{",".join(inputs)}->{output}", {{xs}}{optimize})' + (".copy()" if views else "")
    return {"call": text if output else f"np.asarray({text})"}


#: The sum over products that `numpy.einsum` gives, with a letter for every axis; each at most once in the result.
einsum: OpDef = declare(
    "einsum", "*xs", {"inputs": (), "output": ""}, kind="contraction", infer=_einsum_infer, vjp=_einsum_vjp,
    numpy="{call}", holes=_einsum_holes,
    samples=(sample((2, 3), (3, 4), inputs=("ij", "jk"), output="ki"), sample((2, 3), inputs=("ij",), output=""),
             sample((3, 3, 2), inputs=("iij",), output="ij"), sample((2, 3), (3,), (2, 3), inputs=("ij", "j", "ik"), output="k"),
             sample((2, 2), (0,), inputs=("ii", "k"), output="k"), sample((), (3,), inputs=("", "i"), output="i"),
             sample((1, 1), (1,), inputs=("ij", "j"), output="i")),
)


def _put_diagonals_infer(x: Tensor, *, letters: str, shape: Tuple[Any, ...]) -> Tensor:
    whole = Tensor(shape, x.dtype)
    if _einsum_infer(whole, inputs=(letters,), output="".join(dict.fromkeys(letters))) != x:
        raise ValueError(f"an array of shape {show(x.shape)} is no diagonal {letters} of one of shape {show(shape)}")
    return whole


def _put_diagonals_vjp(g, y, x, *, letters, shape):
    return (einsum(g, inputs=(letters,), output="".join(dict.fromkeys(letters))),)


#: Zeros of ``shape``, with ``x`` where the axes of equal letters have equal indices.
put_diagonals: OpDef = declare(
    "put_diagonals", "x", {"letters": "ii", "shape": ()}, kind="movement", canonical=canonical_shape,
    infer=_put_diagonals_infer, vjp=_put_diagonals_vjp,
    numpy="{out}[...] = 0\nnp.einsum({diagonal}, {out})[...] = {x}",
    holes=lambda x, *, letters, shape: {"diagonal": f'"{letters}->{"".join(dict.fromkeys(letters))}"'},
    samples=(sample((3, 2), letters="iij", shape=(3, 3, 2)), sample((1,), letters="ii", shape=(1, 1)),
             sample((2, 3), letters="iji", shape=(2, 3, 2))),
)

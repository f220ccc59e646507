"""Sums over products with named axes."""
from __future__ import annotations

import math
from typing import Any, Dict, Iterable, Tuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..ir.building import broadcast
from ..ir.dims import equal
from ..ir.graph import Value
from ..ir.op import Decomposition, OpDef, declare, sample
from ..ir.shapes import show
from ..ir.types import Tensor
from .broadcasting import broadcast_to
from .contraction import matmul
from .indexing import diagonal
from .movement import reshape, transpose
from .onnx_forms import indexing as forms
from .reduction import sum_
from .rules import canonical_shape, of_floats, one_dtype


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


# In terms of products of matrices ---------------------------------------------------------------------------------


#: An array, and a letter for each axis.
_Named = Tuple[Value, str]


def _einsum_steps(*xs: Value, inputs: Tuple[str, ...], output: str) -> Value:
    """Products of matrices, taken from the left."""
    terms = [_without_repeats(x, letters) for x, letters in zip(xs, inputs)]
    result = terms[0]
    for k, term in enumerate(terms[1:], start=2):
        result = _product(result, term, output + "".join(letters for _, letters in terms[k:]))
    value, letters = _summed(result, output)
    return transpose(value, axes=tuple(map(letters.index, output)))


def _without_repeats(x: Value, letters: str) -> _Named:
    for k, letter in enumerate(letters):
        if letter in letters[:k]:
            first = letters.index(letter)
            rest = "".join(other for a, other in enumerate(letters) if a not in (first, k))
            return _without_repeats(diagonal(x, axes=(first, k)), rest + letter)
    return x, letters


def _summed(named: _Named, wanted: str) -> _Named:
    """The sum over the axes that are not asked for."""
    x, letters = named
    axes = tuple(a for a, letter in enumerate(letters) if letter not in wanted)
    return (sum_(x, axis=axes), "".join(letter for letter in letters if letter in wanted)) if axes else named


def _transposed(named: _Named, letters: Iterable[str]) -> Value:
    x, names = named
    return transpose(x, axes=tuple(map(names.index, letters)))


def _product(left: _Named, right: _Named, wanted: str) -> _Named:
    left, right = _summed(left, right[1] + wanted), _summed(right, left[1] + wanted)
    sizes = {letter: n for x, letters in (left, right) for letter, n in zip(letters, x.shape)}
    both = [letter for letter in left[1] if letter in right[1]]
    batch, inner = [c for c in both if c in wanted], [c for c in both if c not in wanted]
    rows, columns = [c for c in left[1] if c not in both], [c for c in right[1] if c not in both]

    def size(letters: Iterable[str]) -> int:
        return math.prod(sizes[letter] for letter in letters)

    if inner and (rows or columns):
        a = reshape(_transposed(left, batch + rows + inner), shape=(size(batch), size(rows), size(inner)))
        b = reshape(_transposed(right, batch + inner + columns), shape=(size(batch), size(inner), size(columns)))
        if not batch:
            a, b = reshape(a, shape=a.shape[1:]), reshape(b, shape=b.shape[1:])
        letters = batch + rows + columns
        return reshape(matmul(a, b), shape=tuple(sizes[c] for c in letters)), "".join(letters)
    a = reshape(_transposed(left, both + rows), shape=tuple(sizes[c] for c in both + rows) + (1,) * len(columns))
    b = reshape(_transposed(right, both + columns),
                shape=(*(sizes[c] for c in both), *(1,) * len(rows), *(sizes[c] for c in columns)))
    first, second = broadcast(a, b)
    return _summed((first * second, "".join(both + rows + columns)), wanted)


# The ops ---------------------------------------------------------------------------------------------------------


#: The sum over products that `numpy.einsum` gives, with a letter for every axis; each at most once in the result.
einsum: OpDef = declare(
    "einsum", "*xs", {"inputs": (), "output": ""}, kind="contraction", infer=_einsum_infer, vjp=_einsum_vjp,
    numpy="{call}", holes=_einsum_holes, decompose=Decomposition(_einsum_steps, of_floats),
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


def diagonal_of(x: np.ndarray, letters: str) -> np.ndarray:
    """The view of an array in which the axes of equal letters are one axis."""
    axes = list(dict.fromkeys(letters))
    return as_strided(x, [x.shape[letters.index(axis)] for axis in axes],
                      [sum([step for step, letter in zip(x.strides, letters) if letter == axis]) for axis in axes])


def _put_diagonals_vjp(g, y, x, *, letters, shape):
    return (einsum(g, inputs=(letters,), output="".join(dict.fromkeys(letters))),)


#: Zeros of ``shape``, with ``x`` where the axes of equal letters have equal indices.
put_diagonals: OpDef = declare(
    "put_diagonals", "x", {"letters": "ii", "shape": ()}, kind="movement", canonical=canonical_shape,
    infer=_put_diagonals_infer, vjp=_put_diagonals_vjp,
    numpy="{out}[...] = 0\nnp.einsum({diagonal}, {out})[...] = {x}",
    cupy="{out}[...] = 0\ndiagonal_of({out}, {letters})[...] = {x}", calls=(diagonal_of,),
    holes=lambda x, *, letters, shape: {"diagonal": f'"{letters}->{"".join(dict.fromkeys(letters))}"'},
    onnx=forms.put_diagonals,
    samples=(sample((3, 2), letters="iij", shape=(3, 3, 2)), sample((1,), letters="ii", shape=(1, 1)),
             sample((2, 3), letters="iji", shape=(2, 3, 2))),
)

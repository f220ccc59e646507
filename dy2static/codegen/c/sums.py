"""Sums over products with named axes, as products of matrices."""
from __future__ import annotations

import math
from typing import Iterable, Tuple

from ...ir.building import broadcast
from ...ir.graph import Value
from ...ops.contraction import matmul
from ...ops.indexing import diagonal
from ...ops.movement import reshape, transpose
from ...ops.reduction import sum_

#: An array, and a letter for each axis.
_Named = Tuple[Value, str]


def einsum(*xs: Value, inputs: Tuple[str, ...], output: str) -> Value:
    """The sum over products, taken from the left; an array of floats."""
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
    """Without the axes that nobody wants."""
    x, letters = named
    axes = tuple(a for a, letter in enumerate(letters) if letter not in wanted)
    return (sum_(x, axis=axes), "".join(letter for letter in letters if letter in wanted)) if axes else named


def _turned(named: _Named, letters: Iterable[str]) -> Value:
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
        a = reshape(_turned(left, batch + rows + inner), shape=(size(batch), size(rows), size(inner)))
        b = reshape(_turned(right, batch + inner + columns), shape=(size(batch), size(inner), size(columns)))
        if not batch:
            a, b = reshape(a, shape=a.shape[1:]), reshape(b, shape=b.shape[1:])
        letters = batch + rows + columns
        return reshape(matmul(a, b), shape=tuple(sizes[c] for c in letters)), "".join(letters)
    a = reshape(_turned(left, both + rows), shape=tuple(sizes[c] for c in both + rows) + (1,) * len(columns))
    b = reshape(_turned(right, both + columns), shape=(*(sizes[c] for c in both), *(1,) * len(rows), *(sizes[c] for c in columns)))
    first, second = broadcast(a, b)
    return _summed((first * second, "".join(both + rows + columns)), wanted)

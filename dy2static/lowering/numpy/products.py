"""Rules for products of arrays, for backends that ask: the last bits may differ from NumPy's.  Of ints, those with a vector."""
from __future__ import annotations

import string
from typing import Any, Optional, Sequence, Tuple

import numpy as np

from ... import ops
from ...ir.dims import equal, is_known
from ...ir.graph import Value
from ...ir.types import Tensor
from .exact import Rule
from .operands import is_array

#: A matrix of so few elements times a vector is a sum of products: a part of the loops around it.
_FEW = 1024


def dot(type_: Tensor, a: Any, b: Any) -> Optional[Value]:
    """Products of vectors and matrices, as of ``np.dot`` and ``np.matmul``."""
    if _are_ints(a, b):
        return _of_ints(type_, a, b)
    if not _are_floats(a, b) or not {a.ndim, b.ndim} <= {1, 2}:
        return None
    if a.ndim == b.ndim == 2:
        return ops.matmul(a, b)
    if a.ndim == b.ndim == 1:
        return ops.sum(a * b, axis=(0,))
    if a.ndim == 1:
        return ops.reshape(ops.matmul(ops.reshape(a, shape=(1, *a.shape)), b), shape=(b.shape[1],))
    if is_known(a.type.size) and a.type.size <= _FEW:
        return ops.sum(a * ops.broadcast_to(b, shape=a.shape), axis=(1,))
    return ops.reshape(ops.matmul(a, ops.reshape(b, shape=(*b.shape, 1))), shape=(a.shape[0],))


def matmul(type_: Tensor, a: Any, b: Any) -> Optional[Value]:
    """The rule of ``np.matmul``, also of stacks of matrices."""
    if not _are_floats(a, b) or max(a.ndim, b.ndim) < 3:
        return dot(type_, a, b)
    if min(a.ndim, b.ndim) < 2:
        return None
    stack = type_.shape[:-2]
    return ops.matmul(*[x if x.shape[:-2] == stack else ops.broadcast_to(x, shape=stack + x.shape[-2:]) for x in (a, b)])


def outer(type_: Tensor, a: Any, b: Any) -> Optional[Value]:
    """The rule of ``np.outer``."""
    if not _fit(type_, a, b):
        return None
    rows, columns = type_.shape
    a, b = (_cast(x, type_.dtype) for x in (a, b))
    return ops.broadcast_to(ops.reshape(a, shape=(rows, 1)), shape=type_.shape) * ops.broadcast_to(
        ops.reshape(b, shape=(1, columns)), shape=type_.shape)


def of_all_pairs(rule: Rule) -> Rule:
    """The rule of ``ufunc.outer``.  rule: that of the function of two arrays."""
    def of_pairs(type_: Tensor, a: Any, b: Any) -> Optional[Value]:
        if not is_array(a) or not is_array(b):
            return None
        apart = ops.reshape(a, shape=(*a.shape, *(1,) * b.ndim))
        return rule(type_, *[ops.broadcast_to(x, shape=type_.shape) for x in (apart, b)])
    return of_pairs


def kron(type_: Tensor, a: Any, b: Any) -> Optional[Value]:
    """The rule of ``np.kron``: each element of the one array times all of the other one."""
    if not _fit(type_, a, b) or not type_.shape:
        return None
    rows, blocks = ((1,) * (len(type_.shape) - x.ndim) + x.shape for x in (a, b))
    pairs = list(zip(rows, blocks))
    whole = tuple([n for pair in pairs for n in pair])
    apart = [tuple([n for pair in pairs for n in chosen(*pair)]) for chosen in (lambda n, m: (n, 1), lambda n, m: (1, m))]
    x, y = (ops.broadcast_to(ops.reshape(_cast(v, type_.dtype), shape=shape), shape=whole) for v, shape in zip((a, b), apart))
    return ops.copy(ops.reshape(x * y, shape=type_.shape))


def vdot(type_: Tensor, a: Any, b: Any) -> Optional[Value]:
    """The rule of ``np.vdot`` of floats: the sum of the products of all elements."""
    if not _are_floats(a, b):
        return None
    a, b = (ops.reshape(x, shape=(x.type.size,)) for x in (a, b))
    return ops.sum(a * b, axis=(0,))


def inner(type_: Tensor, a: Any, b: Any) -> Optional[Value]:
    """The rule of ``np.inner``."""
    if not _are_floats(a, b) or not a.ndim or not b.ndim:
        return None
    return _summed(type_, a, b, (a.ndim - 1,), (b.ndim - 1,))


def tensordot(type_: Tensor, a: Any, b: Any, axes: Any = 2) -> Optional[Value]:
    """The rule of ``np.tensordot``."""
    if not _are_floats(a, b):
        return None
    if type(axes) is int:
        pairs: Any = (range(a.ndim - axes, a.ndim), range(axes))
    else:
        is_pair = type(axes) in (tuple, list) and len(axes) == 2
        pairs = [(each,) if type(each) is int else each for each in axes] if is_pair else None
    if pairs is None or not all(type(axis) is int for each in pairs for axis in each):
        return None
    return _summed(type_, a, b, *[tuple(axis % x.ndim for axis in each) for x, each in zip((a, b), pairs)])


def _summed(type_: Tensor, a: Value, b: Value, of_a: Tuple[int, ...], of_b: Tuple[int, ...]) -> Optional[Value]:
    """The sum of products over pairs of axes, as one product of matrices."""
    if len(of_a) != len(of_b) or not all(equal(a.shape[i], b.shape[j]) for i, j in zip(of_a, of_b)):
        return None
    if len(of_a) == a.ndim == b.ndim:
        return _of_all(a, b, of_a, of_b)
    kept_a, kept_b = (tuple(axis for axis in range(x.ndim) if axis not in of) for x, of in ((a, of_a), (b, of_b)))
    left, right = _as_matrix(a, kept_a, of_a), _as_matrix(b, of_b, kept_b)
    return ops.copy(ops.reshape(ops.matmul(left, right), shape=type_.shape))


def _of_all(a: Value, b: Value, of_a: Tuple[int, ...], of_b: Tuple[int, ...]) -> Value:
    """The sum of products over all axes, those of the second array in the order of the first."""
    axes = tuple([j for _, j in sorted(zip(of_a, of_b))])
    return ops.sum(a * (b if axes == tuple(range(b.ndim)) else ops.transpose(b, axes=axes)), axis=tuple(range(a.ndim)))


def _as_matrix(x: Value, rows: Sequence[int], columns: Sequence[int]) -> Value:
    shape = tuple(Tensor(tuple(x.shape[axis] for axis in axes), x.dtype).size for axes in (rows, columns))
    return ops.reshape(ops.transpose(x, axes=(*rows, *columns)), shape=shape)


def einsum(type_: Tensor, subscripts: Any, *xs: Any) -> Optional[Value]:
    """The rule of ``np.einsum`` with subscripts that have a letter for each axis."""
    if type(subscripts) is not str or not xs or not _are_floats(*xs):
        return None
    given, arrow, output = subscripts.replace(" ", "").partition("->")
    inputs = tuple(given.split(","))
    letters = "".join(inputs)
    if not arrow:
        output = "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    if not set(letters + output) <= set(string.ascii_letters) or len(inputs) != len(xs) or len(letters) == len(output):
        if len(xs) == 1 and len(set(letters)) == xs[0].ndim == len(output):     # an other order of the axes
            return ops.transpose(xs[0], axes=tuple(map(letters.index, output)))
        return None                                     # a diagonal is a view
    return ops.einsum(*xs, inputs=inputs, output=output)


def _are_ints(*xs: Any) -> bool:
    """Whether these are a vector and another one or a matrix, of ints."""
    return all(is_array(x) and x.dtype.kind in "biu" for x in xs) and any(x.dtype.kind != "b" for x in xs) \
        and {1} <= {x.ndim for x in xs} <= {1, 2}


def _of_ints(type_: Tensor, a: Value, b: Value) -> Value:
    """The product with a vector, whose sums take 64 bits and lose those that the dtype of the result does not have."""
    wide = np.dtype("int64" if type_.dtype.kind == "i" else "uint64")
    a, b = (_cast(x, wide) for x in (a, b))
    if a.ndim < b.ndim:
        total = ops.sum(ops.broadcast_to(ops.reshape(a, shape=(*a.shape, 1)), shape=b.shape) * b, axis=(0,))
    else:
        total = ops.sum(a * ops.broadcast_to(b, shape=a.shape), axis=(a.ndim - 1,))
    return _cast(total, type_.dtype)


def _fit(type_: Tensor, *xs: Any) -> bool:
    """Whether these are arrays that fit into the dtype of a result, which has products."""
    are_numbers = all(is_array(x) and x.dtype.kind in "biuf" for x in xs)
    return are_numbers and type_.dtype.kind in "iuf" and all(np.can_cast(x.dtype, type_.dtype) for x in xs)


def _cast(x: Value, dtype: np.dtype) -> Value:
    return x if x.dtype == dtype else ops.cast(x, dtype=dtype)


def _are_floats(*xs: Any) -> bool:
    return all(is_array(x) and x.dtype.kind == "f" and x.dtype == xs[0].dtype for x in xs)

"""Lowerings of `chainer.functions.math`: products with named axes, inverses, determinants, factors, Fourier transforms."""
from __future__ import annotations

import math
import string
from typing import Any, Dict, List, Optional, Sequence, Tuple

from chainer.functions.math.cholesky import Cholesky
from chainer.functions.math.det import BatchDet
from chainer.functions.math.einsum import EinSum
from chainer.functions.math.fft import FFT
from chainer.functions.math.inv import BatchInv, Inv
from chainer.functions.math.sparse_matmul import CooMatMul
from chainer.functions.math.tensordot import TensorDot

from .. import ops
from ..ir.graph import Value
from .math import of_one_dtype
from .registry import are_fixed, are_ints, array_in, has_scipy, ints, lowers, lowers_to

# Products -------------------------------------------------------------------------------------------------------


@lowers(EinSum)
def einsum(node: Any, *xs: Value) -> Optional[Value]:
    # The axes of an ellipsis get letters.  A sum over these is Chainer's error, and where its backward repeats or spreads
    # a gradient next to an ellipsis of other than one axis, that comes out wrong.  What sums nothing is a view.
    rest = [letter for letter in string.ascii_letters if letter not in node.in_subs]
    written: Dict[str, str] = {}
    inputs: List[str] = []
    given = node.in_subs.split(",")
    for i, (x, subscripts) in enumerate(zip(xs, given)):
        if "@" in subscripts:
            written.setdefault("@", "".join(rest[:x.ndim - len(subscripts) + 1]))
            others = "".join([node.out_sub, *given[:i], *given[i + 1:]])
            if len(written["@"]) != 1 and (len(set(subscripts)) < len(subscripts) or not set(subscripts) <= set(others)):
                return None
        inputs.append(subscripts.replace("@", written.get("@", "")))
    if written.get("@") and "@" not in node.out_sub:
        return None
    output = node.out_sub.replace("@", written.get("@", ""))
    if any(x.dtype != xs[0].dtype for x in xs) or len(set(output)) < len(output):
        return None
    if len(xs) == 1 and set(inputs[0]) == set(output):
        (x,), (letters,) = xs, inputs
        return ops.transpose(x, axes=tuple(map(letters.index, output))) if len(letters) == len(output) else None
    return ops.einsum(*xs, inputs=tuple(inputs), output=output)


@lowers(TensorDot)
def tensordot(node: Any, a: Value, b: Value) -> Optional[Value]:
    # As NumPy does it: one product of matrices.  Axes of the result, and a dtype, are set by backward only.
    axes = _summed(node.axes, a.ndim)
    if axes is None or node.a_axes is not None or node.dtype is not None:
        return None
    sum_a, sum_b = axes
    if len(sum_a) != len(sum_b) or not _are_axes(sum_a, a.ndim) or not _are_axes(sum_b, b.ndim):
        return None
    if any(a.shape[i] != b.shape[k] for i, k in zip(sum_a, sum_b)):
        return None
    kept_a, kept_b = ([i for i in range(x.ndim) if i not in summed] for x, summed in ((a, sum_a), (b, sum_b)))
    rows, columns = [a.shape[i] for i in kept_a], [b.shape[i] for i in kept_b]
    inner = math.prod(a.shape[i] for i in sum_a)
    a, b = of_one_dtype(a, b)
    left = ops.reshape(ops.transpose(a, axes=(*kept_a, *sum_a)), shape=(math.prod(rows), inner))
    right = ops.reshape(ops.transpose(b, axes=(*sum_b, *kept_b)), shape=(inner, math.prod(columns)))
    return ops.reshape(ops.matmul(left, right), shape=(*rows, *columns))


def _summed(axes: Any, ndim: int) -> Optional[Tuple[Sequence[int], Sequence[int]]]:
    """The axes that are summed over, of the first and of the second operand; None if they are not known now."""
    if are_ints(axes):
        return range(ndim - axes, ndim), range(axes)
    pair = tuple(part if isinstance(part, (list, tuple, range)) else (part,) for part in axes)
    return (pair[0], pair[1]) if all(are_ints(*part) for part in pair) else None


def _are_axes(axes: Sequence[int], ndim: int) -> bool:
    """Whether each counts from the front, once: what else NumPy takes, Chainer's backward does not."""
    return len(set(axes)) == len(axes) and all(0 <= axis < ndim for axis in axes)


@lowers(CooMatMul)
def sparse_matmul(node: Any, data: Value, dense: Value) -> Optional[Value]:
    # SciPy takes no half precision
    rows, columns, shape = array_in(node.sp_row), array_in(node.sp_col), ints(node.sp_shape)
    if not has_scipy() or None in (rows, columns) or not are_fixed(data.shape, dense.shape, shape):
        return None
    if not {data.dtype.char, dense.dtype.char} <= set("fd") or rows.dtype.kind != "i" or columns.dtype.kind != "i":
        return None
    return ops.sparse_matmul(data, rows, columns, dense, shape=shape, transa=bool(node.transa), transb=bool(node.transb),
                             transc=bool(node.transc), dtype=node.dtype)


# Matrices -------------------------------------------------------------------------------------------------------


# of half precision in single precision; backward reads what is given back, as does that of Cholesky
lowers_to("inv", Inv, BatchInv)
lowers_to("det", BatchDet)


@lowers(Cholesky)
def cholesky(node: Any, x: Value) -> Optional[Value]:
    # NumPy takes no half precision
    return ops.cholesky(x) if x.dtype.char in "fd" and type(x.shape[0]) is int else None


# Fourier transforms ---------------------------------------------------------------------------------------------


@lowers(FFT)
def fft(node: Any, real: Value, imaginary: Value) -> Optional[Tuple[Value, ...]]:
    # an empty transform is NumPy's error
    if real.type != imaginary.type or node._method not in ("fft", "ifft") or real.shape[-1] == 0:
        return None
    return ops.fft(real, imaginary, inverse=node._method == "ifft")

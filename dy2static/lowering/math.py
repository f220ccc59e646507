"""Lowerings of `chainer.functions.math`, but for the arithmetic of Variables."""
from __future__ import annotations

import math
from typing import Any, Optional, Tuple

import numpy as np
from chainer.functions.math.arctanh import Arctanh
from chainer.functions.math.average import Mean
from chainer.functions.math.batch_l2_norm_squared import BatchL2NormSquared
from chainer.functions.math.clip import Clip
from chainer.functions.math.cumprod import Cumprod
from chainer.functions.math.cumsum import Cumsum
from chainer.functions.math.exponential import Exp, Log, Log2, Log10
from chainer.functions.math.exponential_m1 import Expm1
from chainer.functions.math.fmod import Fmod
from chainer.functions.math.hyperbolic import Cosh, Sinh
from chainer.functions.math.identity import Identity
from chainer.functions.math.linear_interpolate import LinearInterpolate
from chainer.functions.math.logarithm_1p import Log1p
from chainer.functions.math.logsumexp import LogSumExp
from chainer.functions.math.matmul import BatchMatMul, MatMul
from chainer.functions.math.maximum import Maximum
from chainer.functions.math.minimum import Minimum
from chainer.functions.math.minmax import ArgMax, ArgMin, Max, Min
from chainer.functions.math.prod import Prod
from chainer.functions.math.sqrt import Sqrt
from chainer.functions.math.square import Square
from chainer.functions.math.sum import Sum, SumTo
from chainer.functions.math.trigonometric import Arccos, Arcsin, Arctan, Arctan2, Cos, Sin, Tan

from .. import ops
from ..ir.dims import less
from ..ir.graph import Value
from ..ir.shapes import broadcast_shapes
from ..ir.size_bounds import is_positive
from ..ops.rules import sum_axes
from .registry import Lowering, are_there, ints, is_number, lowers, lowers_to, number, varies

# One array to one array -----------------------------------------------------------------------------------------


# exp, sqrt and expm1 retain their output for backward; the others their input
for _class in (Exp, Log, Log2, Log10, Sqrt, Square, Sin, Cos, Tan, Log1p, Expm1, Sinh, Cosh, Arcsin, Arccos, Arctan, Arctanh):
    lowers_to(_class.__name__.lower(), _class)


@lowers(Identity)
def identity(node: Any, *xs: Value) -> Tuple[Value, ...]:
    # the arrays themselves are the results
    return tuple(map(ops.identity, xs))


@lowers(Clip)
def clip(node: Any, x: Value) -> Optional[Value]:
    # the gradient passes at both bounds
    if not all(bound is None or is_number(bound) for bound in (node.x_min, node.x_max)):
        return None
    if varies(node.x_min, node.x_max):
        y, inside = _clipped(x, *[None if bound is None else number(bound, x.dtype) for bound in (node.x_min, node.x_max)])
        return ops.gradient_inside(ops.stop_gradient(y), x, inside)
    return ops.clip(x, x_min=_bound(node.x_min), x_max=_bound(node.x_max))


def clipped(x: Value, low: Optional[Value], high: Optional[Value]) -> Value:
    """``ops.clip`` with bounds that differ from call to call; elements outside have a gradient of zero."""
    return _clipped(x, low, high)[0]


def _clipped(x: Value, low: Optional[Value], high: Optional[Value]) -> Tuple[Value, Value]:
    """The same, and which elements are inside."""
    fixed = inside = None
    for bound, nearest, order in ((low, ops.maximum, ops.greater_equal), (high, ops.minimum, ops.less_equal)):
        if bound is not None:
            fits = order(x, bound)
            inside = fits if inside is None else ops.logical_and(inside, fits)
            fixed = nearest(ops.stop_gradient(x) if fixed is None else fixed, bound)
    return ops.where(inside, x, fixed), inside


def _bound(bound: Any) -> Optional[float]:
    return None if bound is None else float(bound)


# Two arrays and more --------------------------------------------------------------------------------------------


lowers_to("maximum", Maximum)               # of equal elements the first gets the gradient
lowers_to("minimum", Minimum)               # alike, but it multiplies by the condition


@lowers(Arctan2)
def arctan2(node: Any, a: Value, b: Value) -> Optional[Value]:
    # operands are not broadcast in backward
    return ops.arctan2(a, b) if a.type == b.type else None


@lowers(Fmod)
def fmod(node: Any, a: Value, b: Value) -> Optional[Value]:
    return ops.fmod(a, b) if a.type == b.type else None


@lowers(LinearInterpolate)
def linear_interpolate(node: Any, p: Value, x: Value, y: Value) -> Value:
    return ops.by_rule(p * x + (1.0 - p) * y, p, x, y, rule="linear_interpolate")


@lowers(MatMul)
def matmul(node: Any, a: Value, b: Value) -> Optional[Value]:
    # Vectors are rows on the left and columns on the right, never turned.  ``transc`` and ``dtype`` are set by
    # backward only.
    if node.transc or node.dtype is not None:
        return None
    a, b = of_one_dtype(a, b)
    row, column = a.ndim == 1, b.ndim == 1
    a = ops.reshape(a, shape=(1,) + a.shape) if row else a
    b = ops.reshape(b, shape=b.shape + (1,)) if column else b
    y = _products(a, b, bool(node.transa and not row), bool(node.transb and not column))
    lead, rows, columns = y.shape[:-2], y.shape[-2:-1], y.shape[-1:]
    return ops.reshape(y, shape=lead + rows * (not row) + columns * (not column)) if row or column else y


def of_one_dtype(*xs: Value) -> Tuple[Value, ...]:
    """Arrays in the dtype that NumPy gives to their product."""
    dtype = np.result_type(*(x.dtype for x in xs))
    return tuple(x if x.dtype == dtype else ops.cast(x, dtype=dtype) for x in xs)


@lowers(BatchMatMul)
def batch_matmul(node: Any, a: Value, b: Value) -> Optional[Value]:
    # matrices are stacks of columns
    if a.dtype != b.dtype:
        return None
    a, b = (ops.reshape(x, shape=x.shape + (1,)) if x.ndim == 2 else x for x in (a, b))
    return _products(a, b, bool(node.transa), bool(node.transb))


def _products(a: Value, b: Value, transa: bool, transb: bool) -> Value:
    """The product of two stacks of matrices; the stacks broadcast."""
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (x if x.shape[:-2] == lead else ops.broadcast_to(x, shape=lead + x.shape[-2:]) for x in (a, b))
    return ops.matmul(a, b, transa=transa, transb=transb)


# Reductions -----------------------------------------------------------------------------------------------------


def _axes(node: Any, x: Value) -> Optional[Tuple[int, ...]]:
    """The axes to reduce over; None if they are not known now."""
    return tuple(range(x.ndim)) if node.axis is None else ints(node.axis)


def _count(x: Value, axes: Tuple[int, ...]) -> int:
    count = math.prod(x.shape[a] for a in axes)
    return 1 if is_positive(count) else 0


@lowers(Sum)
def sum(node: Any, x: Value) -> Optional[Value]:
    axes = _axes(node, x)
    return None if axes is None else ops.sum(x, axis=axes, keepdims=node.keepdims)


@lowers(BatchL2NormSquared)
def batch_l2_norm_squared(node: Any, x: Value) -> Optional[Value]:
    # nothing has no shape with an axis to be found out
    if not are_there(x):
        return None
    flat = ops.reshape(x, shape=(x.shape[0], -1))
    return ops.sum(ops.by_rule(flat * flat, flat, rule="batch_l2_norm_squared"), axis=1)


@lowers(Prod)
def prod(node: Any, x: Value) -> Value:
    return ops.prod(x, axis=node.axis, keepdims=bool(node.keepdims))


def _cumulative(name: str) -> Lowering:
    op = getattr(ops, name)

    def lowering(node: Any, x: Value) -> Value:
        # without an axis x is flat
        return op(ops.reshape(x, shape=(-1,)), axis=0) if node.axis is None else op(x, axis=node.axis)
    return lowering


lowers(Cumsum)(_cumulative("cumsum"))
lowers(Cumprod)(_cumulative("cumprod"))


@lowers(SumTo)
def sum_to(node: Any, x: Value) -> Optional[Value]:
    # to its own shape an array is not copied; sums of ints and bools have a dtype of their own
    shape = ints(node._shape)
    if shape is None:
        return None
    if shape == x.shape:
        return ops.identity(x)
    axes = sum_axes(x.shape, shape)
    if x.dtype.kind == "f" or axes is None:
        return ops.sum_to(x, shape=shape)
    return ops.reshape(ops.sum(x, axis=axes), shape=shape)


@lowers(Mean)
def mean(node: Any, x: Value) -> Optional[Value]:
    # of nothing, Chainer divides by zero; so does the run where only that knows the size
    axes = _axes(node, x)
    if axes is None or _count(x, axes) == 0:
        return None
    count = math.prod(x.shape[a] for a in axes)
    if not less(0, count):
        ops.needed(ops.py_truediv(ops.py_constant(value=1.0), ops.dimension(size=count)))
    return mean_of(x, axes, node.keepdims)


def mean_of(x: Value, axis: Tuple[int, ...], keepdims: bool) -> Value:
    """The mean as NumPy takes it, half precision in single precision."""
    if x.dtype != np.float16:
        return ops.mean(x, axis=axis, keepdims=keepdims)
    return ops.cast(ops.mean(ops.cast(x, dtype="float32"), axis=axis, keepdims=keepdims), dtype=x.dtype)


def _extremum(name: str) -> Lowering:
    op = getattr(ops, name)

    def lowering(node: Any, x: Value) -> Optional[Value]:
        # every element that equals the extremum gets the whole gradient; of nothing there is none
        axes = _axes(node, x)
        return None if axes is None or _count(x, axes) == 0 else op(x, axis=axes, keepdims=node.keepdims)
    return lowering


lowers(Max)(_extremum("max"))
lowers(Min)(_extremum("min"))


def _position(name: str) -> Lowering:
    op = getattr(ops, name)

    def lowering(node: Any, x: Value) -> Optional[Value]:
        # positions are int32, and have no gradient
        axes = _axes(node, x)
        return None if axes is None or _count(x, axes) == 0 else ops.cast(op(x, axis=node.axis), dtype="int32")
    return lowering


lowers(ArgMax)(_position("argmax"))
lowers(ArgMin)(_position("argmin"))


@lowers(LogSumExp)
def logsumexp(node: Any, x: Value) -> Optional[Value]:
    axes = _axes(node, x)
    return None if axes is None or _count(x, axes) == 0 else ops.logsumexp(x, axis=axes)

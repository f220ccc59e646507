"""Sums and products along an axis that keep each step, and the product of all."""
from __future__ import annotations

import math
from typing import Dict, Optional, Tuple

import numpy as np

from ..ir.graph import Value
from ..ir.op import OpDef, declare, sample
from ..ir.types import Tensor
from .movement import reshape, transpose
from .onnx_forms import reductions
from .reduction import spread
from .rules import canonical_axes, canonical_axis, need_dtype, one_shape, reduced, result_dtype, same_as_input
from .slicing import getitem

_ALONG = (sample((4, 3), axis=0), sample((2, 3, 4), axis=1), sample((3,)), sample((0, 3), axis=0), sample((5, 1), axis=-1),
          sample((1,)))


def _flipped(x: Value, axis: int) -> Value:
    return getitem(x, index=(slice(None),) * axis + (slice(None, None, -1),))


cumsum: OpDef = declare(
    "cumsum", "x", {"axis": 0}, kind="reduction", canonical=canonical_axis, infer=same_as_input,
    vjp=lambda g, y, x, *, axis: (_flipped(cumsum(_flipped(g, axis), axis=axis), axis),),
    numpy="np.add.accumulate({x}, axis={axis}, out={out})",
    onnx=reductions.cumsum,
    samples=_ALONG,
)


def _shift_holes(x: Tensor, *, axis: int, by: int, fill: float) -> Dict[str, str]:
    before = ":, " * axis
    edge, rest, source = (":1", "1:", ":-1") if by > 0 else ("-1:", ":-1", "1:")
    return {"edge": before + edge, "rest": before + rest, "source": before + source}


#: Each element's neighbour along ``axis``, the one before it if ``by`` is 1, the next if it is -1; ``fill`` at the edge.
shift: OpDef = declare(
    "shift", "x", {"axis": 0, "by": 1, "fill": 0.0}, kind="movement", canonical=canonical_axis, infer=same_as_input,
    vjp=lambda g, y, x, *, axis, by, fill: (shift(g, axis=axis, by=-by),),
    numpy="{out}[{edge}] = {fill}\n{out}[{rest}] = {x}[{source}]", holes=_shift_holes,
    onnx=reductions.shift,
    samples=(sample((4, 3)), sample((2, 3, 4), axis=1, by=-1, fill=1.0), sample((1,), fill=1.0), sample((0, 3))),
)


def _cumprod_vjp(g, y, x, *, axis):
    # the products of all that follow are summed without a division: there may be zeros
    size = x.shape[axis]
    if isinstance(size, int) and size <= 1:
        return (g,)
    return (_recurrence_back(x, g, axis) * shift(y, axis=axis, fill=1.0),)


cumprod: OpDef = declare(
    "cumprod", "x", {"axis": 0}, kind="reduction", canonical=canonical_axis, infer=same_as_input,
    vjp=_cumprod_vjp,
    numpy="np.multiply.accumulate({x}, axis={axis}, out={out})",
    onnx=reductions.cumprod,
    samples=_ALONG,
)


def _recurrence_back(factors: Value, g: Value, axis: int) -> Value:
    """What each term of the recurrence contributes to its results, from the last one to the first."""
    after = shift(factors, axis=axis, by=-1)
    return _flipped(linear_recurrence(_flipped(after, axis), _flipped(g, axis), axis=axis), axis)


def _recurrence_infer(factors: Tensor, terms: Tensor, *, axis: int) -> Tensor:
    one_shape(factors, terms)
    return terms


def recurrence(factors: np.ndarray, terms: np.ndarray, axis: int, out: Optional[np.ndarray] = None) -> np.ndarray:
    """Along ``axis``, ``y[i] = y[i - 1] * factors[i] + terms[i]``, beginning with ``y[-1] = 0``."""
    results = np.empty(terms.shape, terms.dtype) if out is None else out
    m, t, y = (np.moveaxis(a, axis, 0) for a in (factors, terms, results))
    y[:1] = t[:1]
    for i in range(1, len(m)):
        np.multiply(y[i - 1], m[i], out=y[i, ...])
        y[i] += t[i]
    return results


def _recurrence_vjp(g, y, factors, terms, *, axis):
    gt = _recurrence_back(factors, g, axis)
    return gt * shift(y, axis=axis), gt


#: Along ``axis``, ``y[i] = y[i - 1] * factors[i] + terms[i]``, beginning with ``y[-1] = 0``.
linear_recurrence: OpDef = declare(
    "linear_recurrence", "factors terms", {"axis": 0}, kind="reduction", canonical=canonical_axis,
    infer=_recurrence_infer, vjp=_recurrence_vjp,
    numpy="recurrence({factors}, {terms}, {axis}, out={out})", calls=(recurrence,),
    onnx=reductions.linear_recurrence,
    samples=(sample((4, 3), (4, 3)), sample((2, 3), (2, 3), axis=-1), sample((0, 2), (0, 2)), sample((1,), (1,))),
)


def _prod_infer(x: Tensor, *, axis: Tuple[int, ...], keepdims: bool) -> Tensor:
    need_dtype(x, "fiu", "the operand")
    return Tensor(reduced(x.shape, axis, keepdims), result_dtype(np.prod, x.dtype))


def _prod_vjp(g, y, x, *, axis, keepdims):
    # the product of the others: of all before and of all behind
    kept = tuple(a for a in range(x.ndim) if a not in axis)
    turned = transpose(x, axes=axis + kept)
    factors = reshape(turned, shape=(math.prod(x.shape[a] for a in axis), *(x.shape[a] for a in kept)))
    before, behind = (cumprod(shift(part, fill=1.0)) for part in (factors, _flipped(factors, 0)))
    others = reshape(before * _flipped(behind, 0), shape=turned.shape)
    back = transpose(others, axes=tuple(int(a) for a in np.argsort(axis + kept)))
    return (back * spread(g, x, axis, keepdims),)


prod = declare(
    "prod", "x", {"axis": None, "keepdims": False}, kind="reduction", canonical=canonical_axes, infer=_prod_infer,
    vjp=_prod_vjp,
    numpy="np.multiply.reduce({x}, axis={axis}, keepdims={keepdims}, out={out})",
    onnx=reductions.prod,
    samples=(sample((2, 3, 4)), sample((2, 3, 4), axis=1), sample((3, 4), axis=(0, -1), keepdims=True), sample(()),
             sample((5,), axis=()), sample((3, 2), axis=0, keepdims=True), sample(np.array([[3, -1, 2], [0, 5, -4]]), axis=1)),
)

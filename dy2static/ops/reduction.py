"""Ops that reduce axes: sums, extrema, softmax and its relatives."""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np

from ..ir.graph import Value
from ..ir.op import Decomposition, declare, sample
from ..ir.types import Tensor
from .broadcasting import broadcast_to
from .comparison import equal, mask
from .elementwise import exp, log
from .gradient_rules import by_rule
from .movement import reshape
from .onnx_forms import reductions
from .rules import canonical_axes, canonical_axis, need_dtype, normal_axis, of_filled_floats, of_floats, reduced, result_dtype
from .scalar import dimension, size_as_number

_REDUCE = (sample((2, 3, 4)), sample((2, 3, 4), axis=1), sample((2, 3, 4), axis=(0, -1)),
           sample((3, 4), axis=0, keepdims=True), sample(()), sample((1,)), sample((5,), axis=()))
_EMPTY = (sample((0, 3), axis=0), sample((3, 0), axis=1, keepdims=True), sample((0,)))
_ALONG = (sample((4, 3), axis=1), sample((2, 3, 4), axis=1), sample((3,), axis=0), sample((0, 3), axis=1),
          sample((5, 1), axis=-1))


def _reduction(function: Callable[..., Any]) -> Callable[..., Tensor]:
    def infer(x: Tensor, *, axis: Tuple[int, ...], keepdims: bool) -> Tensor:
        return Tensor(reduced(x.shape, axis, keepdims), result_dtype(function, x.dtype))
    return infer


def spread(g: Value, x: Value, axis: Tuple[int, ...], keepdims: bool) -> Value:
    """A result of reducing ``x`` over ``axis``, repeated to the shape of ``x``."""
    kept = g if keepdims else reshape(g, shape=reduced(x.shape, axis, True))
    return broadcast_to(kept, shape=x.shape)


sum_ = declare(
    "sum", "x", {"axis": None, "keepdims": False}, kind="reduction",
    canonical=canonical_axes, infer=_reduction(np.sum),
    vjp=lambda g, y, x, *, axis, keepdims: (spread(g, x, axis, keepdims),),
    numpy="np.add.reduce({x}, axis={axis}, keepdims={keepdims}, out={out})",
    onnx=reductions.sum_,
    samples=_REDUCE + _EMPTY + (sample(np.arange(6, dtype=np.int32).reshape(2, 3), axis=0),),
)


def _mean_vjp(g, y, x, *, axis, keepdims):
    count = Tensor(tuple(x.shape[a] for a in axis), x.dtype).size
    share = g * (1.0 / max(count, 1)) if isinstance(count, int) else g / dimension(size=count)
    return (spread(share, x, axis, keepdims),)


def _mean_steps(x: Value, *, axis: Tuple[int, ...], keepdims: bool) -> Value:
    count = size_as_number(math.prod(x.shape[a] for a in axis), x.dtype)
    return sum_(x, axis=axis, keepdims=keepdims) / count


mean = declare(
    "mean", "x", {"axis": None, "keepdims": False}, kind="reduction",
    canonical=canonical_axes, infer=_reduction(np.mean), vjp=_mean_vjp, decompose=Decomposition(_mean_steps, of_floats),
    numpy="np.mean({x}, axis={axis}, keepdims={keepdims}, out={out})",
    onnx=reductions.mean,
    samples=_REDUCE,
)


def _extremum_infer(x: Tensor, *, axis: Tuple[int, ...], keepdims: bool) -> Tensor:
    if any(x.shape[a] == 0 for a in axis):
        raise ValueError("zero-size array to reduction operation which has no identity")
    return Tensor(reduced(x.shape, axis, keepdims), x.dtype)


def _extremum_vjp(g, y, x, *, axis, keepdims):
    # As Chainer: every element that equals the extremum gets the whole gradient.
    return (mask(spread(g, x, axis, keepdims), equal(x, spread(y, x, axis, keepdims))),)


max_ = declare(
    "max", "x", {"axis": None, "keepdims": False}, kind="reduction",
    canonical=canonical_axes, infer=_extremum_infer, vjp=_extremum_vjp,
    numpy="np.maximum.reduce({x}, axis={axis}, keepdims={keepdims}, out={out})",
    onnx=reductions.extremum("ReduceMax"),
    samples=_REDUCE + (sample((0, 3), axis=1), sample(np.arange(6).reshape(2, 3), axis=1)),
)

min_ = declare(
    "min", "x", {"axis": None, "keepdims": False}, kind="reduction",
    canonical=canonical_axes, infer=_extremum_infer, vjp=_extremum_vjp,
    numpy="np.minimum.reduce({x}, axis={axis}, keepdims={keepdims}, out={out})",
    onnx=reductions.extremum("ReduceMin"),
    samples=_REDUCE + (sample((0, 3), axis=1),),
)


def _truth_infer(x: Tensor, *, axis: Tuple[int, ...], keepdims: bool) -> Tensor:
    return Tensor(reduced(x.shape, axis, keepdims), np.dtype(bool))


any_ = declare(
    "any", "x", {"axis": None, "keepdims": False}, kind="reduction",
    canonical=canonical_axes, infer=_truth_infer,
    numpy="np.logical_or.reduce({x}, axis={axis}, keepdims={keepdims}, out={out})",
    onnx=reductions.any_,
    samples=_REDUCE + _EMPTY,
)

all_ = declare(
    "all", "x", {"axis": None, "keepdims": False}, kind="reduction",
    canonical=canonical_axes, infer=_truth_infer,
    numpy="np.logical_and.reduce({x}, axis={axis}, keepdims={keepdims}, out={out})",
    onnx=reductions.all_,
    samples=_REDUCE + _EMPTY,
)


def _argument_canonical(x: Tensor, *, axis: Optional[int]) -> Dict[str, Any]:
    return {"axis": None if axis is None else normal_axis(axis, x.ndim)}


def _argument_infer(x: Tensor, *, axis: Optional[int]) -> Tensor:
    if (x.size if axis is None else x.shape[axis]) == 0:
        raise ValueError("attempt to get argmax or argmin of an empty sequence")
    return Tensor(() if axis is None else reduced(x.shape, (axis,), False), np.dtype(np.intp))


argmax = declare(
    "argmax", "x", {"axis": None}, kind="reduction", canonical=_argument_canonical, infer=_argument_infer,
    numpy="np.argmax({x}, axis={axis}, out={out})",
    onnx=reductions.argument("ArgMax"),
    samples=(sample((4, 3)), sample((4, 3), axis=1), sample((0, 3), axis=-1), sample((1,), axis=0)),
)

argmin = declare(
    "argmin", "x", {"axis": None}, kind="reduction", canonical=_argument_canonical, infer=_argument_infer,
    numpy="np.argmin({x}, axis={axis}, out={out})",
    onnx=reductions.argument("ArgMin"),
    samples=(sample((4, 3)), sample((4, 3), axis=1), sample((0, 3), axis=-1), sample((1,), axis=0)),
)


def _float_along(x: Tensor, *, axis: int) -> Tensor:
    need_dtype(x, "f", "the operand")
    return x


def _softmax_steps(x: Value, *, axis: int) -> Value:
    raised = exp(x - max_(x, axis=axis, keepdims=True))
    return raised / sum_(raised, axis=axis, keepdims=True)


def _softmax_vjp(g, y, x, *, axis):
    gx = y * g - y * spread(sum_(y * g, axis=axis, keepdims=True), x, (axis,), True)
    return (by_rule(gx, y, g, rule="softmax_gradient", given=axis),)


softmax = declare(
    "softmax", "x", {"axis": 1}, kind="reduction", canonical=canonical_axis, infer=_float_along, inplace_ok=True,
    decompose=Decomposition(_softmax_steps, of_filled_floats),
    vjp=_softmax_vjp,
    numpy="np.subtract({x}, {x}.max(axis={axis}, keepdims=True), out={out})\nnp.exp({out}, out={out})\n"
          "np.divide({out}, {out}.sum(axis={axis}, keepdims=True), out={out})",
    onnx=reductions.along("Softmax"),
    samples=_ALONG,
)


def _log_softmax_vjp(g, y, x, *, axis):
    gx = g - exp(y) * spread(sum_(g, axis=axis, keepdims=True), x, (axis,), True)
    return (by_rule(gx, y, g, rule="log_softmax_gradient", given=axis),)


def _log_softmax_steps(x: Value, *, axis: int) -> Value:
    largest = max_(x, axis=axis, keepdims=True)
    total = sum_(exp(x - largest), axis=axis, keepdims=True)
    return x - (log(total) + largest)


log_softmax = declare(
    "log_softmax", "x", {"axis": 1}, kind="reduction", canonical=canonical_axis, infer=_float_along,
    decompose=Decomposition(_log_softmax_steps, of_filled_floats),
    vjp=_log_softmax_vjp,
    numpy="np.subtract({x}, {x}.max(axis={axis}, keepdims=True), out={out})\nnp.exp({out}, out={out})\n"
          "np.subtract({x}, np.log({out}.sum(axis={axis}, keepdims=True)) + {x}.max(axis={axis}, keepdims=True), "
          "out={out})",
    onnx=reductions.along("LogSoftmax"),
    samples=_ALONG,
)


def _logsumexp_infer(x: Tensor, *, axis: Tuple[int, ...], keepdims: bool) -> Tensor:
    need_dtype(x, "f", "the operand")
    return _extremum_infer(x, axis=axis, keepdims=keepdims)


def _logsumexp_steps(x: Value, *, axis: Tuple[int, ...], keepdims: bool) -> Value:
    largest = max_(x, axis=axis, keepdims=True)
    total = log(sum_(exp(x - broadcast_to(largest, shape=x.shape)), axis=axis, keepdims=True)) + largest
    return total if keepdims else reshape(total, shape=reduced(x.shape, axis, False))


logsumexp = declare(
    "logsumexp", "x", {"axis": None, "keepdims": False}, kind="reduction",
    canonical=canonical_axes, infer=_logsumexp_infer, decompose=Decomposition(_logsumexp_steps, of_floats),
    vjp=lambda g, y, x, *, axis, keepdims: (spread(g, x, axis, keepdims) * exp(x - spread(y, x, axis, keepdims)),),
    numpy="np.log(np.exp({x} - {x}.max(axis={axis}, keepdims=True)).sum(axis={axis}, keepdims={keepdims}), out={out})\n"
          "np.add({out}, {x}.max(axis={axis}, keepdims={keepdims}), out={out})",
    samples=_REDUCE + (sample((0, 3), axis=1),),
)

def _bincount_infer(x: Tensor, *, size: Any) -> Tensor:
    need_dtype(x, "i", "what is counted")
    if x.ndim != 1:
        raise ValueError(f"there are {x.ndim} axes, not one")
    return Tensor((size,), np.dtype(np.intp))


#: How often each of the numbers below ``size`` occurs.  A negative number raises.
bincount = declare(
    "bincount", "x", {"size": 1}, kind="reduction", may_raise=True,
    infer=_bincount_infer,
    numpy="np.bincount({x}, minlength={size})[:{size}]",
    onnx=reductions.bincount,
    samples=(sample(np.array([1, 0, 3, 1]), size=3), sample(np.array([2]), size=5), sample(np.zeros(0, int), size=2)),
)

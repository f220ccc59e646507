"""The gradient of softmax cross entropy: Chainer's formula, not the derivative of the steps, rounded as Chainer rounds it."""
from __future__ import annotations

from typing import Any, Dict

import numpy as np

from ..ir.dims import equal
from ..ir.graph import Value
from ..ir.op import Decomposition, OpDef, declare, sample
from ..ir.types import Tensor
from .broadcasting import broadcast_to
from .comparison import equal as same
from .comparison import less, mask, not_equal, where
from .creation import arange
from .elementwise import cast, exp
from .gathering import along, take
from .movement import reshape
from .onnx_forms import arithmetic, indexing
from .reduction import log_softmax, sum_
from .rules import canonical_axis, need_dtype, of_filled_floats, one_shape
from .scalar import size_as_number

_PICKS = np.array([[2], [0], [-3], [1]])


def _decrement_infer(x: Tensor, indices: Tensor, *, axis: int) -> Tensor:
    need_dtype(x, "f", "the operand")
    need_dtype(indices, "i", "an index")
    if x.ndim != indices.ndim or not all(equal(m, 1 if a == axis else n) for a, (n, m) in enumerate(zip(x.shape, indices.shape))):
        raise ValueError(f"there must be one index for each row, not {indices.shape} for {x.shape}")
    return x


def _decrement_steps(x: Value, indices: Value, *, axis: int) -> Value:
    """Without a write: each place is compared with the index of its row."""
    size = x.shape[axis]
    dtype = indices.dtype if isinstance(size, int) and size <= np.iinfo(indices.dtype).max else np.dtype(np.int64)
    indices = indices if indices.dtype == dtype else cast(indices, dtype=dtype)
    indices = where(less(indices, 0), indices + size_as_number(size, dtype), indices)
    places = reshape(arange(stop=size, dtype=dtype), shape=tuple(size if a == axis else 1 for a in range(x.ndim)))
    hit = same(broadcast_to(places, shape=x.shape), broadcast_to(indices, shape=x.shape))
    return x - cast(hit, dtype=x.dtype)


#: ``x``, less 1 at the index of each row along ``axis``.
decrement_along: OpDef = declare(
    "decrement_along", "x indices", {"axis": 1}, kind="movement", canonical=canonical_axis, infer=_decrement_infer,
    vjp=lambda g, y, x, indices, *, axis: (g, None),
    decompose=Decomposition(_decrement_steps, lambda x, indices: of_filled_floats(x)),
    numpy="np.copyto({out}, {x})\n{out}[{where}] = {x}[{where}] - 1",
    holes=lambda x, indices, *, axis: {"where": along(indices, axis)}, inplace_ok=True,
    onnx=indexing.decrement_along,
    samples=(sample((4, 3), _PICKS), sample((2, 3, 2), np.array([[[0, 2]], [[1, 1]]])), sample((1, 1), np.array([[0]])),
             sample((0, 3), np.zeros((0, 1), int)), sample((3, 2), np.array([[1, 0]], np.int8), axis=0)),
)


def _scaled_infer(x: Tensor, factor: Tensor, *, dtype: np.dtype) -> Tensor:
    need_dtype(x, "f", "the operand")
    if factor.ndim:
        raise ValueError(f"an array is scaled by a number, not by {factor.shape}")
    return Tensor(x.shape, dtype)


def _scaled_vjp(g: Value, y: Value, x: Value, factor: Value, *, dtype: np.dtype) -> Any:
    return cast(g * cast(factor, dtype=dtype), dtype=x.dtype), cast(sum_(g * cast(x, dtype=dtype)), dtype=factor.dtype)


def _scaled_steps(x: Value, factor: Value, *, dtype: np.dtype) -> Value:
    y = x * (factor if factor.dtype == x.dtype else cast(factor, dtype=x.dtype))
    return y if dtype == x.dtype else cast(y, dtype=dtype)


#: The array ``x`` times a number, computed in the dtype that NumPy takes for an array and a number, and rounded once, to ``dtype``
#: (that of ``x`` by default).
scaled: OpDef = declare(
    "scaled", "x factor", {"dtype": None}, kind="movement", infer=_scaled_infer, vjp=_scaled_vjp,
    canonical=lambda x, factor, *, dtype: {"dtype": np.dtype(x.dtype if dtype is None else dtype)},
    decompose=Decomposition(_scaled_steps, lambda x, factor: of_filled_floats(x)),
    numpy="np.multiply({x}{row}, {factor}, out={out}{row}, casting='same_kind')", inplace_ok=True,
    holes=lambda x, factor, *, dtype: {"row": "" if x.ndim else "[None]"},
    samples=(sample((4, 3), ()), sample((), ()), sample((1,), ()), sample((0, 3), ())),
)

_ATTRS: Dict[str, Any] = {"ignored": -1, "cached": True, "weighted": False, "mean": True}


def _cross_entropy_vjp(g: Value, y: Value, loss: Value, x: Value, log_y: Value, t: Value, *more: Value, ignored: Any, cached: bool,
                       weighted: bool, mean: bool) -> Any:
    scores = exp(log_y if cached else log_softmax(x, axis=1))
    row = x.shape[:1] + (1,) + x.shape[2:]
    valid = not_equal(t, ignored)
    if t.dtype.kind == "f":
        gx = scores - mask(t, valid)
    else:
        picks = reshape(mask(t, valid), shape=row)
        gx = decrement_along(scores, picks, axis=1)
        if weighted:
            wide = np.promote_types(x.dtype, more[0].dtype)
            shares = reshape(take(more[0], picks, axis=0), shape=row)
            shares = broadcast_to(shares, shape=x.shape)
            gx = cast(cast(gx, dtype=wide) * cast(shares, dtype=wide), dtype=x.dtype)
        gx = gx * broadcast_to(reshape(cast(valid, dtype=x.dtype), shape=row), shape=x.shape)
    if mean:
        gx = scaled(gx, cast(g, dtype=more[-1].dtype) * more[-1], dtype=x.dtype)
    else:
        gx = gx * broadcast_to(reshape(g, shape=row), shape=x.shape)
    return (None, gx) + (None,) * (2 + len(more))


#: ``loss``, the cross entropy of ``softmax(x)`` and ``t``, with the gradient that Chainer computes for ``x``.
#:
#: log_y: ``log_softmax(x)``.  t: probabilities, or one label for each row, as they are when the gradient is taken.
#: more: if ``weighted``, the weight of each class; if ``mean``, the number by which the sum of the losses was multiplied, without
#: its sign, in the dtype in which NumPy multiplies a loss by it.
#: ignored: the probability or label that does not count.
#: cached: whether the scores are those of the forward, not those of what ``x`` holds when the gradient is taken.
cross_entropy = declare(
    "cross_entropy", "loss x log_y t *more", _ATTRS, kind="view", view=True,
    infer=lambda loss, x, log_y, *_, **attrs: one_shape(x, log_y) or loss, vjp=_cross_entropy_vjp, numpy="{loss}",
    onnx=arithmetic.first,
)

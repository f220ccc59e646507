"""Normalisation of rows, channels and neighbours: one op forward, one for its gradient where Chainer has a formula for it."""
from __future__ import annotations

from typing import Optional, Sequence, Tuple

import numpy as np

from ..ir.graph import Value
from ..ir.op import Decomposition, declare, sample
from ..ir.types import Tensor
from . import normalization_steps
from .broadcasting import broadcast_to
from .comparison import not_equal, where
from .creation import zeros_like
from .elementwise import sqrt, square
from .loss import never
from .movement import reshape
from .normalization_steps import one_of
from .onnx_forms import windows
from .reduction import mean, sum_
from .rules import canonical_axes, need_dtype, need_statistics, of_filled_floats, one_shape

_Gradients = Tuple[Optional[Value], ...]


def _standardize(x: np.ndarray, *, eps: float) -> Sequence[np.ndarray]:
    x_hat = x - x.mean(axis=1, dtype=x.dtype)[:, None]
    inv_std = (x_hat * x_hat).mean(axis=1)
    inv_std += eps
    np.sqrt(inv_std, out=inv_std)
    np.reciprocal(inv_std, out=inv_std)
    x_hat *= inv_std[:, None]
    return x_hat, inv_std


def _standardize_vjp(g: Sequence[Optional[Value]], y: Sequence[Value], x: Value, *, eps: float) -> _Gradients:
    (g_hat, g_std), (x_hat, inv_std) = g, y

    def wide(column: Value) -> Value:
        return broadcast_to(reshape(column, shape=(x.shape[0], 1)), shape=x.shape)
    parts = []
    if g_hat is not None:
        parts.append(wide(inv_std) * (g_hat - wide(mean(g_hat, axis=1)) - x_hat * wide(mean(g_hat * x_hat, axis=1))))
    if g_std is not None:
        parts.append(-wide(g_std * inv_std * inv_std * one_of(x.shape[1], x.dtype)) * x_hat)
    return (parts[0] if len(parts) == 1 else parts[0] + parts[1],)


def _standardize_infer(x: Tensor, *, eps: float) -> Tuple[Tensor, ...]:
    if x.ndim != 2:
        raise ValueError(f"there are no rows of {x.ndim} axes")
    return x, Tensor(x.shape[:1], x.dtype)


#: ``x_hat, inv_std``: every row with mean 0 and variance 1, and what it was multiplied by.
standardize = declare(
    "standardize", "x", {"eps": 1e-5}, kind="reduction", numpy=_standardize, vjp=_standardize_vjp,
    decompose=Decomposition(normalization_steps.standardize, of_filled_floats),
    infer=_standardize_infer,
)


def _scale_shift_grad_vjp(g: Sequence[Optional[Value]], y: Sequence[Value], x: Value, gamma: Value, gy: Value) -> _Gradients:
    ggx, gggamma, ggbeta = (zeros_like(v) if part is None else part for part, v in zip(g, y))

    def wide(channel: Value) -> Value:
        return broadcast_to(reshape(channel, shape=(x.shape[1], 1)), shape=x.shape)
    return wide(gggamma) * gy, sum_(ggx * gy, axis=(0, 2)), ggx * wide(gamma) + wide(gggamma) * x + wide(ggbeta)


def _scale_shift_grad(x: np.ndarray, gamma: np.ndarray, g: np.ndarray) -> Sequence[np.ndarray]:
    return g * gamma[:, None], (g * x).sum(axis=(0, 2)), g.sum(axis=(0, 2))


def _scale_shift_grad_infer(x: Tensor, gamma: Tensor, g: Tensor) -> Tuple[Tensor, ...]:
    need_statistics((0, 2), (x, g), (gamma,))
    return x, gamma, gamma


def _scale_shift_infer(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    need_statistics((0, 2), (x,), (gamma, beta))
    return x


scale_shift_grad = declare(
    "scale_shift_grad", "x gamma g", kind="reduction", infer=_scale_shift_grad_infer, numpy=_scale_shift_grad,
    decompose=Decomposition(normalization_steps.scale_shift_grad, of_filled_floats),
    vjp=_scale_shift_grad_vjp,
)

#: ``x * gamma + beta`` for three axes, the parameters along the second one.
scale_shift = declare(
    "scale_shift", "x gamma beta", kind="reduction", infer=_scale_shift_infer, inplace_ok=True,
    decompose=Decomposition(normalization_steps.scale_shift, of_filled_floats),
    vjp=lambda g, y, x, gamma, beta: scale_shift_grad(x, gamma, g),
    numpy="np.multiply({x}, {gamma}[:, None], out={out})\nnp.add({out}, {beta}[:, None], out={out})",
    samples=(sample((2, 3, 4), (3,), (3,)), sample((1, 1, 1), (1,), (1,)), sample((0, 2, 3), (2,), (2,))),
)


def _normalize_l2_vjp(g: Value, y: Value, x: Value, *, axis: Tuple[int, ...], eps: float) -> _Gradients:
    def wide(row: Value) -> Value:
        return broadcast_to(row, shape=x.shape)
    length = sqrt(sum_(square(x), axis=axis, keepdims=True))
    norm = wide(length + eps)
    is_there = not_equal(length, 0)                         # rows of zeros have no direction
    share = where(is_there, sum_(x * g, axis=axis, keepdims=True) / where(is_there, length, 1), 0)
    return ((g * norm - wide(share) * x) / square(norm),)


#: ``x / (sqrt(sum(x ** 2)) + eps)`` over ``axis``.
normalize_l2 = declare(
    "normalize_l2", "x", {"axis": (1,), "eps": 1e-5}, kind="reduction", vjp=_normalize_l2_vjp,
    decompose=Decomposition(normalization_steps.normalize_l2, of_filled_floats),
    canonical=lambda x, *, axis, eps: {**canonical_axes(x, axis=axis), "eps": eps},
    infer=lambda x, **attrs: need_dtype(x, "f", "the operand") or x,
    numpy="np.divide({x}, np.sqrt(np.add.reduce(np.square({x}), axis={axis}, keepdims=True), dtype={T}) + {T}({eps}), out={out})",
    samples=(sample((4, 3)), sample((2, 3, 4), axis=(0, -1)), sample((3,), axis=0, eps=0.1), sample((0, 3))),
)


def _window_sums(x: np.ndarray, n: int) -> np.ndarray:
    """For each channel the sum over those around it."""
    total = x.copy()
    for i in range(1, n // 2 + 1):
        total[:, i:] += x[:, :-i]
        total[:, :-i] += x[:, i:]
    return total


def _local_response(x: np.ndarray, *, n: int, k: float, alpha: float, beta: float) -> Sequence[np.ndarray]:
    unit = k + alpha * _window_sums(np.square(x), n)
    scale = unit ** -beta
    return x * scale, unit, scale


def _local_response_grad(x: np.ndarray, y: np.ndarray, g: np.ndarray, unit: np.ndarray, scale: np.ndarray, *, n: int,
                         alpha: float, beta: float) -> np.ndarray:
    return g * scale - 2 * alpha * beta * x * _window_sums(y * g / unit, n)


#: ``y, unit, scale``: `x` divided by a power of what channels around have.
local_response = declare(
    "local_response", "x", {"n": 5, "k": 2, "alpha": 1e-4, "beta": 0.75}, kind="reduction",
    infer=lambda x, **attrs: (x, x, x), numpy=_local_response,
    onnx=windows.local_response,
    vjp=lambda g, y, x, *, n, k, alpha, beta: (
        local_response_grad(x, y[0], g[0], y[1], y[2], n=n, alpha=alpha, beta=beta),),
)

local_response_grad = declare(
    "local_response_grad", "x y g unit scale", {"n": 5, "alpha": 1e-4, "beta": 0.75}, kind="reduction",
    infer=lambda *xs, **attrs: one_shape(*xs) or xs[0], numpy=_local_response_grad, vjp=never,
    onnx=windows.local_response_grad,
)

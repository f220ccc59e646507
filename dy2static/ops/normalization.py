"""Whole layers that normalise: one op forward, one for its gradient, as Chainer computes them.

``mean`` and ``inv_std`` are constants to every derivative, because Chainer's backward gets them from forward as arrays;
its formulas for second derivatives allow for that.
"""
from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import numpy as np

from ..ir.dims import Size
from ..ir.graph import Value
from ..ir.op import OpDef, declare, sample
from ..ir.types import Tensor
from .broadcasting import broadcast_to
from .creation import zeros_like
from .elementwise import cast, not_equal, sqrt, square, where
from .loss import never
from .movement import reshape
from .reduction import mean, sum_
from .rules import canonical_axes, need_dtype, one_shape
from .scalar import dimension, scalar_to_tensor

_Gradients = Tuple[Optional[Value], ...]


def _expander(ndim: int, axis: Tuple[int, ...]) -> Tuple[Any, ...]:
    """The index that gives an array over the other axes the dimensions of the whole."""
    return tuple(None if i in axis else slice(None) for i in range(ndim))


def _share(x: Any, gamma: Any) -> float:
    return gamma.dtype.type(1.0 / (x.size // gamma.size))


def _x_hat(x: np.ndarray, mean: np.ndarray, inv_std: np.ndarray) -> np.ndarray:
    x_hat = x - mean
    x_hat *= inv_std
    return x_hat


class _Algebra:
    """Formulas over values of one dtype, those of statistics spread over the axes that were reduced."""

    def __init__(self, x: Value, gamma: Value, axis: Tuple[int, ...]):
        self.shape, self.axis = x.shape, axis
        self.dtype = np.promote_types(x.dtype, gamma.dtype)
        self._wide = tuple(1 if i in axis else n for i, n in enumerate(x.shape))

    def of(self, value: Optional[Value], like: Value) -> Value:
        """The value in the common dtype; zeros for None."""
        value = zeros_like(like) if value is None else value
        return value if value.dtype == self.dtype else cast(value, dtype=self.dtype)

    def spread(self, value: Value) -> Value:
        return broadcast_to(reshape(value, shape=self._wide), shape=self.shape)

    def total(self, value: Value) -> Value:
        return sum_(value, axis=self.axis)


def _as(value: Value, like: Value) -> Value:
    return value if value.dtype == like.dtype else cast(value, dtype=like.dtype)


# Statistics of the batch ------------------------------------------------------------------------------------------


def _check(axis: Tuple[int, ...], wholes: Sequence[Tensor], statistics: Sequence[Tensor]) -> None:
    """Raise ValueError unless ``wholes`` have one shape and ``statistics`` that of the axes that are not reduced."""
    shape = wholes[0].shape
    if len(set(axis)) != len(axis) or not all(0 <= i < len(shape) for i in axis):
        raise ValueError(f"there are no axes {axis} of {len(shape)}")
    one_shape(*wholes)
    one_shape(Tensor(tuple([n for i, n in enumerate(shape) if i not in axis]), wholes[0].dtype), *statistics)


def _batch_norm_infer(x: Tensor, gamma: Tensor, beta: Tensor, *, axis: Tuple[int, ...], **_: Any) -> Tuple[Tensor, ...]:
    _check(axis, (x,), (gamma, beta))
    statistic = Tensor(gamma.shape, np.promote_types(x.dtype, gamma.dtype))
    return x, statistic, statistic, statistic


def _batch_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, *, axis: Tuple[int, ...],
                eps: float) -> Sequence[np.ndarray]:
    dtype, wide = np.promote_types(x.dtype, gamma.dtype), _expander(x.ndim, axis)
    mean, var = x.mean(axis=axis, dtype=dtype), x.var(axis=axis, dtype=dtype)
    inv_std = np.reciprocal(np.sqrt(var + eps, dtype=dtype))
    y = _x_hat(x, mean[wide], inv_std[wide]) * gamma[wide].astype(dtype, copy=False)
    y += beta[wide].astype(dtype, copy=False)
    return y.astype(x.dtype), mean, var, inv_std


def _batch_norm_vjp(g: Sequence[Optional[Value]], y: Sequence[Value], x: Value, gamma: Value, beta: Value, *,
                    axis: Tuple[int, ...], eps: float) -> _Gradients:
    return batch_norm_grad(x, gamma, g[0], y[1], y[3], axis=axis)


#: ``y, mean, var, inv_std``: `x` normalised over `axis`; the last three have the shape of ``gamma``.
batch_norm = declare(
    "batch_norm", "x gamma beta", {"axis": (0,), "eps": 2e-5}, kind="reduction", infer=_batch_norm_infer,
    numpy=_batch_norm, vjp=_batch_norm_vjp,
)


def _batch_norm_grad(x: np.ndarray, gamma: np.ndarray, g: np.ndarray, mean: np.ndarray, inv_std: np.ndarray, *,
                     axis: Tuple[int, ...]) -> Sequence[np.ndarray]:
    wide = _expander(x.ndim, axis)
    x_hat = _x_hat(x, mean[wide], inv_std[wide])
    gbeta, ggamma = g.sum(axis=axis, dtype=gamma.dtype), (g * x_hat).sum(axis=axis, dtype=gamma.dtype)
    gx = (gamma * inv_std)[wide] * (g - (x_hat * ggamma[wide] + gbeta[wide]) * _share(x, gamma))
    return gx.astype(x.dtype, copy=False), ggamma, gbeta


def _batch_norm_grad_vjp(g: Sequence[Optional[Value]], y: Sequence[Value], x: Value, gamma: Value, gy: Value,
                         mean: Value, inv_std: Value, *, axis: Tuple[int, ...]) -> _Gradients:
    a = _Algebra(x, gamma, axis)
    gx, ggamma = a.of(y[0], x), a.of(y[1], gamma)
    ggx, gggamma, ggbeta = a.of(g[0], x), a.of(g[1], gamma), a.of(g[2], gamma)
    scale, inv_std, share = a.of(gamma, gamma), a.of(inv_std, gamma), _one_of(x.type.size // gamma.type.size, gamma.dtype)
    share = a.of(share, gamma) if isinstance(share, Value) else share
    r = a.total(gx * ggx)
    coeff = scale * inv_std
    coeff_m = coeff * share
    x_hat = (a.of(x, x) - a.spread(a.of(mean, gamma))) * a.spread(inv_std)
    gggamma = gggamma - coeff_m * a.total(x_hat * ggx)
    ggbeta = ggbeta - coeff_m * a.total(ggx)
    gx_hat = a.spread(gggamma) * a.of(gy, gy) - a.spread(coeff_m * ggamma) * ggx
    gstd = -inv_std * (r + a.total(x_hat * gx_hat))
    gmean = -inv_std * a.total(gx_hat)
    gx = a.spread(inv_std) * gx_hat + (a.spread(gmean) + x_hat * a.spread(gstd)) * share
    ggy = a.spread(gggamma) * x_hat + a.spread(ggbeta) + a.spread(coeff) * ggx
    return _as(gx, x), _as(r / scale, gamma), _as(ggy, gy), None, None


def _one_of(count: Size, dtype: np.dtype) -> Any:
    """``1 / count``, as a 0-d array where only the run knows it."""
    if isinstance(count, int):
        return float(dtype.type(1.0 / count))
    return 1.0 / scalar_to_tensor(dimension(size=count), dtype=dtype)


def _batch_norm_grad_infer(x: Tensor, gamma: Tensor, g: Tensor, mean: Tensor, inv_std: Tensor, *,
                           axis: Tuple[int, ...]) -> Tuple[Tensor, ...]:
    _check(axis, (x, g), (gamma, mean, inv_std))
    return x, gamma, gamma


batch_norm_grad: OpDef = declare(
    "batch_norm_grad", "x gamma g mean inv_std", {"axis": (0,)}, kind="reduction",
    infer=_batch_norm_grad_infer, numpy=_batch_norm_grad, vjp=_batch_norm_grad_vjp,
)


# Statistics that are given ------------------------------------------------------------------------------------------


def _fixed_batch_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, mean: np.ndarray, var: np.ndarray, *,
                      axis: Tuple[int, ...], eps: float) -> Sequence[np.ndarray]:
    wide = _expander(x.ndim, axis)
    inv_var = np.reciprocal(var + eps)
    inv_std = np.sqrt(inv_var, dtype=inv_var.dtype)
    y = _x_hat(x, mean[wide], inv_std[wide]) * gamma[wide]
    y += beta[wide]
    return y.astype(x.dtype), inv_std, inv_var


def _fixed_batch_norm_vjp(g: Sequence[Optional[Value]], y: Sequence[Value], x: Value, gamma: Value, beta: Value,
                          mean: Value, var: Value, *, axis: Tuple[int, ...], eps: float) -> _Gradients:
    return fixed_batch_norm_grad(x, gamma, mean, var, g[0], y[1], y[2], axis=axis)


def _fixed_batch_norm_infer(x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, var: Tensor, *, axis: Tuple[int, ...],
                            **_: Any) -> Tuple[Tensor, ...]:
    _check(axis, (x,), (gamma, beta, mean, var))
    return x, var, var


#: ``y, inv_std, inv_var``: `x` normalised by a mean and a variance that are given, which have the shape of ``gamma``.
fixed_batch_norm = declare(
    "fixed_batch_norm", "x gamma beta mean var", {"axis": (0,), "eps": 2e-5}, kind="reduction",
    infer=_fixed_batch_norm_infer, numpy=_fixed_batch_norm, vjp=_fixed_batch_norm_vjp,
)


def _fixed_batch_norm_grad(x: np.ndarray, gamma: np.ndarray, mean: np.ndarray, var: np.ndarray, g: np.ndarray,
                           inv_std: np.ndarray, inv_var: np.ndarray, *,
                           axis: Tuple[int, ...]) -> Sequence[np.ndarray]:
    wide = _expander(x.ndim, axis)
    scale = gamma * inv_std
    x_hat = _x_hat(x, mean[wide], inv_std[wide])
    gbeta, ggamma = g.sum(axis=axis, dtype=gamma.dtype), (x_hat * g).sum(axis=axis)
    gvar = -0.5 * inv_var * (gamma * ggamma).astype(var.dtype, copy=False)
    return (scale[wide] * g).astype(x.dtype), ggamma, gbeta, -scale * gbeta, gvar


def _fixed_batch_norm_grad_infer(x: Tensor, gamma: Tensor, mean: Tensor, var: Tensor, g: Tensor, *stds: Tensor,
                                 axis: Tuple[int, ...]) -> Tuple[Tensor, ...]:
    _check(axis, (x, g), (gamma, mean, var, *stds))
    return x, Tensor(gamma.shape, np.promote_types(x.dtype, gamma.dtype)), gamma, gamma, gamma


def _fixed_batch_norm_grad_vjp(g: Sequence[Optional[Value]], y: Sequence[Value], x: Value, gamma: Value, mean: Value,
                               var: Value, gy: Value, inv_std: Value, inv_var: Value, *,
                               axis: Tuple[int, ...]) -> _Gradients:
    a = _Algebra(x, gamma, axis)
    ggamma, gbeta = a.of(y[1], gamma), a.of(y[2], gamma)
    ggx, gggamma, ggbeta, ggmean, ggvar = (a.of(part, x if i == 0 else gamma) for i, part in enumerate(g))
    scale, inv_std, inv_var, gy_ = a.of(gamma, gamma), a.of(inv_std, var), a.of(inv_var, var), a.of(gy, gy)
    x_hat = (a.of(x, x) - a.spread(a.of(mean, mean))) * a.spread(inv_std)
    half = ggvar * -0.5
    over_var, over_std = scale * inv_var, scale * inv_std
    gggamma = gggamma + half * over_var
    gx_hat = gy_ * a.spread(gggamma)
    g_over_std = a.total(ggx * gy_) - ggmean * gbeta
    ggbeta = ggbeta - ggmean * over_std
    ggy = a.spread(gggamma) * x_hat + a.spread(ggbeta) + a.spread(over_std) * ggx
    ggamma = inv_var * (half * ggamma) + inv_std * g_over_std
    gvar = -(ggamma * over_var + inv_var * 0.5 * (a.total(x_hat * gx_hat) - over_std * g_over_std))
    gmean = -inv_std * a.total(gx_hat)
    return (_as(a.spread(inv_std) * gx_hat, x), _as(ggamma, gamma), _as(gmean, mean), _as(gvar, var), _as(ggy, gy),
            None, None)


fixed_batch_norm_grad: OpDef = declare(
    "fixed_batch_norm_grad", "x gamma mean var g inv_std inv_var", {"axis": (0,)}, kind="reduction",
    infer=_fixed_batch_norm_grad_infer, numpy=_fixed_batch_norm_grad, vjp=_fixed_batch_norm_grad_vjp,
)


def _batch_renorm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, running_mean: np.ndarray, running_var: np.ndarray, *,
                  axis: Tuple[int, ...], eps: float, rmax: float, dmax: float) -> Sequence[np.ndarray]:
    wide = _expander(x.ndim, axis)
    mean, var = x.mean(axis=axis, dtype=gamma.dtype), x.var(axis=axis, dtype=gamma.dtype)
    std = np.sqrt(var + eps, dtype=var.dtype)
    running_std = np.sqrt(running_var + eps, dtype=running_mean.dtype)
    r = np.clip(std / running_std, 1.0 / rmax, rmax)
    d = np.clip((mean - running_mean) / running_std, -dmax, dmax)
    x_hat = x - mean[wide]
    x_hat /= std[wide]
    renormalized = x_hat * r[wide] + d[wide]
    y = gamma[wide] * renormalized
    y += beta[wide]
    return y.astype(x.dtype), mean, var, std, r, x_hat, renormalized


def _batch_renorm_infer(x: Tensor, gamma: Tensor, beta: Tensor, running_mean: Tensor, running_var: Tensor, *,
                        axis: Tuple[int, ...], **_: Any) -> Tuple[Tensor, ...]:
    _check(axis, (x,), (gamma, beta, running_mean, running_var))
    r = Tensor(gamma.shape, np.promote_types(gamma.dtype, running_mean.dtype))
    x_hat = Tensor(x.shape, np.promote_types(x.dtype, gamma.dtype))
    return x, gamma, gamma, gamma, r, x_hat, Tensor(x.shape, np.promote_types(x_hat.dtype, r.dtype))


#: ``y, mean, var, std, r, x_hat``, and what is scaled: the statistics of the batch are drawn near to those that run along.
batch_renorm = declare(
    "batch_renorm", "x gamma beta running_mean running_var", {"axis": (0,), "eps": 2e-5, "rmax": 1.0, "dmax": 0.0},
    kind="reduction", infer=_batch_renorm_infer, numpy=_batch_renorm,
    vjp=lambda g, y, x, gamma, beta, *running, axis, **attrs: (
        *(never(g, y, x, gamma, beta) if g[0] is None else batch_renorm_grad(x, gamma, g[0], *y[3:], axis=axis)), None, None),
)


def _batch_renorm_grad(x: np.ndarray, gamma: np.ndarray, g: np.ndarray, std: np.ndarray, r: np.ndarray, x_hat: np.ndarray,
                       renormalized: np.ndarray, *, axis: Tuple[int, ...]) -> Sequence[np.ndarray]:
    wide, m = _expander(x.ndim, axis), gamma.dtype.type(x.size // gamma.size)
    gbeta = g.sum(axis=axis, dtype=gamma.dtype)
    ggamma = (g * renormalized).sum(axis=axis)
    gstd = (g * x_hat).sum(axis=axis)
    gx = (r * gamma / std)[wide] * (g - (x_hat * gstd[wide] + gbeta[wide]) / m)
    return gx.astype(x.dtype), ggamma, gbeta


def _batch_renorm_grad_infer(x: Tensor, gamma: Tensor, g: Tensor, std: Tensor, r: Tensor, x_hat: Tensor, renormalized: Tensor,
                             *, axis: Tuple[int, ...]) -> Tuple[Tensor, ...]:
    _check(axis, (x, g, x_hat, renormalized), (gamma, std, r))
    return x, Tensor(gamma.shape, renormalized.dtype), gamma


batch_renorm_grad = declare(
    "batch_renorm_grad", "x gamma g std r x_hat renormalized", {"axis": (0,)}, kind="reduction", infer=_batch_renorm_grad_infer,
    numpy=_batch_renorm_grad, vjp=never,
)


# Rows and neighbours ------------------------------------------------------------------------------------------------


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
        parts.append(-wide(g_std * inv_std * inv_std * _one_of(x.shape[1], x.dtype)) * x_hat)
    return (parts[0] if len(parts) == 1 else parts[0] + parts[1],)


def _standardize_infer(x: Tensor, *, eps: float) -> Tuple[Tensor, ...]:
    if x.ndim != 2:
        raise ValueError(f"there are no rows of {x.ndim} axes")
    return x, Tensor(x.shape[:1], x.dtype)


#: ``x_hat, inv_std``: every row with mean 0 and variance 1, and what it was multiplied by.
standardize = declare(
    "standardize", "x", {"eps": 1e-5}, kind="reduction", numpy=_standardize, vjp=_standardize_vjp,
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
    _check((0, 2), (x, g), (gamma,))
    return x, gamma, gamma


def _scale_shift_infer(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    _check((0, 2), (x,), (gamma, beta))
    return x


scale_shift_grad = declare(
    "scale_shift_grad", "x gamma g", kind="reduction", infer=_scale_shift_grad_infer, numpy=_scale_shift_grad,
    vjp=_scale_shift_grad_vjp,
)

#: ``x * gamma + beta`` for three axes, the parameters along the second one.
scale_shift = declare(
    "scale_shift", "x gamma beta", kind="reduction", infer=_scale_shift_infer, inplace_ok=True,
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
    vjp=lambda g, y, x, *, n, k, alpha, beta: (
        local_response_grad(x, y[0], g[0], y[1], y[2], n=n, alpha=alpha, beta=beta),),
)

local_response_grad = declare(
    "local_response_grad", "x y g unit scale", {"n": 5, "alpha": 1e-4, "beta": 0.75}, kind="reduction",
    infer=lambda *xs, **attrs: one_shape(*xs) or xs[0], numpy=_local_response_grad, vjp=never,
)

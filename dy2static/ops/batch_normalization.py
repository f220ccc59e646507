"""Normalisation by statistics over a batch: one op forward, one for its gradient, as Chainer computes them.

``mean`` and ``inv_std`` are constants to every derivative, because Chainer's backward gets them from forward as arrays;
its formulas for second derivatives allow for that.
"""
from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import numpy as np

from ..ir.graph import Value
from ..ir.op import Decomposition, OpDef, declare
from ..ir.types import Tensor
from . import normalization_steps
from .broadcasting import broadcast_to
from .creation import zeros_like
from .elementwise import cast
from .loss import never
from .movement import reshape
from .normalization_steps import one_of
from .onnx_forms import windows
from .reduction import sum_
from .rules import need_statistics, of_filled_floats

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
    """Formulas over values of one dtype, those of statistics spread over the axes that were reduced.

    Chainer computes second derivatives in the dtype of ``x``, also where the statistics have a wider one.
    """

    def __init__(self, x: Value, axis: Tuple[int, ...]):
        self.shape, self.dtype, self.axis = x.shape, x.dtype, axis
        self._wide = tuple(1 if i in axis else n for i, n in enumerate(x.shape))

    def of(self, value: Optional[Value], like: Value) -> Value:
        """The value in the dtype of ``x``; zeros for None."""
        value = zeros_like(like) if value is None else value
        return value if value.dtype == self.dtype else cast(value, dtype=self.dtype)

    def spread(self, value: Value) -> Value:
        return broadcast_to(reshape(value, shape=self._wide), shape=self.shape)

    def total(self, value: Value) -> Value:
        return sum_(value, axis=self.axis)


def _as(value: Value, like: Value) -> Value:
    return value if value.dtype == like.dtype else cast(value, dtype=like.dtype)


def _batch_norm_infer(x: Tensor, gamma: Tensor, beta: Tensor, *, axis: Tuple[int, ...], **_: Any) -> Tuple[Tensor, ...]:
    need_statistics(axis, (x,), (gamma, beta))
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
    if g[0] is None:                                    # Chainer's statistics have no gradients
        return None, None, None
    return batch_norm_grad(x, gamma, g[0], y[1], y[3], axis=axis)


#: ``y, mean, var, inv_std``: `x` normalised over `axis`; the last three have the shape of ``gamma``.
batch_norm = declare(
    "batch_norm", "x gamma beta", {"axis": (0,), "eps": 2e-5}, kind="reduction", infer=_batch_norm_infer,
    decompose=Decomposition(normalization_steps.batch_norm, of_filled_floats),
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
    a = _Algebra(x, axis)
    gx, ggamma = a.of(y[0], x), a.of(y[1], gamma)
    ggx, gggamma, ggbeta = a.of(g[0], x), a.of(g[1], gamma), a.of(g[2], gamma)
    scale, inv_std, share = a.of(gamma, gamma), a.of(inv_std, gamma), one_of(x.type.size // gamma.type.size, x.dtype)
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


def _batch_norm_grad_infer(x: Tensor, gamma: Tensor, g: Tensor, mean: Tensor, inv_std: Tensor, *,
                           axis: Tuple[int, ...]) -> Tuple[Tensor, ...]:
    need_statistics(axis, (x, g), (gamma, mean, inv_std))
    return x, gamma, gamma


batch_norm_grad: OpDef = declare(
    "batch_norm_grad", "x gamma g mean inv_std", {"axis": (0,)}, kind="reduction",
    decompose=Decomposition(normalization_steps.batch_norm_grad, of_filled_floats),
    infer=_batch_norm_grad_infer, numpy=_batch_norm_grad, vjp=_batch_norm_grad_vjp,
)


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
    need_statistics(axis, (x,), (gamma, beta, mean, var))
    return x, var, var


#: ``y, inv_std, inv_var``: `x` normalised by a mean and a variance that are given, which have the shape of ``gamma``.
fixed_batch_norm = declare(
    "fixed_batch_norm", "x gamma beta mean var", {"axis": (0,), "eps": 2e-5}, kind="reduction",
    decompose=Decomposition(normalization_steps.fixed_batch_norm, of_filled_floats),
    infer=_fixed_batch_norm_infer, numpy=_fixed_batch_norm, vjp=_fixed_batch_norm_vjp,
    onnx=windows.fixed_batch_norm,
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
    need_statistics(axis, (x, g), (gamma, mean, var, *stds))
    return x, Tensor(gamma.shape, np.promote_types(x.dtype, gamma.dtype)), gamma, gamma, gamma


def _fixed_batch_norm_grad_vjp(g: Sequence[Optional[Value]], y: Sequence[Value], x: Value, gamma: Value, mean: Value,
                               var: Value, gy: Value, inv_std: Value, inv_var: Value, *,
                               axis: Tuple[int, ...]) -> _Gradients:
    a = _Algebra(x, axis)
    ggamma, gbeta = a.of(y[1], gamma), a.of(y[2], gamma)
    ggx, gggamma, ggbeta, ggmean, ggvar = (a.of(part, x if i == 0 else gamma) for i, part in enumerate(g))
    over_std = a.of(gamma * inv_std, gamma)             # Chainer's forward has computed it
    scale, inv_std, inv_var, gy_ = a.of(gamma, gamma), a.of(inv_std, var), a.of(inv_var, var), a.of(gy, gy)
    x_hat = (a.of(x, x) - a.spread(a.of(mean, mean))) * a.spread(inv_std)
    half = ggvar * -0.5
    over_var = scale * inv_var
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
    decompose=Decomposition(normalization_steps.fixed_batch_norm_grad, of_filled_floats),
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
    need_statistics(axis, (x,), (gamma, beta, running_mean, running_var))
    r = Tensor(gamma.shape, np.promote_types(gamma.dtype, running_mean.dtype))
    x_hat = Tensor(x.shape, np.promote_types(x.dtype, gamma.dtype))
    return x, gamma, gamma, gamma, r, x_hat, Tensor(x.shape, np.promote_types(x_hat.dtype, r.dtype))


#: ``y, mean, var, std, r, x_hat``, and what is scaled: the statistics of the batch are drawn near to those that run along.
batch_renorm = declare(
    "batch_renorm", "x gamma beta running_mean running_var", {"axis": (0,), "eps": 2e-5, "rmax": 1.0, "dmax": 0.0},
    decompose=Decomposition(normalization_steps.batch_renorm, of_filled_floats),
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
    need_statistics(axis, (x, g, x_hat, renormalized), (gamma, std, r))
    return x, Tensor(gamma.shape, renormalized.dtype), gamma


batch_renorm_grad = declare(
    "batch_renorm_grad", "x gamma g std r x_hat renormalized", {"axis": (0,)}, kind="reduction", infer=_batch_renorm_grad_infer,
    decompose=Decomposition(normalization_steps.batch_renorm_grad, of_filled_floats),
    numpy=_batch_renorm_grad, vjp=never,
)

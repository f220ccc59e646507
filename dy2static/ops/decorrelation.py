"""Layers that make the channels of a group uncorrelated, by the roots of their covariance.

Arrays are ``(groups, channels, places)``.  Of the layer with statistics of the batch there is one gradient, of that with
statistics that are given too.
"""
from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import numpy as np

from ..ir.op import OpDef, declare
from ..ir.types import Tensor
from .loss import last_gradient, never
from .onnx_forms import windows

_ONCE = "Double backward is not implemented for decorrelated batch normalization."


def _transposed(x: np.ndarray) -> np.ndarray:
    return x.transpose(0, 2, 1)


def _decorrelate(x: np.ndarray, *, eps: float) -> Sequence[np.ndarray]:
    dtype, count = x.dtype, x.shape[2]
    mean = x.mean(axis=2, keepdims=True)
    centred = x - mean
    covariance = np.matmul(centred, _transposed(centred)) / dtype.type(count) + dtype.type(eps) * np.eye(x.shape[1], dtype=dtype)
    values, vectors = np.linalg.eigh(covariance)
    root = (values ** -0.5)[:, :, None] * _transposed(vectors)
    main = np.matmul(root, centred)
    return np.matmul(vectors, main), mean[..., 0], np.matmul(vectors, root), values, vectors, main


def _decorrelate_infer(x: Tensor, **_: Any) -> Tuple[Tensor, ...]:
    row = Tensor(x.shape[:2], x.dtype)
    square = Tensor((*x.shape[:2], x.shape[1]), x.dtype)
    return x, row, square, row, square, x


def _decorrelate_grad(g: np.ndarray, values: np.ndarray, vectors: np.ndarray, main: np.ndarray) -> np.ndarray:
    g_main = np.matmul(_transposed(vectors), g)
    share = np.matmul(g_main, _transposed(main)) / g.dtype.type(g.shape[2])
    apart = values[:, :, None] - values[:, None, :]
    differ = apart != 0                                     # of two equal ones, the gradient is taken for 0
    apart = np.where(differ, np.reciprocal(np.where(differ, apart, g.dtype.type(1))), g.dtype.type(0))
    root = values ** 0.5
    mixed = _transposed(apart) * (values[:, :, None] * _transposed(share) + root[:, :, None] * share * root[:, None, :])
    own = np.zeros_like(share)
    diagonal = np.arange(share.shape[1])
    own[:, diagonal, diagonal] = share[:, diagonal, diagonal]
    rest = g_main - g_main.mean(axis=2, keepdims=True) + np.matmul(_transposed(mixed + _transposed(mixed) - own), main)
    return np.matmul(vectors, (values ** -0.5)[:, :, None] * rest)


#: ``y, mean, projection``, then eigenvalues and eigenvectors of the covariance, and ``x`` along these.
decorrelate: OpDef = declare(
    "decorrelate", "x", {"eps": 2e-5}, kind="reduction", may_raise=True, infer=_decorrelate_infer, numpy=_decorrelate,
    vjp=lambda g, y, x, *, eps: (None if g[0] is None else last_gradient(
        decorrelate_grad(g[0], *y[3:]), g[0], error=NotImplementedError, message=_ONCE),),
)

decorrelate_grad: OpDef = declare(
    "decorrelate_grad", "g values vectors main", kind="reduction", infer=lambda g, *_: g, numpy=_decorrelate_grad, vjp=never,
)


def _fixed_vjp(g: Any, y: Any, x: Any, mean: Any, projection: Any) -> Tuple[Optional[Any], ...]:
    return fixed_decorrelate_grad(g, x, mean, projection)


def _fixed_grad(g: np.ndarray, x: np.ndarray, mean: np.ndarray, projection: np.ndarray) -> Sequence[np.ndarray]:
    # as Chainer has it: that of the mean is the first place's, that of the projection is of the places
    gx = np.matmul(_transposed(projection), g)
    moved = x - (x - mean[:, :, None])
    return gx, -gx[..., 0], np.matmul(_transposed(moved), g)


#: ``projection @ (x - mean)``.
fixed_decorrelate: OpDef = declare(
    "fixed_decorrelate", "x mean projection", kind="reduction", infer=lambda x, mean, projection: x, vjp=_fixed_vjp,
    numpy="np.matmul({projection}, {x} - {mean}[:, :, None], out={out})",
    onnx=windows.fixed_decorrelate,
)

fixed_decorrelate_grad: OpDef = declare(
    "fixed_decorrelate_grad", "g x mean projection", kind="reduction", numpy=_fixed_grad, vjp=never,
    infer=lambda g, x, mean, projection: (x, mean, Tensor((x.shape[0], x.shape[2], x.shape[2]), x.dtype)),
)

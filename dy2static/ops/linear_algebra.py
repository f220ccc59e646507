"""Inverses, determinants and factors of matrices, which LAPACK computes, and the discrete Fourier transform."""
from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

import numpy as np

from ..ir.building import constant
from ..ir.dims import equal
from ..ir.op import OpDef, declare, sample
from ..ir.shapes import show
from ..ir.types import Tensor
from .broadcasting import broadcast_to
from .contraction import matmul
from .creation import zeros_like
from .movement import reshape, transpose
from .onnx_forms import movement
from .rules import need_dtype, one_dtype, one_shape


def _with_single(function: Callable[[np.ndarray], Any], x: np.ndarray, out: Optional[np.ndarray]) -> np.ndarray:
    """The result of a function that takes no half precision, in the precision of ``x``."""
    y = np.asarray(function(x.astype(np.float32) if x.dtype == np.float16 else x)).astype(x.dtype, copy=False)
    if out is None:
        return y
    np.copyto(out, y)
    return out


def inverse(x: np.ndarray, out: Optional[np.ndarray] = None) -> np.ndarray:
    """The inverses of matrices.  Raises ValueError, as Chainer does, if one has none."""
    try:
        return _with_single(np.linalg.inv, x, out)
    except np.linalg.LinAlgError:
        raise ValueError("Input has singular matrices.")         # noqa: B904  in Chainer, the first error is the context only


def determinant(x: np.ndarray, out: Optional[np.ndarray] = None) -> np.ndarray:
    """The determinants of matrices."""
    return _with_single(np.linalg.det, x, out)


def transform(real: np.ndarray, imaginary: np.ndarray, inverse: bool, out: Optional[np.ndarray],
              out_imaginary: Optional[np.ndarray]) -> None:
    """The Fourier transform along the last axis of a complex array given by its parts, written into such; None: not asked."""
    y = (np.fft.ifft if inverse else np.fft.fft)(real + imaginary * 1j)
    for part, result in ((y.real, out), (y.imag, out_imaginary)):
        if result is not None:
            np.copyto(result, part, casting="unsafe")


def _square_infer(x: Tensor) -> Tensor:
    need_dtype(x, "f", "a matrix")
    if x.ndim < 2 or not equal(x.shape[-1], x.shape[-2]):
        raise ValueError(f"square matrices are needed, not {show(x.shape)}")
    return x


def _transposed(x: Any) -> Any:
    return transpose(x, axes=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


_MATRICES = np.array([[[2.0, 1.0], [0.5, -3.0]], [[1.0, 0.25], [0.5, 1.0]]])

inv: OpDef = declare(
    "inv", "x", kind="contraction", may_raise=True, infer=_square_infer,
    vjp=lambda g, y, x: (matmul(matmul(-y, g, transa=True), y, transb=True),),
    numpy="inverse({x}, out={out})", calls=(inverse,),
    samples=(sample(_MATRICES), sample(_MATRICES[0]), sample(np.zeros((0, 2, 2))), sample(np.ones((1, 1)))),
)


def _det_vjp(g, y, x):
    shape = (*y.shape, 1, 1)
    return (broadcast_to(reshape(g, shape=shape), shape=x.shape) * broadcast_to(reshape(y, shape=shape), shape=x.shape)
            * inv(_transposed(x)),)


det = declare(
    "det", "x", kind="contraction", infer=lambda x: Tensor(_square_infer(x).shape[:-2], x.dtype), vjp=_det_vjp,
    numpy="determinant({x}, out={out})", calls=(determinant,),
    samples=(sample(_MATRICES), sample(np.zeros((0, 2, 2))), sample(np.ones((3, 1, 1)))),
)


def _cholesky_vjp(g, y, x):
    size = int(y.shape[-1])
    keep = constant(np.tri(size, dtype=y.dtype) - 0.5 * np.eye(size, dtype=y.dtype))
    part = matmul(keep * matmul(y, g, transa=True), inv(y))
    whole = matmul(inv(y), part, transa=True)
    return ((whole + _transposed(whole)) * 0.5,)


#: The lower factor of a matrix.
cholesky = declare(
    "cholesky", "x", kind="contraction", may_raise=True, infer=_square_infer, vjp=_cholesky_vjp,
    numpy="np.linalg.cholesky({x})",
    samples=(sample(_MATRICES[1] @ _MATRICES[1].T), sample(np.ones((1, 1)))),
)


def _fft_infer(real: Tensor, imaginary: Tensor, *, inverse: bool) -> Tuple[Tensor, Tensor]:
    one_shape(real, imaginary)
    one_dtype(real, imaginary)
    need_dtype(real, "f", "a part")
    return real, imaginary


def _fft_vjp(g, y, real, imaginary, *, inverse):
    given, given_imaginary = (zeros_like(real) if part is None else part for part in g)
    gradient_imaginary, gradient = fft(given_imaginary, given, inverse=inverse)
    return gradient, gradient_imaginary


#: The discrete Fourier transform along the last axis; real and imaginary parts are arrays of their own.
fft: OpDef = declare(
    "fft", "real imaginary", {"inverse": False}, kind="contraction", infer=_fft_infer, vjp=_fft_vjp,
    numpy="transform({real}, {imaginary}, {inverse}, {out}, {out_1})", calls=(transform,),
    onnx=movement.fft,
    samples=(sample((2, 4), (2, 4)), sample((3,), (3,), inverse=True), sample((0, 3), (0, 3)), sample((1,), (1,))),
)

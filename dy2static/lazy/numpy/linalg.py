"""The ``linalg`` extension of the array API standard, and the functions of it that the namespace itself has."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import LazyArray
from .calls import at_once, call, ufunc


class EighResult(NamedTuple):
    """What `eigh` gives."""

    eigenvalues: LazyArray
    eigenvectors: LazyArray


class QRResult(NamedTuple):
    """What `qr` gives."""

    Q: LazyArray
    R: LazyArray


class SlogdetResult(NamedTuple):
    """What `slogdet` gives."""

    sign: LazyArray
    logabsdet: LazyArray


class SVDResult(NamedTuple):
    """What `svd` gives."""

    U: LazyArray
    S: LazyArray
    Vh: LazyArray


# --- products -----------------------------------------------------------------------------------------------------------------

def matmul(x1: LazyArray, x2: LazyArray, /) -> LazyArray:
    """The products of matrices."""
    return ufunc(np.matmul, x1, x2)                     # type: ignore[no-any-return]


def matrix_transpose(x: LazyArray, /) -> LazyArray:
    """The array with its last two axes exchanged.  Raises ValueError for fewer than two axes."""
    if x.ndim < 2:
        raise ValueError("matrix_transpose takes arrays of two axes or more")
    return call(np.swapaxes, x, -1, -2)                 # type: ignore[no-any-return]


def tensordot(x1: LazyArray, x2: LazyArray, /, *, axes: Any = 2) -> LazyArray:
    """The sums of products over some axes of both arrays."""
    return call(np.tensordot, x1, x2, axes)             # type: ignore[no-any-return]


def vecdot(x1: LazyArray, x2: LazyArray, /, *, axis: int = -1) -> LazyArray:
    """The sums of products along an axis; of the first array conjugate values.

    Raises ValueError where the axis has two sizes.
    """
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"the axis has size {x1.shape[axis]} in one array and {x2.shape[axis]} in the other")
    return call(_vecdot, x1, x2, axis)                  # type: ignore[no-any-return]


def _vecdot(x1: Any, x2: Any, axis: Any) -> Any:
    rows, columns = np.moveaxis(np.conj(x1), axis, -1), np.moveaxis(x2, axis, -1)
    return np.matmul(rows[..., None, :], columns[..., None])[..., 0, 0]


def outer(x1: LazyArray, x2: LazyArray, /) -> LazyArray:
    """All products of elements of two vectors."""
    return call(np.outer, x1, x2)                       # type: ignore[no-any-return]


def cross(x1: LazyArray, x2: LazyArray, /, *, axis: int = -1) -> LazyArray:
    """The cross products of vectors of three elements.  Raises ValueError where the axis has another size."""
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError("cross products are of vectors of three elements")
    return call(np.cross, x1, x2, axis=axis)            # type: ignore[no-any-return]


def matrix_power(x: LazyArray, n: int, /) -> LazyArray:
    """The ``n``-th powers of matrices."""
    return call(np.linalg.matrix_power, x, n)           # type: ignore[no-any-return]


# --- parts and numbers of matrices --------------------------------------------------------------------------------------------

def diagonal(x: LazyArray, /, *, offset: int = 0) -> LazyArray:
    """The diagonals of matrices."""
    return call(np.diagonal, x, offset, -2, -1)         # type: ignore[no-any-return]


def trace(x: LazyArray, /, *, offset: int = 0, dtype: Any = None) -> LazyArray:
    """The sums of diagonals of matrices."""
    return call(np.trace, x, offset, -2, -1, dtype)     # type: ignore[no-any-return]


def det(x: LazyArray, /) -> LazyArray:
    """The determinants of matrices."""
    return call(np.linalg.det, x)                       # type: ignore[no-any-return]


def slogdet(x: LazyArray, /) -> SlogdetResult:
    """The signs of determinants, and the logarithms of their absolute values: computed at once."""
    return SlogdetResult(*at_once(np.linalg.slogdet, x))


def matrix_norm(x: LazyArray, /, *, keepdims: Any = False, ord: Any = "fro") -> LazyArray:
    """The norms of matrices."""
    return call(np.linalg.norm, x, ord, (-2, -1), keepdims)     # type: ignore[no-any-return]


def matrix_rank(x: LazyArray, /, *, rtol: Any = None) -> LazyArray:
    """The ranks of matrices: how many singular values are above ``rtol`` times the greatest."""
    return at_once(_rank, x, rtol)                      # type: ignore[no-any-return]


def _rank(x: Any, rtol: Any) -> Any:
    found = np.linalg.svd(x, compute_uv=False)
    least = max(x.shape[-2:]) * np.finfo(found.dtype).eps if rtol is None else np.asarray(rtol)[..., None]
    return np.count_nonzero(found > found.max(axis=-1, keepdims=True, initial=0) * least, axis=-1)


def vector_norm(x: LazyArray, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> LazyArray:
    """The norms of vectors along an axis, along several, or of all elements."""
    return call(_vector_norm, x, axis, keepdims, _FORMULAS.get(ord, "power"), ord)  # type: ignore[no-any-return]


#: Orders of norms that have formulas of their own.
_FORMULAS = {np.inf: "greatest", -np.inf: "least", 0: "count", 1: "sum", 2: "euclidean"}


def _vector_norm(x: Any, axis: Any, keepdims: Any, formula: Any, order: Any) -> Any:
    size = np.abs(x)
    if formula == "greatest":
        return np.max(size, axis=axis, keepdims=keepdims)
    if formula == "least":
        return np.min(size, axis=axis, keepdims=keepdims)
    if formula == "count":
        return np.sum((size != 0).astype(size.dtype), axis=axis, keepdims=keepdims)
    if formula == "sum":
        return np.sum(size, axis=axis, keepdims=keepdims)
    if formula == "euclidean":
        return np.sqrt(np.sum(size * size, axis=axis, keepdims=keepdims))
    return np.sum(size ** order, axis=axis, keepdims=keepdims) ** (1 / order)


# --- systems and decompositions -----------------------------------------------------------------------------------------------

def inv(x: LazyArray, /) -> LazyArray:
    """The inverses of matrices.  Raises numpy.linalg.LinAlgError, at evaluation, where there is none."""
    return call(np.linalg.inv, x)                       # type: ignore[no-any-return]


def pinv(x: LazyArray, /, *, rtol: Any = None) -> LazyArray:
    """The pseudo-inverses of matrices, without singular values below ``rtol`` times the greatest: computed at once."""
    least = max(x.shape[-2:]) * np.finfo(x.dtype).eps if rtol is None else rtol
    return at_once(np.linalg.pinv, x, least)            # type: ignore[no-any-return]


def solve(x1: LazyArray, x2: LazyArray, /) -> LazyArray:
    """What solves the systems ``x1 @ x == x2``, where ``x2`` has one axis, or columns in its last two.

    Raises numpy.linalg.LinAlgError, at evaluation, where a matrix has no inverse.
    """
    return call(_solve_vector if x2.ndim == 1 else _solve, x1, x2)     # type: ignore[no-any-return]


def _solve_vector(x1: Any, x2: Any) -> Any:
    return _solve(x1, x2[:, None])[..., 0]


def _solve(x1: Any, x2: Any) -> Any:
    if x2.ndim == x1.ndim - 1:                          # which NumPy 1 takes for vectors
        x2 = x2[None]
    return np.linalg.solve(x1, x2)


def cholesky(x: LazyArray, /, *, upper: Any = False) -> LazyArray:
    """The triangular roots of positive definite matrices.  Raises numpy.linalg.LinAlgError, at evaluation, for others."""
    return call(_upper_root if upper else np.linalg.cholesky, x)        # type: ignore[no-any-return]


def _upper_root(x: Any) -> Any:
    return np.conj(np.swapaxes(np.linalg.cholesky(x), -1, -2))


def eigh(x: LazyArray, /) -> EighResult:
    """The eigenvalues and eigenvectors of Hermitian matrices: computed at once."""
    return EighResult(*at_once(np.linalg.eigh, x))


def eigvalsh(x: LazyArray, /) -> LazyArray:
    """The eigenvalues of Hermitian matrices."""
    return call(np.linalg.eigvalsh, x)                  # type: ignore[no-any-return]


def qr(x: LazyArray, /, *, mode: str = "reduced") -> QRResult:
    """Factors with orthonormal columns and upper triangles: computed at once.

    Raises ValueError for a mode other than ``"reduced"`` and ``"complete"``.
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"there is no mode {mode!r}: 'reduced' or 'complete'")
    return QRResult(*at_once(np.linalg.qr, x, mode))


def svd(x: LazyArray, /, *, full_matrices: Any = True) -> SVDResult:
    """The singular value decompositions of matrices: computed at once."""
    return SVDResult(*at_once(np.linalg.svd, x, full_matrices))


def svdvals(x: LazyArray, /) -> LazyArray:
    """The singular values of matrices: computed at once."""
    return at_once(np.linalg.svd, x, compute_uv=False)  # type: ignore[no-any-return]


__all__ = """
    matmul matrix_transpose tensordot vecdot outer cross matrix_power diagonal trace det slogdet matrix_norm matrix_rank
    vector_norm inv pinv solve cholesky eigh eigvalsh qr svd svdvals
""".split()

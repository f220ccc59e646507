"""Products of sparse matrices, which SciPy computes.

A sparse matrix of ``shape`` is its ``data`` and their ``rows`` and ``columns``, each ``(count,)``; of several matrices
``(batch, count)``, with numbers of -1 behind those of a matrix that has fewer.
"""
from __future__ import annotations

from typing import Any, Tuple

import numpy as np

from ..ir.op import OpDef, declare, sample
from ..ir.types import Tensor
from .rules import need_dtype


def _transposed(x: Any, turn: bool) -> Any:
    return x.swapaxes(-1, -2) if turn else x


def _as_scipy_takes(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if x.dtype == np.float16 else x


def sparse_product(data: np.ndarray, rows: np.ndarray, columns: np.ndarray, dense: np.ndarray, shape: Tuple[int, int],
                   transa: bool, transb: bool, transc: bool, dtype: Any) -> np.ndarray:
    """The product of a sparse and a dense matrix, each transposed first if asked, and the result too."""
    from scipy import sparse
    if transa:
        rows, columns, shape = columns, rows, shape[::-1]
    data, dense = _as_scipy_takes(data), _transposed(_as_scipy_takes(dense), transb)
    if dense.ndim == 2:
        return _transposed(sparse.coo_matrix((data, (rows, columns)), shape).dot(dense).astype(dtype, copy=False), transc)
    y = np.empty((len(dense), shape[0], dense.shape[-1]), dtype)
    for i, whole in enumerate(dense):
        count = np.count_nonzero(rows[i] >= 0)
        y[i] = sparse.coo_matrix((data[i, :count], (rows[i, :count], columns[i, :count])), shape).dot(whole)
    return _transposed(y, transc)


def sparse_product_by_sums(data: Any, rows: Any, columns: Any, dense: Any, shape: Tuple[int, int], transa: bool, transb: bool,
                           transc: bool, dtype: Any) -> Any:
    """As `sparse_product`, without SciPy: each element of the sparse matrix adds a row."""
    if transa:
        rows, columns, shape = columns, rows, shape[::-1]
    dense = _transposed(dense, transb)
    batch = (np.arange(len(dense))[:, None],) * (dense.ndim - 2)
    terms = np.where((rows >= 0)[..., None], data[..., None] * dense[(*batch, columns)], 0).astype(dtype, copy=False)
    y = np.zeros((*dense.shape[:-2], shape[0], dense.shape[-1]), dtype)
    np.add.at(y, (*batch, rows), terms)
    return _transposed(y, transc)


def sampled_product(a: np.ndarray, b: np.ndarray, rows: np.ndarray, columns: np.ndarray, transa: bool, transb: bool, transc: bool,
                    dtype: Any) -> np.ndarray:
    """The elements of a product of dense matrices where the sparse one, transposed if asked, has its data."""
    whole = np.matmul(_transposed(a, transa), _transposed(b, transb)).astype(dtype, copy=False)
    if transc:
        rows, columns = columns, rows
    y = np.zeros(rows.shape, dtype)
    for i in np.ndindex(rows.shape[:-1]):
        count = np.count_nonzero(rows[i] >= 0)
        y[i][:count] = whole[i][rows[i][:count], columns[i][:count]]
    return y


def sampled_product_at_once(a: Any, b: Any, rows: Any, columns: Any, transa: bool, transb: bool, transc: bool, dtype: Any) -> Any:
    """As `sampled_product`, without a look at how many elements there are."""
    whole = np.matmul(_transposed(a, transa), _transposed(b, transb)).astype(dtype, copy=False)
    if transc:
        rows, columns = columns, rows
    batch = (np.arange(len(whole))[:, None],) * (whole.ndim - 2)
    return np.where(rows >= 0, whole[(*batch, rows, columns)], whole.dtype.type(0))


def _sizes(x: Tensor, turn: bool) -> Tuple[Any, Any]:
    return (x.shape[-1], x.shape[-2]) if turn else (x.shape[-2], x.shape[-1])


def _product_infer(data: Tensor, rows: Tensor, columns: Tensor, dense: Tensor, *, shape: Tuple[int, int], transa: bool,
                   transb: bool, transc: bool, dtype: Any) -> Tensor:
    need_dtype(rows, "i", "a number of a row")
    (height, width), (inner, columns_of_dense) = shape[::-1] if transa else shape, _sizes(dense, transb)
    if width != inner or data.shape != rows.shape or rows.shape != columns.shape or rows.shape[:-1] != dense.shape[:-2]:
        raise ValueError(f"a sparse matrix of shape {shape} does not fit: {data} {rows} {columns} {dense}")
    sizes = (columns_of_dense, height) if transc else (height, columns_of_dense)
    return Tensor((*dense.shape[:-2], *sizes), np.dtype(dtype or np.result_type(data.dtype, dense.dtype)))


def _product_vjp(g, y, data, rows, columns, dense, *, shape, transa, transb, transc, dtype):
    g_data = sparse_sample(g, dense, rows, columns, shape=shape, transa=transc, transb=not transb, transc=transa, dtype=data.dtype)
    g_dense = sparse_matmul(data, rows, columns, g, shape=shape, transa=not transa, transb=transc, transc=transb, dtype=dense.dtype)
    return g_data, None, None, g_dense


_ATTRS = {"shape": (), "transa": False, "transb": False, "transc": False, "dtype": None}
_ROWS, _COLUMNS = np.array([0, 1, 1], np.int32), np.array([2, 0, 3], np.int32)
_BATCH = np.array([[0, 1, -1], [1, 0, 0]], np.int32), np.array([[2, 0, -1], [3, 1, 1]], np.int32)

#: The product of a sparse and a dense matrix.  transa, transb: read it transposed.  transc: transpose the result.
sparse_matmul: OpDef = declare(
    "sparse_matmul", "data rows columns dense", _ATTRS, kind="contraction", may_raise=True, infer=_product_infer, vjp=_product_vjp,
    numpy="sparse_product({data}, {rows}, {columns}, {dense}, {shape}, {transa}, {transb}, {transc}, {T})",
    cupy="sparse_product_by_sums({data}, {rows}, {columns}, {dense}, {shape}, {transa}, {transb}, {transc}, {T})",
    calls=(sparse_product, sparse_product_by_sums),
    samples=(sample((3,), _ROWS, _COLUMNS, (4, 2), shape=(2, 4)),
             sample((3,), _ROWS, _COLUMNS, (5, 2), shape=(2, 4), transa=True, transb=True, transc=True),
             sample((2, 3), *_BATCH, (2, 4, 2), shape=(2, 4)), sample((3,), _ROWS, _COLUMNS, (4, 0), shape=(2, 4))),
)


def _sample_infer(a: Tensor, b: Tensor, rows: Tensor, columns: Tensor, *, shape: Tuple[int, int], transa: bool, transb: bool,
                  transc: bool, dtype: Any) -> Tensor:
    need_dtype(rows, "i", "a number of a row")
    (height, inner), (others, width) = _sizes(a, transa), _sizes(b, transb)
    if inner != others or (height, width) != (shape[::-1] if transc else tuple(shape)) or rows.shape != columns.shape:
        raise ValueError(f"a sparse matrix of shape {shape} does not fit: {a} {b} {rows} {columns}")
    return Tensor(rows.shape, np.dtype(dtype or np.result_type(a.dtype, b.dtype)))


def _sample_vjp(g, y, a, b, rows, columns, *, shape, transa, transb, transc, dtype):
    ga = sparse_matmul(g, rows, columns, b, shape=shape, transa=transc, transb=not transb, transc=transa, dtype=a.dtype)
    gb = sparse_matmul(g, rows, columns, a, shape=shape, transa=not transc, transb=transa, transc=not transb, dtype=b.dtype)
    return ga, gb, None, None


#: The elements of a product of dense matrices that a sparse matrix of ``shape`` has: the derivative of `sparse_matmul`.
sparse_sample: OpDef = declare(
    "sparse_sample", "a b rows columns", _ATTRS, kind="contraction", may_raise=True, infer=_sample_infer, vjp=_sample_vjp,
    numpy="sampled_product({a}, {b}, {rows}, {columns}, {transa}, {transb}, {transc}, {T})",
    cupy="sampled_product_at_once({a}, {b}, {rows}, {columns}, {transa}, {transb}, {transc}, {T})",
    calls=(sampled_product, sampled_product_at_once),
    samples=(sample((2, 3), (3, 4), _ROWS, _COLUMNS, shape=(2, 4)),
             sample((2, 3), (4, 3), _ROWS, _COLUMNS, shape=(2, 4), transb=True),
             sample((2, 2, 3), (2, 3, 4), *_BATCH, shape=(2, 4))),
)

"""Calls of chainer.functions.math."""
import chainer
import chainer.functions as F
import numpy as np
from lowering_cases.case import Case, binary, unary

_ROW, _COLUMN = np.array([0, 1, 1], np.int32), np.array([2, 0, 3], np.int32)
_SPARSE = chainer.utils.CooMatrix(np.array([0.5, -1.0, 2.0], "f"), _ROW, _COLUMN, (2, 4))


CASES = [
    *(case for f in (F.arctan, F.sinh, F.cosh, F.ceil, F.floor, F.fix, F.sign, F.erf, F.erfc, F.ndtr, F.log_ndtr)
      for case in unary(f.__name__, f)),
    *(case for f in (F.arcsin, F.arccos, F.arctanh, F.erfinv) for case in unary(f.__name__, f, low=-0.9, high=0.9)),
    *(case for f in (F.log2, F.log10, F.lgamma, F.digamma, F.erfcx) for case in unary(f.__name__, f, low=0.5)),
    *unary("erfcinv", F.erfcinv, low=0.2, high=1.8),
    *unary("ndtri", F.ndtri, low=0.1, high=0.9),
    *unary("polygamma", lambda x: F.polygamma(np.full(x.shape, 2), x), low=0.5),
    *unary("zeta", lambda q: F.zeta(np.full(q.shape, 2.5, q.dtype), q), low=0.5),
    Case("arctan2", F.arctan2, (4, 3), (4, 3)),
    *binary("fmod", F.fmod, low=0.5),
    Case("fmod of negatives", F.fmod, (4, 3), (4, 3)),
    *(Case(f"{f.__name__} {shape} {axis}", lambda x, f=f, axis=axis: f(x, axis), shape)
      for f in (F.cumsum, F.cumprod) for shape, axis in (((3, 2), None), ((3, 2), 0), ((2, 3, 2), -2), ((0, 3), 1), ((1,), 0))),
    Case("cumprod with zeros", lambda x: F.cumprod(x * np.array([1, 0, 2, 0], x.dtype), 1), (2, 4)),
    *(Case(f"prod {shape} {options}", lambda x, options=options: F.prod(x, **options), shape)
      for shape, options in (((4, 3), {}), ((2, 3, 4), {"axis": (0, -1)}), ((2, 3), {"axis": 1, "keepdims": True}), ((), {}),
                             ((0, 3), {"axis": 1}))),
    Case("prod with a zero", lambda x: F.prod(x * np.array([1, 0, 2], x.dtype), 1), (2, 3)),
    Case("mean", lambda x: F.mean(x, axis=1, keepdims=True), (4, 3)),
    Case("bias", lambda x, y: F.bias(x, y, 1), (2, 3, 4), (3, 4)),
    Case("bias first", lambda x, y: F.bias(x, y, 0), (2, 3), (2,)),
    Case("scale", lambda x, y: F.scale(x, y, 1), (2, 3, 4), (3,)),
    Case("scale last", lambda x, y: F.scale(x, y, 2), (2, 3, 4), (4,)),
    Case("batch_l2_norm_squared", F.batch_l2_norm_squared, (4, 3)),
    Case("batch_l2_norm_squared of images", F.batch_l2_norm_squared, (2, 3, 2)),
    *(Case(f.__name__, lambda x, f=f: f(F.matmul(x, x, transb=True) + 3 * np.eye(3, dtype=x.dtype)), (3, 4), dtypes="f d")
      for f in (F.det, F.inv, F.cholesky)),
    *(Case(f.__name__, lambda x, f=f: f(F.matmul(x, x, transb=True) + 3 * np.eye(3, dtype=x.dtype)), (2, 3, 4), dtypes="f d")
      for f in (F.batch_det, F.batch_inv)),
    Case("inv in half precision", F.inv, (3, 3), dtypes="e f"),
    *(Case(f"einsum {subscripts}", lambda *xs, subscripts=subscripts: F.einsum(subscripts, *xs), *shapes)
      for subscripts, shapes in (("ij,jk->ik", [(2, 3), (3, 2)]), ("ii->i", [(3, 3)]), ("ij->", [(2, 3)]), ("ij,j", [(2, 3), (3,)]),
                                 ("i,j,k->kji", [(2,), (3,), (2,)]), ("...ij->...ji", [(2, 2, 3)]), ("ii", [(3, 3)]))),
    Case("einsum of lists", lambda a, b: F.einsum(a, [0, 1], b, [1, 2], [0, 2]), (2, 3), (3, 2)),
    *(Case(f"{f.__name__} {shape}", lambda x, y, f=f: f((x, y)), shape, shape) for f in (F.fft, F.ifft) for shape in ((4,), (2, 3))),
    *(Case(f"tensordot {axes}", lambda a, b, axes=axes: F.tensordot(a, b, axes), a, b, exact=False)
      for a, b, axes in (((2, 3, 4), (3, 4, 2), 2), ((2, 3), (3, 4), 1), ((2, 3), (2,), ((0,), (0,))), ((2,), (3,), 0),
                         ((2, 3, 4), (4, 3), ((1, 2), (1, 0))))),
    Case("sparse_matmul", lambda b: F.sparse_matmul(_SPARSE, b), (4, 2), dtypes="f"),
    Case("sparse_matmul turned", lambda b: F.sparse_matmul(b, _SPARSE, transa=True, transb=True), (4, 3), dtypes="f"),
    Case("sparse_matmul of what is made", lambda d, b: F.sparse_matmul(chainer.utils.CooMatrix(d.array, _ROW, _COLUMN, (2, 4)), b), (3,),
         (4, 2), dtypes="f d"),
]

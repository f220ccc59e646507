"""Calls of chainer.functions.math."""
import chainer
import chainer.functions as F
import numpy as np

from .case import Case, binary, unary

_PLACES = {1: (np.array([0, 1, 1], np.int32), np.array([2, 0, 3], np.int32)),
           2: (np.array([[0, 1, -1], [1, 0, 0]], np.int32), np.array([[2, 0, -1], [3, 1, 1]], np.int32))}


def _sparse(data, shape):
    """A matrix of these data, or two of which one has fewer."""
    matrix = chainer.utils.CooMatrix(np.ones(3, "f"), *_PLACES[1], shape, "C")
    matrix.data, (matrix.row, matrix.col) = data, _PLACES[data.ndim]
    return matrix


CASES = [
    *(case for f in (F.exp, F.sin, F.cos, F.square, F.expm1, F.identity) for case in unary(f.__name__, f)),
    *(case for f in (F.log, F.sqrt, F.log1p) for case in unary(f.__name__, f, low=0.5)),
    *unary("tan", F.tan, low=-1.0, high=1.0),
    *(case for f in (F.sinh, F.cosh, F.arctan) for case in unary(f.__name__, f)),
    *(case for f in (F.log2, F.log10) for case in unary(f.__name__, f, low=0.5)),
    *(case for f in (F.arcsin, F.arccos, F.arctanh) for case in unary(f.__name__, f, low=-0.7, high=0.7)),
    *(Case(f"{f.__name__} {shape}", f, shape, shape, low=0.5) for f in (F.arctan2, F.fmod) for shape in ((4, 3), (), (0, 3))),
    *(case for f in (F.erf, F.erfc, F.ndtr) for case in unary(f.__name__, f)),
    *(Case(f"{f.__name__} {shape}", f, shape, low=0.2, high=0.8) for f in (
        F.erfcx, F.erfinv, F.erfcinv, F.log_ndtr, F.ndtri, F.digamma, F.lgamma) for shape in ((4, 3), ())),
    *(Case(f"entropies {shape}", lambda x: chainer.distributions.Bernoulli(p=x).entropy, shape, low=0.2, high=0.8)
      for shape in ((4, 3), (), (0, 3))),
    Case("polygamma", lambda x: F.polygamma(np.array([0, 1, 2]), x), (3,), low=1.0),
    *(Case(f"zeta {s}", lambda x, s=s: F.zeta(s, x), (4, 3), low=1.0) for s in (2, 1.5)),
    Case("batch_l2_norm_squared", F.batch_l2_norm_squared, (2, 3, 2)),
    *unary("rsqrt", F.rsqrt, low=0.5),
    *unary("clip", lambda x: F.clip(x, -0.5, 0.5)),
    *unary("clip below", lambda x: F.clip(x, None, 1)),
    *binary("maximum", F.maximum),
    *binary("minimum", F.minimum),
    Case("maximum of equals", lambda x: F.maximum(x, x), (2, 3)),
    Case("linear_interpolate", F.linear_interpolate, (2, 3), (2, 3), (2, 3)),
    *(Case(f"matmul {a} {b} {options}", lambda a, b, options=options: F.matmul(a, b, **options), a, b, exact=False)
      for a, b, options in (
          ((4, 3), (3, 2), {}), ((3, 4), (2, 3), {"transa": True, "transb": True}), ((3,), (3,), {}),
          ((4, 3), (3,), {}), ((3,), (3, 2), {}), ((3,), (2, 3), {"transb": True}), ((3, 4), (3,), {"transa": True}),
          ((2, 4, 3), (3, 2), {}), ((2, 1, 4, 3), (5, 3, 2), {}), ((2, 3, 4), (3,), {"transa": True}),
          ((0, 3), (3, 2), {}), ((3,), (2, 3, 4), {}))),
    Case("matmul of two dtypes", lambda x: F.matmul(x, np.ones((3, 2))), (4, 3), exact=False),
    Case("tensordot of two dtypes", lambda x: F.tensordot(x, np.ones((3, 2)), 1), (4, 3), exact=False),
    Case("matmul operator", lambda a, b: a @ b, (4, 3), (3, 2)),
    Case("batch_matmul", F.batch_matmul, (2, 4, 3), (2, 3), exact=False, dtypes="f"),
    Case("batch_matmul turned", lambda a, b: F.batch_matmul(a, b, transa=True), (2, 3, 4), (2, 3, 2), exact=False,
         dtypes="f"),
    *(Case(f"{f.__name__} {shape} {options}", lambda x, f=f, options=options: f(x, **options), shape)
      for f in (F.sum, F.max, F.min, F.average)
      for shape, options in (((4, 3), {}), ((4, 3), {"axis": 0}), ((2, 3, 4), {"axis": (0, -1)}), ((), {}), ((1,), {}),
                             ((2, 3, 4), {"axis": 1, "keepdims": True}), ((0, 3), {"axis": 1}))),
    *(Case(f"{f.__name__} {shape} {options}", lambda x, f=f, options=options: f(x, **options), shape)
      for f in (F.prod, F.cumsum, F.cumprod)
      for shape, options in (((4, 3), {}), ((4, 3), {"axis": 0}), ((2, 3, 4), {"axis": -2}), ((), {}), ((1,), {}), ((0, 3), {"axis": 1}))),
    Case("prod of axes", lambda x: F.prod(x, (2, 0), keepdims=True), (2, 3, 2)),
    Case("cumprod of zeros", lambda x: F.cumprod(F.floor(x) * x, 0), (5, 2)),
    *(Case(f"einsum {subscripts}", lambda *xs, subscripts=subscripts: F.einsum(subscripts, *xs), *shapes)
      for subscripts, *shapes in (
          ("ij,jk->ik", (2, 3), (3, 2)), ("ij,jk", (2, 3), (3, 2)), ("...ij,jk->...ik", (2, 2, 3), (3, 2)), ("...i->...", (2, 3)),
          ("...ij,...j->...i", (2, 2, 2, 3), (2, 2, 3)), ("ij->ji", (2, 3)),
          ("ij->", (2, 3)), ("i,i", (3,), (3,)), ("iij->j", (2, 2, 3)), ("ii,k->k", (2, 2), (3,)), ("i,j->ij", (2,), (0,)),
          (",i->i", (), (3,)), ("b...,b...->b...", (2, 3), (2, 3)), ("ij,jj,kj->k", (2, 3), (3, 3), (2, 3)))),
    Case("einsum of lists", lambda a, b: F.einsum(a, [0, 1], b, [1, 2], [2, 0]), (2, 3), (3, 2)),
    *(Case(f"tensordot {axes}", lambda a, b, axes=axes: F.tensordot(a, b, axes), *shapes)
      for axes, *shapes in ((2, (2, 3, 4), (3, 4, 2)), (1, (3,), (3,)), (0, (2,), (3,)), ((2, 0), (2, 3, 4), (4, 2)),
                            (([1, 0], [0, 2]), (2, 3, 4), (3, 1, 2)))),
    *(Case(f"{f.__name__} {shape}", f, shape, low=0.1) for f, shape in (
        (F.inv, (3, 3)), (F.det, (2, 2)), (F.batch_inv, (2, 2, 2)), (F.batch_det, (2, 2, 2)), (F.batch_inv, (0, 2, 2)))),
    Case("cholesky", lambda x: F.cholesky(F.matmul(x, x, transb=True)), (3, 3), exact=False, dtypes="d"),
    *(Case(f"{f.__name__} {shape}", lambda a, b, f=f: f((a, b)), shape, shape)
      for f in (F.fft, F.ifft) for shape in ((2, 4), (1,))),
    Case("fft real part", lambda a, b: F.fft((a, b))[0], (2, 3), (2, 3)),
    Case("sum of none", F.sum, (0, 3)),
    Case("sum of equals", lambda x: F.max(F.concat([x, x])), (2, 3)),
    Case("sum_to", lambda x: F.sum_to(x, (3, 1)), (2, 3, 4)),
    Case("average weights", lambda x, w: F.average(x, 1, w), (2, 3), (3,), low=0.5),
    Case("argmax", lambda x: F.argmax(x, axis=1), (4, 3)),
    Case("argmin", F.argmin, (4, 3)),
    *(Case(f"logsumexp {axis}", lambda x, axis=axis: F.logsumexp(x, axis), (2, 3, 4)) for axis in (None, 1, (0, -1))),
    *(Case(f"sparse_matmul {transa} {transb}", lambda d, b, transa=transa, transb=transb: F.sparse_matmul(
        _sparse(d, (2, 4)), b, transa, transb), (3,), shape, dtypes="f d")
      for transa, transb, shape in ((False, False, (4, 2)), (True, False, (2, 3)), (False, True, (3, 4)))),
    Case("sparse_matmul from behind", lambda a, d: F.sparse_matmul(a, _sparse(d, (2, 4)), True, True), (4, 3), (3,), dtypes="f d"),
    Case("sparse_matmul of batches", lambda d, b: F.sparse_matmul(_sparse(d, (2, 4)), b), (2, 3), (2, 4, 2), dtypes="f d"),
]

DECLINED = [
    Case("einsum that is a view", lambda x: F.einsum("ii->i", x), (3, 3)),
    Case("einsum that Chainer differentiates wrongly", lambda x: F.einsum("...i->...", x), (2, 3, 4)),
    Case("einsum of two dtypes", lambda x: F.einsum("ij,j", x, np.ones(3)), (4, 3)),
    Case("tensordot from behind", lambda a, b: F.tensordot(a, b, (-1, 0)), (2, 3), (3, 2)),
    Case("arctan2 of two shapes", F.arctan2, (4, 3), (3,)),
    Case("polygamma of more", lambda x: F.polygamma(np.array([[0], [1]]), x), (3,), low=1.0),
]

"""Calls of chainer.functions.noise."""
import chainer.functions as F
import numpy as np

from .case import Case

_MASK = np.array([[True, False, True], [False, False, True]])
_EPS = np.array([[0.5, -1.5, 1.0], [0.25, 0.0, 2.0]], "f")


def _reused(x):
    y, mask = F.dropout(x, 0.3, return_mask=True)
    return y, F.dropout(x * x, mask=mask)


def _gaussian_reused(mean, ln_var):
    y, eps = F.gaussian(mean, ln_var, return_eps=True)
    return y, F.gaussian(ln_var, mean, eps=eps)


CASES = [
    Case("zoneout", lambda h, x: F.zoneout(h, x, 0.3), (4, 3), (4, 3)),
    *(Case(f"dropout {shape} {ratio}", lambda x, ratio=ratio: F.dropout(x, ratio), shape)
      for shape in ((4, 3), (0, 3), (1,)) for ratio in (0.5, 0.2, 0)),
    Case("dropout reused", _reused, (4, 3)),
    Case("dropout mask", lambda x: F.dropout(x, mask=_MASK), (2, 3)),
    Case("dropout scale", lambda x: F.dropout(x, mask=_EPS), (2, 3), dtypes="f"),
    *(Case(f"gaussian {shape}", F.gaussian, shape, shape) for shape in ((4, 3), (0, 3), (1,))),
    Case("gaussian reused", _gaussian_reused, (4, 3), (4, 3)),
    Case("gaussian given", lambda mean, ln_var: F.gaussian(mean, ln_var, eps=_EPS), (2, 3), (2, 3), dtypes="f"),
    Case("gumbel_softmax", lambda x: F.gumbel_softmax(x, 0.5), (4, 3)),
    *(Case(f"simplified_dropconnect {own} {ratio}",
           lambda *xs, own=own, ratio=ratio: F.simplified_dropconnect(*xs, ratio=ratio, use_batchwise_mask=own),
           (2, 3, 2), (4, 6), (4,), exact=False) for own in (False, True) for ratio in (0, 0.3)),
    Case("simplified_dropconnect mask", lambda x, W: F.simplified_dropconnect(x, W, mask=_MASK, use_batchwise_mask=False),
         (4, 3), (2, 3), exact=False),
]

DECLINED = [
    Case("mask of another dtype", lambda x: F.dropout(x, mask=np.ones((4, 3), "d")), (4, 3)),
]

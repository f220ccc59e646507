"""Calls of chainer.functions.normalization."""
import chainer.functions as F
import numpy as np

from .case import Case

_SINGLE = np.array([0.5, 1.5, -1.0], "f")

_ZEROS = np.array([[0.0, 0.0], [3.0, -4.0], [0.5, 0.0]])

CASES = [
    *(Case(f"group_normalization {x} {groups}",
           lambda x, gamma, beta, groups=groups: F.group_normalization(x, groups, gamma, beta), x, channels, channels)
      for x, channels, groups in (((2, 8), (8,), 2), ((2, 4, 3), (4,), 4), ((3, 6, 2, 2), (6,), 3), ((2, 3, 1), (3,), 1))),
    Case("group_normalization mixed", lambda *xs: F.group_normalization(xs[0], 3, *xs[1:]), (2, 3, 4), _SINGLE, -_SINGLE,
         dtypes="e"),
    *(Case(f"batch_renormalization {x} {bounds}",
           lambda *xs, bounds=bounds: F.batch_renormalization(
               *xs, *bounds, running_mean=_SINGLE.astype(xs[0].dtype), running_var=_SINGLE.astype(xs[0].dtype) ** 2),
           x, (3,), (3,), twice=False)
      for x in ((5, 3), (2, 3, 2, 2)) for bounds in ((1, 0), (1.5, 0.5))),
    *(Case(f"normalize {x} {axis}", lambda x, axis=axis: F.normalize(x, axis=axis), x)
      for x, axis in (((4, 3), 1), ((2, 3, 4), (0, -1)), ((3,), 0), ((1, 1), 1))),
    *(Case(f"local_response_normalization {x} {n}", lambda x, n=n: F.local_response_normalization(x, n, alpha=0.1), x,
           twice=False) for x, n in (((2, 7, 2), 5), ((2, 3), 5), ((2, 4, 2, 2), 3), ((1, 1), 5))),
    *(Case(f"decorrelated_batch_normalization {x} {groups}",
           lambda x, groups=groups: F.decorrelated_batch_normalization(x, groups=groups, eps=1e-3), x, twice=False, exact=False,
           dtypes="f d") for x, groups in (((6, 4), 2), ((7, 2, 3), 1), ((2, 3), 3))),
    *(Case(f"fixed_decorrelated_batch_normalization {x} {groups}",
           lambda *xs, groups=groups: F.fixed_decorrelated_batch_normalization(*xs, groups=groups),
           x, (groups, channels), (groups, channels, channels), twice=False, exact=False)
      for x, groups, channels in (((2, 4), 2, 2), ((2, 3, 2), 1, 3), ((1, 2), 2, 1))),
    Case("layer_normalization", F.layer_normalization, (4, 3), (3,), (3,), exact=False),
    *(Case(f"batch_normalization {x} {axis}",
           lambda x, gamma, beta, axis=axis: F.batch_normalization(x, gamma, beta, axis=axis, eps=1e-3), x, channels, channels)
      for x, channels, axis in (((5, 3), (3,), None), ((2, 3, 2, 2), (3,), None), ((3, 2, 2), (2, 2), None),
                                ((2, 3, 2), (2,), (0, 1)), ((3, 2), (3,), 1), ((2, 1), (1,), 0))),
    Case("batch_normalization mixed", F.batch_normalization, (4, 3), _SINGLE, -_SINGLE, dtypes="e d"),
    *(Case(f"fixed_batch_normalization {x} {axis}",
           lambda x, gamma, beta, mean, var, axis=axis: F.fixed_batch_normalization(x, gamma, beta, mean, var * var, axis=axis),
           x, *[channels] * 4, low=0.5)
      for x, channels, axis in (((5, 3), (3,), None), ((2, 3, 2, 2), (3,), None), ((2, 3, 2), (2,), (0, 1)), ((1, 1), (1,), 0))),
    Case("fixed_batch_normalization mixed", F.fixed_batch_normalization, (4, 3), _SINGLE, -_SINGLE, _SINGLE, _SINGLE ** 2,
         twice=False, dtypes="e d"),                     # Chainer's second gradients of gamma have the dtype of x
]

DECLINED = [
    Case("gradients of another dtype", lambda *xs: F.group_normalization(xs[0], 3, *xs[1:]), _SINGLE.reshape(1, 3).astype("d"),
         _SINGLE, -_SINGLE),
    Case("one sample", F.batch_normalization, (1, 3), (3,), (3,)),
    Case("no sample", lambda x, gamma, beta: F.batch_normalization(x, gamma, beta, axis=1), (3, 0), (3,), (3,)),
]

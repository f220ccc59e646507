"""Calls of chainer.functions.normalization."""
import chainer.functions as F
import numpy as np

from .case import Case

_SINGLE = np.array([0.5, 1.5, -1.0], "f")

CASES = [
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
    Case("one sample", F.batch_normalization, (1, 3), (3,), (3,)),
    Case("no sample", lambda x, gamma, beta: F.batch_normalization(x, gamma, beta, axis=1), (3, 0), (3,), (3,)),
]

"""Calls of chainer.functions.noise."""
import chainer.functions as F
import numpy as np

from .case import Case

CASES = [
    Case("zoneout", lambda h, x: F.zoneout(h, x, 0.3), (4, 3), (4, 3)),
    *(Case(f"dropout {shape} {ratio}", lambda x, ratio=ratio: F.dropout(x, ratio), shape)
      for shape in ((4, 3), (0, 3), (1,)) for ratio in (0.5, 0.2, 0)),
]

DECLINED = [
    Case("mask asked for", lambda x: F.dropout(x, return_mask=True)[0], (4, 3)),
    Case("mask given", lambda x: F.dropout(x, mask=np.ones((4, 3), "f")), (4, 3)),
]

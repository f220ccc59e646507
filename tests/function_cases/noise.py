"""Calls of chainer.functions.noise."""
import chainer.functions as F
import numpy as np
from lowering_cases.case import Case

_MASK = np.array([[[True, False, True], [False, True, True]]] * 4)

CASES = [
    Case("dropout in a test", F.dropout, (4, 3), train=False),
    Case("zoneout in a test", F.zoneout, (4, 3), (4, 3), train=False),
    Case("gaussian", F.gaussian, (4, 3), (4, 3)),
    Case("gaussian gives its noise", lambda m, v: F.gaussian(m, v, return_eps=True), (4, 3), (4, 3)),
    Case("gaussian of given noise", lambda m, v, e: F.gaussian(m, v, eps=e.array), (4, 3), (4, 3), (4, 3)),
    Case("gaussian of one", F.gaussian, (1,), (1,)),
    *(Case(f"gumbel_softmax {options}", lambda x, options=options: F.gumbel_softmax(x, **options), (4, 3))
      for options in ({}, {"tau": 0.8, "axis": 0})),
    *(Case(f"simplified_dropconnect {options}", lambda x, W, b, options=options: F.simplified_dropconnect(x, W, b, **options),
           (4, 3), (2, 3), (2,)) for options in ({}, {"ratio": 0.2, "use_batchwise_mask": False}, {"train": False})),
    Case("simplified_dropconnect of a mask", lambda x, W: F.simplified_dropconnect(x, W, mask=_MASK), (4, 3), (2, 3)),
    Case("simplified_dropconnect in a test", lambda x, W: F.simplified_dropconnect(x, W), (4, 3), (2, 3), train=False),
]

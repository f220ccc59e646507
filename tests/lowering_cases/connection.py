"""Calls of chainer.functions.connection."""
import chainer.functions as F
import numpy as np

from .case import IDS, LABELS, Case

CASES = [
    Case("linear", F.linear, (4, 3), (2, 3), (2,)),
    Case("linear no bias", F.linear, (4, 3), (2, 3)),
    Case("linear empty", F.linear, (0, 3), (2, 3), (2,)),
    Case("linear one", F.linear, (1, 1), (1, 1), (1,)),
    Case("embed_id", lambda W: F.embed_id(IDS, W), (3, 2)),
    Case("embed_id ignore", lambda W: F.embed_id(IDS, W, ignore_label=2), (3, 2)),
    Case("embed_id ignore negative", lambda W: F.embed_id(LABELS, W, ignore_label=-1), (3, 2)),
]

DECLINED = [
    Case("linear of two dtypes", lambda x: F.linear(x, np.ones((2, 3))), (4, 3)),
]

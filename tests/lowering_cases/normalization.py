"""Calls of chainer.functions.normalization."""
import chainer.functions as F

from .case import Case

CASES = [
    Case("layer_normalization", F.layer_normalization, (4, 3), (3,), (3,), exact=False),
]

DECLINED = []

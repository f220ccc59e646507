"""Calls of chainer.functions.evaluation."""
import chainer.functions as F
import numpy as np

from .case import IDS, LABELS, Case

CASES = [
    Case("accuracy", lambda x: F.accuracy(x, np.maximum(LABELS, 0)), (5, 3)),
    Case("accuracy shapes", lambda x: F.accuracy(x, IDS), (2, 3, 2, 1)),
]

DECLINED = [
    Case("accuracy with a label to ignore", lambda x: F.accuracy(x, LABELS[:4], ignore_label=-1), (4, 3)),
]

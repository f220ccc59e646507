"""Calls of chainer.functions.evaluation."""
import chainer.functions as F
import numpy as np
from lowering_cases.case import LABELS, Case

_BITS = np.array([0, 1, -1, 1, 0], np.int32)

CASES = [
    Case("binary_accuracy", lambda y: F.binary_accuracy(y, _BITS), (5,)),
    Case("binary_accuracy of none", lambda y: F.binary_accuracy(y, _BITS[2:3]), (1,)),
    *(Case(f"classification_summary of any classes {options}", lambda y, options=options: F.classification_summary(y, LABELS, **options), (5, 3))
      for options in ({}, {"beta": 2.0, "label_num": 4})),
    Case("classification_summary that ignores a class", lambda y: F.classification_summary(y, np.abs(LABELS), ignore_label=1), (5, 3)),
    *(Case(f.__name__, lambda y, f=f: f(y, LABELS), (5, 3)) for f in (F.precision, F.recall, F.f1_score)),
    *(Case(f"r2_score {how}", lambda y, t, how=how: F.r2_score(y, t, multioutput=how), (5, 3), (5, 3))
      for how in ("uniform_average", "raw_values")),
]

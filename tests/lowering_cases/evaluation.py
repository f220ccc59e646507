"""Calls of chainer.functions.evaluation."""
import chainer.functions as F
import numpy as np

from .case import IDS, LABELS, Case

_SIGNS = np.array([[1, 0, -1], [0, 1, 1]], np.int32)

CASES = [
    *(Case(f"accuracy ignore {label}", lambda x, label=label: F.accuracy(x, LABELS, ignore_label=label), (5, 3))
      for label in (-1, 2)),
    Case("accuracy ignore all", lambda x: F.accuracy(x, LABELS[2:3], ignore_label=-1), (1, 3)),
    Case("binary_accuracy", lambda x: F.binary_accuracy(x, _SIGNS), (2, 3)),
    Case("binary_accuracy of none", lambda x: F.binary_accuracy(x, _SIGNS[:0]), (0, 3)),
    *(Case(f"classification_summary {options}",
           lambda x, options=options: F.classification_summary(x, np.maximum(LABELS, options.get("ignore_label", -1)), 3, **options),
           (5, 3)) for options in ({}, {"beta": 2.0}, {"ignore_label": 0})),
    *(Case(f"r2_score {shape} {output}", lambda x, y, output=output: F.r2_score(x, y, multioutput=output), shape, shape)
      for shape in ((4,), (4, 3), (1, 3)) for output in ("uniform_average", "raw_values")),
    Case("accuracy", lambda x: F.accuracy(x, np.maximum(LABELS, 0)), (5, 3)),
    Case("accuracy shapes", lambda x: F.accuracy(x, IDS), (2, 3, 2, 1)),
]

DECLINED = [
    Case("labels that are not counted", lambda x: F.classification_summary(x, np.maximum(LABELS[:4], 0))[0], (4, 3)),
]

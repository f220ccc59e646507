"""Calls of chainer.functions.loss."""
import chainer.functions as F
import numpy as np

from .case import LABELS, Case

CASES = [
    *(Case(f"huber_loss {options}", lambda x, t, options=options: F.huber_loss(x, t, **options), (4, 3), (4, 3))
      for options in ({"delta": 1.0}, {"delta": 0.3, "reduce": "no"})),
    *(Case(f"softmax_cross_entropy {shape} {options}",
           lambda x, t=t, options=options: F.softmax_cross_entropy(x, t, **options), shape, exact=False, twice=False)
      for shape, t in (((5, 3), LABELS), ((2, 3, 2), np.array([[0, 2], [-1, 1]], "l")), ((1, 1), LABELS[1:2]))
      for options in ({}, {"normalize": False}, {"reduce": "no"}, {"ignore_label": 2})),
    Case("mean_squared_error", F.mean_squared_error, (4, 3), (4, 3)),
    Case("mean_squared_error one", F.mean_squared_error, (), ()),
    Case("mean_absolute_error", F.mean_absolute_error, (4, 3), (4, 3)),
    Case("squared_error", F.squared_error, (4, 3), (4, 3)),
    Case("absolute_error", F.absolute_error, (4, 3), (4, 3)),
    *(Case(f"sigmoid_cross_entropy {options}",
           lambda x, options=options: F.sigmoid_cross_entropy(x, LABELS % 3 - 1, **options), (5,))
      for options in ({}, {"normalize": False}, {"reduce": "no"})),
]

DECLINED = [
    Case("soft labels", lambda x: F.softmax_cross_entropy(x, np.ones((4, 3), "f")), (4, 3)),
    Case("class weight", lambda x: F.softmax_cross_entropy(x, LABELS[:4], class_weight=np.ones(3, "f")), (4, 3)),
    Case("no cached score", lambda x: F.softmax_cross_entropy(x, LABELS[:4], cache_score=False), (4, 3)),
    Case("no labels", lambda x: F.softmax_cross_entropy(x, LABELS[:0]), (0, 3)),
]

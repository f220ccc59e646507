"""Calls of chainer.functions.loss."""
import copy

import chainer.functions as F
import numpy as np
from chainer.links.loss.hierarchical_softmax import BinaryHierarchicalSoftmaxFunction

from .case import LABELS, Case

_PAIRS = np.array([1, 0, 1, 0], np.int32)
_SOFT = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, -1.0]])
_WEIGHT = np.array([0.5, 2.0, 1.0], "f")

_IDS = np.array([[9, 2, 0], [9, 1, 1], [9, 0, 3], [9, 3, 3], [9, 0, 1]], np.int32)
_TREES = {dtype: BinaryHierarchicalSoftmaxFunction(((1, 3), ((0, 4), 2)), dtype) for dtype in "efd"}


def _discriminate(x):
    labels = np.array([[[0, 1], [1, 2]], [[1, 1], [0, 2]]])
    return F.discriminative_margin_based_clustering_loss(x, labels, 0.5, 1.5, 2)


def _likelihood(x, W):
    return copy.copy(_TREES[x.dtype.char])(x, LABELS, W)


CASES = [
    Case("hierarchical softmax", _likelihood, (5, 3), (4, 3), exact=False, twice=False),
    Case("hierarchical softmax of one", lambda x, W: copy.copy(_TREES[x.dtype.char])(x, LABELS[:1], W), (1, 2), (4, 2), exact=False,
         twice=False),
    *(Case(f"negative_sampling {reduce}",
           lambda x, W, reduce=reduce: F.negative_sampling(x, LABELS, W, lambda shape: _IDS.copy(), 2, reduce), (5, 3), (4, 3),
           exact=False) for reduce in ("sum", "no")),
    *(Case(f"black_out {reduce}",
           lambda x, W, reduce=reduce: F.black_out(x, np.maximum(LABELS, 0), W, np.array([[0, 2], [1, 1], [2, 0], [0, 1], [2, 2]]),
                                                   reduce), (5, 3), (4, 3), exact=False, dtypes="f d") for reduce in ("mean", "no")),
    *(Case(f"crf1d {reduce}", lambda c, *xs, reduce=reduce: F.crf1d(c, xs, [LABELS[:2], LABELS[3:5], LABELS[:1]], reduce),
           (3, 3), (2, 3), (2, 3), (1, 3), exact=False, dtypes="f d") for reduce in ("mean", "no")),
    Case("argmax_crf1d", lambda c, *xs: F.argmax_crf1d(c, xs)[0], (3, 3), (2, 3), (2, 3), (1, 3)),
    Case("discriminative_margin_based_clustering_loss", _discriminate, (2, 2, 2, 2), exact=False, dtypes="f d"),
    *(Case(f"contrastive {options}", lambda a, b, options=options: F.contrastive(a, b, _PAIRS, **options), (4, 3), (4, 3))
      for options in ({}, {"margin": 4}, {"reduce": "no"})),
    *(Case(f"triplet {shape} {options}", lambda *xs, options=options: F.triplet(*xs, **options), *[shape] * 3)
      for shape in ((4, 3), (1, 1), (2, 3, 2)) for options in ({}, {"margin": 2, "reduce": "no"}) if shape[2:] == () or options),
    *(Case(f"cross_covariance {reduce}", lambda y, z, reduce=reduce: F.cross_covariance(y, z, reduce), (4, 3), (4, 2))
      for reduce in ("half_squared_sum", "no")),
    *(Case(f"decov {reduce}", lambda h, reduce=reduce: F.decov(h, reduce), (4, 3), twice=False)
      for reduce in ("half_squared_sum", "no")),
    *(Case(f"softmax_cross_entropy soft {shape} {options}",
           lambda x, t, options=options: F.softmax_cross_entropy(x, t, **options), shape, shape, low=0.1, twice=False)
      for shape in ((4, 3), (2, 3, 2)) for options in ({}, {"reduce": "no"}, {"soft_target_loss": "kl-divergence"}, {"cache_score": False})),
    Case("softmax_cross_entropy soft ignored", lambda x: F.softmax_cross_entropy(x, _SOFT.astype(x.dtype)), (2, 3), twice=False),
    *(Case(f"softmax_cross_entropy weighted {options}",
           lambda x, options=options: F.softmax_cross_entropy(x, LABELS, class_weight=_WEIGHT.astype(x.dtype), **options),
           (5, 3), twice=False) for options in ({}, {"reduce": "no"})),
    Case("softmax_cross_entropy weighted images",
         lambda x: F.softmax_cross_entropy(x, np.array([[0, 2], [-1, 1]]), class_weight=_WEIGHT), (2, 3, 2), twice=False,
         dtypes="e f"),
    *(Case(f"softmax_cross_entropy twice {options}",
           lambda x, options=options: F.softmax_cross_entropy(x, LABELS, enable_double_backprop=True, **options), (5, 3))
      for options in ({"normalize": False}, {"reduce": "no"}, {})),
    Case("softmax_cross_entropy twice weighted",
         lambda x: F.softmax_cross_entropy(x, LABELS, class_weight=_WEIGHT.astype(x.dtype), enable_double_backprop=True), (5, 3)),
    Case("bernoulli_nll", F.bernoulli_nll, (4, 3), (4, 3), exact=False),
    Case("gaussian_kl_divergence", lambda m, v: F.gaussian_kl_divergence(m, v, "mean"), (4, 3), (4, 3), exact=False),
    Case("gaussian_nll", lambda *xs: F.gaussian_nll(*xs, "no"), (4, 3), (4, 3), (4, 3)),
    Case("squared_difference", F.squared_difference, (4, 3), (4, 3)),
    *(Case(f"huber_loss {options}", lambda x, t, options=options: F.huber_loss(x, t, **options), (4, 3), (4, 3))
      for options in ({"delta": 1.0}, {"delta": 0.3, "reduce": "no"})),
    *(Case(f"softmax_cross_entropy {shape} {options}",
           lambda x, t=t, options=options: F.softmax_cross_entropy(x, t, **options), shape, twice=False)
      for shape, t in (((5, 3), LABELS), ((2, 3, 2), np.array([[0, 2], [-1, 1]], "l")), ((1, 1), LABELS[1:2]))
      for options in ({}, {"normalize": False}, {"reduce": "no"}, {"ignore_label": 2}, {"cache_score": False})),
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
    Case("soft labels of another dtype", lambda x: F.softmax_cross_entropy(x, np.ones((4, 3), "d")), (4, 3)),
    Case("no covariance", lambda x: F.cross_covariance(x, x), (3, 0)),
    Case("no labels", lambda x: F.softmax_cross_entropy(x, LABELS[:0]), (0, 3)),
]

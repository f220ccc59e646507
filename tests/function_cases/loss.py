"""Calls of chainer.functions.loss."""
import chainer.functions as F
import numpy as np
from chainer.utils import WalkerAlias
from lowering_cases.case import Case

_BITS = np.array([1, 0, 1, 0], np.int32)
_CLASSES = np.array([0, 2, 1, 2], np.int32)
_SAMPLES = np.array([[0, 1], [2, 2], [1, 0], [0, 2]], np.int32)
_LENGTHS = np.array([3, 2], np.int32)
_LABELS = np.array([[0, 1], [1, 0]], np.int32)
_PATHS = [np.array([0, 2], np.int32), np.array([1, 0], np.int32), np.array([2], np.int32)]
_INSTANCES = np.array([[[0, 1], [1, 2]], [[2, 2], [1, 0]], [[3, 1], [0, 3]]], np.int32)
_SAMPLER = WalkerAlias([3, 2, 1, 4])


def _both(name, function, *shapes, reduce="mean", **options):
    """One loss, reduced in its own way and not at all."""
    return [Case(f"{name} {how}", lambda *xs, how=how: function(*xs, reduce=how), *shapes, **options) for how in (reduce, "no")]


CASES = [
    Case("squared_difference", F.squared_difference, (4, 3), (4, 3)),
    *_both("contrastive", lambda a, b, reduce: F.contrastive(a, b, _BITS, 1.5, reduce), (4, 3), (4, 3)),
    *_both("triplet", lambda a, b, c, reduce: F.triplet(a, b, c, 0.5, reduce), (4, 3), (4, 3), (4, 3)),
    *_both("cross_covariance", lambda y, z, reduce: F.cross_covariance(y, z, reduce), (4, 3), (4, 2), reduce="half_squared_sum"),
    *_both("decov", lambda h, reduce: F.decov(h, reduce), (4, 3), reduce="half_squared_sum"),
    *(Case(f"hinge {norm} {how}", lambda x, norm=norm, how=how: F.hinge(x, _CLASSES, norm, how), (4, 3))
      for norm in ("L1", "L2") for how in ("mean", "no")),
    *_both("bernoulli_nll", lambda x, y, reduce: F.bernoulli_nll(x, y, reduce), (4, 3), (4, 3), reduce="sum"),
    *_both("gaussian_nll", lambda x, m, v, reduce: F.gaussian_nll(x, m, v, reduce), (4, 3), (4, 3), (4, 3), reduce="sum"),
    Case("gaussian_nll mean", lambda x, m, v: F.gaussian_nll(x, m, v, "mean"), (4, 3), (4, 3), (4, 3)),
    *_both("gaussian_kl_divergence", lambda m, v, reduce: F.gaussian_kl_divergence(m, v, reduce), (4, 3), (4, 3), reduce="sum"),
    Case("bernoulli_nll called", lambda x, y: F.bernoulli_nll(x, y), (4, 3), (4, 3)),
    Case("gaussian_kl_divergence called", lambda m, v: F.gaussian_kl_divergence(m, v), (4, 3), (4, 3)),
    *_both("black_out", lambda x, W, reduce: F.black_out(x, _CLASSES, W, _SAMPLES, reduce), (4, 3), (3, 3)),
    *_both("negative_sampling", lambda x, W, reduce: F.negative_sampling(x, _CLASSES, W, _SAMPLER.sample, 2, reduce=reduce),
           (4, 3), (4, 3), reduce="sum"),
    Case("negative_sampling ignores", lambda x, W: F.negative_sampling(x, np.array([0, -1, 1, -1], np.int32), W, _SAMPLER.sample, 2),
         (4, 3), (4, 3)),
    Case("negative_sampling of samples", lambda x, W: F.negative_sampling(
        x, _CLASSES, W, _SAMPLER.sample, 2, return_samples=True)[0], (4, 3), (4, 3)),
    *_both("connectionist_temporal_classification", lambda a, b, c, reduce: F.connectionist_temporal_classification(
        [a, b, c], _LABELS, 2, reduce=reduce), (2, 3), (2, 3), (2, 3)),
    Case("connectionist_temporal_classification of lengths", lambda a, b, c: F.connectionist_temporal_classification(
        [a, b, c], _LABELS, 2, _LENGTHS, np.array([2, 1], np.int32)), (2, 3), (2, 3), (2, 3)),
    *_both("crf1d", lambda cost, a, b, c, reduce: F.crf1d(cost, [a, b, c], _PATHS, reduce), (3, 3), (2, 3), (2, 3),
           (1, 3)),
    Case("argmax_crf1d", lambda cost, a, b: F.argmax_crf1d(cost, [a, b]), (3, 3), (2, 3), (1, 3)),
    *(Case(f"discriminative_margin_based_clustering_loss {norm}",
           lambda x, norm=norm: F.discriminative_margin_based_clustering_loss(x, _INSTANCES, 0.5, 1.5, 3, norm=norm), (3, 3, 2, 2))
      for norm in (1, 2)),
]

"""Calls of chainer.functions.pooling."""
import chainer.functions as F
import numpy as np

from .case import Case

#: all numbers equal, and one that is not a number: the first of several maxima, and NaN
TIES = np.zeros((1, 1, 4, 4), "f")
HOLES = np.where(np.arange(2 * 3 * 16 * 16).reshape(2, 3, 16, 16) % 11 == 5, np.nan, 1).astype("f")
PLACES = np.random.RandomState(0).randint(0, 4, (2, 3, 2, 3))


def of(function, *args, **options):
    return lambda x: function(x, *args, **options)


_REGIONS = np.array([[0, 0, 5, 5], [1, 2, 4, 3], [2, 2, 2, 2], [-3, 4, 1, 9], [6, 7, 8, 9]], "f")
_IMAGES = np.array([0, 1, 0, -1, 1], np.int32)


def regions(function, *outsize, scale=0.8, shape=(2, 3, 5, 6), **options):
    """Pooling of regions, some of them empty or not all in the image; those of `roi_pooling_2d` name their image."""
    name = f"{function.__name__} {outsize} {scale} {options}"
    align = {"dtypes": "f"} if "align" in name else {}
    if function is F.roi_pooling_2d:
        rows = np.concatenate([_IMAGES[:4, None], _REGIONS[:4, [1, 0, 3, 2]]], 1)
        rows[3, 1:] = -1, -2, 3, 2                          # of regions beyond the last pixel, Chainer's own backward fails
        return Case(name, lambda x: function(x, rows.astype(x.dtype), *outsize, scale), shape, twice=False)
    return Case(name, lambda x: function(x, _REGIONS.astype(x.dtype), _IMAGES, *outsize, scale, **options), shape, twice=False, **align)


CASES = [
    *(regions(F.roi_pooling_2d, 2, 3, scale=scale) for scale in (0.8, 1, 0.3)),
    *(regions(f, outsize, scale=scale) for f in (F.roi_max_pooling_2d, F.roi_average_pooling_2d)
      for outsize, scale in (((2, 3), 0.8), (4, 1), ((1, 7), 0.3))),
    *(regions(f, outsize, scale=scale, **options) for f in (F.roi_max_align_2d, F.roi_average_align_2d)
      for outsize, scale, options in (((2, 3), 0.8, {}), (2, 1, {"sampling_ratio": 2}), ((1, 2), 1.5, {"sampling_ratio": (None, 3)}))),
    Case("max_pooling_2d", of(F.max_pooling_2d, 2), (2, 3, 4, 6)),
    Case("max_pooling_2d overlapping", of(F.max_pooling_2d, 3, stride=(1, 2), pad=1), (2, 2, 5, 6)),
    Case("max_pooling_2d cover_all", of(F.max_pooling_2d, 2, cover_all=True), (1, 2, 5, 3)),
    Case("max_pooling_2d no cover_all", of(F.max_pooling_2d, (3, 2), cover_all=False), (1, 2, 5, 3)),
    Case("max_pooling_2d large", of(F.max_pooling_2d, 3, stride=2, pad=1), (2, 3, 28, 28), dtypes="f d"),
    Case("max_pooling_2d of all", of(F.max_pooling_2d, (16, 17)), (1, 2, 16, 17), dtypes="f"),
    Case("max_pooling_2d of equals", lambda x: F.max_pooling_2d(x * TIES.astype(x.dtype), 2, stride=1), (1, 1, 4, 4)),
    Case("max_pooling_2d of NaN", lambda x: F.max_pooling_2d(x * HOLES, 2, stride=1), (2, 3, 16, 16), dtypes="f"),
    Case("max_pooling_1d", of(F.max_pooling_1d, 3, stride=2), (2, 3, 8)),
    Case("max_pooling_3d", of(F.max_pooling_3d, (2, 1, 2), pad=(1, 0, 0)), (1, 2, 3, 3, 4)),
    Case("average_pooling_2d", of(F.average_pooling_2d, 2), (2, 3, 4, 6)),
    Case("average_pooling_2d overlapping", of(F.average_pooling_2d, 3, stride=(1, 2), pad=1), (2, 2, 5, 6)),
    Case("average_pooling_2d large", of(F.average_pooling_2d, (3, 2), stride=2), (2, 3, 28, 28)),
    Case("average_pooling_2d of all", of(F.average_pooling_2d, (4, 6)), (2, 3, 4, 6)),
    Case("average_pooling_2d of nobody", of(F.average_pooling_2d, 2), (0, 3, 4, 6)),
    Case("average_pooling_1d", of(F.average_pooling_1d, 3, stride=2, pad=1), (2, 3, 8)),
    Case("average_pooling_3d", of(F.average_pooling_3d, (2, 1, 2)), (1, 2, 4, 3, 4)),
    Case("unpooling_2d", of(F.unpooling_2d, 2), (2, 3, 2, 3)),
    Case("unpooling_2d blocks", of(F.unpooling_2d, 2, cover_all=False), (2, 3, 2, 3)),
    Case("unpooling_2d overlapping", of(F.unpooling_2d, 3, stride=2, pad=1, outsize=(5, 6)), (2, 3, 3, 4)),
    Case("unpooling_1d", of(F.unpooling_1d, 3, stride=2), (2, 3, 4)),
    Case("unpooling_3d", of(F.unpooling_3d, 2, outsize=(4, 3, 4)), (1, 2, 2, 2, 2)),
    Case("upsampling_2d", of(F.upsampling_2d, PLACES, 2, cover_all=False), (2, 3, 2, 3)),
    Case("upsampling_2d overlapping", of(F.upsampling_2d, PLACES, 2, stride=1, outsize=(3, 4)),
         (2, 3, 2, 3)),
    Case("upsampling_2d of pooled", lambda x: F.upsampling_2d(*F.max_pooling_2d(x, 2, return_indices=True), 2, outsize=(5, 6)),
         (2, 3, 5, 6)),
    Case("spatial_pyramid_pooling_2d", of(F.spatial_pyramid_pooling_2d, 2, pooling="max"), (2, 3, 5, 4)),
]

DECLINED = [
    Case("average_pooling_nd without its padding", of(F.average_pooling_nd, 2, pad=1, pad_value=None), (2, 3, 4, 4)),
    Case("unpooling_2d of padded blocks", of(F.unpooling_2d, 2, pad=(2, 0), cover_all=False), (2, 3, 4, 4)),
]

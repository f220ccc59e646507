"""Calls of chainer.functions.pooling."""
import chainer.functions as F
import numpy as np
from lowering_cases.case import Case

_REGIONS = np.array([[0, 0, 5, 5], [1, 2, 4, 3], [2, 2, 2, 2]], "f")
_IMAGES = np.array([0, 1, 0], np.int32)
_SHAPES = {1: (2, 3, 5), 2: (2, 3, 5, 4), 3: (1, 2, 4, 3, 4)}
_POOLINGS = {1: (F.max_pooling_1d, F.average_pooling_1d, F.unpooling_1d), 2: (F.max_pooling_2d, F.average_pooling_2d, F.unpooling_2d),
             3: (F.max_pooling_3d, F.average_pooling_3d, F.unpooling_3d)}


def _poolings():
    for n, functions in _POOLINGS.items():
        for f in functions:
            for options in ({}, {"stride": 1, "pad": 1}, {"stride": 2}):
                yield Case(f"{f.__name__} {options}", lambda x, f=f, options=options: f(x, 3 if "pad" in options else 2, **options),
                           _SHAPES[n])


def _regions(function, *outsize, **options):
    """Pooling of the regions; those of `roi_pooling_2d` name their image."""
    if function is F.roi_pooling_2d:
        regions = np.concatenate([_IMAGES[:, None].astype("f"), _REGIONS], 1)
        return Case(function.__name__, lambda x: function(x, regions.astype(x.dtype), *outsize, 0.8), (2, 2, 5, 6))
    return Case(f"{function.__name__} {outsize} {options}",
                lambda x: function(x, _REGIONS.astype(x.dtype), _IMAGES, *outsize, 0.8, **options), (2, 2, 5, 6))


CASES = [
    *_poolings(),
    *(Case(f"{f.__name__} not all", lambda x, f=f: f(x, 2, 3, cover_all=False), (1, 2, 5, 5)) for f in (F.max_pooling_2d, F.max_pooling_nd)),
    *(Case(f"{f.__name__} of a size", lambda x, f=f: f(x, (2, 1), (1, 2)), (1, 2, 5, 5))
      for f in (F.max_pooling_2d, F.average_pooling_2d, F.max_pooling_nd, F.average_pooling_nd)),
    *(Case(f"{f.__name__} ties", lambda x, f=f: f(F.concat([x, x], 2), 2), (1, 2, 2, 2)) for f in (F.max_pooling_2d, F.max_pooling_nd)),
    *(Case(f"{f.__name__} indices", lambda x, f=f: f(x, 2, return_indices=True), (1, 2, 4, 4))
      for f in (F.max_pooling_2d, F.max_pooling_nd)),
    Case("average_pooling_nd without padding", lambda x: F.average_pooling_nd(x, 2, 2, 1, None), (1, 2, 4)),
    Case("unpooling_nd", lambda x: F.unpooling_nd(x, 2, cover_all=False), (1, 2, 3)),
    Case("unpooling_2d sized", lambda x: F.unpooling_2d(x, 2, outsize=(4, 5)), (1, 2, 2, 3)),
    Case("upsampling_2d", lambda x: F.upsampling_2d(*F.max_pooling_2d(x, 2, return_indices=True), 2), (1, 2, 4, 4)),
    Case("upsampling_2d of given indexes", lambda x: F.upsampling_2d(x, np.array([[[[0, 3], [1, 2]]]]), 2, outsize=(4, 4), cover_all=False),
         (1, 1, 2, 2)),
    *(Case(f"spatial_pyramid_pooling_2d {height}", lambda x, height=height: F.spatial_pyramid_pooling_2d(x, height, "max"), (2, 2, 4, 5))
      for height in (1, 3)),
    _regions(F.roi_pooling_2d, 2, 3),
    _regions(F.roi_max_pooling_2d, (2, 3)),
    _regions(F.roi_average_pooling_2d, (2, 3)),
    *(_regions(f, (2, 2), **options) for f in (F.roi_max_align_2d, F.roi_average_align_2d)
      for options in ({}, {"sampling_ratio": 2})),
]

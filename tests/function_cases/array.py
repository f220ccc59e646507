"""Calls of chainer.functions.array."""
import chainer.functions as F
import numpy as np
from lowering_cases.case import Case, unary

_ROWS = np.array([1, 0, 1])

CASES = [
    *unary("reshape function", lambda x: F.reshape(x, (-1, 1))),
    Case("as_strided", lambda x: F.as_strided(x, (2, 2), (3, 1)), (2, 3)),
    Case("as_strided overlapping", lambda x: F.as_strided(x, (2, 3), (1, 1), 1), (6,)),
    Case("depth2space", lambda x: F.depth2space(x, 2), (2, 8, 2, 3)),
    Case("depth2space one", lambda x: F.depth2space(x, 1), (1, 1, 1, 1)),
    Case("space2depth", lambda x: F.space2depth(x, 2), (2, 2, 4, 2)),
    *(Case(f"diagonal {shape} {axes}", lambda x, axes=axes: F.diagonal(x, *axes), shape)
      for shape, axes in (((3, 3), ()), ((2, 4), (1,)), ((3, 2), (-1,)), ((2, 3, 4), (0, 1, 2)), ((2, 3, 4), (-1, 2, 0)))),
    *(Case(f"dstack {shapes}", lambda *xs: F.dstack(xs), *shapes)
      for shapes in ([(2, 3), (2, 3)], [(3,), (3,)], [(), ()], [(2, 3, 1), (2, 3, 2)], [(2, 0)])),
    *(Case(f"im2col {options}", lambda x, options=options: F.im2col(x, 2, **options), (2, 3, 4, 5))
      for options in ({}, {"stride": 2, "pad": 1}, {"cover_all": True, "stride": 3}, {"dilate": (1, 2)})),
    *(Case(f"resize_images {shape} {options}", lambda x, shape=shape, options=options: F.resize_images(x, shape, **options),
           (2, 2, 4, 3), dtypes="f d" if options else "e f d")
      for shape, options in (((2, 5), {}), ((4, 3), {}), ((1, 1), {}), ((3, 4), {"align_corners": False}),
                             ((5, 2), {"mode": "nearest"}), ((8, 9), {"mode": "nearest", "align_corners": False}))),
    Case("scatter_add", lambda a, b: F.scatter_add(a, _ROWS, b), (4, 2), (3, 2)),
    Case("scatter_add of a slice", lambda a, b: F.scatter_add(a, (slice(1, 3), 0), b), (4, 2), (2,)),
    Case("scatter_add of a mask", lambda a, b: F.scatter_add(a, np.array([True, False, True]), b), (3, 2), (2, 2)),
    *(Case(f"spatial_transformer_grid {shape}", lambda theta, shape=shape: F.spatial_transformer_grid(theta, shape), (2, 2, 3))
      for shape in ((3, 4), (1, 1))),
    Case("spatial_transformer_sampler", lambda x, grid: F.spatial_transformer_sampler(x, grid), (2, 3, 4, 5), (2, 2, 3, 2),
         low=-0.9, high=0.9),
    Case("spatial_transformer_sampler beyond", lambda x, grid: F.spatial_transformer_sampler(x, grid), (2, 1, 3, 3), (2, 2, 4, 4)),
]

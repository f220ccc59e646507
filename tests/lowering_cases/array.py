"""Calls of chainer.functions.array."""
import chainer.functions as F
import numpy as np

from .case import IDS, Case, unary

CASES = [
    Case("transpose_sequence", lambda *xs: F.transpose_sequence(xs), (3, 2), (3, 2), (1, 2)),
    Case("transpose_sequence of one", lambda *xs: F.transpose_sequence(xs), (1, 2), (1, 2)),
    Case("pad_sequence", lambda *xs: F.pad_sequence(xs, padding=-1), (1, 2), (3, 2)),
    Case("pad_sequence to length", lambda *xs: F.pad_sequence(xs, 4), (0, 2), (3, 2)),
    *(Case(f"permutate {inv}", lambda x, inv=inv: F.permutate(x, np.array([2, 0, 1]), 1, inv), (2, 3))
      for inv in (False, True)),
    *unary("reshape", lambda x: x.reshape(-1, 1)),
    *unary("flatten", F.flatten),
    *unary("expand_dims", lambda x: F.expand_dims(x, 0)),
    *unary("expand_dims last", lambda x: F.expand_dims(x, -1)),
    Case("squeeze", F.squeeze, (1, 3, 1)),
    Case("squeeze axis", lambda x: F.squeeze(x, -1), (1, 3, 1)),
    Case("squeeze axes", lambda x: F.squeeze(x, (0, 2)), (1, 3, 1)),
    Case("broadcast_to", lambda x: F.broadcast_to(x, (4, 2, 3)), (2, 1)),
    Case("broadcast", lambda a, b: F.broadcast(a, b), (2, 1), (3,)),
    *unary("transpose", F.transpose),
    Case("transpose axes", lambda x: F.transpose(x, (1, -1, 0)), (2, 3, 4)),
    Case("swapaxes", lambda x: F.swapaxes(x, 0, -1), (2, 3, 4)),
    Case("rollaxis", lambda x: F.rollaxis(x, 2, 1), (2, 3, 4)),
    Case("rollaxis negative", lambda x: F.rollaxis(x, -1), (2, 3, 4)),
    Case("moveaxis", lambda x: F.moveaxis(x, 0, -1), (2, 3, 4)),
    Case("moveaxis two", lambda x: F.moveaxis(x, (0, 1), (-1, 0)), (2, 3, 4)),
    Case("flip", lambda x: F.flip(x, -1), (2, 3)),
    Case("fliplr", F.fliplr, (2, 3)),
    *(Case(f"getitem {index}", lambda x, index=index: x[index], (4, 3)) for index in (
        0, -1, slice(1, 3), (slice(None), 1), (1, 2), (Ellipsis, 0), None, slice(None, None, -2), (0, slice(5, 9)),
        (Ellipsis, 1, np.int64(2)))),
    Case("getitem one", lambda x: x[()], ()),
    *(Case(f"getitem {index}", lambda x, index=index: x[index], (4, 3)) for index in (
        [0, 3, 0], [], (slice(None), [2, 2]), [[0, 1], [1, 2]], (slice(None, None, 2), [0, -1]), ([3], None, 1),
        (0, [1, 1, 0]), [True, False, True, True], (Ellipsis, [1, 0]), (Ellipsis, [True, False, True]), (None, [True, False, True, False], slice(2)), ([[True, False, True]] * 4,))),
    Case("getitem arrays", lambda x: x[IDS, :, IDS[0]], (4, 2, 3)),
    Case("getitem arrays side by side", lambda x: x[1:, IDS, IDS[0]], (3, 4, 3)),
    Case("getitem array of none", lambda x: x[IDS[:0], 1], (4, 3)),
    *(Case(f"scatter_add {index}", lambda a, b, index=index: F.scatter_add(a, index, b), (4, 3), shape)
      for index, shape in (([0, 3, 0], (3, 3)), (slice(1, 3), (2, 3)), (2, (3,)), ((1, 2), ()), ([[0, 0], [1, 1]], (2,)),
                           ((slice(None), [0, 2]), (4, 2)), ([True, False, True, True], (3, 3)), (Ellipsis, (4, 3)))),
    Case("scatter_add of an array", lambda a, b: F.scatter_add(a, (IDS, slice(2)), b), (4, 3), (2, 2, 2)),
    *(Case(f"split_axis {indices}", lambda x, indices=indices: F.split_axis(x, indices, 1), (2, 6))
      for indices in (2, 1, [1, 4], [0, 0, 6], (2,), [], np.array([1, 4]), np.array([], np.int64))),
    Case("split_axis some", lambda x: F.split_axis(x, 3, -1)[1], (2, 6)),
    Case("separate", lambda x: F.separate(x, 1), (2, 3)),
    Case("separate some", lambda x: F.separate(x)[1], (2, 3)),
    Case("separate one", lambda x: F.separate(x), (1, 3)),
    Case("getitem array", lambda x: x[IDS], (4, 3)),
    Case("getitem array second", lambda x: x[:, IDS[0]], (4, 3)),
    *(Case(f"pad {width}", lambda x, width=width: F.pad(x, width, "constant"), (2, 3))
      for width in (1, (1, 2), [[1, 0], [0, 2]])),
    *(Case(f"pad {mode} {options}", lambda x, mode=mode, options=options: F.pad(x, ((0, 1), (2, 1)), mode, **options), (2, 3))
      for mode, options in (("edge", {}), ("reflect", {"reflect_type": "odd"}), ("symmetric", {}), ("wrap", {}), ("mean", {}),
                            ("maximum", {"stat_length": 2}), ("linear_ramp", {"end_values": (1, 2)}),
                            ("constant", {"constant_values": np.float32(0.1)}))),
    *(Case(f"diagonal {options}", lambda x, options=options: F.diagonal(x, *options), (2, 3, 4))
      for options in ((), (1,), (-1, 2, 1), (0, 0, -1), (5,))),
    *(Case(f"depth2space {r}", lambda x, r=r: F.depth2space(x, r), (2, 8, 2, 3)) for r in (1, 2)),
    *(Case(f"space2depth {r}", lambda x, r=r: F.space2depth(x, r), (2, 2, 4, 6)) for r in (1, 2)),
    *(Case(f"resize_images {size} {options}", lambda x, size=size, options=options: F.resize_images(x, size, **options),
           (2, 2, 3, 4), dtypes="f")
      for size, options in (((5, 6), {}), ((2, 2), {"align_corners": False}), ((5, 3), {"mode": "nearest"}), ((3, 4), {}))),
    *(Case(f"im2col {options}", lambda x, options=options: F.im2col(x, **options), (2, 2, 4, 5))
      for options in ({"ksize": 3}, {"ksize": (2, 3), "stride": 2, "pad": 1, "cover_all": True}, {"ksize": 2, "dilate": 2})),
    Case("spatial_transformer_grid", lambda x: F.spatial_transformer_grid(x, (3, 2)), (2, 2, 3), exact=False, twice=False),
    *(Case(f"spatial_transformer_sampler {bound}", F.spatial_transformer_sampler, (2, 2, 3, 4), (2, 2, 3, 2), low=-bound,
           high=bound, twice=False) for bound in (0.9, 3.0)),
    Case("spatial_transformer_sampler on the border", lambda x: F.spatial_transformer_sampler(
        x, F.spatial_transformer_grid(np.array([[[2, 0, 0], [0, 2, 0]]], x.dtype), (5, 3))), (1, 1, 3, 3), twice=False),
    Case("flipud", F.flipud, (2, 3)),
    Case("select_item", lambda x: F.select_item(x, IDS[0]), (2, 3)),
    Case("concat", lambda *xs: F.concat(xs), (2, 3), (2, 0), (2, 1)),
    Case("concat axis", lambda *xs: F.concat(xs, axis=-2), (2, 3), (1, 3)),
    Case("concat one", lambda *xs: F.concat(xs), (2, 3)),
    Case("stack", lambda *xs: F.stack(xs), (2, 3), (2, 3)),
    Case("stack last", lambda *xs: F.stack(xs, -1), (), ()),
    *(Case(f"{f.__name__} {shapes}", lambda *xs, f=f: f(xs), *shapes) for f in (F.hstack, F.vstack, F.dstack)
      for shapes in ([(2, 3), (2, 3)], [(3,), (3,)], [(), ()], [(2, 3)], [()])),
    Case("dstack of images", lambda *xs: F.dstack(xs), (2, 3, 1), (2, 3, 2)),
    *(Case(f"tile {reps}", lambda x, reps=reps: F.tile(x, reps), (2, 3))
      for reps in (2, (1, 1), (2, 1, 2), (0, 1), (3, 1))),
    Case("tile column", lambda x: F.tile(x, (1, 4)), (2, 1)),
    Case("repeat", lambda x: F.repeat(x, 2, axis=1), (2, 3)),
    Case("repeat flat", lambda x: F.repeat(x, 2), (2, 3)),
    Case("repeat each", lambda x: F.repeat(x, (1, 2, 0), axis=1), (2, 3)),
    Case("repeat each flat", lambda x: F.repeat(x, (2, 1, 0, 3)), (2, 2)),
    Case("repeat once", lambda x: F.repeat(x, 1, axis=0), (2, 3)),
    *(Case(f"cast {dtype}", lambda x, dtype=dtype: F.cast(x, dtype), (2, 3)) for dtype in ("f", "d", np.float16)),
    Case("cast to int and back", lambda x: F.cast(F.cast(x, "i"), "f"), (2, 3)),
    Case("copy", lambda x: F.copy(x, "@numpy"), (2, 3)),
    Case("where", lambda a, b: F.where(np.array([True, False, True]), a, b), (4, 3), (4, 3)),
    Case("where broadcast", lambda a, b: F.where(np.array([True, False, True]), a, b), (4, 1), ()),
]

DECLINED = [
    Case("overlapping parts", lambda x: F.split_axis(x, [3, 1], 0), (4, 3)),
    Case("index of a mask", lambda x: x[np.array([True, False, True, True])], (4, 3)),
    Case("padding that is not filled", lambda x: F.pad(x, 1, "empty")[1:-1, 1:-1], (4, 3)),
    Case("strides", lambda x: F.as_strided(x, (2, 2), (1, 1)), (4, 3)),
]

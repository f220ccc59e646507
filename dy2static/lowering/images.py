"""Lowerings of `chainer.functions.array`: padding, pixels as channels, patches, images of another size."""
from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import numpy as np
from chainer.functions.array.depth2space import Depth2Space
from chainer.functions.array.im2col import Im2Col
from chainer.functions.array.pad import Pad
from chainer.functions.array.resize_images import ResizeImages, compute_indices_and_weights
from chainer.functions.array.space2depth import Space2Depth
from chainer.functions.array.spatial_transformer_grid import SpatialTransformerGrid
from chainer.functions.array.spatial_transformer_sampler import SpatialTransformerSampler

from .. import ops
from ..ir.building import constant
from ..ir.dims import equal, less
from ..ir.graph import Value
from ..ir.size_bounds import is_positive
from ..ir.template import AT
from ..ir.types import dims_in
from .registry import are_fixed, are_there, ints, is_number, lowers, number_of, numbers_of_windows, size_of

# Padding --------------------------------------------------------------------------------------------------------


@lowers(Pad)
def pad(node: Any, x: Value) -> Optional[Value]:
    # Backward takes the padding off, which is the derivative for constant padding alone; it reads ``pad_width`` as
    # NumPy does, unless that is one row for several axes.  Padding that is not filled holds anything.
    pairs = _widths(node.pad_width, x.ndim)
    if pairs is None:
        return None
    if node.mode == "constant" and not node.keywords:
        index = tuple(slice(before, before + n) for (before, _), n in zip(pairs, x.shape))
        return ops.scatter_slice(x, index=index, shape=tuple(n + sum(pair) for pair, n in zip(pairs, x.shape)))
    keywords = tuple((name, _plain(value)) for name, value in node.keywords.items())
    if node.mode not in _PAD_MODES or any(value is None for _, value in keywords) or x.ndim == 0 or not is_positive(size_of(x)):
        return None
    return ops.pad(x, width=pairs, mode=node.mode, keywords=keywords)


def _widths(given: Any, axes: int) -> Optional[Tuple[Tuple[Any, ...], ...]]:
    """How wide the padding is before and behind, for each axis; None for what NumPy reads in another way."""
    pairs = [ints(pair) for pair in given] if isinstance(given, (tuple, list)) else []
    if len(pairs) == axes and all(pair is not None and len(pair) == 2 for pair in pairs) and not are_fixed(*pairs):
        return tuple(pairs)                             # type: ignore[arg-type]
    if any(True for _ in dims_in(given)):
        return None
    widths = np.asarray(given)
    if widths.dtype.kind != "i" or widths.ndim == 2 and len(widths) != axes:
        return None
    return tuple((int(before), int(after)) for before, after in np.broadcast_to(widths, (axes, 2)))


_PAD_MODES = ("constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap")


def _plain(option: Any) -> Any:
    """Numbers known now, tuples of them, or a text; None for what is neither."""
    if isinstance(option, (list, tuple, np.ndarray)):
        parts = tuple(map(_plain, option))
        return None if None in parts else parts
    return option if isinstance(option, str) else np.asarray(option).item() if is_number(option) else None


# Blocks of pixels as channels -----------------------------------------------------------------------------------


@lowers(Depth2Space)
def depth2space(node: Any, x: Value) -> Optional[Value]:
    n, c, h, w = x.shape
    r = node.r
    if type(r) is not int or r <= 0 or not equal(c % (r * r), 0):
        return None
    y = ops.reshape(ops.transpose(x, axes=(0, 2, 3, 1)), shape=(n, h, w, r, r, c // (r * r)))
    y = ops.reshape(ops.transpose(y, axes=(0, 1, 3, 2, 4, 5)), shape=(n, h * r, w * r, c // (r * r)))
    return ops.transpose(y, axes=(0, 3, 1, 2))


@lowers(Space2Depth)
def space2depth(node: Any, x: Value) -> Optional[Value]:
    n, c, h, w = x.shape
    r = node.r
    if type(r) is not int or r <= 0 or not (equal(h % r, 0) and equal(w % r, 0)):
        return None
    y = ops.reshape(x, shape=(n, c, h // r, r, w // r, r))
    return ops.reshape(ops.transpose(y, axes=(0, 3, 5, 1, 2, 4)), shape=(n, r * r * c, h // r, w // r))


@lowers(Im2Col)
def im2col(node: Any, x: Value) -> Optional[Value]:
    kernel, stride, pad = ints((node.kh, node.kw)), ints((node.sy, node.sx)), ints((node.ph, node.pw))
    dilate = ints((node.dy, node.dx))
    if None in (kernel, stride, pad, dilate):
        return None
    size = numbers_of_windows(x.shape[2:], kernel, stride, pad, dilate, node.cover_all)
    if size is None:
        return None
    y = ops.im2col(x, kernel=kernel, size=size, stride=stride, pad=pad, dilate=dilate)
    return ops.reshape(y, shape=(x.shape[0], x.shape[1] * kernel[0] * kernel[1], *size))


# Another size ---------------------------------------------------------------------------------------------------


@lowers(ResizeImages)
def resize_images(node: Any, x: Value) -> Optional[Value]:
    # each pixel is a weighted sum of four, also for the nearest, whose other weights are zero
    n, c, h, w = x.shape
    out = ints((node.out_H, node.out_W))
    if out is None or not all(is_positive(size) for size in out) or not are_there(x):
        return None
    if not are_fixed((h, w, *out)):
        return _resized(x, out, node.mode, node.align_corners)
    v, u, dv, du = compute_indices_and_weights(out, (h, w), node.mode, node.align_corners, np)
    v, u, dv, du = np.broadcast_arrays(v[:, None].astype(np.intp), u.astype(np.intp), dv[:, None].astype(x.dtype),
                                       du.astype(x.dtype))
    below, right = np.minimum(v + 1, h - 1), np.minimum(u + 1, w - 1)
    indices = np.stack([v * w + u, v * w + right, below * w + u, below * w + right])
    left = 1 - du
    weights = np.stack([left - left * dv, du - du * dv, left * dv, du * dv])
    y = ops.weighted_take(ops.reshape(x, shape=(n * c, h * w)), constant(indices.reshape(4, -1)),
                          constant(weights.reshape(4, -1).astype(x.dtype)))
    return ops.reshape(y, shape=(n, c, *out))


def _resized(x: Value, out: Tuple[Any, ...], mode: str, align_corners: bool) -> Optional[Value]:
    """`resize_images` where sizes are known at run time only: places and weights are computed there."""
    n, c, h, w = x.shape
    places = [_places(size, of, mode, align_corners) for size, of in zip(out, (h, w))]
    if None in places:
        return None
    (v, dv), (u, du) = [tuple([ops.broadcast_to(ops.reshape(part, shape=shape), shape=out) for part in pair])
                        for pair, shape in zip(places, ((out[0], 1), (1, out[1])))]
    dv, du = ops.cast(dv, dtype=x.dtype), ops.cast(du, dtype=x.dtype)
    below, right = ops.minimum(v + 1, _whole(h) - 1), ops.minimum(u + 1, _whole(w) - 1)
    indices = [row * _whole(w) + column for row in (v, below) for column in (u, right)]
    left = 1 - du
    weights = [left - left * dv, du - du * dv, left * dv, du * dv]
    y = ops.weighted_take(ops.reshape(x, shape=(n * c, h * w)), _stacked(indices, out), _stacked(weights, out))
    return ops.reshape(y, shape=(n, c, *out))


def _stacked(parts: Sequence[Value], out: Tuple[Any, ...]) -> Value:
    return ops.reshape(ops.stack(*parts, axis=0), shape=(len(parts), out[0] * out[1]))


def _whole(size: Any) -> Value:
    """A size as a 0-d array of int64."""
    return ops.cast(number_of(size), dtype=np.int64)


def _places(out: Any, size: Any, mode: str, align_corners: bool) -> Optional[Tuple[Value, Value]]:
    """For each of ``out`` pixels the one of ``size`` before it, and the distance from it, in float64: as Chainer finds them."""
    moments = ops.arange(start=0, stop=out, dtype=np.float64)
    wide, narrow = number_of(size), number_of(out)
    if mode == "nearest":
        whole = ops.minimum(ops.floor(moments * (wide / narrow)), wide - 1)
        return ops.cast(whole, dtype=np.int64), whole * 0
    if not align_corners:
        place = ops.maximum((moments + 0.5) * (wide / narrow) - 0.5, constant(0.0))
    elif less(1, out):                                  # `np.linspace`: the last one is exact
        place = ops.where(moments < narrow - 1, moments * ((wide - 1) / (narrow - 1)), wide - 1)
    else:
        return None
    whole = ops.floor(place)                            # no place is below zero
    return ops.cast(whole, dtype=np.int64), place - whole


# Values at any place ---------------------------------------------------------------------------------------------


@lowers(SpatialTransformerGrid)
def spatial_transformer_grid(node: Any, theta: Value) -> Optional[Value]:
    shape = ints(node.output_shape)
    if shape is None or len(shape) != 2 or not are_fixed(theta.shape[1:], shape):
        return None
    v, u = np.meshgrid(*(np.linspace(-1, 1, n, dtype=theta.dtype) for n in shape), indexing="ij")
    places = np.stack([u, v, np.ones_like(u)]).reshape(3, -1)
    count = theta.shape[0]
    return ops.reshape(ops.matmul(ops.reshape(theta, shape=(count * 2, 3)), constant(places)), shape=(count, 2, *shape))


@lowers(SpatialTransformerSampler)
def spatial_transformer_sampler(node: Any, x: Value, grid: Value) -> Optional[Value]:
    # Each place has four neighbours, in an image with a border of zeros.  Shares are taken in double precision.  Where a
    # place is outside, or just on the border, it has no gradient.
    n, c, *sizes = x.shape
    if x.dtype != grid.dtype or not are_fixed(sizes) or not are_there(x, grid):
        return None
    spots = grid.shape[2] * grid.shape[3]
    image = ops.scatter_slice(x, index=(slice(None), slice(None), *(slice(1, 1 + size) for size in sizes)),
                              shape=(n, c, *(size + 2 for size in sizes)))
    row = ops.reshape(ops.arange(start=0, stop=n), shape=(n, 1))
    (v0, dv0, dv1), (u0, du0, du1) = (_neighbours(ops.reshape(ops.getitem(grid, index=(slice(None), axis)), shape=(n, spots)), size)
                                      for axis, size in ((1, sizes[0]), (0, sizes[1])))
    y: Any = None
    for v, u, share in ((v0, u0, du1 * dv1), (v0, u0 + 1, du0 * dv1), (v0 + 1, u0, du1 * dv0), (v0 + 1, u0 + 1, du0 * dv0)):
        part = ops.reshape(ops.cast(share, dtype=x.dtype), shape=(n, spots, 1)) * \
            ops.pick(image, row, v, u, index=(AT, slice(None), AT, AT))
        y = part if y is None else y + part
    return ops.transpose(ops.reshape(y, shape=(n, *grid.shape[2:], c)), axes=(0, 3, 1, 2))


def _neighbours(place: Value, size: int) -> Any:
    """For places between -1 and 1 along an axis of ``size``: the element before each, the distances from it and to the next."""
    place = (place + 1) * (size - 1) / 2 + 1
    inside = ops.logical_and(place > 0, place < size + 1)
    place = ops.where(inside, place, ops.stop_gradient(ops.clip(place, x_min=0, x_max=size + 1)))
    before = ops.clip(ops.cast(ops.floor(ops.stop_gradient(place)), dtype="int32"), x_min=0, x_max=size)
    place, start = ops.cast(place, dtype="float64"), ops.cast(before, dtype="float64")
    return before, place - start, ops.cast(before + 1, dtype="float64") - place

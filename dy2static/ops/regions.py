"""Pooling of regions of interest: rectangles in images, whose bounds are contents of an array.

``x`` is ``(batch, channels, height, width)``; each row of ``rois`` is ``ymin xmin ymax xmax``, in an image whose number is the
entry of ``images``.  A region has ``size`` bins.  Bounds are computed with the same scalars as Chainer's, channels at once.
"""
from __future__ import annotations

import itertools
import math
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from ..ir.op import ON_HOST, OpDef, declare, sample
from ..ir.types import Tensor
from .loss import last_gradient, never
from .onnx_forms import windows
from .rules import need_dtype

_ATTRS: Dict[str, Any] = {"size": (1, 1), "scale": 1.0}
_Pair = Tuple[int, int]
_Ratio = Tuple[Optional[int], Optional[int]]


def _pooled(x: Tensor, rois: Tensor, images: Tensor, *, size: _Pair, **_: Any) -> Tensor:
    need_dtype(x, "f", "an image")
    if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 4 or images.shape != rois.shape[:1]:
        raise ValueError(f"regions do not fit: {x} {rois} {images}")
    return Tensor((rois.shape[0], x.shape[1], *size), x.dtype)


def _with_places(x: Tensor, rois: Tensor, images: Tensor, **attrs: Any) -> Tuple[Tensor, Tensor]:
    y = _pooled(x, rois, images, **attrs)
    return y, Tensor(y.shape, np.dtype("int32"))


def _image_infer(g: Tensor, rois: Tensor, *_: Tensor, shape: Sequence[int], **attrs: Any) -> Tensor:
    return Tensor(tuple(shape), g.dtype)


# Bins of pixels -----------------------------------------------------------------------------------------------------


def _corners(roi: np.ndarray, scale: float) -> List[int]:
    return [int(round(bound * scale)) for bound in roi]


def _spans(low: int, high: int, bins: int, limit: int) -> Iterator[Tuple[int, slice]]:
    """The bins of a side from ``low`` to ``high`` that have pixels, and which."""
    stride = 1.0 * max(high - low, 1) / bins
    for k in range(bins):
        start = min(max(int(np.floor(k * stride)) + low, 0), limit)
        stop = min(max(int(np.ceil((k + 1) * stride)) + low, 0), limit)
        if start < stop:
            yield k, slice(start, stop)


def _bins(sizes: Sequence[int], rois: np.ndarray, images: np.ndarray, size: _Pair, scale: float,
          closed: bool = False) -> Iterator[Tuple[int, int, _Pair, slice, slice]]:
    """Of each bin with pixels: its region, the image, where it is in the result, and its rows and columns."""
    for n, roi in enumerate(rois):
        top, left, bottom, right = _corners(roi, scale)
        rows = list(_spans(top, bottom + closed, size[0], sizes[0]))
        columns = list(_spans(left, right + closed, size[1], sizes[1]))
        for (i, v), (k, u) in itertools.product(rows, columns):
            yield n, int(images[n]), (i, k), v, u


def _max(x: np.ndarray, rois: np.ndarray, images: np.ndarray, *, size: _Pair, scale: float, closed: bool) -> Sequence[np.ndarray]:
    shape, width = (len(rois), x.shape[1], *size), x.shape[3]
    y = np.full(shape, 0 if closed else -np.inf, x.dtype)
    places = np.full(shape, 0 if closed else -1, np.int32)
    for n, image, (i, k), v, u in _bins(x.shape[2:], rois, images, size, scale, closed):
        pixels = x[image, :, v, u].reshape(x.shape[1], -1)
        place = pixels.argmax(axis=1)
        columns = u.stop - u.start
        y[n, :, i, k] = pixels.max(axis=1)
        places[n, :, i, k] = (place // columns + v.start) * width + place % columns + u.start
    return y, places


def _max_grad(g: np.ndarray, rois: np.ndarray, images: np.ndarray, places: np.ndarray, *, shape: Sequence[int]) -> np.ndarray:
    gx = np.zeros(shape, g.dtype)
    n, c, i, k = np.nonzero(places != -1)
    place = places[n, c, i, k]
    np.add.at(gx, (images[n], c, place // shape[3], place % shape[3]), g[n, c, i, k])
    return gx


def _closed_max_grad(g: np.ndarray, rois: np.ndarray, images: np.ndarray, places: np.ndarray, *, size: _Pair, scale: float,
                     shape: Sequence[int]) -> np.ndarray:
    # Chainer looks for the maximum of a bin among the pixels that it says belong to it, also outside of the image
    gx, width = np.zeros(shape, g.dtype), shape[3]
    for n, roi in enumerate(rois):
        top, left, bottom, right = _corners(roi, scale)
        sides = [max(bottom - top + 1, 1) / float(size[0]), max(right - left + 1, 1) / float(size[1])]
        columns = [_bins_of(u - left, sides[1], size[1]) for u in range(left, right + 1)]
        rows = [_bins_of(v - top, sides[0], size[0]) for v in range(top, bottom + 1)]
        for (u, bins_u), (v, bins_v) in itertools.product(enumerate(columns, left), enumerate(rows, top)):
            for i, k in itertools.product(bins_v, bins_u):
                here = places[n, :, i, k] == v * width + u
                if here.any():
                    gx[int(images[n]), here, v, u] += g[n, here, i, k]
    return gx


def _bins_of(offset: int, stride: float, bins: int) -> range:
    return range(min(max(int(math.floor(offset / stride)), 0), bins), min(max(int(math.ceil((offset + 1) / stride)), 0), bins))


def _max_vjp(g: Any, y: Any, x: Any, rois: Any, images: Any, *, closed: bool, **attrs: Any) -> Tuple[Any, None, None]:
    if g[0] is None:
        return None, None, None
    if not closed:
        return region_max_grad(g[0], rois, images, y[1], shape=x.shape), None, None
    gx = region_max_grad_closed(g[0], rois, images, y[1], shape=x.shape, **attrs)
    return last_gradient(gx, rois, error=NotImplementedError), None, None


#: The maximum of each bin, and its place in the flat image.  closed: the last row and column of a region belong to it, an
#: empty bin has the maximum 0, and there is no second gradient.
region_max: OpDef = declare(
    "region_max", "x rois images", {**_ATTRS, "closed": False}, kind="reduction", may_raise=True, infer=_with_places, numpy=_max,
    cupy=ON_HOST,
    vjp=_max_vjp,
)

region_max_grad: OpDef = declare(
    "region_max_grad", "g rois images places", {"shape": ()}, kind="movement", may_raise=True, infer=_image_infer,
    numpy=_max_grad, cupy=ON_HOST, vjp=never,
)

region_max_grad_closed: OpDef = declare(
    "region_max_grad_closed", "g rois images places", {**_ATTRS, "shape": ()}, kind="movement", may_raise=True,
    infer=_image_infer, numpy=_closed_max_grad, cupy=ON_HOST, vjp=never,
)


def average_bins(x: np.ndarray, rois: np.ndarray, images: np.ndarray, size: _Pair, scale: float) -> np.ndarray:
    """The mean of the pixels of each bin."""
    y = np.zeros((len(rois), x.shape[1], *size), x.dtype)
    for n, image, (i, k), v, u in _bins(x.shape[2:], rois, images, size, scale):
        y[n, :, i, k] = np.average(x[image, :, v, u].reshape(x.shape[1], -1), axis=1)
    return y


def spread_bins(g: np.ndarray, rois: np.ndarray, images: np.ndarray, size: _Pair, scale: float, shape: Sequence[int]) -> np.ndarray:
    """What each bin gives to its pixels: the derivative of `average_bins`."""
    gx = np.zeros(shape, g.dtype)
    for n, image, (i, k), v, u in _bins(shape[2:], rois, images, size, scale):
        gx[image, :, v, u] += g[n, :, i, k, None, None] / (v.stop - v.start) / (u.stop - u.start)
    return gx


#: The mean of each bin; of an empty one, 0.
region_average: OpDef = declare(
    "region_average", "x rois images", _ATTRS, kind="reduction", may_raise=True, infer=_pooled,
    numpy="average_bins({x}, {rois}, {images}, {size}, {scale})", cupy=ON_HOST, calls=(average_bins,),
    vjp=lambda g, y, x, *regions, **attrs: (region_average_grad(g, *regions, shape=x.shape, **attrs), None, None),
    samples=(sample((2, 3, 5, 6), np.array([[0, 0, 5, 5], [1, 2, 4, 3]]), np.array([1, 0]), size=(2, 3), scale=0.8),),
)

region_average_grad: OpDef = declare(
    "region_average_grad", "g rois images", {**_ATTRS, "shape": ()}, kind="movement", may_raise=True, infer=_image_infer,
    numpy="spread_bins({g}, {rois}, {images}, {size}, {scale}, {shape})", cupy=ON_HOST, calls=(spread_bins,),
    vjp=lambda g, y, x, *regions, shape, **attrs: (region_average(g, *regions, **attrs), None, None),
)


# Bins of points between pixels --------------------------------------------------------------------------------------


class _Side:
    """One side of a region: in each of its bins as many points as ``ratio`` says, or as there are pixels."""

    def __init__(self, start: Any, end: Any, bins: int, ratio: Optional[int], limit: int):
        self.start, self.limit = start, limit
        length = max(end - start, 1.0)
        self.bin = length / bins
        self.ceiling = np.ceil(length / bins) if ratio is None else ratio
        self.count = int(self.ceiling)

    def point(self, k: int, i: Any, count: Any) -> Optional[Tuple[int, Any, int, Any]]:
        """Point ``i`` of bin ``k``: the pixel before it and its share, and those of the one behind; None outside."""
        p = self.start + k * self.bin + (i + 0.5) * self.bin / count
        if p < -1 or p > self.limit:
            return None
        low = int(np.floor(p))
        if low == self.limit:
            low -= 1
        high = low + 1
        p = 0 if low <= -1 else self.limit - 1 if high >= self.limit else p
        return low, high - p, high, p - low


def _sides(roi: np.ndarray, size: _Pair, scale: float, ratio: _Ratio, limits: Sequence[int]) -> List[_Side]:
    return [_Side(roi[k] * scale, roi[k + 2] * scale, size[k], ratio[k], limits[k]) for k in (0, 1)]


def _pixels(row: Any, column: Any, limits: Sequence[int]) -> Iterator[Tuple[Any, int, int]]:
    """The four pixels around a point, those that are in the image, with their shares."""
    if row is None or column is None:
        return
    for v, share_v in (row[:2], row[2:]):
        for u, share_u in (column[:2], column[2:]):
            share = share_v * share_u
            if share > 0 and 0 <= v < limits[0] and 0 <= u < limits[1]:
                yield share, v, u


def _wide(x: np.ndarray) -> np.ndarray:
    """As wide as NumPy makes a scalar of this dtype next to a number of Python's."""
    return x.astype((x.dtype.type(1) * 1.0).dtype)


def _points(x_shape: Sequence[int], rois: np.ndarray, size: _Pair, scale: float,
            ratio: _Ratio) -> Iterator[Tuple[int, _Pair, int, List[List[Tuple[Any, int, int]]]]]:
    """Of each bin: its region, its place in the result, how many points it has, and the pixels of each."""
    for n, roi in enumerate(rois):
        sides = _sides(roi, size, scale, ratio, x_shape[2:])
        rows, columns = ([[side.point(k, i, side.count) for i in range(side.count)] for k in range(bins)]
                         for side, bins in zip(sides, size))
        for (i, row), (k, column) in itertools.product(enumerate(rows), enumerate(columns)):
            yield n, (i, k), len(row) * len(column), [None if v is None or u is None else list(_pixels(v, u, x_shape[2:]))
                                                      for v, u in itertools.product(row, column)]


def _value(x: np.ndarray, pixels: Sequence[Tuple[Any, int, int]]) -> Any:
    return sum((share * _wide(x[:, v, u]) for share, v, u in pixels), 0.0)


def average_points(x: np.ndarray, rois: np.ndarray, images: np.ndarray, size: _Pair, scale: float, ratio: _Ratio) -> np.ndarray:
    """The mean of the points of each bin."""
    y = np.empty((len(rois), x.shape[1], *size), x.dtype)
    for n, (i, k), count, points in _points(x.shape, rois, size, scale, ratio):
        pixels = [pixel for point in points for pixel in point or ()]
        y[n, :, i, k] = (_value(x[images[n]], pixels) if pixels else 0.0) / count
    return y


def spread_points(g: np.ndarray, rois: np.ndarray, images: np.ndarray, size: _Pair, scale: float, ratio: _Ratio,
                  shape: Sequence[int]) -> np.ndarray:
    """What each bin gives to the pixels around its points: the derivative of `average_points`."""
    gx = np.zeros(shape, g.dtype)
    for n, (i, k), count, points in _points(shape, rois, size, scale, ratio):
        given = _wide(g[n, :, i, k])
        for share, v, u in (pixel for point in points for pixel in point or ()):
            gx[images[n], :, v, u] += given * share / count
    return gx


_POINTS: Dict[str, Any] = {**_ATTRS, "ratio": (None, None)}

#: The mean of the points of each bin, which lie between pixels.
region_align_average: OpDef = declare(
    "region_align_average", "x rois images", _POINTS, kind="reduction", may_raise=True, infer=_pooled,
    numpy="average_points({x}, {rois}, {images}, {size}, {scale}, {ratio})", cupy=ON_HOST, calls=(average_points,),
    vjp=lambda g, y, x, *regions, **attrs: (region_align_average_grad(g, *regions, shape=x.shape, **attrs), None, None),
    onnx=windows.region_average,
    samples=(sample((2, 3, 5, 6), np.array([[0, 0, 5, 5], [1, 2, 4, 3]]), np.array([1, 0]), size=(2, 3), scale=0.8),),
)

region_align_average_grad: OpDef = declare(
    "region_align_average_grad", "g rois images", {**_POINTS, "shape": ()}, kind="movement", may_raise=True,
    infer=_image_infer,
    numpy="spread_points({g}, {rois}, {images}, {size}, {scale}, {ratio}, {shape})", cupy=ON_HOST, calls=(spread_points,),
    vjp=lambda g, y, x, *regions, shape, **attrs: (region_align_average(g, *regions, **attrs), None, None),
)


def _align_max(x: np.ndarray, rois: np.ndarray, images: np.ndarray, **attrs: Any) -> Sequence[np.ndarray]:
    y = np.empty((len(rois), x.shape[1], *attrs["size"]), x.dtype)
    places = np.empty(y.shape, np.int32)
    for n, (i, k), _, points in _points(x.shape, rois, **attrs):
        best, place = _wide(np.full(x.shape[1], -np.inf, x.dtype)), np.full(x.shape[1], -1, np.int32)
        for number, pixels in enumerate(points):
            if pixels is not None:
                value = _value(x[images[n]], pixels) if pixels else 0.0
                more = value > best
                best, place = np.where(more, value, best), np.where(more, number, place)
        y[n, :, i, k], places[n, :, i, k] = best, place
    return y, places


def _align_max_grad(g: np.ndarray, rois: np.ndarray, images: np.ndarray, places: np.ndarray, *, size: _Pair, scale: float,
                    ratio: _Ratio, shape: Sequence[int]) -> np.ndarray:
    gx = np.zeros(shape, g.dtype)
    for n, roi in enumerate(rois):
        side, other = _sides(roi, size, scale, ratio, shape[2:])
        for i, k in itertools.product(range(size[0]), range(size[1])):
            for place in np.unique(places[n, :, i, k]):
                if place == -1:
                    continue
                here, given = places[n, :, i, k] == place, _wide(g[n, :, i, k])
                # Chainer's backward counts the points by numbers of another type than its forward
                row = side.point(i, int(place / other.ceiling), side.ceiling)
                column = other.point(k, place % other.ceiling, other.ceiling)
                for share, v, u in _pixels(row, column, shape[2:]):
                    gx[images[n], here, v, u] += given[here] * share
    return gx


#: The greatest of the points of each bin, and its number.
region_align_max: OpDef = declare(
    "region_align_max", "x rois images", _POINTS, kind="reduction", may_raise=True, infer=_with_places,
    numpy=_align_max, cupy=ON_HOST,
    vjp=lambda g, y, x, *regions, **attrs: (
        None if g[0] is None else region_align_max_grad(g[0], *regions, y[1], shape=x.shape, **attrs), None, None),
)

region_align_max_grad: OpDef = declare(
    "region_align_max_grad", "g rois images places", {**_POINTS, "shape": ()}, kind="movement", may_raise=True,
    infer=_image_infer, numpy=_align_max_grad, cupy=ON_HOST, vjp=never,
)

"""Lowerings of `chainer.functions.pooling`."""
from __future__ import annotations

import math
from typing import Any, Dict, Optional, Tuple

import numpy as np
from chainer.functions.pooling.average_pooling_2d import AveragePooling2D
from chainer.functions.pooling.average_pooling_nd import AveragePoolingND
from chainer.functions.pooling.max_pooling_nd import MaxPoolingND
from chainer.functions.pooling.roi_average_align_2d import ROIAverageAlign2D
from chainer.functions.pooling.roi_average_pooling_2d import ROIAveragePooling2D
from chainer.functions.pooling.roi_max_align_2d import ROIMaxAlign2D
from chainer.functions.pooling.roi_max_pooling_2d import ROIMaxPooling2D
from chainer.functions.pooling.roi_pooling_2d import ROIPooling2D
from chainer.functions.pooling.unpooling_2d import Unpooling2D
from chainer.functions.pooling.unpooling_nd import UnpoolingND
from chainer.functions.pooling.upsampling_2d import Upsampling2D

from .. import ops
from ..ir.building import constant
from ..ir.devices import is_gpu
from ..ir.dims import less
from ..ir.graph import Value
from .registry import are_fixed, are_ints, are_there, ints, lowers, numbers_of_windows, symbolic_value

# From windows to numbers ----------------------------------------------------------------------------------------


@lowers(AveragePooling2D)
def average_pooling_2d(node: Any, x: Value) -> Optional[Value]:
    return _average(x, *_pairs(node))


@lowers(AveragePoolingND)
def average_pooling_nd(node: Any, x: Value) -> Optional[Value]:
    # where the padding is not counted, backward divides the gradient it is given, in place, and others see that
    return None if node.pad_value is None else _average(x, ints(node.ksize), ints(node.stride), ints(node.pad))


def _average(x: Value, kernel: Any, stride: Any, pad: Any) -> Optional[Value]:
    whole = _whole_axes(x, kernel, stride, pad)
    if whole:
        return ops.mean(x, axis=whole, keepdims=True)
    size = _windows(x.shape[2:], kernel, stride, pad, False)
    return None if size is None else ops.average_pool(x, kernel=kernel, size=size, stride=stride, pad=pad)


def _whole_axes(x: Value, kernel: Any, stride: Any, pad: Any) -> Tuple[int, ...]:
    """The axes that windows are as long as, if only the run knows how long one of them is and windows are one element otherwise."""
    if kernel is None or stride is None or not are_fixed(pad) or any(pad) or not are_there(x):
        return ()
    axes = tuple([axis for axis, size in enumerate(kernel, start=2) if size == x.shape[axis]])
    others = [(size, step) for axis, (size, step) in enumerate(zip(kernel, stride), start=2) if axis not in axes]
    is_free = not are_fixed([x.shape[axis] for axis in axes])
    return axes if is_free and all(other == (1, 1) for other in others) else ()


@lowers(MaxPoolingND)
def max_pooling_nd(node: Any, x: Value) -> Optional[Value]:
    # `indexes` is what `return_indices` gives; Chainer's CUDA kernel makes numbers of 32 bits
    kernel, stride, pad = ints(node.ksize), ints(node.stride), ints(node.pad)
    whole = _whole_axes(x, kernel, stride, pad)
    if whole:
        others = tuple([axis for axis in range(x.ndim) if axis not in whole])
        counts = [math.prod([x.shape[axis] for axis in axes]) for axes in (others[1:], whole)]
        rows = ops.reshape(x if others == (0, 1) else ops.transpose(x, axes=(*others, *whole)), shape=(x.shape[0], *counts))
        places = ops.reshape(ops.argmax(rows, axis=2), shape=(*rows.shape[:2], 1))
        shape = tuple([1 if axis in whole else size for axis, size in enumerate(x.shape)])
        y, places = (ops.reshape(part, shape=shape) for part in (ops.take_along(rows, places, axis=2), places))
    else:
        size = _windows(x.shape[2:], kernel, stride, pad, node.cover_all)
        if size is None:
            return None
        y, places = ops.max_pool(x, kernel=kernel, size=size, stride=stride, pad=pad)
    node.indexes = ops.cast(places, dtype=np.int32 if is_gpu(x.type.device) else np.intp)
    return y


def _pairs(node: Any) -> Tuple[Any, Any, Any]:
    return ints((node.kh, node.kw)), ints((node.sy, node.sx)), ints((node.ph, node.pw))


def _windows(sizes: Any, kernel: Any, stride: Any, pad: Any, cover_all: Any) -> Optional[Tuple[int, ...]]:
    return None if kernel is None else numbers_of_windows(sizes, kernel, stride, pad, (1,) * len(kernel), cover_all)


# From numbers to windows ----------------------------------------------------------------------------------------


@lowers(Unpooling2D)
def unpooling_2d(node: Any, x: Value) -> Optional[Value]:
    # where each number only becomes a block, Chainer repeats it; that with padding is not differentiable on one axis
    kernel, stride, pad = _pairs(node)
    size = _unpooled(x, (node.outh, node.outw), kernel, stride, pad, node.cover_all)
    if size is None:
        return None
    if stride == kernel[::-1] and all(p % 2 == 0 and z == k * (n - p) for z, k, n, p in zip(size, kernel, x.shape[2:], pad)):
        return _blocks(x, kernel) if stride == kernel and not any(pad) else None
    return _spread(x, kernel, stride, pad, size)


@lowers(UnpoolingND)
def unpooling_nd(node: Any, x: Value) -> Optional[Value]:
    kernel, stride, pad = ints(node.ksize), ints(node.stride), ints(node.pad)
    size = _unpooled(x, (None,) * node.ndim if node.outs is None else node.outs, kernel, stride, pad, node.cover_all)
    return None if size is None else _spread(x, kernel, stride, pad, size)


@lowers(Upsampling2D)
def upsampling_2d(node: Any, x: Value) -> Optional[Value]:
    kernel, stride, pad = _pairs(node)
    size = _unpooled(x, (node.outh, node.outw), kernel, stride, pad, node.cover_all)
    places = constant(node.indexes) if type(node.indexes) is np.ndarray else symbolic_value(node.indexes)
    if size is None or places is None or places.dtype.kind not in "iu" or not are_there(x):
        return None
    rows = math.prod(x.shape)
    patches = ops.add_along(ops.reshape(x, shape=(rows, 1)), ops.reshape(places, shape=(rows, 1)), axis=1,
                            size=math.prod(kernel))
    patches = ops.transpose(ops.reshape(patches, shape=x.shape + kernel), axes=(0, 1, 4, 5, 2, 3))
    return ops.col2im(patches, size=size, stride=stride, pad=pad)


def _unpooled(x: Value, wanted: Tuple[Any, ...], kernel: Any, stride: Any, pad: Any, cover_all: Any) -> Optional[Tuple[int, ...]]:
    """The sizes of the result; None if they are not known now, or pooling them would not give those of ``x``."""
    if not are_fixed(kernel, stride, pad) or not all(are_ints(size) for size in wanted if size is not None):
        return None
    made = tuple(s * (n - 1) + k - (s - 1 if cover_all else 0) - 2 * p if size is None else size
                 for size, n, k, s, p in zip(wanted, x.shape[2:], kernel, stride, pad))
    fits = all(less(0, n) for n in made) and _windows(made, kernel, stride, pad, cover_all) == x.shape[2:]
    return ints(made) if fits else None


def _spread(x: Value, kernel: Any, stride: Any, pad: Any, size: Tuple[int, ...]) -> Value:
    lead, spots = x.shape[:2], x.shape[2:]
    patches = ops.broadcast_to(ops.reshape(x, shape=lead + (1,) * len(kernel) + spots), shape=lead + kernel + spots)
    return ops.col2im(patches, size=size, stride=stride, pad=pad)


def _blocks(x: Value, kernel: Tuple[int, ...]) -> Value:
    (n, c, h, w), (kh, kw) = x.shape, kernel
    blocks = ops.reshape(x, shape=(n, c, h, 1, w, 1))
    if kernel != (1, 1):                                    # else the result is a view of x, and may be written
        blocks = ops.broadcast_to(blocks, shape=(n, c, h, kh, w, kw))
    return ops.reshape(blocks, shape=(n, c, h * kh, w * kw))


# Regions of interest --------------------------------------------------------------------------------------------


@lowers(ROIPooling2D)
def roi_pooling_2d(node: Any, x: Value, rois: Value) -> Optional[Value]:
    # a region is its image, xmin, ymin, xmax, ymax
    attrs = _regions(node, x, rois)
    if attrs is None:
        return None
    image = ops.getitem(rois, index=(slice(None), 0))
    bounds = ops.take(rois, constant(np.array([2, 1, 4, 3])), axis=1)
    return ops.region_max(x, bounds, image, closed=True, **attrs)[0]


@lowers(ROIMaxPooling2D)
def roi_max_pooling_2d(node: Any, x: Value, rois: Value, images: Value) -> Optional[Value]:
    attrs = _regions(node, x, rois)
    return None if attrs is None else ops.region_max(x, rois, images, **attrs)[0]


@lowers(ROIAveragePooling2D)
def roi_average_pooling_2d(node: Any, x: Value, rois: Value, images: Value) -> Optional[Value]:
    attrs = _regions(node, x, rois)
    return None if attrs is None else ops.region_average(x, rois, images, **attrs)


@lowers(ROIMaxAlign2D)
def roi_max_align_2d(node: Any, x: Value, rois: Value, images: Value) -> Optional[Value]:
    attrs = _regions(node, x, rois, points=True)
    return None if attrs is None else ops.region_align_max(x, rois, images, **attrs)[0]


@lowers(ROIAverageAlign2D)
def roi_average_align_2d(node: Any, x: Value, rois: Value, images: Value) -> Optional[Value]:
    attrs = _regions(node, x, rois, points=True)
    return None if attrs is None else ops.region_align_average(x, rois, images, **attrs)


def _regions(node: Any, x: Value, rois: Value, points: bool = False) -> Optional[Dict[str, Any]]:
    """How regions are pooled; None for what is not known now, and for empty images."""
    size = ints((node.outh, node.outw))
    if not are_fixed(x.shape[1:2], size) or not are_there(x, rois) or type(node.spatial_scale) not in (int, float):
        return None
    attrs = {"size": size, "scale": node.spatial_scale}
    if points:
        attrs["ratio"] = tuple(node.sampling_ratio)
        if not all(n is None or type(n) is int for n in attrs["ratio"]):
            return None
    return attrs

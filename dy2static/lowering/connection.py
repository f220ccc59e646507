"""Lowerings of `chainer.functions.connection`."""
from __future__ import annotations

import math
from typing import Any, Optional, Tuple

import chainer
import numpy as np
from chainer.functions.connection.bilinear import BilinearFunction
from chainer.functions.connection.convolution_2d import Convolution2DFunction
from chainer.functions.connection.convolution_nd import ConvolutionND
from chainer.functions.connection.deconvolution_2d import Deconvolution2DFunction
from chainer.functions.connection.deconvolution_nd import DeconvolutionND
from chainer.functions.connection.embed_id import EmbedIDFunction
from chainer.functions.connection.linear import LinearFunction
from chainer.functions.connection.local_convolution_2d import LocalConvolution2DFunction
from chainer.functions.connection.shift import Shift

from .. import ops
from ..ir.building import constant
from ..ir.dims import less
from ..ir.graph import Value
from .registry import are_fixed, are_there, ints, lowers, numbers_of_windows, size_of


@lowers(LinearFunction)
def linear(node: Any, x: Value, W: Value, *b: Value) -> Optional[Value]:
    # W may be of another dtype than x; the product is then cast, in place
    if x.dtype != W.dtype:
        return None
    y = ops.matmul(x, W, transb=True)
    return y + b[0] if b else y


@lowers(EmbedIDFunction)
def embed_id(node: Any, x: Value, W: Value) -> Optional[Value]:
    # in debug mode ids are checked; without ids, backward raises
    if chainer.is_debug() or size_of(x) == 0 and chainer.config.enable_backprop:
        return None
    if node.ignore_label is None:
        return ops.take(W, x, axis=0)
    label = node.ignore_label                           # where it stands, row 0 is read, and masked afterwards
    if not isinstance(label, int) or x.dtype.type(label) != label:
        return None
    ignored = ops.equal(x, constant(label, x.dtype))
    rows = ops.take(W, ops.where(ignored, constant(0, x.dtype), x), axis=0)
    rows = ops.where(ops.reshape(ignored, shape=x.shape + (1,)), constant(0, W.dtype), rows)
    return ops.by_rule(rows, W, x, rule="embed_id", given=label)

# Convolution ----------------------------------------------------------------------------------------------------


@lowers(Convolution2DFunction)
def convolution_2d(node: Any, x: Value, W: Value, *b: Value) -> Optional[Value]:
    # `cudnn_fast` is an error without a GPU
    if node.cudnn_fast:
        return None
    return _convolution(x, W, b, ints((node.sy, node.sx)), ints((node.ph, node.pw)), ints((node.dy, node.dx)), node)


@lowers(ConvolutionND)
def convolution_nd(node: Any, x: Value, W: Value, *b: Value) -> Optional[Value]:
    return _convolution(x, W, b, ints(node.stride), ints(node.pad), ints(node.dilate), node)


@lowers(Deconvolution2DFunction)
def deconvolution_2d(node: Any, x: Value, W: Value, *b: Value) -> Optional[Value]:
    sizes = (None, None) if node.outh is None and node.outw is None else ints((node.outh, node.outw))
    return _deconvolution(x, W, b, ints((node.sy, node.sx)), ints((node.ph, node.pw)), ints((node.dy, node.dx)), sizes, node)


@lowers(DeconvolutionND)
def deconvolution_nd(node: Any, x: Value, W: Value, *b: Value) -> Optional[Value]:
    sizes = (None,) * node.ndim if node.outs is None else ints(node.outs)
    return _deconvolution(x, W, b, ints(node.stride), ints(node.pad), ints(node.dilate), sizes, node)


def _convolution(x: Value, W: Value, b: Tuple[Value, ...], stride: Any, pad: Any, dilate: Any, node: Any) -> Optional[Value]:
    size = numbers_of_windows(x.shape[2:], W.shape[2:], stride, pad, dilate, node.cover_all)
    if size is None or not _fit(x.shape[1], W.shape[0], W.shape[1], node.groups):
        return None
    return _biased(ops.conv, x, W, b, size=size, stride=stride, pad=pad, dilate=dilate, groups=int(node.groups))


def _deconvolution(x: Value, W: Value, b: Tuple[Value, ...], stride: Any, pad: Any, dilate: Any, sizes: Any,
                   node: Any) -> Optional[Value]:
    # Backward convolves with `cover_all` as soon as one axis needs it; where another does not, that is Chainer's error.
    if sizes is None or not are_fixed(x.shape[1:2], W.shape, stride, pad, dilate) or min(stride + dilate) < 1:
        return None
    made = tuple(s * (n - 1) + (k - 1) * d + 1 - 2 * p if size is None else size for size, n, k, s, p, d
                 in zip(sizes, x.shape[2:], W.shape[2:], stride, pad, dilate))
    covered = [numbers_of_windows(made, W.shape[2:], stride, pad, dilate, cover_all) for cover_all in (False, True)]
    if x.shape[2:] not in covered or not all(less(0, n) for n in made) or \
            not _fit(x.shape[1], x.shape[1], W.shape[0], node.groups, 1) or b and b[0].shape[0] != W.shape[1] * node.groups:
        return None
    return _biased(ops.conv_transpose, x, W, b, size=made, stride=stride, pad=pad, dilate=dilate, groups=int(node.groups))


def _fit(channels: Any, filters: Any, taken: Any, groups: Any, share: Any = None) -> bool:
    """Whether both kinds of channels are in groups of one size, and the filters take what there is."""
    return are_fixed((channels, filters, taken, groups)) and groups >= 1 and channels % groups == filters % groups == 0 \
        and taken * (groups if share is None else share) == channels


def _biased(op: Any, x: Value, W: Value, b: Tuple[Value, ...], **attrs: Any) -> Value:
    """With operands of two dtypes the product is of the wider one, and then cast; so is the bias."""
    dtype = np.result_type(x.dtype, W.dtype)
    y = _cast(op(_cast(x, dtype), _cast(W, dtype), **attrs), x.dtype)
    if not b:
        return y
    return y + ops.reshape(_cast(b[0], y.dtype), shape=(1, b[0].shape[0]) + (1,) * (x.ndim - 2))


def _cast(x: Value, dtype: np.dtype) -> Value:
    return x if x.dtype == dtype else ops.cast(x, dtype=dtype)


@lowers(LocalConvolution2DFunction)
def local_convolution_2d(node: Any, x: Value, W: Value, *b: Value) -> Optional[Value]:
    # the gradients of x and W are made of bare arrays: they have none themselves
    stride = ints((node.sy, node.sx))
    if stride is None or x.dtype != W.dtype or not are_fixed(x.shape[1:], W.shape, stride) or min(stride) < 1 or \
            not are_there(x, W):
        return None
    if any((o - 1) * s + k > n for n, k, o, s in zip(x.shape[2:], W.shape[4:], W.shape[1:3], stride)):
        return None
    y = ops.local_conv(x, W, stride=stride)
    return y + ops.reshape(b[0], shape=(1, *b[0].shape)) if b else y


# Others ---------------------------------------------------------------------------------------------------------


@lowers(BilinearFunction)
def bilinear(node: Any, e1: Value, e2: Value, W: Value, *linear: Value) -> Optional[Value]:
    if not are_fixed(e1.shape[1:], e2.shape[1:], W.shape) or 0 in e1.shape:
        return None
    j, k, out = W.shape
    e1, e2 = (ops.reshape(e, shape=(e.shape[0], n)) for e, n in ((e1, j), (e2, k)))
    pairs = ops.reshape(e1, shape=(*e1.shape, 1)) * ops.reshape(e2, shape=(e2.shape[0], 1, k))
    y = ops.matmul(ops.reshape(pairs, shape=(e1.shape[0], j * k)), ops.reshape(W, shape=(j * k, out)))
    if linear:
        V1, V2, b = linear
        y = y + ops.matmul(e1, V1) + ops.matmul(e2, V2) + ops.attached(b, e1)
    return y


@lowers(Shift)
def shift(node: Any, x: Value) -> Optional[Value]:
    # each group of channels moves its own way; the last group gets what is left over, and stays
    kernel, dilate = ints((node.kh, node.kw)), ints((node.dy, node.dx))
    if kernel is None or dilate is None or 0 in dilate or not are_fixed(x.shape[1:2]):
        return None
    groups = math.prod(kernel)
    pads = tuple(k // 2 * abs(d) for k, d in zip(kernel, dilate))
    lead, image = x.shape[:2], x.shape[2:]
    wide = ops.scatter_slice(x, index=(slice(None), slice(None), *(slice(p, p + n) for p, n in zip(pads, image))),
                             shape=lead + tuple(n + 2 * p for n, p in zip(image, pads)))
    each, parts = x.shape[1] // groups, []
    middle, last = (groups - 1) // 2, groups - 1
    for i in range(groups):
        place = {middle: last, last: middle}.get(i, i)
        moves = [p - (at - p // abs(d)) * d for p, at, d in zip(pads, divmod(place, kernel[1]), dilate)]
        channels = slice(i * each, (i + 1) * each if i < last else None)
        parts.append(ops.getitem(wide, index=(slice(None), channels, *(slice(m, m + n) for m, n in zip(moves, image)))))
    return ops.concat(*parts, axis=1)

"""Convolution over any number of axes, its derivatives, and the patches it is made of.

Arrays are ``(batch, channels, *sizes)``.  The attributes ``stride``, ``pad``, ``dilate`` have an entry for each size;
``size`` is that of the result: numbers of windows for `conv` and `im2col`, of the image for `conv_transpose` and
`col2im`, of the kernel for `conv_grad_weight`.
"""
from __future__ import annotations

import math
from typing import Any, Dict, Tuple

from ..ir.dims import equal
from ..ir.op import OpDef, declare, sample
from ..ir.shapes import show
from ..ir.types import Tensor
from .contraction import matmul
from .correlation import convolve_images, convolve_locally, convolve_transposed, correlate_with_gradient
from .movement import reshape, stop_gradient, transpose
from .onnx_forms import windows as forms
from .rules import need_dtype, one_dtype, one_shape, sizes
from .windows import add_patches, take_patches

# Type rules -----------------------------------------------------------------------------------------------------


def canonical_windows(x: Tensor, *_: Any, **attrs: Any) -> Dict[str, Any]:
    """The attributes of windows as tuples; ``stride`` and ``dilate`` are 1 and ``pad`` is 0 where not given."""
    count = len(sizes(attrs["size"]))
    filled = {"stride": 1, "pad": 0, "dilate": 1}
    return {name: (filled[name],) * count if attrs[name] is None else sizes(attrs[name])
            for name in ("kernel", "stride", "pad", "dilate", "size") if name in attrs}


def check_windows(image: Tuple[Any, ...], kernel: Tuple[Any, ...], spots: Tuple[Any, ...], stride: Tuple[int, ...],
                  pad: Tuple[int, ...], dilate: Tuple[int, ...]) -> None:
    """Raise ValueError for windows that leave the padded image by more than they step."""
    if not len(image) == len(kernel) == len(spots) == len(stride) == len(pad) == len(dilate):
        raise ValueError(f"windows of shape {show(kernel)} do not fit an image of shape {show(image)}")
    for n, k, o, s, p, d in zip(image, kernel, spots, stride, pad, dilate):
        if all(isinstance(size, int) for size in (n, k, o)) and not (
                k > 0 and o > 0 and (o - 1) * s + (k - 1) * d < n + 2 * p + s - 1):
            raise ValueError(f"{o} windows of size {k} do not fit {n} elements with stride {s} and padding {p}")


def _channels(given: Any, expected: Any) -> None:
    if not equal(given, expected):
        raise ValueError(f"{given} channels, where the filters take {expected}")


def _parted(channels: Any, groups: int) -> Any:
    """The channels of one group."""
    if not equal(channels % groups, 0):
        raise ValueError(f"{channels} channels cannot be in {groups} groups of one size")
    return channels // groups


def _need_arrays(x: Tensor, y: Tensor, count: int) -> None:
    one_dtype(x, y)
    need_dtype(x, "f", "an image")
    if x.ndim != count + 2 or y.ndim != count + 2:
        raise ValueError(f"arrays of {count + 2} axes are needed: {show(x.shape)} {show(y.shape)}")


# Convolution ----------------------------------------------------------------------------------------------------

_ATTRS: Dict[str, Any] = {"size": (), "stride": None, "pad": None, "dilate": None, "groups": 1}
_HOLES = "{stride}, {pad}, {dilate}, {groups}, {size}, out={out})"


def _conv_infer(x: Tensor, W: Tensor, *, size: Tuple[Any, ...], groups: int, **places: Any) -> Tensor:
    _need_arrays(x, W, len(size))
    _channels(x.shape[1], W.shape[1] * groups)
    _parted(W.shape[0], groups)
    check_windows(x.shape[2:], W.shape[2:], size, **places)
    return Tensor((x.shape[0], W.shape[0], *size), x.dtype)


#: The correlation of ``x`` with filters ``W: (channels out, channels in / groups, *kernel)``.
conv: OpDef = declare(
    "conv", "x W", _ATTRS, kind="contraction", canonical=canonical_windows, infer=_conv_infer,
    vjp=lambda g, y, x, W, *, size, **attrs: (
        conv_transpose(g, W, size=x.shape[2:], **attrs), conv_grad_weight(x, g, size=W.shape[2:], **attrs)),
    numpy="convolve_images({x}, {W}, " + _HOLES, calls=(convolve_images,),
    onnx=forms.conv,
    samples=(sample((2, 3, 5, 4), (4, 3, 3, 2), size=(3, 3)),
             sample((2, 4, 5), (6, 2, 3), size=(3,), stride=(2,), pad=(1,), groups=2),
             sample((1, 2, 7, 4), (2, 2, 3, 1), size=(3, 3), stride=(2, 2), pad=(1, 0), dilate=(2, 1)),
             sample((1, 1, 3, 2, 3), (2, 1, 2, 1, 2), size=(2, 2, 2)), sample((2, 2, 3), (3, 2, 1), size=(3,)),
             sample((0, 2, 3), (3, 2, 2), size=(2,))),
)


def _transpose_infer(x: Tensor, W: Tensor, *, size: Tuple[Any, ...], groups: int, **places: Any) -> Tensor:
    _need_arrays(x, W, len(size))
    _channels(x.shape[1], W.shape[0])
    _parted(W.shape[0], groups)
    check_windows(size, W.shape[2:], x.shape[2:], **places)
    return Tensor((x.shape[0], W.shape[1] * groups, *size), x.dtype)


#: The transposed `conv`, its derivative by the image: ``W: (channels in, channels out / groups, *kernel)``.
conv_transpose: OpDef = declare(
    "conv_transpose", "x W", _ATTRS, kind="contraction", canonical=canonical_windows, infer=_transpose_infer,
    vjp=lambda g, y, x, W, *, size, **attrs: (
        conv(g, W, size=x.shape[2:], **attrs), conv_grad_weight(g, x, size=W.shape[2:], **attrs)),
    numpy="convolve_transposed({x}, {W}, " + _HOLES, calls=(convolve_transposed,),
    onnx=forms.conv_transpose,
    samples=(sample((2, 4, 3, 3), (4, 3, 3, 2), size=(5, 4)),
             sample((2, 4, 3), (4, 3, 2), size=(5,), stride=(2,), pad=(1,), groups=2),
             sample((1, 2, 3, 2), (2, 2, 3, 1), size=(7, 5), stride=(2, 2), pad=(1, 0), dilate=(2, 1)),
             sample((2, 3, 4), (3, 2, 1), size=(4,)), sample((0, 2, 3), (2, 3, 2), size=(4,))),
)


def _grad_weight_infer(x: Tensor, g: Tensor, *, size: Tuple[Any, ...], groups: int, **places: Any) -> Tensor:
    _need_arrays(x, g, len(size))
    one_shape(Tensor(x.shape[:1], x.dtype), Tensor(g.shape[:1], x.dtype))
    check_windows(x.shape[2:], size, g.shape[2:], **places)
    _parted(g.shape[1], groups)
    return Tensor((g.shape[1], _parted(x.shape[1], groups), *size), x.dtype)


#: The derivative of `conv` by the filters, from ``g``, that of its result.
conv_grad_weight: OpDef = declare(
    "conv_grad_weight", "x g", _ATTRS, kind="contraction", canonical=canonical_windows, infer=_grad_weight_infer,
    vjp=lambda gW, y, x, g, *, size, **attrs: (
        conv_transpose(g, gW, size=x.shape[2:], **attrs), conv(x, gW, size=g.shape[2:], **attrs)),
    numpy="correlate_with_gradient({x}, {g}, " + _HOLES, calls=(correlate_with_gradient,),
    onnx=forms.conv_grad_weight,
    samples=(sample((2, 3, 5, 4), (2, 4, 3, 3), size=(3, 2)),
             sample((2, 4, 5), (2, 6, 3), size=(3,), stride=(2,), pad=(1,), groups=2),
             sample((1, 2, 7, 4), (1, 2, 3, 3), size=(3, 1), stride=(2, 2), pad=(1, 0), dilate=(2, 1)),
             sample((0, 2, 3), (0, 3, 2), size=(2,))),
)

# Patches --------------------------------------------------------------------------------------------------------


def _im2col_infer(x: Tensor, *, kernel: Tuple[Any, ...], size: Tuple[Any, ...], **places: Any) -> Tensor:
    check_windows(x.shape[2:], kernel, size, **places)
    return Tensor((*x.shape[:2], *kernel, *size), x.dtype)


def _col2im_infer(x: Tensor, *, size: Tuple[Any, ...], **places: Any) -> Tensor:
    count = len(size)
    if x.ndim != 2 + 2 * count:
        raise ValueError(f"{2 + 2 * count} axes are needed: {show(x.shape)}")
    check_windows(size, x.shape[2:2 + count], x.shape[2 + count:], **places)
    return Tensor((*x.shape[:2], *size), x.dtype)


#: The patches of ``x``: ``(batch, channels, *kernel, *size)``.  The padding is zeros.
im2col: OpDef = declare(
    "im2col", "x", {"kernel": (), "size": (), "stride": None, "pad": None, "dilate": None}, kind="movement",
    canonical=canonical_windows, infer=_im2col_infer,
    vjp=lambda g, y, x, *, kernel, size, **places: (col2im(g, size=x.shape[2:], **places),),
    numpy="take_patches({x}, {kernel}, {stride}, {pad}, {dilate}, {size}, out={out})", calls=(take_patches,),
    onnx=forms.im2col,
    samples=(sample((2, 3, 4, 3), kernel=(3, 2), size=(2, 2)), sample((2, 2, 5), kernel=(2,), size=(3,), stride=(2,), pad=(1,)),
             sample((1, 2, 5, 4), kernel=(2, 1), size=(2, 2), stride=(2, 3), dilate=(2, 1)),
             sample((0, 2, 3), kernel=(2,), size=(2,))),
)

#: Patches added up where they stand in an image; those in the padding are lost.
col2im: OpDef = declare(
    "col2im", "x", {"size": (), "stride": None, "pad": None, "dilate": None}, kind="movement",
    canonical=canonical_windows, infer=_col2im_infer,
    vjp=lambda g, y, x, *, size, **places: (
        im2col(g, kernel=x.shape[2:2 + len(size)], size=x.shape[2 + len(size):], **places),),
    numpy="add_patches({x}, {stride}, {pad}, {dilate}, {size}, out={out})", calls=(add_patches,),
    onnx=forms.col2im,
    samples=(sample((2, 3, 3, 2, 2, 2), size=(4, 3)), sample((2, 2, 2, 3), size=(5,), stride=(2,), pad=(1,)),
             sample((1, 2, 2, 1, 2, 2), size=(5, 4), stride=(2, 3), dilate=(2, 1)), sample((0, 2, 2, 2), size=(3,))),
)

# Filters of their own -------------------------------------------------------------------------------------------


def _local_infer(x: Tensor, W: Tensor, *, stride: Tuple[int, ...]) -> Tensor:
    one_dtype(x, W)
    spots = W.shape[1:len(stride) + 1]
    if W.ndim != 2 * x.ndim - 2:
        raise ValueError(f"filters of shape {show(W.shape)} for an image of shape {show(x.shape)}")
    _channels(x.shape[1], W.shape[len(stride) + 1])
    check_windows(x.shape[2:], W.shape[len(stride) + 2:], spots, stride, (0,) * len(stride), (1,) * len(stride))
    return Tensor((x.shape[0], W.shape[0], *spots), x.dtype)


def _local_vjp(g, y, x, W, *, stride):
    count = len(stride)
    spots, kernel = W.shape[1:count + 1], W.shape[count + 2:]
    axes = tuple(range(2, 2 + count))
    each = math.prod(spots)
    # as matrices, one for each spot
    rows = reshape(transpose(g, axes=(*axes, 0, 1)), shape=(each, *g.shape[:2]))
    filters = reshape(transpose(W, axes=(*(a - 1 for a in axes), 0, *range(count + 1, W.ndim))),
                      shape=(each, W.shape[0], x.shape[1] * math.prod(kernel)))
    image = transpose(reshape(matmul(rows, filters), shape=(*spots, *x.shape[:2], *kernel)),
                      axes=(*range(count, 2 * count + 2), *range(count)))
    columns = im2col(x, kernel=kernel, size=spots, stride=stride)
    columns = reshape(transpose(columns, axes=(*(a + count for a in axes), 0, 1, *axes)),
                      shape=(each, x.shape[0], x.shape[1] * math.prod(kernel)))
    weights = reshape(matmul(rows, columns, transa=True), shape=(*spots, W.shape[0], x.shape[1], *kernel))
    return (stop_gradient(col2im(image, size=x.shape[2:], stride=stride)),
            stop_gradient(transpose(weights, axes=(count, *range(count), *range(count + 1, W.ndim)))))


#: `conv` where each spot has filters of its own, ``W: (channels out, *spots, channels in, *kernel)``.  Its gradients have
#: none themselves.
local_conv = declare(
    "local_conv", "x W", {"stride": ()}, kind="contraction", infer=_local_infer,
    vjp=_local_vjp,
    numpy="convolve_locally({x}, {W}, {stride}, out={out})", calls=(convolve_locally,),
    onnx=forms.local_conv,
)

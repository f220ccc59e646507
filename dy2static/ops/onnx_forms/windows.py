"""Convolution and pooling as nodes of ONNX: by its operators in single precision, else by patches and products."""
from __future__ import annotations

import math
from typing import Any, List, Sequence, Tuple

import numpy as np

from ...ir.onnx_forms import Name, NotInOnnx, OnnxWriter
from ...ir.types import Type
from .indexing import flat, zeros
from .movement import axes, reshaped

Sizes = Tuple[Any, ...]


def _behind(n: Any, kernel: Any, spots: Any, stride: int, pad: int, dilate: int) -> Any:
    """The padding behind that the last window needs; below zero where it leaves some out."""
    return (spots - 1) * stride + (kernel - 1) * dilate + 1 - n - pad


def _padded(o: OnnxWriter, x: Name, before: Sequence[int], behind: Sequence[Any], fill: float = 0) -> Name:
    """The array with a border on the axes after the second; what is below zero is cut off."""
    if not any(before) and all(isinstance(n, int) and n == 0 for n in behind):
        return x
    widths = o.shape([0, 0, *before, 0, 0, *behind])
    return o.node("Pad", x, widths, o.like(fill, x))


def _window_counts(n: Sequence[Any], kernel: Sizes, spots: Sizes, stride: Sizes, pad: Sizes, dilate: Sizes) -> List[Any]:
    return [_behind(*one) for one in zip(n, kernel, spots, stride, pad, dilate)]


def _prepared(o: OnnxWriter, x: Name, n: Sequence[Any], kernel: Sizes, spots: Sizes, stride: Sizes, pad: Sizes, dilate: Sizes,
              fill: float = 0) -> Tuple[Name, List[int]]:
    """The array and the numbers ``pads`` with which an operator makes just these windows."""
    behind = _window_counts(n, kernel, spots, stride, pad, dilate)
    if all(isinstance(b, int) and 0 <= b for b in behind):
        return x, [*pad, *behind]
    as_formula = [(size + 2 * p - (k - 1) * d - 1) // s + 1 for size, k, s, p, d in zip(n, kernel, stride, pad, dilate)]
    if as_formula == list(spots):
        return x, [*pad, *pad]
    return _padded(o, x, pad, behind, fill), [0] * 2 * len(pad)


def conv(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, W: Name, *bias: Name, size: Sizes, stride: Sizes,
         pad: Sizes, dilate: Sizes, groups: int) -> Name:
    """The correlation with filters.  bias: a number for each of them, in single precision."""
    kernel = types[1].shape[2:]
    if not o.takes("Conv", o.dtype(x)):
        return _conv_by_products(o, types, results, x, W, size, stride, pad, dilate, groups)
    x, pads = _prepared(o, x, types[0].shape[2:], kernel, size, stride, pad, dilate)
    return o.node("Conv", x, W, *bias, kernel_shape=list(kernel), strides=list(stride), dilations=list(dilate), pads=pads,
                  group=groups)


def _conv_by_products(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, W: Name, size: Sizes, stride: Sizes,
                      pad: Sizes, dilate: Sizes, groups: int) -> Name:
    (batch, _, *n), (filters, inner, *kernel) = types[0].shape, types[1].shape
    columns = _patches(o, x, n, tuple(kernel), size, stride, pad, dilate)
    rows, spots = inner * math.prod(kernel), math.prod(size)
    columns = reshaped(o, columns, (batch, groups, rows, spots))
    weights = reshaped(o, W, (1, groups, filters // groups, rows))
    return reshaped(o, o.node("MatMul", weights, columns), results[0].shape)


def conv_transpose(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, W: Name, *, size: Sizes, stride: Sizes,
                   pad: Sizes, dilate: Sizes, groups: int) -> Name:
    """The transposed correlation."""
    (batch, channels, *spots), (_, inner, *kernel) = types[0].shape, types[1].shape
    if o.takes("ConvTranspose", o.dtype(x)) and (not isinstance(batch, int) or batch):
        whole = o.node("ConvTranspose", x, W, kernel_shape=list(kernel), strides=list(stride), dilations=list(dilate), group=groups)
        made = [(m - 1) * s + (k - 1) * d + 1 for m, k, s, d in zip(spots, kernel, stride, dilate)]
        return _cut(o, whole, made, size, pad)
    rows = inner * math.prod(kernel)
    left = reshaped(o, o.node("Transpose", reshaped(o, W, (1, groups, channels // groups, rows)), perm=[0, 1, 3, 2]),
                    (1, groups, rows, channels // groups))
    columns = o.node("MatMul", left, reshaped(o, x, (batch, groups, channels // groups, math.prod(spots))))
    patches = reshaped(o, columns, (batch, inner * groups, *kernel, *spots))
    return _added(o, patches, results[0].shape, tuple(kernel), tuple(spots), stride, pad, dilate)


def _cut(o: OnnxWriter, x: Name, made: Sequence[Any], size: Sizes, pad: Sizes) -> Name:
    """The part of an image of sizes ``made`` behind ``pad``, with zeros where it ends before ``size``."""
    behind = [n + p - m for n, p, m in zip(size, pad, made)]
    if not any(pad) and all(isinstance(b, int) and b == 0 for b in behind):
        return x
    return _padded(o, x, [-p for p in pad], behind)


def conv_grad_weight(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, g: Name, *, size: Sizes, stride: Sizes,
                     pad: Sizes, dilate: Sizes, groups: int) -> Name:
    """The gradient of the filters."""
    (batch, channels, *n), (_, filters, *spots) = types[0].shape, types[1].shape
    columns = _patches(o, x, n, size, tuple(spots), stride, pad, dilate)
    rows, places = channels // groups * math.prod(size), math.prod(spots)
    columns = reshaped(o, columns, (batch, groups, rows, places))
    columns = reshaped(o, o.node("Transpose", columns, perm=[1, 0, 3, 2]), (groups, batch * places, rows))
    given = reshaped(o, g, (batch, groups, filters // groups, places))
    given = reshaped(o, o.node("Transpose", given, perm=[1, 2, 0, 3]), (groups, filters // groups, batch * places))
    return reshaped(o, o.node("MatMul", given, columns), results[0].shape)


# Patches --------------------------------------------------------------------------------------------------------


def _grid(o: OnnxWriter, kernel: Any, spots: Any, stride: int, dilate: int) -> Name:
    """The places along one axis, ``(kernel, spots)``."""
    if isinstance(kernel, int) and isinstance(spots, int):
        return o.constant(np.arange(kernel)[:, None] * dilate + np.arange(spots) * stride)

    def steps(count: Any, step: int) -> Name:
        counted = o.node("Range", o.constant(0, np.int64), o.size(count), o.constant(1, np.int64))
        return o.node("Mul", counted, o.constant(step, np.int64))
    return o.node("Add", o.node("Unsqueeze", steps(kernel, dilate), axes(o, 1)), steps(spots, stride))


def _patches(o: OnnxWriter, x: Name, n: Sequence[Any], kernel: Sizes, spots: Sizes, stride: Sizes, pad: Sizes, dilate: Sizes,
             fill: float = 0) -> Name:
    """``(batch, channels, *kernel, *spots)``."""
    behind = [b if not isinstance(b, int) else max(b, 0) for b in _window_counts(n, kernel, spots, stride, pad, dilate)]
    return _windows(o, _padded(o, x, pad, behind, fill), kernel, spots, stride, dilate)


def _windows(o: OnnxWriter, x: Name, kernel: Sizes, spots: Sizes, stride: Sizes, dilate: Sizes) -> Name:
    count = len(kernel)
    for a in range(count):
        x = o.node("Gather", x, _grid(o, kernel[a], spots[a], stride[a], dilate[a]), axis=2 + 2 * a)
    order = [0, 1, *range(2, 2 + 2 * count, 2), *range(3, 3 + 2 * count, 2)]
    return o.node("Transpose", x, perm=order)


def im2col(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], x: Name, *, kernel: Sizes, size: Sizes, stride: Sizes,
           pad: Sizes, dilate: Sizes) -> Name:
    """The patches of an image."""
    return _patches(o, x, types[0].shape[2:], kernel, size, stride, pad, dilate)


def _reach(n: Sequence[Any], kernel: Sizes, spots: Sizes, stride: Sizes, pad: Sizes, dilate: Sizes) -> List[Any]:
    """The sizes of an image with its border."""
    found = []
    for size, k, m, s, p, d in zip(n, kernel, spots, stride, pad, dilate):
        behind = _behind(size, k, m, s, p, d)
        found.append(size + p + max(behind, 0) if isinstance(behind, int) else (m - 1) * s + (k - 1) * d + 1 + (s - 1))
    return found


def _numbers(o: OnnxWriter, sizes: Sequence[Any]) -> Name:
    """The numbers of the elements of one image, as a batch of one with one channel."""
    numbers = o.node("Range", o.constant(0, np.int64), o.size(math.prod(sizes)), o.constant(1, np.int64))
    return reshaped(o, numbers, (1, 1, *sizes))


def _added(o: OnnxWriter, patches: Name, shape: Sequence[Any], kernel: Sizes, spots: Sizes, stride: Sizes, pad: Sizes,
           dilate: Sizes) -> Name:
    """Patches added up where they stand in images of ``shape``."""
    batch, channels, *n = shape
    sizes = _reach(n, kernel, spots, stride, pad, dilate)
    places = flat(o, _windows(o, _numbers(o, sizes), kernel, spots, stride, dilate))
    count, whole = math.prod(kernel) * math.prod(spots), (batch, channels, math.prod(sizes))
    places = o.node("Expand", places, o.shape((batch, channels, count)))
    y = o.node("ScatterElements", zeros(o, patches, whole), places, reshaped(o, patches, (batch, channels, count)), axis=2,
               reduction="add")
    return _cut(o, reshaped(o, y, (batch, channels, *sizes)), sizes, tuple(n), pad)


def col2im(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, *, size: Sizes, stride: Sizes, pad: Sizes,
           dilate: Sizes) -> Name:
    """Patches added up."""
    count = len(size)
    kernel, spots = types[0].shape[2:2 + count], types[0].shape[2 + count:]
    return _added(o, x, results[0].shape, tuple(kernel), tuple(spots), stride, pad, dilate)


def local_conv(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, W: Name, *, stride: Sizes) -> Name:
    """`conv` where each spot has filters of its own."""
    count = len(stride)
    filters, spots, inner = types[1].shape[0], types[1].shape[1:count + 1], types[1].shape[count + 1:]
    batch, rows, each = types[0].shape[0], math.prod(inner), math.prod(spots)
    columns = _windows(o, x, inner[1:], spots, stride, (1,) * count)
    columns = o.node("Transpose", reshaped(o, columns, (batch, rows, each)), perm=[2, 1, 0])
    weights = o.node("Transpose", reshaped(o, W, (filters, each, rows)), perm=[1, 0, 2])
    y = o.node("Transpose", o.node("MatMul", weights, columns), perm=[2, 1, 0])
    return reshaped(o, y, results[0].shape)


# Pooling --------------------------------------------------------------------------------------------------------


def average_pool(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, *, kernel: Sizes, size: Sizes,
                 stride: Sizes, pad: Sizes) -> Name:
    """The mean of each window; the padding counts as zeros."""
    n, one = types[0].shape[2:], (1,) * len(kernel)
    if o.takes("AveragePool", o.dtype(x)):
        x, pads = _prepared(o, x, n, kernel, size, stride, pad, one)
        if all(p < k for p, k in zip(pads, (*kernel, *kernel))):
            return o.node("AveragePool", x, kernel_shape=list(kernel), strides=list(stride), pads=pads, count_include_pad=1)
        raise NotInOnnx("the padding is as wide as a window")
    patches = _patches(o, x, n, kernel, size, stride, pad, one)
    return o.reduce("ReduceMean", patches, tuple(range(2, 2 + len(kernel))))


def max_pool(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, *, kernel: Sizes, size: Sizes, stride: Sizes,
             pad: Sizes) -> Tuple[Name, ...]:
    """The maximum of each window, and its place; NaN is no maximum."""
    n, one = types[0].shape[2:], (1,) * len(kernel)
    batch, channels = types[0].shape[:2]
    if o.wanted(1):
        patches = _patches(o, x, n, kernel, size, stride, pad, one, -math.inf)
        patches = reshaped(o, patches, (batch, channels, math.prod(kernel), *size))
        places = o.cast(o.node("ArgMax", patches, axis=2, keepdims=0), results[1].dtype)
        return o.reduce("ReduceMax", patches, (2,)), places
    x, pads = _prepared(o, x, n, kernel, size, stride, pad, one, -math.inf)
    if any(p >= k for p, k in zip(pads, (*kernel, *kernel))):
        raise NotInOnnx("the padding is as wide as a window")
    return o.node("MaxPool", x, kernel_shape=list(kernel), strides=list(stride), pads=pads), ""


def _picked_places(o: OnnxWriter, indexes: Name, sizes: Sequence[Any], kernel: Sizes, spots: Sizes, stride: Sizes,
                   lead: Sequence[Any]) -> Name:
    """Where in each flat image the places of the windows are, ``(batch, channels, spots)``."""
    table = _windows(o, _numbers(o, sizes), kernel, spots, stride, (1,) * len(kernel))
    table = reshaped(o, table, (1, 1, math.prod(kernel), math.prod(spots)))
    table = o.node("Expand", table, o.shape((*lead, math.prod(kernel), math.prod(spots))))
    rows = reshaped(o, o.cast(indexes, np.int64), (*lead, 1, math.prod(spots)))
    return reshaped(o, o.node("GatherElements", table, rows, axis=2), (*lead, math.prod(spots)))


def pick_in_windows(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, indexes: Name, *, kernel: Sizes,
                    size: Sizes, stride: Sizes, pad: Sizes) -> Name:
    """What stands at one place of each window."""
    lead, n, one = types[0].shape[:2], types[0].shape[2:], (1,) * len(kernel)
    sizes = _reach(n, kernel, size, stride, pad, one)
    image = _padded(o, x, pad, [r - m - p for r, m, p in zip(sizes, n, pad)], -math.inf)
    places = _picked_places(o, indexes, sizes, kernel, size, stride, lead)
    y = o.node("GatherElements", reshaped(o, image, (*lead, math.prod(sizes))), places, axis=2)
    return reshaped(o, y, results[0].shape)


def unpick(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, indexes: Name, *, kernel: Sizes, size: Sizes,
           stride: Sizes, pad: Sizes) -> Name:
    """Zeros, with each number added at its place of a window."""
    lead, spots, one = types[0].shape[:2], types[0].shape[2:], (1,) * len(kernel)
    sizes = _reach(size, kernel, spots, stride, pad, one)
    places = _picked_places(o, indexes, sizes, kernel, spots, stride, lead)
    given = reshaped(o, x, (*lead, math.prod(spots)))
    y = o.node("ScatterElements", zeros(o, x, (*lead, math.prod(sizes))), places, given, axis=2, reduction="add")
    return _cut(o, reshaped(o, y, (*lead, *sizes)), sizes, size, pad)


def fixed_batch_norm(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, gamma: Name, beta: Name, mean: Name,
                     var: Name, *, axis: Tuple[int, ...], eps: float) -> Tuple[Name, ...]:
    """``y, inv_std, inv_var``: by the operator where the channels are the second axis."""
    ndim = types[0].ndim
    plain = ndim >= 2 and axis == (0, *range(2, ndim)) and len({o.dtype(v) for v in (x, gamma, beta, mean, var)}) == 1
    if plain and not o.wanted(1) and not o.wanted(2):
        return o.node("BatchNormalization", x, gamma, beta, mean, var, epsilon=float(eps)), "", ""
    wide = o.shape([1 if a in axis else n for a, n in enumerate(types[0].shape)])
    inv_var = o.node("Div", o.like(1, var), o.node("Add", var, o.like(eps, var)))
    inv_std = o.node("Sqrt", inv_var)

    def kept(v: Name) -> Name:
        return o.cast(o.node("Reshape", v, wide, allowzero=1), o.dtype(x))
    x_hat = o.node("Mul", o.node("Sub", x, kept(mean)), kept(inv_std))
    return o.node("Add", o.node("Mul", x_hat, kept(gamma)), kept(beta)), inv_std, inv_var


def fixed_decorrelate(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, mean: Name, projection: Name) -> Name:
    """``projection @ (x - mean)``."""
    return o.node("MatMul", projection, o.node("Sub", x, o.node("Unsqueeze", mean, axes(o, 2))))


def _around(o: OnnxWriter, x: Name, half: int, ndim: int) -> Name:
    """For each channel the sum over those around it, up to so many on each side."""
    widths = [0] * 2 * ndim
    widths[1] = widths[ndim + 1] = half
    wide = o.node("Pad", x, o.constant(widths, np.int64), o.like(0, x))
    total = x
    for k in [*range(half), *range(half + 1, 2 * half + 1)]:
        last = np.iinfo(np.int64).max if k == 2 * half else k - 2 * half
        total = o.node("Add", total, o.node("Slice", wide, axes(o, k), axes(o, last), axes(o, 1)))
    return total


def local_response(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], x: Name, *, n: int, k: float, alpha: float,
                   beta: float) -> Tuple[Name, ...]:
    """``y, unit, scale``: divided by a power of what channels around have."""
    sums = _around(o, o.node("Mul", x, x), n // 2, types[0].ndim)
    unit = o.node("Add", o.node("Mul", sums, o.like(alpha, x)), o.like(k, x))
    scale = o.node("Pow", unit, o.like(-beta, x))
    return o.node("Mul", x, scale), unit, scale


def local_response_grad(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], x: Name, y: Name, g: Name, unit: Name,
                        scale: Name, *, n: int, alpha: float, beta: float) -> Name:
    """The gradient of `local_response`."""
    sums = _around(o, o.node("Div", o.node("Mul", y, g), unit), n // 2, types[0].ndim)
    less = o.node("Mul", o.node("Mul", x, o.like(2 * alpha * beta, x)), sums)
    return o.node("Sub", o.node("Mul", g, scale), less)


def region_average(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, rois: Name, images: Name, *,
                   size: Tuple[int, int], scale: float, ratio: Tuple[Any, Any]) -> Name:
    """`RoiAlign`, with as many points in a bin along both axes."""
    if ratio[0] != ratio[1]:
        raise NotInOnnx(f"`RoiAlign` has one sampling ratio, not {ratio}")
    dtype = np.dtype(np.float64 if types[0].dtype == np.float64 else np.float32)
    scaled = o.node("Mul", o.cast(rois, dtype), o.constant(scale, dtype))       # its attribute for that has single precision
    turned = o.node("Gather", scaled, o.constant([1, 0, 3, 2], np.int64), axis=1)
    y = o.nodes("RoiAlign", (o.cast(x, dtype), turned, o.cast(images, np.int64)), (dtype,), mode="avg", output_height=size[0],
                output_width=size[1], sampling_ratio=ratio[0] or 0, coordinate_transformation_mode="output_half_pixel")[0]
    return o.cast(y, results[0].dtype)

"""Lowerings of `chainer.functions.array`: padding, pixels as channels, images of another size."""
from __future__ import annotations

from typing import Any, Optional

import numpy as np
from chainer.functions.array.depth2space import Depth2Space
from chainer.functions.array.pad import Pad
from chainer.functions.array.resize_images import ResizeImages, compute_indices_and_weights
from chainer.functions.array.space2depth import Space2Depth

from .. import ops
from ..ir.building import constant
from ..ir.dims import equal, is_positive
from ..ir.graph import Value
from .registry import is_number, lowers, size_of

# Padding --------------------------------------------------------------------------------------------------------


@lowers(Pad)
def pad(node: Any, x: Value) -> Optional[Value]:
    # Backward takes the padding off, which is the derivative for constant padding alone; it reads ``pad_width`` as
    # NumPy does, unless that is one row for several axes.  Padding that is not filled holds anything.
    widths = np.asarray(node.pad_width)
    if widths.dtype.kind != "i" or widths.ndim == 2 and len(widths) != x.ndim:
        return None
    pairs = tuple((int(before), int(after)) for before, after in np.broadcast_to(widths, (x.ndim, 2)))
    if node.mode == "constant" and not node.keywords:
        index = tuple(slice(before, before + n) for (before, _), n in zip(pairs, x.shape))
        return ops.scatter_slice(x, index=index, shape=tuple(n + sum(pair) for pair, n in zip(pairs, x.shape)))
    keywords = tuple((name, _plain(value)) for name, value in node.keywords.items())
    if node.mode not in _PAD_MODES or any(value is None for _, value in keywords) or x.ndim == 0 or not is_positive(size_of(x)):
        return None
    return ops.pad(x, width=pairs, mode=node.mode, keywords=keywords)


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


# Another size ---------------------------------------------------------------------------------------------------


@lowers(ResizeImages)
def resize_images(node: Any, x: Value) -> Optional[Value]:
    # each pixel is a weighted sum of four, also for the nearest, whose other weights are zero
    n, c, h, w = x.shape
    out = (node.out_H, node.out_W)
    if not all(type(size) is int and size > 0 for size in (*x.shape, *out)):
        return None
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

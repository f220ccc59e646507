"""Which convolutions the kernels for images in blocks of channels are for."""
from __future__ import annotations

import math

import numpy as np

from ..ir.dims import is_known
from ..ir.graph import Node
from ..ir.types import Tensor
from ..ops.channel_blocks import are_groups, are_transposed_windows

#: Fewer places in a row do not fill a tile.
_PLACES = 4
#: Places are found by offsets of 32 bits.
_MOST = 1 << 31
#: Taps of a filter of one channel.
_MOST_TAPS = 128


def is_single(node: Node) -> bool:
    """Whether a node is about arrays of single precision, which the kernels are for; other results are of no account."""
    return all(isinstance(v.type, Tensor) and v.dtype == np.float32 for v in (*node.inputs, node.outputs[0]))


def convolves_sequences(node: Node) -> bool:
    """Whether a node is a convolution over one axis."""
    return node.op.name == "conv" and len(node.attrs["size"]) == 1 and is_single(node) and all(
        is_known(n) and n for v in (*node.inputs, *node.outputs) for n in v.shape)


def fits(node: Node) -> bool:
    """Whether a node is a convolution that the kernels for blocks are for."""
    if node.op.name != "conv" or len(node.attrs["size"]) != 2:
        return False
    (x, W), (y,), groups = node.inputs, node.outputs, node.attrs["groups"]
    if not is_single(node) or not all(all(map(is_known, v.shape)) and 0 not in v.shape for v in (x, W, y)):
        return False
    if groups == W.shape[0] == x.shape[1] != 1:
        return math.prod(W.shape[2:]) <= _MOST_TAPS
    grown = math.prod(n + 2 * p + s for n, p, s in zip(x.shape[2:], node.attrs["pad"], node.attrs["stride"]))
    places = math.prod(y.shape[2:]) if W.shape[2:] == (1, 1) else y.shape[3]
    return places >= _PLACES and x.shape[1] * grown < _MOST and (groups == 1 or are_groups(x.shape[1], W.shape[0], groups))


def fits_transposed(node: Node) -> bool:
    """Whether a node is a transposed convolution that the kernels for blocks are for."""
    if node.op.name != "conv_transpose" or len(node.attrs["size"]) != 2 or not is_single(node):
        return False
    (x, W), (y,), attrs = node.inputs, node.outputs, node.attrs
    if attrs["groups"] != 1 or set(attrs["dilate"]) != {1} or not all(is_known(n) and n for v in (x, W, y) for n in v.shape):
        return False
    grown = math.prod(n + 2 * size for n, size in zip(x.shape[2:], W.shape[2:]))
    return x.shape[1] * grown < _MOST and math.prod(W.shape[2:]) <= _MOST_TAPS and are_transposed_windows(
        x.shape[2:], W.shape[2:], y.shape[2:], attrs["stride"], attrs["pad"])

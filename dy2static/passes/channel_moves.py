"""Reshapes, transposes, slices and joins that only move whole channels of images: which channels of which images a value holds."""
from __future__ import annotations

import math
from typing import List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ..ir.dims import is_known
from ..ir.graph import Node, Value
from ..ir.template import is_window

#: Ops that can move whole channels.
MOVES = ("reshape", "transpose", "getitem", "split", "concat")


class Channels(NamedTuple):
    """Channels of images, as a value ``(batch, *axes, rows, columns)`` holds them.

    images: ``(batch, channels, rows, columns)`` each.  numbers: those of the channels, an array of shape ``axes``; the channels of
    all images are counted one image behind the other.
    """

    images: Tuple[Value, ...]
    numbers: np.ndarray

    def is_join(self) -> bool:
        """Whether these are all channels of all images in their order."""
        return np.array_equal(self.numbers.ravel(), np.arange(sum(image.shape[1] for image in self.images)))


def of_image(image: Value) -> Channels:
    """All channels of one image."""
    return Channels((image,), np.arange(image.shape[1]))


def moved(node: Node, operands: Sequence[Channels]) -> Optional[List[Channels]]:
    """The channels that the results of a node hold, given those of its operands; None if it does not only move channels."""
    first, values = node.inputs[0].shape, (*node.inputs, *node.outputs)
    if any(len(v.shape) < 4 or (v.shape[0], *v.shape[-2:]) != (first[0], *first[-2:]) for v in values):
        return None
    if not all(is_known(n) and n for v in values for n in v.shape):
        return None
    numbers = _joined(node, operands) if node.op.name == "concat" else _of_one(node, operands[0].numbers)
    if numbers is None:
        return None
    images = tuple(image for one in operands for image in one.images)
    return [_without_unread(Channels(images, some)) for some in numbers]


def _joined(node: Node, operands: Sequence[Channels]) -> Optional[List[np.ndarray]]:
    axis = node.attrs["axis"]
    if not 0 < axis < len(node.inputs[0].shape) - 2:
        return None
    before = np.cumsum([0, *(sum(image.shape[1] for image in one.images) for one in operands)])
    return [np.concatenate([one.numbers + skipped for one, skipped in zip(operands, before)], axis - 1)]


def _of_one(node: Node, numbers: np.ndarray) -> Optional[List[np.ndarray]]:
    (x,), attrs, count = node.inputs, node.attrs, len(node.inputs[0].shape)
    if node.op.name == "reshape":
        axes = node.outputs[0].shape[1:-2]
        return [numbers.reshape(axes)] if math.prod(axes) == numbers.size else None
    if node.op.name == "transpose":
        axes = attrs["axes"]
        stays = axes[0] == 0 and axes[-2:] == (count - 2, count - 1)
        return [numbers.transpose([a - 1 for a in axes[1:-2]])] if stays else None
    if node.op.name == "split":
        axis = attrs["axis"]
        return np.split(numbers, np.cumsum(attrs["sizes"])[:-1], axis - 1) if 0 < axis < count - 2 else None
    return _part(x.shape, attrs["index"], numbers)


def _part(shape: Tuple[int, ...], index: Tuple[object, ...], numbers: np.ndarray) -> Optional[List[np.ndarray]]:
    """The numbers at a basic index in its normal form that takes all of the batch, of the rows and of the columns."""
    if len(index) != len(shape) or any(not isinstance(entry, (int, tuple)) or is_window(entry) for entry in index):
        return None
    if any(index[axis] != (0, shape[axis], 1) for axis in (0, -2, -1)):
        return None
    return [numbers[tuple(slice(*entry) if isinstance(entry, tuple) else entry for entry in index[1:-2])]]


def _without_unread(channels: Channels) -> Channels:
    """The same channels, without images of which none is taken."""
    images, numbers, begin = [], channels.numbers.copy(), 0
    for image in channels.images:
        end = begin + image.shape[1]
        if np.any((numbers >= begin) & (numbers < end)):
            images.append(image)
            begin = end
        else:
            numbers[numbers >= end] -= image.shape[1]
    return Channels(tuple(images), numbers)

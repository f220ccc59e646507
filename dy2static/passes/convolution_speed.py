"""How long convolutions take, about, in each of the ways in which they can be computed."""
from __future__ import annotations

import math
from typing import Mapping, NamedTuple, Sequence, Tuple

from ..native.convolutions import takes_filters
from ..native.cpus import has_long_vectors, is_intel
from ..ops.channel_blocks import BLOCK

#: Nanoseconds: what it takes to turn a number to or from blocks.
TURN = 0.5


class Speed(NamedTuple):
    """Nanoseconds of a multiplication: for a plain image, in blocks, and there by Winograd's algorithm.

    most: how many places a tile holds.  few: a tile of fewer places takes as long as one of so many, because its sums wait for each
    other.  small: where groups have so many channels, for a plain image and in blocks, of filters of three by three, of others, and
    of others that step.

    replaced: with a stride of two, Winograd's algorithm is for squares each of which replaces so many multiplications of the direct
    one.  maxima: what a tap of a maximum of a window takes less in blocks.  each: what a number of a plain image, or of a plain
    result, takes more than one in blocks, besides multiplications.  depthwise: what a number of a result, and each of its taps,
    takes less in blocks if filters take one channel each.
    """

    direct: float
    in_blocks: float
    winograd: float
    most: int
    few: int
    small: Mapping[int, Tuple[Tuple[float, float], ...]]
    replaced: int
    maxima: float
    each: float
    depthwise: Tuple[float, float]


#: Measured on one core of an AMD EPYC with AVX-512 (Zen 4, small groups: Zen 5), and on one with AVX2 (Zen 3, small groups of
#: filters other than three by three: Zen 5), and on an Intel Xeon (Emerald Rapids), on which maxima were measured for all, and each
#: number and filters of one channel with and without AVX-512.
_LONG_VECTORS = Speed(0.0190, 0.0180, 0.0115, 14, 4, {
    4: ((0.0185, 0.0115), (0.0145, 0.0145), (0.0270, 0.0185)), 8: ((0.0135, 0.0108), (0.0113, 0.0138), (0.0178, 0.0162))},
                      32, 0.14, 0.2, (0.11, 0.008))
_LONG_VECTORS_OF_INTEL = _LONG_VECTORS._replace(direct=0.0157, in_blocks=0.0133, winograd=0.0088, each=0.3)
_SHORT_VECTORS = Speed(0.0265, 0.0245, 0.0125, 6, 4, {
    4: ((0.040, 0.035), (0.024, 0.025), (0.035, 0.030)), 8: ((0.045, 0.0275), (0.025, 0.023), (0.030, 0.026))},
                       29, 0.28, 0.1, (0.0, 0.03))
#: So many squares of two by two places, those with a stride of two, and channels, Winograd's algorithm is for.
_SQUARES, _STRIDED, _CHANNELS = 16, 20, 16
#: For dilated filters, squares each of which replaces so many multiplications of the direct algorithm.
_DILATED = 24
#: How many multiplications it takes for those of a stride of one.
MORE = 25 / 16
#: Nanoseconds: what it takes to transform the filter of one channel for one channel.
_TRANSFORM = 3.0
#: Multiplications in the time in which a part of a product of all taps is added (AVX2).
_ADDING = 6
#: Plain images are turned for Winograd's algorithm if that saves at least so much of the time.
_WORTH = 0.12
#: The derivative by the filters takes 0.45 to 0.75 of the time by Winograd's algorithm (one core of a Zen 5 with
#: AVX-512 and with AVX2) if what fills squares and blocks of channels makes the multiplications at most so many times as many.
_FILLED = 1.6


def speed_here() -> Speed:
    """That of this processor."""
    if not has_long_vectors():
        return _SHORT_VECTORS
    return _LONG_VECTORS_OF_INTEL if is_intel() else _LONG_VECTORS


def is_winograd(filters: Sequence[int], groups: int, result: Sequence[int], stride: Sequence[int], dilate: Sequence[int]) -> bool:
    """Whether images in blocks are for Winograd's algorithm.

    filters: ``(out, in of a group, rows, columns)``; result: ``(batch, out, rows, columns)``.
    """
    squares, speed, replaced = _squares(result, dilate), speed_here(), 9 * result[0] * math.prod(result[2:])
    if filters[2:] != (3, 3) or min(filters[1], filters[0] // groups) < _CHANNELS:
        return False
    is_dilated = dilate != (1, 1)
    if stride == (2, 2):
        return squares >= _STRIDED and not is_dilated and replaced >= speed.replaced * squares
    return squares >= _SQUARES and stride == (1, 1) and not (is_dilated and replaced < _DILATED * squares)


def _is_of_plain_images(filters: Sequence[int], result: Sequence[int], dilate: Sequence[int]) -> bool:
    """The same for plain images and a stride of one; there may be slices along a third axis."""
    return takes_filters(filters[2:]) and min(filters[:2]) >= _CHANNELS and _squares(result, dilate) >= _SQUARES


def _squares(result: Sequence[int], dilate: Sequence[int]) -> int:
    """Squares of two by two places, which are ``dilate`` apart."""
    pairs = [size // (2 * d) * d + min(d, size % (2 * d)) for size, d in zip(result[-2:], dilate[-2:])]
    return int(result[0] * math.prod(result[2:-2]) * math.prod(pairs))


def _channels_of_taps(filters: Sequence[int]) -> int:
    """Channels that a square is transformed for: of slices, those of all taps, in whole blocks."""
    in_, taps = filters[1], math.prod(filters[2:-2])
    return int(taps * -(-in_ // BLOCK) * BLOCK if len(filters) > 4 else in_)


def _turned(filters: Sequence[int], image: Sequence[int], result: Sequence[int], dilate: Sequence[int]) -> float:
    """Nanoseconds of Winograd's algorithm for plain images, which are turned to blocks and back."""
    filled = -(-filters[0] // BLOCK) * BLOCK
    return 4 * _squares(result, dilate) * filled * _channels_of_taps(filters) * 9 * speed_here().winograd \
        + TURN * (math.prod(image) + math.prod(result)) + _TRANSFORM * math.prod(filters[:-2])


def _direct(filters: Sequence[int], result: Sequence[int]) -> float:
    return math.prod(result) * math.prod(filters[1:]) * speed_here().direct


def pays_to_turn(filters: Sequence[int], image: Sequence[int], result: Sequence[int], dilate: Sequence[int]) -> bool:
    """Whether Winograd's algorithm saves time for one convolution of plain images with a stride of one.

    filters: ``(out, in, [slices,] rows, columns)``; image, result: ``(batch, channels, [slices,] rows, columns)``.  The image of a
    transposed convolution without padding is the smaller one: the other way is a product for its places, whose parts are added.
    """
    if not _is_of_plain_images(filters, result, dilate):
        return False
    if math.prod(image[2:]) < math.prod(result[2:]):
        return _turned(filters, image, result, dilate) < (1 + _ADDING / filters[1]) * _direct(filters, (*result[:2], *image[2:]))
    return _turned(filters, image, result, dilate) < (1 - _WORTH) * _direct(filters, result)


def pays_for_filters(filters: Sequence[int], result: Sequence[int], dilate: Sequence[int]) -> bool:
    """Whether Winograd's algorithm saves time for the derivative of such a convolution of plain images by its filters.

    filters: ``(out, in, [slices,] rows, columns)``; result: ``(batch, out, [slices,] rows, columns)``, whose gradient is given.
    """
    if not _is_of_plain_images(filters, result, dilate):
        return False
    out, in_ = (-(-n // BLOCK) * BLOCK for n in filters[:2])
    return 4 * _squares(result, dilate) * out * in_ <= _FILLED * math.prod(result) * filters[1]


def of_plain_images(filters: Sequence[int], image: Sequence[int], result: Sequence[int], dilate: Sequence[int],
                    may_turn: bool) -> float:
    """Nanoseconds of a convolution of plain images.  may_turn: whether Winograd's algorithm is for its stride and groups."""
    if may_turn and pays_to_turn(filters, image, result, dilate):
        return _turned(filters, image, result, dilate)
    return _direct(filters, result)

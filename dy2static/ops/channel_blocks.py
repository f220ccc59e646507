"""Ops on images in blocks of channels, ``(batch, channels / 16, rows, columns, 16)``: `passes.channel_blocks` makes them."""
from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import numpy as np

from ..ir.dims import is_known
from ..ir.op import OpDef, declare, sample
from ..ir.shapes import show
from ..ir.types import Tensor
from .convolution import canonical_windows, check_windows
from .correlation import convolve_images, convolve_transposed
from .maxima import take_maximum
from .rules import need_dtype, one_dtype
from .windows import Sizes, average_windows

#: Channels of a block.
BLOCK = 16
#: Steps of transposed convolutions, as in ``dy2static_blocked_transposed.h``.
_MOST_STRIDE = 8


def blocks_of(channels: int) -> int:
    """How many blocks hold so many channels; the last one may be a part of one."""
    return -(-channels // BLOCK)


def in_blocks(shape: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """The shape of a plain image's array in blocks."""
    return (shape[0], blocks_of(shape[1]), *shape[2:], BLOCK)


def turn_to_blocks(x: np.ndarray) -> np.ndarray:
    """A plain image in blocks; what fills the last one is zero."""
    missing = -x.shape[1] % BLOCK
    x = np.pad(x, ((0, 0), (0, missing), (0, 0), (0, 0))) if missing else x
    parts = x.reshape(x.shape[0], x.shape[1] // BLOCK, BLOCK, *x.shape[2:])
    return np.ascontiguousarray(np.moveaxis(parts, 2, -1))


def turn_from_blocks(x: np.ndarray, channels: int) -> np.ndarray:
    """A plain image from one in blocks."""
    plain = np.moveaxis(x, -1, 2).reshape(x.shape[0], x.shape[1] * BLOCK, *x.shape[2:-1])
    return np.ascontiguousarray(plain[:, :channels])


def _need_blocks(x: Tensor) -> None:
    need_dtype(x, "f", "an image")
    if x.ndim != 5 or x.shape[-1] != BLOCK:
        raise ValueError(f"an image in blocks of {BLOCK} channels is needed, not {show(x.shape)}")


def _need_channels(x: Tensor, channels: int) -> None:
    _need_blocks(x)
    if x.shape[1] != blocks_of(channels):
        raise ValueError(f"{channels} channels do not fit an image of shape {show(x.shape)} in blocks")


def _to_infer(x: Tensor) -> Tensor:
    need_dtype(x, "f", "an image")
    if x.ndim != 4 or not is_known(x.shape[1]):
        raise ValueError(f"an image of shape {show(x.shape)} has no blocks of {BLOCK} channels")
    return Tensor(in_blocks(x.shape), x.dtype)


def _from_infer(x: Tensor, *, channels: int) -> Tensor:
    _need_channels(x, channels)
    return Tensor((x.shape[0], channels, *x.shape[2:-1]), x.dtype)


#: A plain image in blocks of channels.
to_blocks: OpDef = declare(
    "to_blocks", "x", kind="movement", infer=_to_infer, numpy="turn_to_blocks({x})", calls=(turn_to_blocks,),
    samples=(sample((2, 32, 3, 7)), sample((2, 21, 5, 7))))

#: A plain image of so many channels from one in blocks.
from_blocks: OpDef = declare(
    "from_blocks", "x", {"channels": 0}, kind="movement", infer=_from_infer, numpy="turn_from_blocks({x}, {channels})",
    calls=(turn_from_blocks,), samples=(sample((2, 3, 5, 4, 16), channels=48), sample((2, 3, 5, 4, 16), channels=37)))


def are_groups(channels: int, out: int, groups: int) -> bool:
    """Whether the kernels take these groups of channels.

    They do if each filter takes one, or groups fill blocks, two or four of them together if they are small.
    """
    if groups == channels == out:
        return True
    inner, outer = channels // groups, out // groups
    if inner % BLOCK == outer % BLOCK == 0:
        return True
    return inner == outer and inner in (BLOCK // 4, BLOCK // 2) and channels % BLOCK == 0


def _operands(scale: bool, shift: bool, residual: bool, more: Sequence[Any]) -> Tuple[Optional[Any], ...]:
    rest = iter(more)
    return tuple(next(rest) if there else None for there in (scale, shift, residual))


def _conv_infer(x: Tensor, W: Tensor, *more: Tensor, size: Tuple[int, ...], stride: Tuple[int, ...], pad: Tuple[int, ...],
                dilate: Tuple[int, ...], groups: int, scale: bool, shift: bool, residual: bool, **limits: Any) -> Tensor:
    one_dtype(x, W, *more)
    channels = W.shape[1] * groups
    if x.ndim == 5:
        _need_channels(x, channels)
    image = (x.shape[0], channels, *x.shape[2:4]) if x.ndim == 5 else x.shape
    if groups != 1 and (x.ndim != 5 or not are_groups(channels, W.shape[0], groups)):
        raise ValueError(f"{groups} groups of {show(W.shape)} filters for an image of shape {show(x.shape)}")
    if W.ndim != 4 or image[1] != channels or len(more) != scale + shift + residual:
        raise ValueError(f"an image of shape {show(x.shape)} does not fit filters of shape {show(W.shape)}")
    check_windows(image[2:], W.shape[2:], size, stride, pad, dilate)
    y = Tensor(in_blocks((image[0], W.shape[0], *size)), x.dtype)
    for given, shape in zip(_operands(scale, shift, residual, more), (W.shape[:1], W.shape[:1], y.shape)):
        if given is not None and given.shape != shape:
            raise ValueError(f"an array of shape {show(given.shape)} in place of {show(shape)}")
    return y


def convolve_blocks(x: np.ndarray, W: np.ndarray, more: Sequence[np.ndarray], size: Sizes, places: Tuple[Sizes, Sizes, Sizes],
                    groups: int, scale: bool, shift: bool, residual: bool, relu: bool, cap: Optional[float]) -> np.ndarray:
    """What `conv_blocks` gives; places: strides, padding and dilation."""
    factor, term, rest = _operands(scale, shift, residual, more)
    image = turn_from_blocks(x, W.shape[1] * groups) if x.ndim == 5 else x
    y = convolve_images(image, W, *places, groups, size, out=np.empty((len(x), len(W), *size), x.dtype))
    return _finished(y, factor, term, rest, relu, cap)


def _finished(y: np.ndarray, factor: Optional[np.ndarray], term: Optional[np.ndarray], rest: Optional[np.ndarray], relu: bool,
              cap: Optional[float]) -> np.ndarray:
    """A plain image in blocks after what follows its convolution; ``y`` is overwritten."""
    if factor is not None:
        y *= factor.reshape(-1, 1, 1)
    if term is not None:
        y += term.reshape(-1, 1, 1)
    if rest is not None:
        y += turn_from_blocks(rest, y.shape[1])
    if relu:
        np.maximum(y, 0, out=y)
    return turn_to_blocks(y if cap is None else np.minimum(y, y.dtype.type(cap)))


#: ``conv`` in blocks, of an image in blocks or a plain one, and what may follow: ``scale`` and ``shift`` are numbers of each
#: channel, ``residual`` is added; with ``relu`` the result is at least zero and,
#: where there is a ``cap``, at most that.  The ``groups`` are one, as many as channels, or fill blocks (`are_groups`).
conv_blocks: OpDef = declare(
    "conv_blocks", "x W *more", {"size": (), "stride": None, "pad": None, "dilate": None, "groups": 1, "scale": False,
                                 "shift": False, "residual": False, "relu": False, "cap": None},
    kind="contraction", canonical=canonical_windows, infer=_conv_infer,
    numpy="convolve_blocks({x}, {W}, [{more}], {size}, ({stride}, {pad}, {dilate}), "
          "{groups}, {scale}, {shift}, {residual}, {relu}, {cap})",
    calls=(convolve_blocks,),
    samples=(sample((2, 1, 5, 4, 16), (32, 16, 3, 3), size=(3, 2)),
             sample((1, 3, 9, 20), (48, 3, 3, 2), (48,), (48,), (1, 3, 5, 11, 16), size=(5, 11), stride=(2, 2), pad=(1, 1),
                    scale=True, shift=True, residual=True, relu=True),
             sample((2, 2, 7, 7, 16), (16, 32, 1, 1), (16,), size=(7, 7), shift=True, relu=True, cap=0.5),
             sample((2, 2, 7, 7, 16), (16, 32, 1, 1), (16,), size=(4, 4), stride=(2, 2), scale=True),
             sample((1, 1, 8, 9, 16), (16, 16, 2, 3), size=(5, 5), pad=(1, 0), dilate=(4, 2)),
             sample((2, 2, 9, 21, 16), (32, 1, 3, 3), (32,), (32,), (2, 2, 9, 21, 16), size=(9, 21), pad=(1, 1), groups=32,
                    scale=True, shift=True, residual=True, relu=True, cap=0.5),
             sample((1, 2, 6, 3, 16), (32, 1, 5, 5), (32,), size=(3, 2), stride=(2, 2), pad=(2, 2), groups=32, shift=True),
             sample((1, 1, 9, 8, 16), (16, 1, 3, 2), size=(5, 12), pad=(0, 3), dilate=(2, 2), groups=16),
             sample((2, 2, 7, 9, 16), (64, 16, 3, 3), (64,), size=(7, 9), pad=(1, 1), groups=2, scale=True),
             sample((2, 2, 9, 8, 16), (32, 8, 3, 3), (32,), size=(5, 4), stride=(2, 2), pad=(1, 1), groups=4, shift=True,
                    relu=True),
             sample((1, 2, 12, 15, 16), (32, 8, 3, 3), (32,), size=(12, 15), pad=(1, 1), groups=4, shift=True),
             sample((2, 2, 5, 13, 16), (32, 4, 3, 3), (32,), (2, 2, 5, 13, 16), size=(5, 13), pad=(1, 1), groups=8, scale=True,
                    residual=True, relu=True)),
)


def are_transposed_windows(image: Sizes, kernel: Sizes, size: Sizes, stride: Sizes, pad: Sizes) -> bool:
    """Whether the kernels take these windows of a transposed convolution, whose result has ``size``.

    They do if each tap meets a place, each place a tap, and no window begins inside of the image.
    """
    return all(s <= min(k, n, _MOST_STRIDE) and all((k - t % s + s - 1) // s > t // s for t in range(p, p + s))
               for k, n, s, p in zip(kernel, size, stride, pad)) and 0 not in image


def _transposed_infer(x: Tensor, W: Tensor, *more: Tensor, size: Sizes, stride: Sizes, pad: Sizes, dilate: Sizes, scale: bool,
                      shift: bool, **limits: Any) -> Tensor:
    one_dtype(x, W, *more)
    _need_channels(x, W.shape[0])
    if W.ndim != 4 or len(more) != scale + shift or any(given.shape != W.shape[1:2] for given in more):
        raise ValueError(f"an image of shape {show(x.shape)} does not fit filters of shape {show(W.shape)}")
    check_windows(size, W.shape[2:], x.shape[2:4], stride, pad, dilate)
    if not are_transposed_windows(x.shape[2:4], W.shape[2:], size, stride, pad) or set(dilate) != {1}:
        raise ValueError(f"windows of shape {show(W.shape[2:])} for an image of shape {show(x.shape)}")
    return Tensor(in_blocks((x.shape[0], W.shape[1], *size)), x.dtype)


def transpose_blocks(x: np.ndarray, W: np.ndarray, more: Sequence[np.ndarray], size: Sizes, places: Tuple[Sizes, Sizes, Sizes],
                     scale: bool, shift: bool, relu: bool, cap: Optional[float]) -> np.ndarray:
    """What `conv_transpose_blocks` gives; places: strides, padding and dilation."""
    factor, term, _ = _operands(scale, shift, False, more)
    y = convolve_transposed(turn_from_blocks(x, len(W)), W, *places, 1, size)
    return _finished(y, factor, term, None, relu, cap)


#: ``conv_transpose`` in blocks, and what may follow, as for `conv_blocks`, of windows that are `are_transposed_windows`.
conv_transpose_blocks: OpDef = declare(
    "conv_transpose_blocks", "x W *more", {"size": (), "stride": None, "pad": None, "dilate": None, "scale": False, "shift": False,
                                           "relu": False, "cap": None},
    kind="contraction", canonical=canonical_windows, infer=_transposed_infer,
    numpy="transpose_blocks({x}, {W}, [{more}], {size}, ({stride}, {pad}, {dilate}), {scale}, {shift}, {relu}, {cap})",
    calls=(transpose_blocks,),
    samples=(sample((2, 2, 3, 5, 16), (32, 16, 4, 4), size=(6, 10), stride=(2, 2), pad=(1, 1)),
             sample((1, 2, 4, 3, 16), (24, 37, 3, 5), (37,), (37,), size=(8, 9), stride=(2, 3), pad=(1, 1), scale=True, shift=True,
                    relu=True, cap=0.5),
             sample((3, 1, 2, 2, 16), (16, 48, 2, 2), (48,), size=(4, 4), stride=(2, 2), shift=True),
             sample((2, 3, 5, 4, 16), (40, 20, 3, 3), size=(5, 4), pad=(1, 1), relu=True)),
)


def _max_infer(x: Tensor, *, kernel: Sizes, size: Sizes, stride: Sizes, pad: Sizes) -> Tensor:
    _need_blocks(x)
    check_windows(x.shape[2:-1], kernel, size, stride, pad, (1, 1))
    return Tensor((*x.shape[:2], *size, BLOCK), x.dtype)


def maxima_of_blocks(x: np.ndarray, kernel: Sizes, stride: Sizes, pad: Sizes, size: Sizes) -> np.ndarray:
    """What `max_pool_blocks` gives."""
    image = turn_from_blocks(x, x.shape[1] * BLOCK)
    y = np.empty((*image.shape[:2], *size), x.dtype)
    take_maximum(image, kernel, stride, pad, size, y, None)
    return turn_to_blocks(y)


#: The values of `max_pool` in blocks.
max_pool_blocks: OpDef = declare(
    "max_pool_blocks", "x", {"kernel": (), "size": (), "stride": None, "pad": None}, kind="reduction", canonical=canonical_windows,
    infer=_max_infer, numpy="maxima_of_blocks({x}, {kernel}, {stride}, {pad}, {size})", calls=(maxima_of_blocks,),
    samples=(sample((2, 2, 7, 6, 16), kernel=(3, 2), size=(3, 3), stride=(2, 2)),
             sample((1, 1, 5, 5, 16), kernel=(3, 3), size=(3, 3), stride=(2, 2), pad=(1, 1))),
)


def means_of_blocks(x: np.ndarray, kernel: Sizes, stride: Sizes, pad: Sizes, size: Sizes) -> np.ndarray:
    """What `average_pool_blocks` gives."""
    return turn_to_blocks(average_windows(turn_from_blocks(x, x.shape[1] * BLOCK), kernel, stride, pad, size))


#: `average_pool` in blocks.
average_pool_blocks: OpDef = declare(
    "average_pool_blocks", "x", {"kernel": (), "size": (), "stride": None, "pad": None}, kind="reduction",
    canonical=canonical_windows, infer=_max_infer, numpy="means_of_blocks({x}, {kernel}, {stride}, {pad}, {size})",
    calls=(means_of_blocks,),
    samples=(sample((2, 2, 8, 6, 16), kernel=(2, 2), size=(4, 3), stride=(2, 2)),
             sample((1, 1, 5, 5, 16), kernel=(3, 3), size=(5, 5), pad=(1, 1))),
)


def _join_infer(*xs: Tensor, channels: Tuple[int, ...], order: Tuple[int, ...]) -> Tensor:
    one_dtype(*xs)
    if len(xs) != len(channels):
        raise ValueError(f"{len(xs)} images for {len(channels)} numbers of channels")
    for x, count in zip(xs, channels):
        _need_channels(x, count)
        if (x.shape[0], *x.shape[2:]) != (xs[0].shape[0], *xs[0].shape[2:]):
            raise ValueError(f"an image of shape {show(x.shape)} beside one of shape {show(xs[0].shape)}")
    if not all(0 <= channel < sum(channels) for channel in order):
        raise ValueError(f"{sum(channels)} channels have no channel {max(order)}")
    return Tensor((xs[0].shape[0], blocks_of(len(order) or sum(channels)), *xs[0].shape[2:]), xs[0].dtype)


def join_blocks_of(xs: Sequence[np.ndarray], channels: Sequence[int], order: Sequence[int]) -> np.ndarray:
    """What `join_blocks` gives."""
    y = np.concatenate([turn_from_blocks(x, count) for x, count in zip(xs, channels)], axis=1)
    return turn_to_blocks(y[:, list(order)] if order else y)


#: Images in blocks one behind the other along the channels, of which each has so many.  order: those of all these channels that the
#: result has, in the order of the result; none: all as they are.
join_blocks: OpDef = declare(
    "join_blocks", "*xs", {"channels": (), "order": ()}, kind="movement", infer=_join_infer,
    numpy="join_blocks_of([{xs}], {channels}, {order})", calls=(join_blocks_of,),
    samples=(sample((2, 1, 3, 5, 16), (2, 2, 3, 5, 16), (2, 1, 3, 5, 16), channels=(12, 20, 16)),
             sample((1, 2, 4, 4, 16), (1, 1, 4, 4, 16), channels=(24, 3)), sample((2, 1, 3, 2, 16), channels=(16,)),
             sample((2, 1, 3, 3, 16), (2, 1, 3, 3, 16), channels=(1, 2)),
             sample((2, 1, 5, 7, 16), (2, 1, 5, 7, 16), channels=(12, 12), order=tuple(k // 2 + k % 2 * 12 for k in range(24))),
             sample((1, 2, 3, 3, 16), channels=(27,), order=tuple(range(20, 27))),
             sample((1, 2, 3, 5, 16), (1, 1, 3, 5, 16), channels=(24, 3), order=(26, 0, 25, 8, 23, 16, 24) * 3)),
)

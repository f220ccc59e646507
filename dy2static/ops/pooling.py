"""Pooling over any number of axes: what each window gives.

Arrays are ``(batch, channels, *sizes)``.  ``kernel``, ``stride`` and ``pad`` have an entry for each size; ``size`` is
that of the result.
"""
from __future__ import annotations

import math
from typing import Any, Dict, Tuple

import numpy as np

from ..ir.op import OpDef, declare, sample
from ..ir.shapes import same_shape, show
from ..ir.types import Tensor
from .broadcasting import broadcast_to
from .convolution import canonical_windows, check_windows, col2im
from .maxima import pick_places, pick_places_on_gpu, put_places, take_maximum, take_maximum_on_gpu
from .movement import reshape
from .onnx_forms import windows as forms
from .rules import need_dtype
from .windows import average_windows

_ATTRS: Dict[str, Any] = {"kernel": (), "size": (), "stride": None, "pad": None}


def _pooled(x: Tensor, *, kernel: Tuple[int, ...], size: Tuple[Any, ...], **places: Any) -> Tensor:
    need_dtype(x, "f", "an image")
    check_windows(x.shape[2:], kernel, size, dilate=(1,) * len(kernel), **places)
    return Tensor((*x.shape[:2], *size), x.dtype)


def _average_vjp(g, y, x, *, kernel, size, stride, pad):
    patches = broadcast_to(reshape(g, shape=(*g.shape[:2], *(1 for _ in kernel), *size)),
                           shape=(*g.shape[:2], *kernel, *size))
    return (col2im(patches, size=x.shape[2:], stride=stride, pad=pad) / float(math.prod(kernel)),)


#: The mean of each window; the padding counts as zeros.
average_pool = declare(
    "average_pool", "x", _ATTRS, kind="reduction", canonical=canonical_windows, infer=_pooled, vjp=_average_vjp,
    numpy="average_windows({x}, {kernel}, {stride}, {pad}, {size}, out={out})", calls=(average_windows,),
    onnx=forms.average_pool,
    samples=(sample((2, 3, 4, 6), kernel=(2, 3), size=(2, 2), stride=(2, 3)),
             sample((2, 1, 5), kernel=(3,), size=(5,), pad=(1,)), sample((1, 2, 3, 4), kernel=(3, 4), size=(1, 1)),
             sample((0, 2, 3), kernel=(2,), size=(2,))),
)


def _max_infer(x: Tensor, **attrs: Any) -> Tuple[Tensor, Tensor]:
    places = np.dtype(np.uint8 if math.prod(attrs["kernel"]) < 256 else np.int32)
    y = _pooled(x, **attrs)
    return y, Tensor(y.shape, places)


#: The maximum of each window, and its place, the first one of several, as the index in the flat kernel.  The padding
#: is minus infinity.
max_pool = declare(
    "max_pool", "x", _ATTRS, kind="reduction", canonical=canonical_windows, infer=_max_infer,
    vjp=lambda g, y, x, *, size, **attrs: (None if g[0] is None else unpick(g[0], y[1], size=x.shape[2:], **attrs),),
    numpy="take_maximum({x}, {kernel}, {stride}, {pad}, {size}, {out}, {out_1})",
    cupy="take_maximum_on_gpu({x}, {kernel}, {stride}, {pad}, {size}, {out}, {out_1})", calls=(take_maximum, take_maximum_on_gpu),
    onnx=forms.max_pool,
    samples=(sample((2, 3, 4, 6), kernel=(2, 3), size=(2, 2), stride=(2, 3)),
             sample((2, 1, 5), kernel=(3,), size=(5,), pad=(1,)), sample((1, 2, 3, 4), kernel=(3, 4), size=(1, 1)),
             sample((1, 20, 9, 9), kernel=(2, 2), size=(8, 8)), sample((0, 2, 3), kernel=(2,), size=(2,))),
)


def _pick_infer(x: Tensor, indexes: Tensor, **attrs: Any) -> Tensor:
    need_dtype(indexes, "iu", "an index")
    result = _pooled(x, **attrs)
    if not same_shape(result.shape, indexes.shape):
        raise ValueError(f"indexes of shape {show(indexes.shape)} for windows of shape {show(result.shape)}")
    return result


def _unpick_infer(x: Tensor, indexes: Tensor, *, size: Tuple[Any, ...], **attrs: Any) -> Tensor:
    image = Tensor((*x.shape[:2], *size), x.dtype)
    if _pick_infer(image, indexes, size=x.shape[2:], **attrs) != x:
        raise ValueError(f"an array of shape {show(x.shape)} does not fit the windows")
    return image


_PLACES = np.array([[[0, 3], [1, 2]]], np.uint8)

#: What stands at one place of each window.  The padding is minus infinity.
pick_in_windows: OpDef = declare(
    "pick_in_windows", "x indexes", _ATTRS, kind="movement", canonical=canonical_windows, infer=_pick_infer,
    vjp=lambda g, y, x, indexes, *, size, **attrs: (unpick(g, indexes, size=x.shape[2:], **attrs), None),
    numpy="pick_places({x}, {indexes}, {kernel}, {stride}, {pad}, out={out})",
    cupy="pick_places_on_gpu({x}, {indexes}, {kernel}, {stride}, {pad}, {out})", calls=(pick_places, pick_places_on_gpu),
    onnx=forms.pick_in_windows,
    samples=(sample((1, 2, 6), _PLACES, kernel=(4,), size=(2,), stride=(2,)),
             sample((1, 1, 3, 4), _PLACES[None], kernel=(2, 2), size=(2, 2), stride=(1, 2))),
)

#: Zeros, with each number added at its place of a window: the derivative of `pick_in_windows` and of `max_pool`.
unpick: OpDef = declare(
    "unpick", "x indexes", _ATTRS, kind="movement", canonical=canonical_windows, infer=_unpick_infer,
    vjp=lambda g, y, x, indexes, *, size, **attrs: (pick_in_windows(g, indexes, size=x.shape[2:], **attrs), None),
    numpy="put_places({x}, {indexes}, {kernel}, {stride}, {pad}, {size}, out={out})", calls=(put_places,),
    onnx=forms.unpick,
    samples=(sample((1, 2, 2), _PLACES, kernel=(4,), size=(6,), stride=(2,)),
             sample((1, 1, 2, 2), _PLACES[None], kernel=(2, 2), size=(3, 4), stride=(1, 2))),
)

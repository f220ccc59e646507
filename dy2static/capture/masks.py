"""Masks in the index of a Variable: where they hold, as arrays of ints of a size that the run knows."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Tuple

import numpy as np

from ..ir.shapes import same_shape
from ..runtime.functions import true_rows
from ..symbolic.values import SymbolicArray

if TYPE_CHECKING:
    from .protocols import Capture


def without_mask(capture: Capture, slices: Tuple[Any, ...], shape: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """The index, of an array of this shape, with numbers of places for a mask; as it is if that does not fit."""
    masks = [place for place, entry in enumerate(slices) if _is_mask(entry)]
    if len(masks) != 1:
        return slices
    (place,) = masks
    mask = slices[place]
    axis = _axis(slices, place, len(shape))
    if axis is None or not same_shape(mask.type.shape, tuple(shape[axis:axis + mask.ndim])):
        return slices
    places = (capture.numpy.call(true_rows, (mask,), {}),) if mask.ndim == 1 else capture.numpy.call(np.nonzero, (mask,), {})
    return (*slices[:place], *places, *slices[place + 1:])


def _is_mask(entry: Any) -> bool:
    return type(entry) is SymbolicArray and entry.dtype.kind == "b" and entry.ndim > 0


def _axis(slices: Tuple[Any, ...], place: int, ndim: int) -> Optional[int]:
    """The first axis that this entry of an index is about; None where lists may be masks, too."""
    if any(isinstance(entry, list) for entry in slices):
        return None
    axes = [0 if entry is None or entry is Ellipsis else entry.ndim if _is_mask(entry) else 1 for entry in slices]
    behind_dots = any(entry is Ellipsis for entry in slices[:place])
    return ndim - sum(axes[place:]) if behind_dots else sum(axes[:place])

"""Arrays of zeros that lie in memory in several ways, with which it is tried whether calls give views."""
from __future__ import annotations

import math
from fractions import Fraction
from typing import Callable, Dict, Optional, Tuple

import numpy as np

from ..ir.types import Tensor


def laid_out(type_: Tensor, layout: int) -> np.ndarray:
    """Zeros in C order, in Fortran order, or with gaps everywhere."""
    if layout < 2:
        return np.zeros(type_.shape, type_.dtype, order="CF"[layout])
    return np.zeros([2 * n for n in type_.shape], type_.dtype)[(*[slice(None, None, 2)] * len(type_.shape), ...)]


def laid_out_for(type_: Tensor, view: Callable[[np.ndarray], np.ndarray], order: str) -> Optional[np.ndarray]:
    """Zeros that lie so that a view of them is in an order, "C" or "F": transposed, for one that is transposed back.

    view: gives the view.  None where no array lies like this: elements would be in one place.
    """
    shape = view(np.zeros(type_.shape, type_.dtype)).shape
    found = _axes_of(type_, view)
    if found is None or 0 in type_.shape:
        return None
    strides: Dict[int, Fraction] = {}
    apart = Fraction(1)
    for place in [k for k in range(len(shape))[::-1 if order == "C" else 1] if shape[k] > 1]:
        if place not in found:
            return None
        axis, step = found[place]
        if strides.setdefault(axis, apart / step) != apart / step:
            return None
        apart *= shape[place]
    scale = math.lcm(*[stride.denominator for stride in strides.values()])
    return _with_strides(type_, {axis: int(stride * scale) for axis, stride in strides.items()})


def _axes_of(type_: Tensor, view: Callable[[np.ndarray], np.ndarray]) -> Optional[Dict[int, Tuple[int, int]]]:
    """For each axis of a view the axis of the array, and its step along that; None where an axis goes along two."""
    found: Dict[int, Tuple[int, int]] = {}
    for axis, size in enumerate(type_.shape):
        memory = np.zeros(max(size, 1), type_.dtype)
        strides = [memory.itemsize * (k == axis) for k in range(len(type_.shape))]
        part = view(np.ndarray(type_.shape, type_.dtype, memory, 0, strides))
        if not np.may_share_memory(part, memory):
            return None
        for place, (stride, count) in enumerate(zip(part.strides, part.shape)):
            if count > 1 and stride and found.setdefault(place, (axis, stride // memory.itemsize))[0] != axis:
                return None
    return found


def _with_strides(type_: Tensor, strides: Dict[int, int]) -> Optional[np.ndarray]:
    """Zeros with these strides, in elements, the other axes around them; None where elements would be in one place."""
    reach = 0
    for axis in sorted(strides, key=lambda axis: abs(strides[axis])):
        if abs(strides[axis]) <= reach:
            return None
        reach += abs(strides[axis]) * (type_.shape[axis] - 1)
    for axis, size in enumerate(type_.shape):
        if axis not in strides:
            strides[axis] = reach + 1
            reach += (reach + 1) * (size - 1)
    memory = np.zeros(reach + 1, type_.dtype)
    first = sum(-strides[axis] * (size - 1) for axis, size in enumerate(type_.shape) if strides[axis] < 0)
    return np.ndarray(type_.shape, type_.dtype, memory, first * memory.itemsize,
                      [strides[axis] * memory.itemsize for axis in range(len(type_.shape))])

"""The maximum of each window, and where it is, with NumPy.  Shapes are those of `windows`.

A place in a window is one number: the index in the flat kernel.
"""
from __future__ import annotations

import itertools
import math
from typing import Any, Optional

import numpy as np

from .windows import FEW_ELEMENTS, Sizes, extent, inner, padded, places, take_patches, windows


def _one(kernel: Sizes) -> Sizes:
    return (1,) * len(kernel)


def _flat_patches(x: np.ndarray, kernel: Sizes, stride: Sizes, pad: Sizes, spots: Sizes, fill: float) -> np.ndarray:
    """``(batch, channels, places, *spots)``."""
    patches = take_patches(x, kernel, stride, pad, _one(kernel), spots, fill)
    return patches.reshape(*x.shape[:2], math.prod(kernel), *spots)


def take_maximum(x: np.ndarray, kernel: Sizes, stride: Sizes, pad: Sizes, spots: Sizes, out: Optional[np.ndarray],
                 indexes: Optional[np.ndarray]) -> None:
    """Fill ``out`` with the maxima and ``indexes`` with their places, the first one of several; either may be None.

    The padding is minus infinity.  Of a window with NaN, the first NaN is the maximum.
    """
    out = np.empty((*x.shape[:2], *spots), x.dtype) if out is None else out
    if out.size < FEW_ELEMENTS:
        patches = _flat_patches(x, kernel, stride, pad, spots, -np.inf)
        out[...] = patches.max(axis=2)                 # not into ``out``: see `_filling` of the NumPy emitter
        if indexes is not None:
            indexes[...] = patches.argmax(axis=2)
        return
    image = padded(x, pad, extent(kernel, stride, _one(kernel), spots), -np.inf)
    parts = list(places(windows(image, kernel, stride, _one(kernel), spots), kernel))
    out[...] = parts[0]
    for part in parts[1:]:
        np.maximum(out, part, out=out)
    if indexes is not None:
        _find(parts, out, indexes)
        if np.isnan(np.min(out)):
            indexes[...] = _flat_patches(x, kernel, stride, pad, spots, -np.inf).argmax(axis=2)


def _find(parts: list, maxima: np.ndarray, indexes: np.ndarray) -> None:
    """The first place of each maximum, as the largest number of places that are left from there on."""
    found, left = np.empty(maxima.shape, bool), np.empty_like(indexes)
    numbers = found.view(np.uint8) if indexes.dtype == np.uint8 else found
    indexes.fill(0)
    for place, part in enumerate(parts):
        np.equal(part, maxima, out=found)
        np.multiply(numbers, indexes.dtype.type(len(parts) - place), out=left)
        np.maximum(indexes, left, out=indexes)
    np.subtract(indexes.dtype.type(len(parts)), indexes, out=indexes)


def _grid(counts: Sizes, steps: Sizes) -> np.ndarray:
    """``i * steps[0] + j * steps[1] + ...`` for all indexes ``(i, j, ...)``."""
    sums = np.zeros((), np.intp)
    for count, step in zip(counts, steps):
        sums = sums[..., None] + np.arange(0, count * step, step)
    return sums


def _positions(indexes: np.ndarray, kernel: Sizes, stride: Sizes, sizes: Sizes) -> np.ndarray:
    """Where the places ``indexes`` of the windows are in a flat image ``(batch, channels, *sizes)``."""
    steps = tuple(math.prod(sizes[axis + 1:]) for axis in range(len(sizes)))
    positions = _grid(kernel, steps).ravel()[indexes]
    positions += _grid(indexes.shape[2:], tuple(s * step for s, step in zip(stride, steps)))
    images = _grid(indexes.shape[:2], (indexes.shape[1] * math.prod(sizes), math.prod(sizes)))
    positions += images.reshape(images.shape + (1,) * len(sizes))
    return positions


def pick_places(x: np.ndarray, indexes: np.ndarray, kernel: Sizes, stride: Sizes, pad: Sizes,
         out: Optional[np.ndarray] = None) -> np.ndarray:
    """What stands at one place of each window.  The padding is minus infinity."""
    image = padded(x, pad, extent(kernel, stride, _one(kernel), indexes.shape[2:]), -np.inf)
    return np.take(image.ravel(), _positions(indexes, kernel, stride, image.shape[2:]), out=out, mode="clip")


def pick_places_on_gpu(x: Any, indexes: Any, kernel: Sizes, stride: Sizes, pad: Sizes, out: Any) -> None:
    """As `pick_places`, for a library whose indices wrap."""
    image = padded(x, pad, extent(kernel, stride, _one(kernel), indexes.shape[2:]), -np.inf)
    np.take(image.ravel(), _positions(indexes, kernel, stride, image.shape[2:]), out=out)


def take_maximum_on_gpu(x: Any, kernel: Sizes, stride: Sizes, pad: Sizes, spots: Sizes, out: Any, indexes: Any) -> None:
    """As `take_maximum`, in few steps, none of which reads what an array holds.  As in Chainer's CUDA kernels, NaN is left out."""
    patches = _flat_patches(x, kernel, stride, pad, spots, -np.inf)
    patches = np.where(patches == patches, patches, patches.dtype.type(-np.inf))
    if out is not None:
        np.amax(patches, axis=2, out=out)
    if indexes is not None:
        indexes[...] = np.argmax(patches, axis=2)


def put_places(g: np.ndarray, indexes: np.ndarray, kernel: Sizes, stride: Sizes, pad: Sizes, size: Sizes,
        out: Optional[np.ndarray] = None) -> np.ndarray:
    """Zeros of ``(batch, channels, *size)``, with each number of ``g`` added at its place of a window."""
    reach = extent(kernel, stride, _one(kernel), g.shape[2:])
    sizes = tuple(max(p + n, r) for n, p, r in zip(size, pad, reach))
    result = np.empty((*g.shape[:2], *size), g.dtype) if out is None else out
    image = result if sizes == tuple(size) else np.empty((*g.shape[:2], *sizes), g.dtype)
    image.fill(0)
    flat, positions = image.reshape(-1), _positions(indexes, kernel, stride, sizes)
    # every so many windows apart, no two meet
    apart = tuple(-(-k // s) for k, s in zip(kernel, stride))
    for first in itertools.product(*map(range, apart)):
        part: Any = (..., *(slice(i, None, step) for i, step in zip(first, apart)))
        flat[positions[part]] += g[part]
    if image is not result:
        result[...] = image[inner(size, pad)]
    return result

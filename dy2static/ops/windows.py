"""Windows that slide over arrays, with NumPy: what the ops of convolution and pooling call.

Arrays are ``(batch, channels, *sizes)`` with any number of sizes.  ``kernel``, ``stride``, ``pad``, ``dilate`` and
``spots``, the numbers of windows, have an entry for each.
"""
from __future__ import annotations

import itertools
import math
from typing import Any, Iterator, Optional, Tuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

Sizes = Tuple[int, ...]

#: Elements of a result below which one call for all windows is cheaper than one for each place in a window.
FEW_ELEMENTS = 1024

def extent(kernel: Sizes, stride: Sizes, dilate: Sizes, spots: Sizes) -> Sizes:
    """How far the windows reach."""
    return tuple((o - 1) * s + (k - 1) * d + 1 for k, s, d, o in zip(kernel, stride, dilate, spots))


def padded(x: np.ndarray, pad: Sizes, reach: Sizes, fill: float = 0) -> np.ndarray:
    """``x`` behind ``pad`` elements ``fill``, and with as many behind it as ``reach`` needs; ``x`` itself if that is none."""
    sizes = tuple(max(p + n, r) for n, p, r in zip(x.shape[2:], pad, reach))
    if sizes == x.shape[2:]:
        return x
    shape = (*x.shape[:2], *sizes)
    image = np.full(shape, fill, x.dtype) if fill else np.zeros(shape, x.dtype)
    image[inner(x.shape[2:], pad)] = x
    return image


def inner(sizes: Sizes, pad: Sizes) -> Tuple[Any, ...]:
    """The index of an array in what is padded."""
    return (..., *(slice(p, p + n) for n, p in zip(sizes, pad)))


def windows(image: np.ndarray, kernel: Sizes, stride: Sizes, dilate: Sizes, spots: Sizes) -> np.ndarray:
    """A view ``(batch, channels, *kernel, *spots)`` of a padded array."""
    strides = image.strides[2:]
    return as_strided(image, (*image.shape[:2], *kernel, *spots),
                      (*image.strides[:2], *(n * d for n, d in zip(strides, dilate)),
                       *(n * s for n, s in zip(strides, stride))))


def places(view: np.ndarray, kernel: Sizes) -> Iterator[np.ndarray]:
    """What stands at each place in all windows, as views ``(batch, channels, *spots)``."""
    for place in itertools.product(*map(range, kernel)):
        index: Tuple[Any, ...] = (slice(None), slice(None), *place)
        yield view[index]


def are_apart(kernel: Sizes, stride: Sizes, dilate: Sizes) -> bool:
    """Whether no two windows meet."""
    return all(s > (k - 1) * d for k, s, d in zip(kernel, stride, dilate))


def take_patches(x: np.ndarray, kernel: Sizes, stride: Sizes, pad: Sizes, dilate: Sizes, spots: Sizes, fill: float = 0,
           out: Optional[np.ndarray] = None) -> np.ndarray:
    """The patches of ``x``, copied: ``(batch, channels, *kernel, *spots)``."""
    view = windows(padded(x, pad, extent(kernel, stride, dilate, spots), fill), kernel, stride, dilate, spots)
    if out is None:
        return view.copy()
    out[...] = view
    return out


def add_patches(columns: np.ndarray, stride: Sizes, pad: Sizes, dilate: Sizes, size: Sizes,
           out: Optional[np.ndarray] = None) -> np.ndarray:
    """Patches added up where they stand in an array ``(batch, channels, *size)``; those in the padding are lost."""
    count = len(size)
    kernel, spots = columns.shape[2:2 + count], columns.shape[2 + count:]
    reach = extent(kernel, stride, dilate, spots)
    sizes = tuple(max(p + n, r) for n, p, r in zip(size, pad, reach))
    shape = (*columns.shape[:2], *size)
    result = np.empty(shape, columns.dtype) if out is None else out
    inside = sizes == tuple(size) and result.dtype == columns.dtype
    if inside:
        image = result
        image.fill(0)
    else:
        image = np.zeros((*columns.shape[:2], *sizes), columns.dtype)
    view = windows(image, kernel, stride, dilate, spots)
    if are_apart(kernel, stride, dilate):
        np.add(columns, 0, out=view)                            # 0 is added, as in a sum: -0.0 becomes 0.0
    else:
        for place, part in zip(places(view, kernel), places(columns, kernel)):
            np.add(place, part, out=place)
    if not inside:
        result[...] = image[inner(size, pad)]
    return result


def average_windows(x: np.ndarray, kernel: Sizes, stride: Sizes, pad: Sizes, spots: Sizes,
            out: Optional[np.ndarray] = None) -> np.ndarray:
    """The mean of each window; the padding counts as zeros.  Half precision is summed in single precision."""
    result = np.empty((*x.shape[:2], *spots), x.dtype) if out is None else out
    one = (1,) * len(kernel)
    if result.size < FEW_ELEMENTS:
        # not with `out=`, which would have it sum in half precision
        result[...] = np.mean(take_patches(x, kernel, stride, pad, one, spots), axis=tuple(range(2, 2 + len(kernel))))
        return result
    view = windows(padded(x, pad, extent(kernel, stride, one, spots)), kernel, stride, one, spots)
    first, *others = places(view, kernel)
    total = np.empty(result.shape, np.float32) if x.dtype == np.float16 else result
    total[...] = first
    for part in others:
        np.add(total, part, out=total)
    return np.true_divide(total, math.prod(kernel), out=result)

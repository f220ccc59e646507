"""Correlation with filters, with NumPy: patches of some samples at a time, and a matrix product.

Shapes are those of `windows`.  Half precision is multiplied and summed in single precision.
"""
from __future__ import annotations

import math
from typing import Iterator, Optional, Tuple

import numpy as np

from .windows import Sizes, add_patches, extent, padded, windows

#: Bytes of patches that are copied and multiplied at a time, and of those that are multiplied and added up.
_COPIED, _ADDED = 1 << 20, 1 << 22

#: Columns of a product below which BLAS is mostly busy with the other matrix.
_FEW_COLUMNS = 256


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _samples(count: int, at_once: int, nbytes: int, spots: int) -> int:
    """How many samples of ``nbytes`` of patches are multiplied at a time."""
    return max(1, min(count, max(at_once // max(nbytes, 1), -(-_FEW_COLUMNS // max(spots, 1)))))


def _is_pointwise(kernel: Sizes, stride: Sizes, pad: Sizes, spots: int) -> bool:
    """Whether the patches are the array itself, with enough in each sample for a product of its own."""
    return set(kernel) | set(stride) == {1} and not any(pad) and spots >= _FEW_COLUMNS


def _columns(x: np.ndarray, kernel: Sizes, stride: Sizes, pad: Sizes, dilate: Sizes, groups: int,
             spots: Sizes) -> Iterator[Tuple[slice, np.ndarray]]:
    """For some samples at a time, their patches as matrices ``(groups, rows, samples * spots)``."""
    count, channels = x.shape[:2]
    x = _wide(x)
    view = windows(padded(x, pad, extent(kernel, stride, dilate, spots)), kernel, stride, dilate, spots)
    lead = len(kernel) + 1
    view = view.transpose(*range(1, lead + 1), 0, *range(lead + 1, view.ndim))
    rows, columns = channels * math.prod(kernel), math.prod(spots)
    step = _samples(count, _COPIED, rows * columns * x.itemsize, columns)
    store = np.empty(0, x.dtype)
    for start in range(0, count, step):
        part = view[(slice(None),) * lead + (slice(start, start + step),)]
        if store.shape != part.shape:
            store = np.empty(part.shape, x.dtype)
        store[...] = part
        yield slice(start, start + step), store.reshape(groups, rows // groups, part.shape[lead] * columns)


def _rows(y: np.ndarray, groups: int) -> np.ndarray:
    """Samples side by side: ``(groups, channels of one, samples * spots)``."""
    channels = y.shape[1]
    return _wide(y.swapaxes(0, 1)).reshape(groups, channels // groups, len(y) * math.prod(y.shape[2:]))


def convolve_images(x: np.ndarray, W: np.ndarray, stride: Sizes, pad: Sizes, dilate: Sizes, groups: int, size: Sizes,
             out: Optional[np.ndarray] = None) -> np.ndarray:
    """The correlation of ``x`` with filters ``W: (channels out, channels in / groups, *kernel)``.

    size: the sizes of the result.
    """
    filters, kernel, spots = len(W), W.shape[2:], math.prod(size)
    result = np.empty((len(x), filters, *size), x.dtype) if out is None else out
    weights = _wide(W).reshape(groups, filters // groups, math.prod(W.shape[1:]))
    if _is_pointwise(kernel, stride, pad, spots) and weights.dtype == x.dtype and spots == math.prod(x.shape[2:]):
        np.matmul(weights, x.reshape(len(x), groups, x.shape[1] // groups, spots),
                  out=result.reshape(len(x), groups, filters // groups, spots))
        return result
    for samples, columns in _columns(x, kernel, stride, pad, dilate, groups, size):
        part = result[samples]
        if len(part) == 1 and part.dtype == columns.dtype:
            np.matmul(weights, columns, out=part.reshape(groups, filters // groups, spots))
        else:
            part[...] = np.matmul(weights, columns).reshape(filters, len(part), *size).swapaxes(0, 1)
    return result


def convolve_transposed(x: np.ndarray, W: np.ndarray, stride: Sizes, pad: Sizes, dilate: Sizes, groups: int,
                        size: Sizes, out: Optional[np.ndarray] = None) -> np.ndarray:
    """What `convolve_images` does, transposed: ``W: (channels in, channels out / groups, *kernel)``, ``size`` of the result."""
    count, channels, *spots = x.shape
    made, kernel = W.shape[1] * groups, W.shape[2:]
    result = np.empty((count, made, *size), x.dtype) if out is None else out
    rows, columns = made * math.prod(kernel), math.prod(spots)
    weights = _wide(W).reshape(groups, channels // groups, rows // groups).swapaxes(1, 2)
    if _is_pointwise(kernel, stride, pad, columns) and weights.dtype == x.dtype and columns == math.prod(size):
        np.matmul(weights, x.reshape(count, groups, channels // groups, columns),
                  out=result.reshape(count, groups, made // groups, columns))
        return result
    step = _samples(count, _ADDED, rows * columns * weights.itemsize, columns)
    lead = len(kernel) + 1
    axes = (lead, *range(lead), *range(lead + 1, lead + 1 + len(spots)))
    for start in range(0, count, step):
        part = x[start:start + step]
        patches = np.matmul(weights, _rows(part, groups)).reshape(made, *kernel, len(part), *spots)
        add_patches(patches.transpose(axes), stride, pad, dilate, size, out=result[start:start + step])
    return result


def correlate_with_gradient(x: np.ndarray, g: np.ndarray, stride: Sizes, pad: Sizes, dilate: Sizes, groups: int,
                            size: Sizes, out: Optional[np.ndarray] = None) -> np.ndarray:
    """The gradient of the filters of `convolve_images`, from that of its result.  size: that of the kernel."""
    filters, inner = g.shape[1], x.shape[1] // groups
    total = np.zeros((groups, filters // groups, inner * math.prod(size)), _wide(x[:0]).dtype)
    for samples, columns in _columns(x, size, stride, pad, dilate, groups, g.shape[2:]):
        total += np.matmul(_rows(g[samples], groups), columns.swapaxes(1, 2))
    result = np.empty((filters, inner, *size), x.dtype) if out is None else out
    result[...] = total.reshape(result.shape)
    return result


def convolve_locally(x: np.ndarray, W: np.ndarray, stride: Sizes, out: Optional[np.ndarray] = None) -> np.ndarray:
    """The correlation of each patch with filters of its own, ``W: (channels out, *spots, channels in, *kernel)``."""
    count = len(stride)
    spots, kernel = W.shape[1:count + 1], W.shape[count + 2:]
    inner = tuple(range(count + 1, 2 * count + 2))
    columns = windows(x, kernel, stride, (1,) * count, spots)
    columns = columns.transpose(*range(count + 2, columns.ndim), 0, *range(1, count + 2)).reshape(*spots, len(x), -1)
    weights = W.transpose(*range(1, count + 1), *inner, 0).reshape(*spots, -1, len(W))
    result = np.empty((len(x), len(W), *spots), x.dtype) if out is None else out
    result[...] = np.matmul(columns, weights).transpose(count, count + 1, *range(count))
    return result

"""Draws from a counter-based generator: the form of ``random_uniform`` and the other draws with ``rng="fast"``.

Each run of a program has a key of its own, which it draws from NumPy's global generator when it first needs one:
``numpy.random.seed`` makes the numbers come again.  They are not those that eager draws.
"""
from __future__ import annotations

import threading
from typing import Any, List, Tuple

import numpy as np

from ..ir.op import declare
from ..ir.types import Tensor
from .onnx_forms import movement
from .rules import canonical_shape


class _Stream(threading.local):
    """The generator of a thread; ``None`` before the first draw of a run."""

    generator: Any = None

    def get(self) -> np.random.Generator:
        """The generator of this run."""
        if self.generator is None:
            key = np.random.bytes(16)
            self.generator = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))
        return self.generator


_stream = _Stream()


def _begin() -> List[Any]:
    _stream.generator = None
    return []


def _uniform(*, shape: Tuple[int, ...]) -> np.ndarray:
    return _stream.get().random(shape)


def _between(*, low: float, high: float, shape: Tuple[int, ...]) -> np.ndarray:
    return _stream.get().uniform(low, high, shape)


def _normal(*, shape: Tuple[int, ...]) -> np.ndarray:
    return _stream.get().standard_normal(shape)


def _kept(*, ratio: float, shape: Tuple[int, ...]) -> np.ndarray:
    """Where a uniform number would not be below ``ratio``: 16 bits tell, or 32 where 16 are not exact enough."""
    size = int(np.prod(shape, dtype=int))
    kind = np.uint16
    if not 0 <= ratio <= 1:
        return np.full(shape, ratio <= 0)
    if abs(round(ratio * 2 ** 16) / 2 ** 16 - ratio) > 1e-4 * min(ratio, 1 - ratio):
        kind = np.uint32
    bits = np.dtype(kind).itemsize * 8
    limit = round(ratio * 2 ** bits)
    if limit == 2 ** bits:
        return np.zeros(shape, bool)
    words = _stream.get().bit_generator.random_raw(-(-size * bits // 64))
    return (words.view(kind)[:size] >= kind(limit)).reshape(shape)


#: The first node of a program that draws.
fast_begin = declare(
    "fast_begin", "", kind="effect", effect=True, infer=lambda: (), numpy=_begin, cupy="()", onnx=movement.nothing_to_do)

fast_uniform = declare(
    "fast_uniform", "", {"shape": ()}, kind="effect", effect=True, canonical=canonical_shape,
    infer=lambda *, shape: Tensor(shape, np.dtype("float64")), numpy=_uniform,
    cupy="np.random.random_sample({shape})",
    onnx=movement.random("Uniform"),
)

fast_between = declare(
    "fast_between", "", {"low": 0.0, "high": 1.0, "shape": ()}, kind="effect", effect=True, canonical=canonical_shape,
    infer=lambda *, low, high, shape: Tensor(shape, np.dtype("float64")), numpy=_between,
    cupy="np.random.uniform({low}, {high}, {shape})",
    onnx=movement.random("Uniform"),
)

fast_normal = declare(
    "fast_normal", "", {"shape": ()}, kind="effect", effect=True, canonical=canonical_shape,
    infer=lambda *, shape: Tensor(shape, np.dtype("float64")), numpy=_normal,
    cupy="np.random.standard_normal({shape})",
    onnx=movement.random("Normal"),
)

#: ``fast_uniform(shape) >= ratio``, from fewer bits.
fast_kept = declare(
    "fast_kept", "", {"ratio": 0.5, "shape": ()}, kind="effect", effect=True, canonical=canonical_shape,
    infer=lambda *, ratio, shape: Tensor(shape, np.dtype("bool")), numpy=_kept,
    cupy="np.random.random_sample({shape}, dtype=np.float32) >= {ratio}",
    onnx=movement.fast_kept,
)

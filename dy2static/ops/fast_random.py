"""Draws from a counter-based generator: the form of ``random_uniform`` and the other draws with ``rng="fast"``.

Each run of a program has a key of its own, which it draws from NumPy's global generator when it first needs one:
``numpy.random.seed`` makes the numbers come again.  They are not those that eager draws.

On a GPU, calls of CuPy draw from its generator.  Kernels compute `philox`, whose key is drawn from CuPy's generator.
"""
from __future__ import annotations

import math
import threading
from typing import Any, List, Tuple

import numpy as np

from ..ir.op import ON_HOST, OpDef, Sample, declare
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


def _typed(*, function: str, shape: Tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.asarray(getattr(_stream.get(), {"random_sample": "random"}.get(function, function))(shape), dtype)


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
    "fast_begin", "", kind="effect", effect=True, infer=lambda: (), numpy=_begin, onnx=movement.nothing_to_do)

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

#: `random_typed`, of the same stream.
fast_typed = declare(
    "fast_typed", "", {"function": "random_sample", "shape": (), "dtype": np.dtype("float32")}, kind="effect", effect=True,
    canonical=canonical_shape, infer=lambda *, function, shape, dtype: Tensor(shape, dtype),
    numpy=_typed, cupy="np.random.{name}({shape}, dtype={T})",
    holes=lambda *, function, shape, dtype: {"name": function},
)


def philox_words(key: np.ndarray, counters: np.ndarray) -> np.ndarray:
    """Philox4x32-10 of Salmon et al. (Parallel Random Numbers: As Easy as 1, 2, 3; 2011).

    key: (2,) uint32; counters: (n, 4) uint32.  Returns (n, 4) uint32.
    """
    k0, k1 = (int(word) for word in key)
    c0, c1, c2, c3 = (counters[:, k].astype(np.uint64) for k in range(4))
    low, half = np.uint64(0xffffffff), np.uint64(32)
    for _ in range(10):
        first, second = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (second >> half) ^ c1 ^ np.uint64(k0), second & low, (first >> half) ^ c3 ^ np.uint64(k1), first & low
        k0, k1 = (k0 + 0x9E3779B9) & 0xffffffff, (k1 + 0xBB67AE85) & 0xffffffff
    return np.stack([c0, c1, c2, c3], axis=1).astype(np.uint32)


def philox_numbers(key: np.ndarray, function: str, shape: Tuple[int, ...], dtype: Any, number: int) -> np.ndarray:
    """What `philox` gives: element ``k`` is made of words of call ``k / n``, where a call gives ``n`` elements."""
    size, wide = math.prod(shape), np.dtype(dtype).itemsize == 8
    calls = np.arange(-(-size // (2 if wide else 4)), dtype=np.uint64)
    zeros = np.zeros_like(calls)
    counters = np.stack([calls & np.uint64(0xffffffff), calls >> np.uint64(32), zeros + np.uint64(number), zeros], axis=1)
    words = philox_words(np.ascontiguousarray(key).view(np.uint32)[::2], counters.astype(np.uint32))
    if wide:
        integers, unit = (words[:, ::2] >> 5) * 2.0 ** 26 + (words[:, 1::2] >> 6), 2.0 ** -53
    else:
        integers, unit = (words >> 8).astype(np.float64), 2.0 ** -24
    if function == "standard_normal":                       # Box and Muller (1958), of neighbours
        radius = np.sqrt(-2 * np.log((integers[:, ::2] + 1) * unit))
        angle = integers[:, 1::2] * unit * (2 * np.pi)
        found = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2)
    else:
        found = integers * unit
    return found.reshape(-1)[:size].reshape(shape).astype(dtype)


def _philox_infer(key: Tensor, *, function: str, shape: Tuple[int, ...], dtype: Any, number: int) -> Tensor:
    if key.dtype != np.float64 or key.shape != (2,):
        raise TypeError(f"a key is two numbers of float64, not {key}")
    return Tensor(shape, dtype)


#: Numbers in [0, 1), or of the standard normal distribution, that follow from a key: the low words of two floats that were drawn.
#: number: another one for each draw with the same key.
philox: OpDef = declare(
    "philox", "key", {"function": "random_sample", "shape": (), "dtype": np.dtype("float32"), "number": 0}, kind="movement",
    canonical=canonical_shape, infer=_philox_infer,
    numpy="philox_numbers({key}, {function}, {shape}, {T}, {number})", calls=(philox_numbers,), cupy=ON_HOST,
    samples=tuple([Sample(((2,),), {"shape": (3, 5), "function": function, "dtype": np.dtype(dtype), "number": number}, "float64")
                   for number, dtype in enumerate(("float32", "float64")) for function in ("random_sample", "standard_normal")]),
)

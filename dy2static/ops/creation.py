"""Ops that make arrays from nothing: constants, fills, ranges, random draws."""
from __future__ import annotations

from typing import Any, Dict

import numpy as np

from ..ir.dims import Dim
from ..ir.graph import Value
from ..ir.op import Sample, declare, sample
from ..ir.size_bounds import maximum
from ..ir.types import Tensor
from .onnx_forms import movement
from .rules import canonical_shape


def _constant_infer(*, value: np.ndarray) -> Tensor:
    return Tensor(value.shape, value.dtype)


#: An array known at compile time.  Nobody writes to it.
constant = declare(
    "constant", "", {"value": np.zeros(())}, kind="creation", infer=_constant_infer,
    numpy="{value}",
    onnx=movement.constant,
    samples=(sample(value=np.array(2.5, "float32")), sample(value=np.arange(6).reshape(2, 3)),
             sample(value=np.zeros((0, 2))), sample(value=np.array([np.nan, np.inf, -np.inf])),
             sample(value=np.array(True))),
)

full = declare(
    "full", "", {"shape": (), "value": 0, "dtype": np.dtype("float32")}, kind="creation", canonical=canonical_shape,
    infer=lambda *, shape, value, dtype: Tensor(shape, dtype),
    numpy="{out}.fill({value})",
    onnx=movement.full,
    samples=(sample(shape=(2, 3), value=1.5), sample(shape=()), sample(shape=(0, 3)),
             Sample((), {"shape": (2,), "dtype": "int64"})),
)


def zeros_like(x: Value) -> Value:
    """Zeros with the shape and dtype of ``x``."""
    return full(shape=x.shape, value=0, dtype=x.dtype)


def ones_like(x: Value) -> Value:
    """Ones with the shape and dtype of ``x``."""
    return full(shape=x.shape, value=1, dtype=x.dtype)


def _arange_canonical(*, start: Any, stop: Any, step: Any, dtype: Any) -> Dict[str, Any]:
    return {"dtype": np.dtype(dtype)}


def _arange_infer(*, start: Any, stop: Any, step: Any, dtype: np.dtype) -> Tensor:
    if any(isinstance(v, Dim) for v in (start, stop)):
        return Tensor((maximum(0, -((start - stop) // step)),), dtype)
    return Tensor(np.arange(start, stop, step).shape, dtype)


arange = declare(
    "arange", "", {"start": 0, "stop": 0, "step": 1, "dtype": np.dtype("int64")}, kind="creation",
    canonical=_arange_canonical, infer=_arange_infer,
    numpy="np.arange({start}, {stop}, {step}, {T})",
    onnx=movement.arange,
    samples=(sample(stop=5), sample(start=1, stop=8, step=3), sample(), Sample((), {"stop": 3, "dtype": "float32"})),
)

#: Uniform numbers in [0, 1) from NumPy's global generator, the stream eager code draws from.
random_uniform = declare(
    "random_uniform", "", {"shape": ()}, kind="effect", effect=True, canonical=canonical_shape,
    infer=lambda *, shape: Tensor(shape, np.dtype("float64")),
    numpy="np.asarray(np.random.rand({sizes}))",
    holes=lambda *, shape: {"sizes": ", ".join(map(str, shape))},
    onnx=movement.random("Uniform"),
    samples=(sample(shape=(2, 3)), sample(shape=()), sample(shape=(0, 2))),
)

#: Uniform numbers in [low, high), of the same stream.
random_between = declare(
    "random_between", "", {"low": 0.0, "high": 1.0, "shape": ()}, kind="effect", effect=True, canonical=canonical_shape,
    infer=lambda *, low, high, shape: Tensor(shape, np.dtype("float64")),
    numpy="np.asarray(np.random.uniform({low}, {high}, {shape}))",
    onnx=movement.random("Uniform"),
    samples=(sample(low=-1.0, high=2.0, shape=(2, 3)), sample(shape=()), sample(shape=(0, 2))),
)

#: Numbers of the standard normal distribution, of the same stream.
random_normal = declare(
    "random_normal", "", {"shape": ()}, kind="effect", effect=True, canonical=canonical_shape,
    infer=lambda *, shape: Tensor(shape, np.dtype("float64")),
    numpy="np.asarray(np.random.standard_normal({shape}))",
    onnx=movement.random("Normal"),
    samples=(sample(shape=(2, 3)), sample(shape=()), sample(shape=(0, 2))),
)

#: Numbers of a dtype that CuPy draws in that dtype: ``random_sample`` (uniform in [0, 1)) or ``standard_normal``.
random_typed = declare(
    "random_typed", "", {"function": "random_sample", "shape": (), "dtype": np.dtype("float32")}, kind="effect", effect=True,
    canonical=canonical_shape,
    infer=lambda *, function, shape, dtype: Tensor(shape, dtype),
    numpy="np.asarray(np.random.{name}({shape}), {T})", cupy="np.random.{name}({shape}, dtype={T})",
    holes=lambda *, function, shape, dtype: {"name": function},
    samples=(sample(shape=(2, 3)), sample(shape=()),
             Sample((), {"shape": (0, 2), "function": "standard_normal", "dtype": "float64"})),
)

"""The backend of CuPy calls, for programs on CuPy arrays."""
from __future__ import annotations

from typing import Any, Tuple

import numpy as np
from chainer.backends import cuda

from ...passes import TOGETHER, Pass, Pipeline
from ..host.backend import NumpyBackend
from .library import CupyCalls
from .memory import empty
from .several_gpus import with_devices


class CupyArrays:
    """CuPy's arrays."""

    device = "cupy"

    def empty(self, shape: Tuple[int, ...], dtype: np.dtype) -> Any:
        """As `Arrays.empty`: on the current device."""
        return empty(shape, dtype)

    def asarray(self, value: Any) -> Any:
        """As `Arrays.asarray`."""
        return cuda.cupy.asarray(value)

    def is_array(self, value: Any) -> bool:
        """As `Arrays.is_array`."""
        return isinstance(value, cuda.ndarray)


class CupyBackend(NumpyBackend):
    """Generated Python functions of CuPy calls."""

    name = "cupy"
    keeps = writes_parts = False
    passes = Pipeline("cupy", "a graph that is about to be run on CuPy", (*TOGETHER, Pass(with_devices)))
    arrays = CupyArrays()
    library = CupyCalls()


#: The one there is.
CUPY = CupyBackend()

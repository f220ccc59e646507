"""New memory on a GPU: where it is short, arenas that wait for calls are released first."""
from __future__ import annotations

from typing import Any, Callable, Tuple

import numpy as np
from chainer.backends import cuda

from ...runtime.segment import release_arenas


def empty(shape: Tuple[int, ...], dtype: np.dtype) -> Any:
    """A new array without contents on the current device.  Raises CuPy's OutOfMemoryError where releasing arenas does not help."""
    try:
        return cuda.cupy.empty(shape, dtype)
    except cuda.cupy.cuda.memory.OutOfMemoryError:
        release_arenas()
    return cuda.cupy.empty(shape, dtype)


class Retrying:
    """A function without effects, which is called once more after arenas have been released where memory is short."""

    def __init__(self, function: Callable[..., Any]):
        self._function, self.__code__ = function, function.__code__

    def __call__(self, *args: Any) -> Any:
        try:
            return self._function(*args)
        except cuda.cupy.cuda.memory.OutOfMemoryError:
            release_arenas()
        return self._function(*args)

"""New memory on a GPU: where it is short, arenas that wait for calls are released first."""
from __future__ import annotations

from typing import Any, Callable, Tuple

import numpy as np
from chainer.backends import cuda

from ...runtime.segment import release_arenas


def empty(shape: Tuple[int, ...], dtype: np.dtype) -> Any:
    """A new array without contents on the current device.  Raises CuPy's OutOfMemoryError where releasing arenas does not help."""
    return _made(cuda.ndarray, shape, dtype)             # what `cupy.empty` calls


def copied(array: np.ndarray) -> Any:
    """A copy of an array of the host on the current device; as `empty`."""
    return _made(cuda.cupy.array, array)


def _made(make: Callable[..., Any], *args: Any) -> Any:
    try:
        return make(*args)
    except cuda.cupy.cuda.memory.OutOfMemoryError:
        release_arenas()
    return make(*args)


#: Exceptions of CuPy that say that there is not enough memory: CUDA_ERROR_OUT_OF_MEMORY, CUBLAS_STATUS_ALLOC_FAILED.
_SHORT = (("CUDADriverError", 2), ("CUBLASError", 3))


def _is_short(error: Exception) -> bool:
    """Whether an exception says that there is not enough memory."""
    return isinstance(error, cuda.cupy.cuda.memory.OutOfMemoryError) or (
        type(error).__name__, getattr(error, "status", None)) in _SHORT


class Retrying:
    """A function without effects, which is called once more after arenas have been released where memory is short."""

    def __init__(self, function: Callable[..., Any]):
        self._function, self.__code__ = function, function.__code__

    def __call__(self, *args: Any) -> Any:
        try:
            return self._function(*args)
        except Exception as error:
            if not _is_short(error):
                raise
            release_arenas()
            cuda.cupy.get_default_memory_pool().free_all_blocks()       # what the driver lacks may wait in CuPy's pool
        return self._function(*args)

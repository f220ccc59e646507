"""The ``fft`` extension of the array API standard.  Transforms are computed at once."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ..arrays import LazyArray
from .calls import at_once, made, on_cpu

_ALONG_ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_ALONG_SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")


def _transformed(function: Any, x: LazyArray, *args: Any) -> Any:
    """What a transform gives, in the precision of its input: NumPy 1 computes all in double precision."""
    found = at_once(function, x, *args)
    if x.dtype.char not in "fF":
        return found
    return found.astype("complex64" if found.dtype.kind == "c" else "float32")


def _along_one(name: str) -> Callable[..., LazyArray]:
    def transform(x: LazyArray, /, *, n: Any = None, axis: int = -1, norm: str = "backward") -> LazyArray:
        return _transformed(getattr(np.fft, name), x, n, axis, norm)    # type: ignore[no-any-return]
    return _named(transform, name)


def _along_several(name: str) -> Callable[..., LazyArray]:
    def transform(x: LazyArray, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> LazyArray:
        if s is not None and axes is None:
            axes = tuple(range(-len(s), 0))
        return _transformed(getattr(np.fft, name), x, s, axes, norm)    # type: ignore[no-any-return]
    return _named(transform, name)


def _named(function: Any, name: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As the array API standard has ``fft.{name}``."
    return function


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> LazyArray:
    """The frequencies of what `fft` gives.  Raises ValueError for a device other than ``"cpu"``."""
    on_cpu(device)
    return made(np.fft.fftfreq(n, d).astype(float if dtype is None else dtype, copy=False))


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> LazyArray:
    """The frequencies of what `rfft` gives.  Raises ValueError for a device other than ``"cpu"``."""
    on_cpu(device)
    return made(np.fft.rfftfreq(n, d).astype(float if dtype is None else dtype, copy=False))


def fftshift(x: LazyArray, /, *, axes: Any = None) -> LazyArray:
    """The array with frequency zero in the middle."""
    return at_once(np.fft.fftshift, x, axes)            # type: ignore[no-any-return]


def ifftshift(x: LazyArray, /, *, axes: Any = None) -> LazyArray:
    """What `fftshift` has shifted, shifted back."""
    return at_once(np.fft.ifftshift, x, axes)           # type: ignore[no-any-return]


globals().update({name: _along_one(name) for name in _ALONG_ONE})
globals().update({name: _along_several(name) for name in _ALONG_SEVERAL})

__all__ = sorted([*_ALONG_ONE, *_ALONG_SEVERAL, "fftfreq", "rfftfreq", "fftshift", "ifftshift"])

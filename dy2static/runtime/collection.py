"""Keeps Python's garbage collector from running while a program is compiled, and gives free memory back afterwards."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import time
from typing import Any, Callable, Iterator, Optional, Tuple

#: Seconds of a compilation after which, and before the next one, free memory is given back; bytes that are worth it.
_LONG, _MUCH = 0.2, 1 << 25

#: Whether the last compilation took long.
_was_long = [False]


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Switch off garbage collection inside: nearly all objects stay, and scanning them takes a tenth of a compilation."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    if _was_long[0]:
        give_back()
    begun = time.perf_counter()
    try:
        yield
    finally:
        gc.enable()
        _was_long[0] = time.perf_counter() - begun >= _LONG
        if _was_long[0]:
            give_back()


def give_back() -> None:
    """Return memory to the system that is free in the heap, if there is much of it.

    Compilations and arrays come on top of each other otherwise: what one has left free lies in pieces that are of no use to the
    other.  Does nothing where the C library is not glibc.
    """
    functions = _functions()
    if functions is not None:
        told, trim = functions
        if told().free >= _MUCH:
            trim(0)


class _Told(ctypes.Structure):
    """What `mallinfo2` tells of the heap, in bytes."""

    _fields_ = [(name, ctypes.c_size_t) for name in ("heap", "a", "b", "c", "d", "e", "f", "used", "free", "top")]


@functools.lru_cache(maxsize=None)
def _functions() -> Optional[Tuple[Callable[[], Any], Callable[[int], int]]]:
    try:
        library = ctypes.CDLL(None)
        told, trim = library.mallinfo2, library.malloc_trim        # since glibc 2.33
    except (OSError, AttributeError, TypeError):                   # another library, or another system
        return None
    told.restype, trim.argtypes = _Told, (ctypes.c_size_t,)
    return told, trim

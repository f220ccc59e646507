"""Keeps Python's garbage collector from running while a program is compiled, and gives free memory back afterwards."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import os
import threading
import time
from typing import Any, Callable, Iterator, List, Optional, Tuple

#: Seconds of a compilation after which, and before the next one, free memory is given back; bytes that are worth it.
_LONG, _MUCH = 0.2, 1 << 25

#: Whether the last compilation took long.
_was_long = [False]


#: The thread that has switched collection off.
_switched_off_by: List[int] = []


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Switch off garbage collection inside: nearly all objects stay, and scanning them takes a tenth of a compilation."""
    if not gc.isenabled():
        yield
        return
    begun = time.perf_counter()
    try:                                                # the user may interrupt what follows
        _switched_off_by[:] = [threading.get_ident()]
        gc.disable()
        if _was_long[0]:
            give_back()
        yield
    finally:
        gc.enable()
        _switched_off_by.clear()
        _was_long[0] = time.perf_counter() - begun >= _LONG
        if _was_long[0]:
            give_back()


def settle() -> None:
    """Take all objects that there are for old ones, without scanning them; not where the user has frozen some."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


def _collect_again() -> None:
    """In a forked process: a compilation of another thread does not go on here."""
    if _switched_off_by and _switched_off_by[0] != threading.get_ident():
        gc.enable()


if hasattr(os, "register_at_fork"):                     # not on Windows
    os.register_at_fork(after_in_child=_collect_again)


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

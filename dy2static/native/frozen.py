"""Memory that never changes, and what native code keeps of it between calls: packed and transformed weights."""
from __future__ import annotations

import ctypes
import functools
import mmap
import weakref
from typing import Any, Dict, List, Sequence

import numpy as np

from . import compiler, library
from .announce import announce

_TEXT = '#include "dy2static_keeper.h"\n'
_FLAGS = ("-O2", "-pthread")
_SETTER = "dy2static_set_keeper"
_ALIGNMENT = 64
#: Memory of one process, as `malloc` gives it: other memory has no large pages.
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}
_memories: Dict[int, int] = {}          # how large each one is that native code knows, by its address


class Memory(mmap.mmap):
    """A block of memory that nobody can write once its arrays have been filled; native code may keep what it makes of it."""


def copies(arrays: Sequence[np.ndarray]) -> List[np.ndarray]:
    """Read-only copies of arrays, which NumPy never makes writeable, side by side in memory that native code knows to be frozen."""
    begins, size = [], 0
    for array in arrays:
        begins.append(size)
        size += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    memory = Memory(-1, size + _ALIGNMENT, **_PRIVATE)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    view = memoryview(memory).toreadonly()
    for array, begin in zip(arrays, begins):
        np.ndarray(array.shape, array.dtype, memory, begin)[...] = array
    if size and compiler.available():
        _announce(memory, np.frombuffer(view, np.uint8).ctypes.data, size)
    return [np.frombuffer(view, array.dtype, array.size, begin).reshape(array.shape) for array, begin in zip(arrays, begins)]


def _announce(memory: Memory, address: int, size: int) -> None:
    """Tell native code that this memory does not change."""
    try:
        keeper = _keeper()
    except compiler.BackendError as reason:
        announce("freeze", f"nothing is kept of frozen arrays: {reason}")
        return
    if keeper.handle.freeze(ctypes.c_size_t(address), ctypes.c_int64(size)):
        _memories[address] = size
        weakref.finalize(memory, _forget, address).atexit = False           # before the memory is given back
        for built in compiler.built():
            setter = built.find(_SETTER)
            if setter is not None:
                setter(ctypes.c_void_p(_address()))


def _forget(address: int) -> None:
    """Tell native code that a memory is no longer used."""
    del _memories[address]
    _keeper().handle.thaw(ctypes.c_size_t(address))


def is_frozen(array: Any) -> bool:
    """Whether an array was made by `copies`, or is a view of such an array."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, memoryview) and isinstance(array.obj, Memory)


def kept_bytes() -> int:
    """How many bytes native code keeps of frozen arrays."""
    if not _memories:
        return 0
    size = _keeper().handle.kept_size
    size.restype = ctypes.c_int64
    return int(size())


@functools.lru_cache(maxsize=None)
def _keeper() -> library.Library:
    """The library that keeps.  Raises `failures.NoCompiler` and `failures.BuildFailed`."""
    return compiler.build(_TEXT, _FLAGS)


def _address() -> int:
    """Where its functions are; 0 while nothing is frozen."""
    return _keeper().address("keeper") if _memories else 0


library.ADDRESSES[_SETTER] = _address

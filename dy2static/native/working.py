"""Working memory of native functions in sizes that only the run knows: one piece for all of them, which waits between calls."""
from __future__ import annotations

import ctypes
from typing import List

from . import library

HEADER = "dy2static_working.h"


class _Waiting(ctypes.Structure):
    """What waits: a ``dy_working``."""

    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_int64), ("little", ctypes.c_int64))


_waiting = _Waiting()
_users: List[int] = [0]
library.ADDRESSES["dy2static_set_working"] = lambda: ctypes.addressof(_waiting)


class User:
    """Whoever calls functions of a library that take the memory; when the last user goes, so does the memory."""

    def __init__(self, built: library.Library):
        self._free = ctypes.PYFUNCTYPE(None)(built.address("dy2static_free_working"))       # does not let other threads run
        _users[0] += 1

    def __del__(self) -> None:
        _users[0] -= 1
        if not _users[0]:
            self._free()


def nbytes() -> int:
    """How many bytes wait."""
    return _waiting.size if _waiting.data else 0

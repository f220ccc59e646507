"""Locks that a forked process finds open, whatever the other threads of its parent did at that moment."""
from __future__ import annotations

import functools
import os
import threading
from typing import TYPE_CHECKING, Any, Callable

from .alive import Alive

_made: "Alive[Any]" = Alive()


def lock() -> Any:
    """Return a new `threading.RLock`.

    `fork` copies only the thread that calls it.  A lock that another thread holds at that moment would never be released in
    the child process, so it is open there.  A lock that the forking thread holds stays held.
    """
    return _made.add(threading.RLock())


if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:
    def cached_property(function: Callable[[Any], Any]) -> Any:
        """`functools.cached_property`, whose lock (one for all objects, before Python 3.12) a forked process finds open."""
        made = functools.cached_property(function)
        if hasattr(made, "lock"):
            _made.add(made.lock)
        return made


def _open_all() -> None:
    for made in _made.all():
        if not made._is_owned():
            made._at_fork_reinit()


if hasattr(os, "register_at_fork"):                     # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_open_all)

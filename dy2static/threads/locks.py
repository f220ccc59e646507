"""Locks that a forked process finds open, whatever the other threads of its parent did at that moment."""
from __future__ import annotations

import functools
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict

# A plain dict: a `weakref.WeakSet` may be in the middle of a change when another thread forks.
_made: Dict[int, "weakref.ref[Any]"] = {}


def lock() -> Any:
    """Return a new `threading.RLock`.

    `fork` copies only the thread that calls it.  A lock that another thread holds at that moment would never be released in
    the child process, so it is open there.  A lock that the forking thread holds stays held.
    """
    return _noted(threading.RLock())


def _noted(made: Any) -> Any:
    number = id(made)
    _made[number] = weakref.ref(made, lambda _: _made.pop(number, None))
    return made


if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:
    def cached_property(function: Callable[[Any], Any]) -> Any:
        """`functools.cached_property`, whose lock (one for all objects, before Python 3.12) a forked process finds open."""
        made = functools.cached_property(function)
        if hasattr(made, "lock"):
            _noted(made.lock)
        return made


def _open_all() -> None:
    for reference in list(_made.values()):
        made = reference()
        if made is not None and not made._is_owned():
            made._at_fork_reinit()


if hasattr(os, "register_at_fork"):                     # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_open_all)

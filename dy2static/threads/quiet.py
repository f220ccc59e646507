"""No warnings from what one thread does for a while; the other threads warn as before."""
from __future__ import annotations

import os
import threading
import warnings
from typing import Any, List

from .locks import lock

# `warnings.catch_warnings` replaces the list of filters for all threads.  Where two threads use it at once, one of them puts
# back a list of the other one, and warnings are ignored for ever, or the user's own filters are lost.  So a filter is added to
# the list that is there.  It applies to the threads that are inside a block, so it does no harm where a list is left with it.


class _Inside(threading.local):
    """How many blocks this thread is inside of; as the pattern of a filter it matches all texts there, and else none."""

    depth = 0

    def match(self, text: str) -> bool:
        """Whether a warning is to be ignored."""
        return self.depth > 0


_inside = _Inside()
_FILTER: Any = ("ignore", _inside, Warning, None, 0)

_lock = lock()
_blocks = [0]                                           # of all threads
_changed: List[List[Any]] = []                          # the lists that have the filter


class _Quiet:
    """The context manager; it has no state of its own."""

    def __enter__(self) -> None:
        if not _inside.depth:
            with _lock:
                _blocks[0] += 1
                _put_first()
        elif not warnings.filters or warnings.filters[0] is not _FILTER:
            with _lock:
                _put_first()
        _inside.depth += 1

    def __exit__(self, *error: Any) -> None:
        _inside.depth -= 1
        if not _inside.depth:
            with _lock:
                _blocks[0] -= 1
                if not _blocks[0]:
                    _take_out()


_quiet = _Quiet()


def quiet() -> _Quiet:
    """Suppress the warnings of this thread inside a ``with`` block, even where warnings are errors.  Blocks nest."""
    return _quiet


def _put_first() -> None:
    """Put the filter before all others.  The user's code may have put others, or another list, there."""
    filters: Any = warnings.filters
    if not filters or filters[0] is not _FILTER:
        _drop_from(filters)
        filters.insert(0, _FILTER)                      # in place: another thread may add filters at the same time
    if not any(filters is known for known in _changed):
        _changed.append(filters)


def _take_out() -> None:
    for filters in (*_changed, warnings.filters):       # the latter may be a copy that another thread has made
        _drop_from(filters)
    _changed.clear()


def _drop_from(filters: Any) -> None:
    while _FILTER in filters:
        filters.remove(_FILTER)


def _alone() -> None:
    """In a forked process: the blocks of other threads have ended."""
    _blocks[0] = int(_inside.depth > 0)
    if not _blocks[0]:
        _take_out()


if hasattr(os, "register_at_fork"):                     # not on Windows
    os.register_at_fork(after_in_child=_alone)

"""Global state that a capture uses without shadows and restores afterwards: random generators and configuration."""
from __future__ import annotations

import contextlib
import random
import sys
import threading
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, TypeVar

import chainer
import numpy as np

from ..errors import Location
from ..runtime.random_states import random_states, same_random_states, set_random_states
from .aborts import CaptureAborted
from .locations import user_location

T = TypeVar("T")

_DRAWS = "a library function draws random numbers while it is called"

#: The two global generators, by identity.
_GENERATORS = frozenset((id(np.random.mtrand._rand), id(random.random.__self__)))

#: Their methods that draw nothing.
_PASSIVE = frozenset(("get_state", "set_state", "getstate", "setstate"))


def undisturbed(capture: Callable[[], T]) -> T:
    """The result of ``capture()``, which must leave global state untouched; see `untouched_globals`.

    If a generator moves while other threads run, it may have been them.  ``capture`` then runs once more, while the calls of this
    thread are watched.
    """
    with contextlib.suppress(_MovedMeanwhile), untouched_globals():
        return capture()
    with _untouched_config(), _watched_draws() as drawn:
        made = capture()
    if drawn:
        raise CaptureAborted(_DRAWS)
    return made


@contextlib.contextmanager
def undrawn() -> Iterator[None]:
    """Put both global generators back after the block, if this thread has drawn from them there.

    If other threads run and the draws of this one cannot be told from theirs, the generators are put back all the same.
    """
    states, profiler = random_states(), sys.getprofile()
    is_watched = profiler is _watch or profiler is None and threading.active_count() > 1
    sees_all = is_watched and isinstance(np.random.random_sample, types.BuiltinMethodType)
    with _watched_draws() if is_watched else contextlib.nullcontext(()) as drawn:
        try:
            yield
        finally:
            if drawn or not sees_all:
                set_random_states(states)


@contextlib.contextmanager
def _watched_draws() -> Iterator[List[Any]]:
    """A list that fills with the methods of the global generators that this thread calls in the block; blocks nest.

    Methods that are Cython functions, as in newer versions of NumPy, are not seen.  While a profiler of the user's runs, none is.
    """
    outer, profiler = _thread.drawn, sys.getprofile()
    _thread.drawn = drawn = []
    if profiler is None:
        sys.setprofile(_watch)
    try:
        yield drawn
    finally:
        if profiler is None:
            sys.setprofile(None)
        _thread.drawn = outer


def _watch(frame: Any, event: str, function: Any) -> None:
    if event == "c_call" and id(getattr(function, "__self__", None)) in _GENERATORS and function.__name__ not in _PASSIVE:
        _thread.drawn.append(function)


def assigned(for_all_threads: bool = False) -> None:
    """Note that the capture of this thread assigned an entry of ``chainer.config`` or, for all threads, of the global one."""
    _thread.assigned_at = user_location()
    _thread.has_assigned |= for_all_threads


@contextlib.contextmanager
def untouched_globals() -> Iterator[None]:
    """Stop the capture if a library function drew or changed the configuration for good, after putting it back.

    While other threads run, a generator that moved is not put back: it may have been them, and their numbers would
    come twice.
    """
    before = random_states()
    failed = True
    try:
        with _untouched_config():
            yield
        failed = False
    finally:
        alone = threading.active_count() == 1
        drawn = set_random_states(before) if alone else not same_random_states(random_states(), before)
        if not failed and drawn:
            raise CaptureAborted(_DRAWS) if alone else _MovedMeanwhile(_DRAWS, again=True)


@contextlib.contextmanager
def _untouched_config() -> Iterator[None]:
    """Stop the capture if it changed the configuration for good, after putting it back.

    While other threads run, the global configuration is put back only if the capture assigned to it.
    """
    config = [(space, dict(space)) for space in (chainer.config._local.__dict__, chainer.global_config.__dict__)]
    outer, _thread.has_assigned, _thread.assigned_at, failed = _thread.has_assigned, False, None, True
    try:
        yield
        failed = False
    finally:
        (local, kept_local), (of_all, kept_of_all) = config
        is_same = not is_changed({**of_all, **local}, {**kept_of_all, **kept_local})
        config = config if _thread.has_assigned or threading.active_count() == 1 else config[:1]
        _thread.has_assigned = outer
        changed = [_put_back(space, kept) for space, kept in config if is_changed(space, kept)]
        if not failed and changed:
            # an entry of this thread's own that says what that of all threads does is there when the next call begins
            raise CaptureAborted("chainer.config is changed for good", at=_thread.assigned_at, again=is_same)


class _MovedMeanwhile(CaptureAborted):
    """A generator moved during a capture beside which other threads ran."""


class _Thread(threading.local):
    """What is known of the capture of this thread."""

    has_assigned = False                                # an entry of the global configuration
    assigned_at: Optional[Location] = None              # the line that assigned an entry of either one last
    drawn: Any = None                                   # the methods of generators that are called; None: they are not watched


_thread = _Thread()


def is_changed(space: Dict[str, Any], kept: Dict[str, Any]) -> bool:
    """Whether entries are other objects, and not equal numbers or the like."""
    return space.keys() != kept.keys() or any(is_other(space[name], value) for name, value in kept.items())


def is_other(value: Any, known: Any) -> bool:
    """Whether an entry of ``chainer.config`` is another one; its ``==`` may give anything."""
    return value is not known and (type(value) is not type(known) or not isinstance(value, _PLAIN) or value != known)


_PLAIN = (bool, int, float, str, np.dtype)


def _put_back(space: Dict[str, Any], kept: Dict[str, Any]) -> bool:
    for name in list(space):
        if name not in kept:
            del space[name]
    space.update(kept)
    return True

"""Global state that a capture uses without shadows and restores afterwards: random generators and configuration."""
from __future__ import annotations

import contextlib
import random
import threading
from typing import Any, Dict, Iterator, Tuple

import chainer
import numpy as np

from .aborts import CaptureAborted


def random_states() -> Tuple[Any, Any]:
    """The states of NumPy's and of Python's global generator."""
    return np.random.get_state(legacy=False), random.getstate()


def set_random_states(states: Tuple[Any, Any]) -> bool:
    """Put both generators back; whether they had moved."""
    if not _moved(states):
        return False
    np.random.set_state(states[0])
    random.setstate(states[1])
    return True


@contextlib.contextmanager
def untouched_globals() -> Iterator[None]:
    """Stop the capture if a library function drew or changed the configuration for good, after putting it back.

    While other threads run, a generator that moved is not put back: it may have been them, and their numbers would
    come twice.  The capture is given up then, and tried again at the next call.
    """
    before = random_states()
    config = [(space, dict(space)) for space in (chainer.config._local.__dict__, chainer.global_config.__dict__)]
    failed = True
    try:
        yield
        failed = False
    finally:
        alone = threading.active_count() == 1
        drawn = set_random_states(before) if alone else _moved(before)
        changed = [_put_back(space, kept) for space, kept in config if is_changed(space, kept)]
        if not failed and drawn:
            raise CaptureAborted("a library function draws random numbers while it is called", again=not alone)
        if not failed and changed:
            raise CaptureAborted("chainer.config is changed for good")


def _moved(before: Tuple[Any, Any]) -> bool:
    return not same_random_states(random_states(), before)


def same_random_states(one: Tuple[Any, Any], other: Tuple[Any, Any]) -> bool:
    """Whether two answers of `random_states` are equal."""
    return one[1] == other[1] and _same(one[0], other[0])


def _same(one: Any, other: Any) -> bool:
    """Of what NumPy tells of a generator: dicts, arrays and numbers, by its kind."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all([_same(one[key], other[key]) for key in one])
    return bool(np.array_equal(one, other))


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

"""Attributes of modules and classes that are replaced for a while, by several threads in any order."""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, List, Tuple

from .locks import lock

_lock = lock()
_over: List[Tuple[Any, Any]] = []       # what was put somewhere, with what was there before; others have replaced it since


@contextlib.contextmanager
def replaced(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """In the block, ``make(before)`` is in the place of an attribute.  It has to do the same as ``before`` after the block.

    Blocks of threads may overlap: the attribute is as it was when the last of them has ended, or what the user has put there
    meanwhile.
    """
    with _lock:
        before = getattr(owner, name)
        made = make(before)
        setattr(owner, name, made)
    try:
        yield
    finally:
        with _lock:
            _over.append((made, before))
            found = there = getattr(owner, name)
            pair = _pair_of(found)
            while pair is not None:
                _over.remove(pair)
                found = pair[1]
                pair = _pair_of(found)
            if found is not there:
                setattr(owner, name, found)


def _pair_of(made: Any) -> Any:
    return next((pair for pair in _over if pair[0] is made), None)

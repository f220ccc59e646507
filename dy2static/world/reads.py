"""Where the user's code reads what a capture relies on: noted only when somebody asks, because it takes time."""
from __future__ import annotations

import contextlib
import threading
from typing import Any, Dict, Iterator, Optional

from ..errors import Location
from .sources import Guard


class _Noted(threading.local):
    places: Optional[Dict[Any, Optional[Location]]] = None


_noted = _Noted()


@contextlib.contextmanager
def noting_reads() -> Iterator[Dict[Any, Optional[Location]]]:
    """Inside the block, captures of this thread put the line of each guard into the dict, by `key_of`."""
    before, _noted.places = _noted.places, {}
    try:
        yield _noted.places
    finally:
        _noted.places = before


def places() -> Optional[Dict[Any, Optional[Location]]]:
    """Where to note lines; None mostly."""
    return _noted.places


def key_of(guard: Guard) -> Any:
    """What is the same for the guards of two captures that look at the same value."""
    return guard.source.path() if guard.source is not None else guard.expected[0] if guard.test == "expr" else guard.test


def place_of(guard: Guard, found: Dict[Any, Optional[Location]]) -> Optional[Location]:
    """The line that read what a guard looks at, or else what that is a part of."""
    source = guard.source
    if source is None:
        return found.get(key_of(guard))
    while source is not None and found.get(source.path()) is None:
        source = source.parent
    return None if source is None else found[source.path()]

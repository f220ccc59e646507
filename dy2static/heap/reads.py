"""Where the user's code reads what a capture relies on: noted only when somebody asks, because it takes time."""
from __future__ import annotations

import contextlib
import threading
from typing import Any, Dict, Iterator, Optional

from ..errors import Location
from ..record.guards import Guard


class _Noted(threading.local):
    places: Optional[Dict[Any, Optional[Location]]] = None


_noted = _Noted()


@contextlib.contextmanager
def noting_reads() -> Iterator[Dict[Any, Optional[Location]]]:
    """Inside the block, captures of this thread put the line of each guard into the dict, by `Guard.subject`."""
    before, _noted.places = _noted.places, {}
    try:
        yield _noted.places
    finally:
        _noted.places = before


def places() -> Optional[Dict[Any, Optional[Location]]]:
    """Where to note lines; None mostly."""
    return _noted.places


def place_of(guard: Guard, found: Dict[Any, Optional[Location]]) -> Optional[Location]:
    """The line that read what a guard looks at, or else what that is a part of."""
    source = guard.source
    if source is None:
        return found.get(guard.subject())
    while source is not None and found.get(source.path()) is None:
        source = source.parent
    return None if source is None else found[source.path()]

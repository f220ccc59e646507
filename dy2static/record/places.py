"""Where the arrays of a call are among its arguments."""
from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Tuple

from .paths import Argument, Item, Keyword, Source


class Place(NamedTuple):
    """Where an array is among the arguments: in which of them, by number or name, and at which keys of lists and dicts.

    number: of its path, in the order in which the capture met it.
    """

    argument: Any
    keys: Tuple[Any, ...]
    number: int


def place_of(source: Source) -> Optional[Place]:
    """None for what is not in the arguments but behind attributes of theirs, or elsewhere."""
    keys: List[Any] = []
    number = source.number
    while isinstance(source, Item):
        keys.insert(0, source.key)
        source = source.parent
    return Place(source.key, tuple(keys), number) if isinstance(source, (Argument, Keyword)) else None

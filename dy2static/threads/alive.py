"""All objects of a kind, without keeping them alive."""
from __future__ import annotations

import weakref
from typing import Dict, Generic, List, TypeVar

T = TypeVar("T")


class Alive(Generic[T]):
    """The objects that have been added and are still there.

    Unlike a `weakref.WeakSet`, which raises RuntimeError then, it can be read while other threads add objects.
    """

    def __init__(self) -> None:
        self._references: Dict[int, "weakref.ref[T]"] = {}

    def add(self, item: T) -> T:
        """Add an object; returns it."""
        number, references = id(item), self._references
        references[number] = weakref.ref(item, lambda _: references.pop(number, None))
        return item

    def all(self) -> List[T]:
        """The objects, those added first in front."""
        # `dict.copy` is one step: no other thread comes in between
        return [item for item in [reference() for reference in self._references.copy().values()] if item is not None]

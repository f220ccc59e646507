"""Lists of unknown length whose last items have other shapes, as the last part of an array that a loop goes over in steps."""
from __future__ import annotations

from typing import Any, Tuple

from ..ir.types import Tensor


class Uneven:
    """What such a list holds.  items: the `Items` of one shape.  rest: the arrays or Variables that follow."""

    def __init__(self, items: Any, rest: Tuple[Any, ...]):
        self.items, self.rest = items, rest

    def followed_by(self, item: Any) -> Uneven:
        """The same with one item more."""
        return Uneven(self.items, (*self.rest, item))

    def item(self, index: Any) -> Any:
        """One of the last items, or the first; NotImplemented for others."""
        if type(index) is int and -len(self.rest) <= index < 0:
            return self.rest[index]
        return self.items.item(0) if type(index) is int and index == 0 else NotImplemented

    @property
    def length(self) -> Any:
        """The number of items."""
        return self.items.length + len(self.rest)


def may_follow(items: Any, part: Any) -> bool:
    """Whether one object, in the form of a list item, may stand behind items of another shape.  No decision may be open."""
    types = items.elem, part.elem
    return items.is_sure and not items.capture.staging.depth and part.kind == items.kind in ("array", "variable") and \
        all(isinstance(t, Tensor) for t in types) and types[0].dtype == types[1].dtype and types[0].ndim == types[1].ndim

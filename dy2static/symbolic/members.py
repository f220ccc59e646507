"""The items of a list of converted code one by one, while a loop may change the list."""
from __future__ import annotations

from typing import Any, Iterator, Protocol

from ..capture_context import CaptureContext


class StagedItems(Protocol):
    """A `StagedList`, as its iterators know it."""

    capture: CaptureContext

    @property
    def is_plain(self) -> bool: ...


class Members:
    """An iterator over a list: it gives each item as it is when it is asked for, and ends where the list ends by then.

    A list may get another length by a decision on array values. Then only the run knows which item is next, and the capture stops.
    """

    step = 1

    def __init__(self, items: StagedItems):
        self.items: Any = items
        self.place = 0 if self.step > 0 else list.__len__(items) - 1       # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        items, place = self.items, self.place
        if items is None:
            raise StopIteration
        if not items.is_plain:
            items.capture.abort("a list gets a length that depends on array values while a loop goes over it",
                                hint="go over a copy of the list, or use `while` and a number")
        if not 0 <= place < list.__len__(items):
            self.items = None
            raise StopIteration
        self.place = place + self.step
        return list.__getitem__(items, place)

    def __length_hint__(self) -> int:
        count = 0 if self.items is None else list.__len__(self.items)
        return max(0, count - self.place if self.step > 0 else min(count, self.place + 1))


class MembersBackwards(Members):
    """The same from the last item to the first."""

    step = -1


for _cls, _name in ((Members, "list_iterator"), (MembersBackwards, "list_reverseiterator")):
    # what asks an iterator of which kind it is, and messages, take it for Python's
    _cls.__name__ = _cls.__qualname__ = _name
    _cls.__module__ = "builtins"

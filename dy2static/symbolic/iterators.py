"""What ``zip``, ``enumerate`` and ``reversed`` make of sequences of which only the run knows how long they are."""
from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

from ..capture_context import Calls, CaptureContext
from ..heap.wording import a_type
from ..runtime import dy
from .elements import Elements
from .lists import StagedList, as_staged, symbolic_items, uneven_items
from .sequences import Backwards, Numbered, Parts, Together, sequence_of
from .uneven import Uneven
from .values import SymbolicVariable


class ListParts(Parts):
    """The items of a list, as it is when they are read.  is_fixed: it must stay as it is now."""

    def __init__(self, items: StagedList, is_fixed: bool = False):
        self.capture, self.items, self.over = items.capture, items, (items,)
        self.value = items.symbolic.value if is_fixed else None         # type: ignore[union-attr]

    @property
    def length(self) -> Any:
        """How many items there are."""
        found = symbolic_items(self.items)
        return len(self.items) if found is None else found.length

    def __getitem__(self, place: Any) -> Any:
        found = symbolic_items(self.items)
        if self.value is not None and (found is None or found.value is not self.value):
            self.capture.abort("a list whose length depends on array values is changed while a loop iterates over it backwards")
        return self.items[place]


class UnevenParts(Parts):
    """The items of a list of which the last ones have other shapes."""

    def __init__(self, items: StagedList, found: Uneven):
        self.capture, self.items, self.found, self.over = items.capture, items, found, (items,)

    @property
    def length(self) -> Any:
        """How many items there are."""
        return self.found.length

    def split(self) -> Optional[Tuple[Optional[Parts], Any]]:
        if self.items.uneven is not self.found:
            self.capture.abort("a list changes while a loop goes over it")
        *others, last = self.found.rest
        if not others:
            return ListParts(StagedList(self.capture, [self.found.items])), last
        before = Uneven(self.found.items, tuple(others))
        return UnevenParts(StagedList(self.capture, [before]), before), last

    def __getitem__(self, place: Any) -> Any:
        return self.capture.abort("an item of a list whose last items have other shapes is read at a place that only the run knows")


class Known(Parts):
    """The items of a container of Python's, beside a sequence of which only the run knows the length."""

    def __init__(self, capture: CaptureContext, container: Any):
        self.capture, self.container, self.items = capture, container, tuple(container)
        self.length = len(self.items)

    def __getitem__(self, place: Any) -> Any:
        if type(self.container) is range:
            return self.container.start + place * self.container.step
        now = tuple(self.container)
        if len(now) != len(self.items) or any(a is not b for a, b in zip(now, self.items)):
            self.capture.abort("a list is changed while a loop iterates over it and one whose length depends on array values")
        return dy.item(self.items, place)


def parts_of(capture: CaptureContext, item: Any, is_fixed: bool = False) -> Optional[Parts]:
    """The item as a sequence of a length that is not known, lists among these; None for anything else."""
    item = as_staged(item)
    uneven = uneven_items(item)
    if uneven is not None:
        return UnevenParts(item, uneven)
    return sequence_of(capture, item) if symbolic_items(item) is None else ListParts(item, is_fixed)


def _zip(calls: Calls, *items: Any, **options: Any) -> Any:
    capture = calls.capture
    parts = [parts_of(capture, item) for item in items]
    if options or not any(part is not None for part in parts):
        return calls.native(zip)(*items, **options)
    lengths = [None if part is None else capture.expressions.size_of(part.length) for part in parts]
    if None not in lengths and all(length == lengths[0] for length in lengths):
        return Together(capture, parts, True)
    if not any(type(part) is ListParts for part in parts):
        if None in [None if part is None else True for part in parts]:
            return calls.native(zip)(*items, **options)
        capture.abort("`zip` of sequences whose lengths are not known to be equal")
    known = [_known(capture, item) if part is None else part for part, item in zip(parts, items)]
    return Together(capture, known, len(known) == 1)


def _known(capture: CaptureContext, item: Any) -> Known:
    if not isinstance(item, (list, tuple, range)):
        capture.abort(f"`zip` of a list whose length depends on array values and {a_type(item)}")
    return Known(capture, item)


def _enumerate(calls: Calls, items: Any, start: Any = 0) -> Any:
    parts = parts_of(calls.capture, items)
    if parts is None or type(start) is not int:
        return calls.native(enumerate)(items, start)
    return Numbered(calls.capture, parts, start)


def _reversed(calls: Calls, items: Any) -> Any:
    parts = parts_of(calls.capture, items, is_fixed=True)
    return calls.native(reversed)(items) if parts is None else Backwards(calls.capture, parts)


# The items that a `for` has not reached yet --------------------------------------------------------------------------------------


class LeftItems(Parts):
    """The items that an iterator over Python values has not given yet, by their places; the iterator stays where it is.

    length: a whole number.  is_stepped: whether there are numbers among them that are further apart than one.
    """

    is_stepped = False

    def __init__(self, capture: CaptureContext, length: int):
        self.capture, self.length = capture, length


class LeftNumbers(LeftItems):
    """Those of a range."""

    def __init__(self, capture: CaptureContext, numbers: range):
        super().__init__(capture, len(numbers))
        self.numbers, self.is_stepped = numbers, numbers.step != 1

    def __getitem__(self, place: Any) -> Any:
        scaled = place if self.numbers.step == 1 else place * self.numbers.step
        return scaled + self.numbers.start if self.numbers.start else scaled


class LeftRows(LeftItems):
    """Those of an array or a Variable."""

    def __init__(self, capture: CaptureContext, array: Any, start: int, count: int):
        super().__init__(capture, count - start)
        self.array, self.start = array, start

    def __getitem__(self, place: Any) -> Any:
        return self.array[place + self.start if self.start else place]


class LeftTogether(LeftItems):
    """Those of a ``zip``."""

    def __init__(self, capture: CaptureContext, parts: Sequence[LeftItems]):
        super().__init__(capture, min(part.length for part in parts))
        self.parts, self.is_stepped = parts, any(part.is_stepped for part in parts)

    def __getitem__(self, place: Any) -> Any:
        return tuple([part[place] for part in self.parts])


def left_items(capture: CaptureContext, iterator: Any) -> Optional[LeftItems]:
    """What an iterator has not given yet; None for iterators of other kinds."""
    if type(iterator) is Elements and iterator.is_of_rows:
        return LeftRows(capture, iterator.array, iterator.place, iterator.count)
    name = type(iterator).__name__
    if name == "range_iterator":
        _, (numbers,), place = iterator.__reduce__()
        return LeftNumbers(capture, numbers[place or 0:])
    if name == "iterator":
        _, (sequence, *_), place = (*iterator.__reduce__(), None, 0)[:3]
        return LeftRows(capture, sequence, place, len(sequence)) if isinstance(sequence, SymbolicVariable) else None
    if type(iterator) is enumerate:
        inner, count = iterator.__reduce__()[1]
        items = left_items(capture, inner)
        return None if items is None else LeftTogether(capture, (LeftNumbers(capture, range(count, count + items.length)), items))
    if type(iterator) is zip:
        parts = [left_items(capture, part) for part in iterator.__reduce__()[1]]
        known = [part for part in parts if part is not None]
        return LeftTogether(capture, known) if known and len(known) == len(parts) else None
    return None


#: The classes of builtin iterators that such sequences have a form of, and what calls them.
ITERATORS = {zip: _zip, enumerate: _enumerate, reversed: _reversed}

#: The classes of sequences here.
LIST_PARTS = (ListParts, UnevenParts, Known)

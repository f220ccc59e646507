"""Sequences of which only the run knows how long they are, and that a ``for`` goes over: ranges, the rows of an array."""
from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

import chainer
import chainer.functions as F

from ..capture_context import Calls, CaptureContext
from ..heap.stand_ins import stands_for
from ..ir.dims import Dim, as_multiple, equal
from ..ir.size_bounds import bounds_of, divisors_in, not_below
from ..ir.size_needed import SizeNeeded
from ..ir.size_symbols import FREE, least_rest
from .kinds import number_kind
from .size_trials import without_sizes
from .sizes import Size
from .values import SymbolicArray, SymbolicScalar, SymbolicVariable


class Parts:
    """A sequence that can only be iterated over in a ``for`` statement.

    length: how many items there are, as a number of the graph; not below zero only where there are items.
    is_iterator: whether it can be iterated over only once.
    """

    capture: CaptureContext
    length: Any
    name = "a sequence of a length that is not known"
    hint = "go over it in a `for` statement only"
    is_iterator = is_used = False
    #: What can change in what it goes over.
    over: Any = ()

    def split(self) -> "Optional[Tuple[Optional[Parts], Any]]":
        """All items but the last, and the last one, if that is another step of a range than the others; None otherwise.

        Where there is certainly one item only, there are no others.
        """
        return None

    def lead(self) -> "Optional[Tuple[Any, Optional[Parts]]]":
        """The first item, if that is another step of a range than the others, and all others; None otherwise."""
        return None

    @property
    def steps(self) -> Dict[str, int]:
        """The symbols of sizes of which it should be known whether they are multiples of the step of a range, with that step."""
        return {}

    def begin(self) -> "Parts":
        """The sequence, at the start of a ``for``."""
        if self.is_iterator and self.is_used:
            self._refuse()
        self.is_used = True
        return self

    def _refuse(self, *_: Any) -> Any:
        if self.steps:
            raise SizeNeeded("how many steps there are", sum(map(Dim, self.steps)), steps=self.steps)
        return self.capture.abort(f"{self.name} is used other than in a `for` statement", hint=self.hint)

    __iter__ = __len__ = __contains__ = __bool__ = __reversed__ = __repr__ = __eq__ = __add__ = __radd__ = __next__ = _refuse
    __hash__ = None  # type: ignore[assignment]


class Range(Parts):
    """``range`` whose bounds only the run knows."""

    name = "a `range` whose length array values decide"
    hint = "write `for i in range(n)` where it is used, or `np.arange(n)` for an array of its numbers"

    def __init__(self, capture: CaptureContext, *bounds: Any):
        self.capture = capture
        start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1) if len(bounds) == 2 else bounds
        if type(step) is not int or step == 0 or any(number_kind(x) not in ("py_int", "py_bool") for x in (start, stop)):
            capture.abort("`range` of these bounds depends on array values")
        self.start, self.stop, self.step = start, stop, step

    @property
    def _way(self) -> Any:
        """From the start to the stop."""
        start, stop = [found if found is not None else bound for bound, found in zip(
            (self.start, self.stop), map(self.capture.expressions.size_of, (self.start, self.stop)))]
        return stop - start if self.step > 0 else start - stop

    @property
    def length(self) -> Any:
        """How many numbers there are."""
        way = self._way
        found = way if abs(self.step) == 1 else (way + abs(self.step) - 1) // abs(self.step)
        return Size(self.capture, found).number if isinstance(found, Dim) else found

    def split(self) -> Optional[Tuple[Optional[Parts], Any]]:
        way = self._way
        if self.step > 0 and isinstance(way, Dim) and bounds_of((way + self.step - 1) // self.step) == (1, 1):
            return None, self.start
        is_counted = self.step == 1 and any([equal(way - 1, Dim(symbol) // divisor) and least_rest(symbol, divisor)
                                             for symbol, divisor in divisors_in(way).items()])
        if not is_counted and (self.step <= 1 or not isinstance(way, Dim) or equal(way % self.step, 0) is not False):
            return None
        last = way + self.start - 1 if is_counted else way // self.step * self.step + self.start
        if not isinstance(last, Dim):
            return Range(self.capture, self.start, last, self.step), last
        size = last if type(last) is Size else Size(self.capture, last)
        return Range(self.capture, self.start, size.number, self.step), size

    @property
    def steps(self) -> Dict[str, int]:
        if self.step == 1:
            return {symbol: divisor for symbol, divisor in divisors_in(self._way).items() if not least_rest(symbol, divisor)}
        symbol, factor = as_multiple(self._way) or ("", 1)
        is_open = self.step > 1 and factor == 1 and equal(self._way % self.step, 0) is None
        return {symbol: self.step} if symbol.startswith(FREE) and is_open else {}

    def __getitem__(self, place: Any) -> Any:
        if type(place) is slice:
            if place != slice(None, None, -1) or abs(self.step) != 1:
                self._refuse()
            return Range(self.capture, self.stop - self.step, self.start - self.step, -self.step)
        if self.step == 1 and type(self.start) is int and self.start == 0:
            return place
        found, (start, stop) = place * self.step + self.start, map(self.capture.expressions.size_of, (self.start, self.stop))
        if self.step == -1 and start is not None:
            note_mirrored(self.capture, found, place, start + 1)
        if type(found) is SymbolicScalar and None not in (start, stop) and not_below(start if self.step > 0 else stop + 1, 0):
            self.capture.index_ranges.places[found.value] = stop if self.step > 0 else start + 1 - _first(self.capture, place)
        return found


stands_for(Range, range)


class CountedRange:
    """``range`` from a number to a stop that only the run knows, where it is known how many steps that takes, and so all items."""

    def __init__(self, items: range, stop: Any):
        self._items, self.start, self.stop, self.step = items, items.start, stop, items.step
        self.index, self.count = items.index, items.count

    @property
    def __class__(self) -> type:
        return range

    def __iter__(self) -> Any:
        return iter(self._items)

    def __reversed__(self) -> Any:
        return reversed(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, item: Any) -> Any:
        return item in self._items

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __eq__(self, other: Any) -> Any:
        return self._items == getattr(other, "_items", other)

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return f"range({self.start}, {self.stop}, {self.step})"


stands_for(CountedRange, range)


class Rows(Parts):
    """The parts of an array or a Variable along an axis.  keeps_axis: which they have, with one element."""

    def __init__(self, capture: CaptureContext, array: Any, axis: int = 0, keeps_axis: bool = False):
        self.capture, self.array, self.axis, self.keeps_axis = capture, array, axis, keeps_axis

    @property
    def length(self) -> Any:
        """How many there are."""
        return self.array.shape[self.axis].number

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, tuple):
            return self._refuse()
        part = self.array[(slice(None),) * self.axis + (place,) if self.axis else place]
        if type(place) is not slice:
            return F.expand_dims(part, self.axis) if self.keeps_axis else part
        rows = Rows(self.capture, part, self.axis, self.keeps_axis)
        return rows if has_rows(part, self.axis) else tuple([rows[k] for k in range(part.shape[self.axis])])

    def _refuse(self, *_: Any) -> Any:
        return self.capture.abort("the parts of an array are used other than one by one, and their number is not known",
                                  sizes=self.array.shape[self.axis].symbols)

    __iter__ = __len__ = __contains__ = __bool__ = __repr__ = __eq__ = __add__ = __radd__ = _refuse
    __hash__ = None  # type: ignore[assignment]


class Together(Parts):
    """What ``zip`` gives.  is_even: the sequences are of one length."""

    is_iterator = True

    def __init__(self, capture: CaptureContext, parts: Any, is_even: bool):
        self.capture, self.parts, self.is_even = capture, parts, is_even
        self.over = tuple([item for part in parts for item in part.over])

    @property
    def length(self) -> Any:
        """How many items the shortest has."""
        if self.is_even:
            return self.parts[0].length
        return self.capture.numpy.call(min, tuple([without_sizes(part.length) for part in self.parts]), {})

    def split(self) -> Optional[Tuple[Optional[Parts], Any]]:
        found = [part.split() for part in self.parts] if self.is_even else [None]
        if None in found or any([whole is None for whole, _ in found]):         # type: ignore[misc]
            return None
        wholes, last = zip(*found)                      # type: ignore[misc]
        return Together(self.capture, wholes, True), last

    def __getitem__(self, place: Any) -> Any:
        return tuple([part[place] for part in self.parts])


class Numbered(Parts):
    """What ``enumerate`` gives."""

    is_iterator = True

    def __init__(self, capture: CaptureContext, parts: Any, start: int):
        self.capture, self.parts, self.start, self.over = capture, parts, start, parts.over

    @property
    def length(self) -> Any:
        """How many there are."""
        return self.parts.length

    def split(self) -> Optional[Tuple[Optional[Parts], Any]]:
        found = self.parts.split()
        if found is None:
            return None
        whole, last = found
        if whole is None:
            return None, (self.start, last)
        return Numbered(self.capture, whole, self.start), (whole.length + self.start, last)

    def lead(self) -> Optional[Tuple[Any, Optional[Parts]]]:
        found = self.parts.lead()
        if found is None:
            return None
        first, others = found
        return (self.start, first), None if others is None else Numbered(self.capture, others, self.start + 1)

    @property
    def steps(self) -> Dict[str, int]:
        return self.parts.steps         # type: ignore[no-any-return]

    def __getitem__(self, place: Any) -> Any:
        return place + self.start if self.start else place, self.parts[place]


class Backwards(Parts):
    """What ``reversed`` gives."""

    is_iterator = True

    def __init__(self, capture: CaptureContext, parts: Any):
        self.capture, self.parts, self.length, self.over = capture, parts, parts.length, parts.over

    def lead(self) -> Optional[Tuple[Any, Optional[Parts]]]:
        found = self.parts.split()
        if found is None:
            return None
        whole, last = found
        return last, None if whole is None else Backwards(self.capture, whole)

    @property
    def steps(self) -> Dict[str, int]:
        return self.parts.steps if isinstance(self.parts, Parts) else {}

    def __getitem__(self, place: Any) -> Any:
        found = self.length - 1 - place
        below = self.capture.expressions.size_of(self.length)
        if isinstance(below, Dim) and type(found) is SymbolicScalar:
            self.capture.index_ranges.places[found.value] = below - _first(self.capture, place)
            note_mirrored(self.capture, found, place, below)
        return self.parts[found]


def _first(capture: CaptureContext, place: Any) -> int:
    """A whole number that a place in a sequence is not below."""
    least = capture.index_ranges.least.get(place.truth) if type(place) is SymbolicScalar and place.text is None else None
    return max(least.start + least.more, 0) if least is not None and type(least.start) is int else 0


def note_mirrored(capture: CaptureContext, found: Any, place: Any, length: Any) -> None:
    """A number counts backwards: it is ``length - 1 - place``."""
    if type(found) is type(place) is SymbolicScalar and found.text is None and place.text is None:
        capture.index_ranges.mirrored[found.value] = place.value, length


def sequence_of(capture: CaptureContext, item: Any) -> Any:
    """The item as a sequence of a length that is not known; None for anything else."""
    return item.begin() if isinstance(item, Parts) else Rows(capture, item) if has_rows(item) else None


def has_rows(item: Any, axis: int = 0) -> bool:
    """Whether only the run knows how many parts an array has along an axis."""
    return isinstance(item, (SymbolicArray, SymbolicVariable)) and -len(item.shape) <= axis < len(item.shape) and \
        isinstance(item.shape[axis], Dim)


def separate(calls: Calls, function: Callable, x: Any, axis: int = 0) -> Any:
    """``F.separate``."""
    if type(axis) is int and has_rows(x, axis):
        parted = x if isinstance(x, SymbolicVariable) else calls.native(chainer.as_variable)(x)
        return Rows(calls.capture, parted, axis % len(x.shape))
    return calls.native(function)(x, axis)


#: Functions that give such parts.
PARTING = {F.separate: separate}

#: The classes of such sequences.
PARTS = (Range, Rows, Together, Numbered, Backwards)

"""Arrays of the caller's that share memory with each other: what is written into one is seen in the others."""
from __future__ import annotations

import bisect
from typing import Any, Container, Iterator, List, Protocol, Sequence, Tuple

import numpy as np

from ..capture_context import CaptureContext
from ..ir.dims import Dim
from ..record.guards import NoOverlap, SameMemory
from ..record.paths import Source
from ..runtime.array_writes import bounds, common_places, is_read_only, may_share_memory, overlaid, overlaps_itself, relation
from .arrays import SymbolicArray
from .memories import Memory
from .views import Made, Views

#: Arrays with more elements are not compared element by element.
_MOST = 1 << 22


class _Stretches:
    """Arrays by stretches of memory: those of different stretches lie apart.  Nothing here takes time for each pair of arrays."""

    def __init__(self) -> None:
        self._lows: List[int] = []
        self._highs: List[int] = []
        self._members: List[List[Tuple[int, Made]]] = []    # in the order in which they came, with their numbers in that order

    def add(self, number: int, made: Made) -> None:
        """Know an array, which is the ``number``-th."""
        low, high = bounds(made.real)
        first = bisect.bisect_right(self._highs, low)
        last = bisect.bisect_left(self._lows, high, first)
        members = sorted([member for each in self._members[first:last] for member in each] + [(number, made)],
                         key=lambda member: member[0])
        self._lows[first:last] = [min([low, *self._lows[first:last]])]
        self._highs[first:last] = [max([high, *self._highs[first:last]])]
        self._members[first:last] = [members]

    def around(self, made: Made) -> List[Tuple[int, Made]]:
        """The arrays of the stretch in which an array lies, which may not be known."""
        low, high = bounds(made.real)
        first = bisect.bisect_right(self._highs, low)
        return self._members[first] if first < len(self._lows) and self._lows[first] < high else []


class Writes(Protocol):
    """What is known of writes."""

    capture: CaptureContext
    views: Views

    @property
    def written(self) -> Container[Source]:
        """The paths of the arrays that are written."""

    def memory_of(self, array: SymbolicArray) -> Memory:
        """What an array shares with its views."""


class Overlaps:
    """Which arrays of the caller's share memory in the call that is captured.

    Each array has contents of its own in the graph.  A write into one array changes those of its neighbours, too.
    """

    def __init__(self, writes: Writes):
        self._writes, self._abort = writes, writes.capture.abort
        self._stretches, self._placed = _Stretches(), 0

    def check_writable(self, made: Made) -> None:
        """Stop before an array of the caller's is written that no program can write."""
        if is_read_only(made.real):
            self._abort("an array is written that is read-only")
        if overlaps_itself(made.real):
            self._abort("an array is written of which two elements are one place in memory")
        for other in self._near(made):
            self._check_elements(made, other)

    def neighbours(self, made: Made) -> Iterator[Made]:
        """The arrays met so far that share an element with an array."""
        for other in self._near(made):
            if self._share(made, other):
                yield other

    def spread(self, memory: Memory) -> None:
        """Let the neighbours of an array see what was written into it."""
        for other in self.neighbours(self._writes.views.made[id(memory.root)]):
            self._overlay(self._writes.memory_of(other.array), memory)

    def enter(self, made: Made) -> None:
        """Let an array that is met only now see what was written into its neighbours before."""
        for other in self.neighbours(made):
            if other.array.memory is not None and other.source in self._writes.written:
                staging = self._writes.capture.staging
                if staging.depth or staging.in_loop:
                    self._abort("an array is met under a decision on array values after one that shares its memory is written")
                self.check_writable(other)
                self._overlay(self._writes.memory_of(made.array), other.array.memory)

    def guards(self) -> Iterator[Any]:
        """What keeps a program to calls whose arrays share memory as those of this one."""
        arrays = self._writes.views.user_arrays
        written = [made for made in arrays if made.source in self._writes.written]
        alone = [made for made in written if not self._near(made)]
        others = _without(arrays, alone)
        on_gpu = any(type(made.real) is not np.ndarray for made in arrays)
        if alone:
            yield NoOverlap(_sources(alone), _sources(others), on_gpu)
        earlier: List[Made] = []
        for made in _without(written, alone):
            near = self._near(made)
            yield NoOverlap((made.source,), _sources(_without(others, [made, *near])), on_gpu)
            for other in _without(near, earlier):
                yield SameMemory(made.source, other.source, relation(made.real, other.real))
            earlier.append(made)

    def _overlay(self, memory: Memory, other: Memory) -> None:
        made = self._writes.views.made
        apart, strides, other_strides = relation(made[id(memory.root)].real, made[id(other.root)].real)
        contents = (memory.contents, other.contents)
        memory.contents = self._writes.capture.numpy.call(overlaid, (*contents, apart, strides, other_strides), {})

    def _near(self, made: Made) -> List[Made]:
        """The other arrays met so far that may share memory with an array, in the order in which they were met."""
        arrays = self._writes.views.user_arrays
        for number in range(self._placed, len(arrays)):
            if arrays[number].real.size:
                self._stretches.add(number, arrays[number])
        self._placed = len(arrays)
        if not made.real.size:
            return []
        return [other for _, other in self._stretches.around(made)
                if other is not made and may_share_memory(made.real, other.real)]

    def _check_elements(self, made: Made, other: Made) -> None:
        """Stop where a part of an element of one array is an element, or part of one, of the other."""
        first, second, size = made.real, other.real, made.real.itemsize
        apart, strides, other_strides = relation(first, second)
        if any(isinstance(n, Dim) for n in (*made.array.type.shape, *other.array.type.shape)) or \
                first.dtype != second.dtype or any(n % size for n in (apart, *strides, *other_strides)) or \
                first.size + second.size > _MOST:
            self._abort("an array that is written in place shares memory with another one")

    def _share(self, made: Made, other: Made) -> bool:
        """Whether an element of one array is an element of another one, either of which is written."""
        one, two = (made, other) if not overlaps_itself(other.real) else (other, made)
        return len(common_places(one.real.shape, two.real.shape, *relation(one.real, two.real))[0]) > 0


def _without(arrays: Sequence[Made], others: Sequence[Made]) -> List[Made]:
    """The arrays that are none of the others."""
    left_out = {id(made) for made in others}
    return [made for made in arrays if id(made) not in left_out]


def _sources(arrays: Sequence[Made]) -> Tuple[Source, ...]:
    return tuple([made.source for made in arrays if made.source is not None])

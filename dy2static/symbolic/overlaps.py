"""Arrays of the caller's that share memory with each other: what is written into one is seen in the others."""
from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Dict, Iterator, Sequence, Tuple

import numpy as np

from ..ir.dims import Dim
from ..record.guards import NoOverlap, SameMemory
from ..record.paths import Source
from ..runtime.array_writes import common_places, overlaid, overlaps_itself, relation
from .views import Made

if TYPE_CHECKING:
    from .writes import ArrayWrites, Memory

#: Arrays with more elements are not compared element by element.
_MOST = 1 << 22


class Overlaps:
    """Which arrays of the caller's share memory in the call that is captured.

    Each array has contents of its own in the graph.  A write into one array changes those of its neighbours, too.
    """

    def __init__(self, writes: ArrayWrites):
        self._writes, self._abort = writes, writes.capture.abort
        self._found: Dict[Tuple[int, int], bool] = {}

    def check_writable(self, made: Made) -> None:
        """Stop before an array of the caller's is written that no program can write."""
        if not made.real.flags.writeable:
            self._abort("an array is written that is read-only")
        if overlaps_itself(made.real):
            self._abort("an array is written of which two elements are one place in memory")
        for other in self._writes.views.user_arrays:
            if self._is_near(made, other):
                self._check_elements(made, other)

    def neighbours(self, made: Made) -> Iterator[Made]:
        """The arrays met so far that share an element with an array."""
        for other in self._writes.views.user_arrays:
            if self._is_near(made, other) and self._share(made, other):
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
        if not any(self._is_near(*pair) for pair in itertools.product(written, arrays)):
            others = [made for made in arrays if made.source not in self._writes.written]
            yield NoOverlap(_sources(written), _sources(others))
            return
        for i, made in enumerate(written):
            apart = [other for other in arrays if other is not made and not self._is_near(made, other)]
            yield NoOverlap((made.source,), _sources(apart))
            for other in arrays:
                if self._is_near(made, other) and other not in written[:i]:
                    yield SameMemory(made.source, other.source, relation(made.real, other.real))

    def _overlay(self, memory: Memory, other: Memory) -> None:
        made = self._writes.views.made
        apart, strides, other_strides = relation(made[id(memory.root)].real, made[id(other.root)].real)
        contents = (memory.contents, other.contents)
        memory.contents = self._writes.capture.numpy.call(overlaid, (*contents, apart, strides, other_strides), {})

    def _is_near(self, made: Made, other: Made) -> bool:
        """Whether two arrays may share memory."""
        key = id(made.array), id(other.array)
        if key not in self._found:
            self._found[key] = made is not other and np.may_share_memory(made.real, other.real)
        return self._found[key]

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


def _sources(arrays: Sequence[Made]) -> Tuple[Source, ...]:
    return tuple([made.source for made in arrays if made.source is not None])

"""The rest of a ``for`` over Python values that ends where an array value says so."""
from __future__ import annotations

import dis
import functools
import sys
import types
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

from ..capture_context import CaptureContext
from ..heap.locations import is_user_code
from ..runtime import dy
from ..symbolic.elements import Elements
from .protocols import Staging


class Replayed:
    """The items of an iterator, again for every capture of the rest of a loop."""

    def __init__(self, iterator: Iterator):
        self.iterator = iterator
        self.items: List[Any] = []

    def at(self, place: int, capture: CaptureContext) -> Any:
        """The item with this number.  Raises StopIteration at the end."""
        if place < len(self.items):
            if _computes(self.iterator):
                capture.abort("the rest of a loop over a generator is captured again")
            return self.items[place]
        self.items.append(next(self.iterator))
        return self.items[-1]


    def left(self) -> Optional[range]:
        """The numbers that are left, if they are those of a range."""
        if type(self.iterator).__name__ != "range_iterator" or self.items:
            return None
        _, (numbers,), place = self.iterator.__reduce__()
        return numbers[place or 0:]


#: Iterators whose items are there already.
_HOLDING = ("list_iterator", "tuple_iterator", "range_iterator", "dict_keyiterator", "dict_itemiterator",
            "dict_valueiterator", "list_reverseiterator")


def _computes(iterator: Any) -> bool:
    """Whether items are computed when they are asked for."""
    if type(iterator) in (zip, enumerate):
        return any(_computes(part) for part in iterator.__reduce__()[1] if hasattr(part, "__next__"))
    return iterator.reads if type(iterator) is Elements else type(iterator).__name__ not in _HOLDING


#: The instructions that go on elsewhere; those of loops go back.
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


def is_named(iterator: Any) -> bool:
    """Whether a name of the user's stands for an iterator, and may be read again."""
    found = [iterator]
    if type(iterator) in (zip, enumerate):
        found += [part for part in iterator.__reduce__()[1] if hasattr(part, "__next__")]
    frame = sys._getframe(1)
    while frame is not None:
        if is_user_code(frame.f_code):
            names = [name for name, held in frame.f_locals.items() if any(held is item for item in found)]
            if not all(_is_read_once(frame.f_code, name) for name in names):
                return True
        frame = frame.f_back
    return False


def _is_read_once(code: types.CodeType, name: str) -> bool:
    """Whether a call of the code can read a local name but once: in one place, which is in no loop."""
    steps = list(dis.get_instructions(code))
    reads = [step.offset for step in steps if "LOAD_FAST" in step.opname
             for read in (step.argval if type(step.argval) is tuple else (step.argval,)) if read == name]
    is_repeated = any(step.opcode in _JUMPS and step.argval <= offset <= step.offset for step in steps for offset in reads)
    return len(reads) == 1 and not is_repeated and name in code.co_varnames and name not in code.co_cellvars


def check_unnamed(iterator: Any, capture: CaptureContext) -> None:
    """Stop if a name of the user's stands for an iterator that the run will leave somewhere, and the capture at its end."""
    if is_named(iterator):
        capture.abort("a `for` that array values end iterates over an iterator that has a name",
                      hint="make it in the `for` statement, or go over a list")


#: So many iterations of a ``for`` over a range are written out; with more it becomes a loop of the graph.
_FEW = 8


def _goes_on(count: int, place: Any, done: Any, *state: Any) -> Any:
    return dy.and_(dy.not_(done), lambda: place < count)


def _next_number(numbers: range, body: Callable, stop: Callable, staging: Staging, place: Any, done: Any, *state: Any) -> Tuple:
    after = body(numbers.start + place * numbers.step, *state)
    return (place + 1, staging.truth(stop(*after)), *after)


class Rest:
    """The iterations that are left of a loop whose end is symbolic: each under the decision before it."""

    def __init__(self, staging: Staging, items: Replayed, place: int, body: Callable, names: Sequence[str], stop: Callable):
        self.staging, self.items, self.place, self.body, self.names, self.stop = staging, items, place, body, names, stop

    def unless(self, done: Any, state: Tuple) -> Tuple:
        """The local names after the loop, if it goes on unless ``done``."""
        rolled = self._rolled(done, state) if self.place == 0 else None
        return rolled or self.staging.cond(done, _keep, self, state, self.names, (self.body, self.stop))

    def _rolled(self, done: Any, state: Tuple) -> Optional[Tuple]:
        """The local names after what is left of a long ``range``, as a loop of the graph; None where that cannot be."""
        numbers = self.items.left()
        if numbers is None or len(numbers) < _FEW:
            return None
        test = functools.partial(_goes_on, len(numbers))
        step = functools.partial(_next_number, numbers, self.body, self.stop, self.staging)
        whole, names = (0, self.staging.truth(done), *state), ("the place in a range", "the end", *self.names)
        found = self.staging.loops.attempted(lambda: self.staging.loops.while_(test(*whole), test, step, whole, names),
                                        (whole, self.body, self.stop))
        return None if found is None else found[2:]

    def __call__(self, *state: Any) -> Tuple:
        place, capture = self.place, self.staging.capture
        while True:
            try:
                item = self.items.at(place, capture)
            except StopIteration:
                return state
            place += 1
            state = self.body(item, *state)
            done = self.stop(*state)
            if capture.decides(done):
                return Rest(self.staging, self.items, place, self.body, self.names, self.stop).unless(done, state)
            if done:
                return state


def _keep(*state: Any) -> Tuple:
    return state

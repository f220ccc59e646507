"""What a compiled function and those that it calls have learned of lines that cannot be compiled."""
from __future__ import annotations

import types
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

import gast

from ..errors import Location
from ..heap.aborts import CaptureAborted
from ..heap.wording import BEFORE_CALL, REACHES, before_line, hint_for
from ..runtime.traceback import expressions, outermost
from ..threads.locks import lock
from .division import Cuts, Key, halves
from .expressions import places_in
from .statements import Block, Place, within

#: More cuts than these, and the function is left to Python as a whole.
MOST = 32

#: After so many cuts more are expected: then no long run is captured at once.
MANY = 4

#: So many statements make a short run.
SHORT = 12


class Cut(NamedTuple):
    """A line that Python carries out between compiled parts, and why.  hint: what would help."""

    at: Location
    reason: str
    hint: str

    def __str__(self) -> str:
        return f"line {self.at.line} runs as Python, between compiled parts: {self.reason} ({self.at}: {self.at.text().strip()})"


class Known:
    """The cuts of one compiled function and of all that it calls.

    version: a number that is another one after each change.  found: the cuts, in the order in which they were found.
    stop: what keeps the function from running in parts, if anything does.  lock: held while a function is divided, and while what
    is known is read or changed.
    """

    def __init__(self) -> None:
        self.version = 0
        self.stop: Optional[CaptureAborted] = None
        self.found: List[Cut] = []
        self._lines: Dict[str, Set[int]] = {}
        self._spots: Dict[str, Set[Place]] = {}
        self._ends: Dict[str, Set] = {}
        self._plain: Dict[str, Set[Key]] = {}
        self._cuts: Dict[Tuple[str, int], Cut] = {}
        self.lock = lock()

    @property
    def is_full(self) -> bool:
        """Whether there are so many cuts that the function is left to Python."""
        return len(self.found) >= MOST or self.stop is not None

    def clear(self) -> None:
        """Forget all."""
        with self.lock:
            self.version += 1
            self.stop = None
            for learned in (self.found, self._lines, self._spots, self._ends, self._plain, self._cuts):
                learned.clear()

    def learned(self) -> Tuple[Any, ...]:
        """What is known now, for `restore`."""
        with self.lock:
            by_file = [{file: set(places) for file, places in known.items()} for known in self._by_file()]
            return self.stop, list(self.found), dict(self._cuts), by_file

    def restore(self, learned: Tuple[Any, ...]) -> None:
        """Know no more than was known then."""
        with self.lock:
            self.clear()
            self.stop, found, cuts, by_file = learned
            self.found.extend(found)
            self._cuts.update(cuts)
            for known, places in zip(self._by_file(), by_file):
                known.update(places)

    def _by_file(self) -> Tuple[Dict[str, Set], ...]:
        return self._lines, self._spots, self._ends, self._plain

    def of(self, function: types.FunctionType, tree: gast.FunctionDef) -> Cuts:
        """The cuts in one function."""
        file = function.__code__.co_filename
        inside = range(*span(tree))
        lines = self._lines.get(file, set()) & set(inside)
        spots = {spot for spot in self._spots.get(file, ()) if spot.line in inside}
        if spots:
            there = places_in(tree, spots)
            # what is not in a part has been taken out of it
            lines |= set() if is_of_part(tree) else {spot.line for spot in spots - there}
            spots = there
        return Cuts(frozenset(lines), frozenset(spots), frozenset(self._ends.get(file, ())), frozenset(self._plain.get(file, ())))

    def are_in(self, function: types.FunctionType, tree: gast.FunctionDef) -> bool:
        """Whether there are any in a function."""
        cuts = self.of(function, tree)
        return bool(cuts.lines or cuts.spots)

    def add(self, function: types.FunctionType, tree: gast.FunctionDef, stop: CaptureAborted) -> Optional[Cut]:
        """Learn where a capture of a function stopped; None where that does not show a new line of it."""
        if stop.whole:
            self.stop = stop
            return None
        chain = [] if stop.at is None else [*stop.at.callers, stop.at]
        spots = [found and Place(*found) for found in expressions(stop, chain)]
        file, lines = function.__code__.co_filename, range(*span(tree))
        with self.lock:
            own = next((place for place in chain if place.file == file and place.line in lines), None)
            if own is None and chain:                   # a function of a library, which calls the user's
                found = outermost(stop, file, lines)
                if found is not None:
                    line, spot = found
                    own = Location(file, line, 0, function.__qualname__)
                    chain.insert(0, own)
                    spots.insert(0, spot and Place(*spot))
            if own is None:
                return None
            last = chain[-1]
            cut = self._cuts.get((last.file, last.line))
            if cut is None:
                if self.is_full:
                    return None
                cut = self._cuts[last.file, last.line] = Cut(last, *self._explained(stop, last))
                self.found.append(cut)
            first = chain.index(own)
            if spots[first] is not None and is_of_part(tree) and not places_in(tree, {spots[first]}):
                spots[first] = None
            if self._note(own, spots[first]):
                for place, spot in zip(chain[first + 1:], spots[first + 1:]):
                    self._note(place, spot)
                self.version += 1
            return cut

    def _explained(self, stop: CaptureAborted, at: Location) -> Tuple[str, str]:
        """The reason of a cut, and what would help; where a gradient ends at an earlier cut, they name the line of that."""
        earlier = [cut.at for cut in self.found if REACHES not in cut.reason]
        if stop.reason == BEFORE_CALL and earlier:
            return before_line(f"line {earlier[-1].line}" if earlier[-1].file == at.file else str(earlier[-1]))
        return stop.reason, stop.hint or hint_for(stop.reason)

    def _note(self, at: Location, spot: Optional[Place]) -> bool:
        """Note that captures stop at an expression, or at a line if it is not known at which; whether that is new."""
        lines, found = self._lines.setdefault(at.file, set()), self._spots.setdefault(at.file, set())
        if at.line in lines or spot in found:
            return False
        if spot is None:
            lines.add(at.line)
        else:
            found.add(spot)
        return True

    def halve(self, function: types.FunctionType, statements: Block, stop: CaptureAborted) -> bool:
        """End a run in its middle, if nothing else is known; Python carries out a single statement.  False if that is known."""
        file, middle = function.__code__.co_filename, halves(statements)
        lines = {node.lineno for node in within(statements)}
        with self.lock:
            ends, known = self._ends.setdefault(file, set()), self._lines.setdefault(file, set())
            if middle in ends or len(ends) >= MOST or middle is None and (lines <= known or self.is_full):
                return False
            self.version += 1
            if middle is None:
                known |= lines
                at = stop.at or Location(file, statements[0].lineno, 0, function.__qualname__)
                if not any(at.same_line(cut.at) for cut in self.found):
                    cut = self._cuts[at.file, at.line] = Cut(at, stop.reason, stop.hint or hint_for(stop.reason))
                    self.found.append(cut)
            else:
                ends.add(middle)
            return True

    def shorten(self, function: types.FunctionType, runs: Iterable[Block]) -> bool:
        """End long runs early where many cuts have been found already: each is captured up to its first cut in vain.

        Gives whether any has got an end.  Each piece is three times as long as that before it, so that there are few.
        """
        if len(self.found) < MANY:
            return False
        found = set()
        for statements in runs:
            length = place = SHORT
            while place + SHORT < len(statements):
                found.add(Place.of(statements[place]))
                length *= 3
                place += length
        with self.lock:
            self._ends.setdefault(function.__code__.co_filename, set()).update(found)
        return bool(found)

    def leave_plain(self, function: types.FunctionType, key: Key) -> None:
        """Let Python carry out a run that is not worth a call."""
        with self.lock:
            self._plain.setdefault(function.__code__.co_filename, set()).add(key)
            self.version += 1

    @property
    def has_plain(self) -> bool:
        """Whether some runs were not worth a call."""
        return any(self._plain.values())

    def leave_none_plain(self) -> None:
        """Forget which runs were not worth a call."""
        with self.lock:
            self._plain.clear()
            self.version += 1


def span(tree: gast.FunctionDef) -> Tuple[int, int]:
    """The lines of a function, as the arguments of `range`."""
    return tree.lineno, (tree.end_lineno or tree.lineno) + 1


def is_of_part(tree: gast.FunctionDef) -> bool:
    """Whether a tree is that of a part."""
    return getattr(tree, "is_part", False)

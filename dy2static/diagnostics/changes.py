"""What changes from call to call: numbers and texts, which become inputs, and what the warning about many captures names."""
from __future__ import annotations

import contextlib
import re
import types
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..errors import Location
from ..heap.reads import place_of
from ..record.guards import (
    ArrayMatch,
    ContentsMatch,
    DistinctObjects,
    EqualsMatch,
    ExpressionMatch,
    Guard,
    IdentityMatch,
    KeyAbsent,
    KeysMatch,
    LengthMatch,
    SameObject,
    TypeMatch,
    VariableMatch,
)
from ..record.paths import Argument, Source
from ..runtime.program import Program

#: The most changes that a warning names.
_MOST_TOLD = 3

#: What to do, by the guard that does not hold.
_SIZES = ("pad or sort the arrays so that fewer shapes come, give the sizes that differ as None in an `input_spec`, or compile a "
          "part of the function that has no such array")
_LENGTHS = "sort or pad the sequences so that fewer different lengths come together, or compile a part of the function without them"
_OBJECTS = "make the object once, outside, and change what it holds"
_VALUES = "keep what changes in every call out of the function, or where its value decides nothing"
_GROWING = "keep what grows out of the function, or give the function as many items in every call"
_HINTS = {ArrayMatch: _SIZES, VariableMatch: _SIZES, ContentsMatch: _LENGTHS, IdentityMatch: _OBJECTS, TypeMatch: _OBJECTS,
          SameObject: _OBJECTS, DistinctObjects: _OBJECTS, LengthMatch: _GROWING, KeysMatch: _GROWING, KeyAbsent: _GROWING}


class Varying(set):
    """The paths of numbers and texts that have been seen to change: inputs of later programs.  texts: those of texts.

    fixed: paths of small arrays and of numbers that are known in every program, whether they change or not.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fixed: Set[Tuple] = set()
        self.texts: Set[Tuple] = set()
        self._needed: Set[Tuple] = set()                # texts that cannot be inputs

    def clear(self) -> None:
        """Forget everything."""
        super().clear()
        self.texts.clear()
        self.fixed.clear()
        self._needed.clear()

    def note(self, guards: Sequence[EqualsMatch]) -> None:
        """Note that the values of these guards have changed."""
        for guard in guards:
            path = guard.source.path()
            is_text = type(guard.expected) in (str, bytes)
            if not is_text or path not in self._needed:
                self.add(path)
            if is_text and path in self:
                self.texts.add(path)

    @contextlib.contextmanager
    def without_texts(self) -> Iterator[None]:
        """Inside the block texts are fixed; if it succeeds, these stay so."""
        texts, self.texts = self.texts, set()
        self.difference_update(texts)
        try:
            yield
        except BaseException:
            self.update(texts)
            self.texts = texts
            raise
        self._needed |= texts


class Change(NamedTuple):
    """A guard that does not hold any more, and the line that reads what it looks at."""

    guard: Guard
    name: str
    at: Optional[Location]

    def __str__(self) -> str:
        place = f" ({self.at}: {self.at.text().strip()})" if self.at is not None else ""
        return f"no longer {self.name}{place}"


def changes_of(function: types.FunctionType, program: Optional[Program], failed: Sequence[int],
               places: Mapping[Any, Optional[Location]]) -> List[Change]:
    """What the program that fits best wanted otherwise, by the lines that read it; else by that of the function."""
    found: Dict[str, Change] = {}
    code = function.__code__
    for guard in [] if program is None else [program.guards[index] for index in failed if index >= 0]:
        at = place_of(guard, places) or Location(code.co_filename, code.co_firstlineno, 0, function.__qualname__)
        found.setdefault(guard.describe(), Change(guard, _named(guard, program, code), at))
    return list(found.values())[:_MOST_TOLD]


def _named(guard: Guard, program: Program, code: types.CodeType) -> str:
    """The guard in words, with the names of positional arguments."""
    text = guard.describe()
    if guard.source is not None:
        return _with_argument(text, guard.source, code)
    for name, source in program.recipe.outcome.named if isinstance(guard, ExpressionMatch) else ():
        path = _with_argument(source.describe(), source, code)
        text = re.sub(rf"\b{name}\b", lambda _, path=path: path, text)
    return text


def _with_argument(text: str, source: Source, code: types.CodeType) -> str:
    root = source.root
    if not isinstance(root, Argument) or root.key >= code.co_argcount:
        return text
    return text.replace(root.describe(), code.co_varnames[root.key], 1)


def storm_message(name: str, captures: int, useful: int, changes: Sequence[Change], evicted: int) -> str:
    """The warning that captures do not pay, and what can be done."""
    if not captures:
        return (f"{name} could not be captured for many different signatures, and not once for another: calls of further ones run "
                "eagerly now without trying, but for a few; leave it uncompiled, or see explain_misses() for what stops it")
    used = "none of these programs was" if not useful else f"only {useful} of these programs {'was' if useful == 1 else 'were'}"
    what = "; ".join(map(str, changes)) or "something else in every call"
    hint = _HINTS.get(type(changes[0].guard), _VALUES) if changes else _VALUES
    if evicted and useful:
        hint += "; or raise cache_limit"
    return (f"{name} is captured again and again: {captures} captures, and {used} needed again. This call: {what}. "
            f"Calls for which there is no program run eagerly now, but for a few; {hint}")

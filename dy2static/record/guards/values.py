"""Guards of one value that is no array: its type, its identity, its contents."""
from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np

from ...runtime.guard_tests import exact, is_off
from ..documents import need
from ..files import FileIn, FileOut
from ..paths import GuardWriter, Source, TableWriter
from .base import Expecting, Guard, PathGuard, named


class TypeMatch(Expecting):
    """``type(value) is expected``."""

    word, words = "type", "has type"
    before_arrays = True

    def change(self, value: Any) -> Tuple[str, str]:
        return f"of class {self.expected.__qualname__}", f"of class {type(value).__qualname__}"

    def fails(self, writer: GuardWriter) -> str:
        value = writer.path(self.source)
        return f"type({value}) is not {writer.constant(self.expected, 'type')}"

    def row_at(self, place: int, table: TableWriter) -> bool:
        table.types[self.source] = self.expected
        return table.test("type", place, table.constant(self.expected))

    def holds(self, at: Callable[[Source], Any]) -> bool:
        return type(at(self.source)) is self.expected

    def is_fact(self, out: FileOut) -> bool:
        return not out.is_atom(out.found(self.source))

    def parts_out(self, out: FileOut) -> Any:
        return out.type_name(self.expected, self.source)

    @classmethod
    def parts_in(cls, said: Any, file: FileIn) -> Tuple[Any, ...]:
        return file.type_name(said),


class IdentityMatch(Expecting):
    """``value is expected``."""

    word, words = "is", "is"
    before_arrays = True

    @property
    def is_soft(self) -> bool:                          # type: ignore[override]
        """A truth value leads nowhere."""
        return type(self.expected) is bool

    def change(self, value: Any) -> Tuple[str, str]:
        return named(self.expected), named(value)

    def fails(self, writer: GuardWriter) -> str:
        value, expected = writer.path(self.source), self.expected
        known = writer.bound(expected) if isinstance(expected, (int, float, complex, str, bytes)) and not self.is_soft else \
            writer.constant(expected)
        return f"{value} is not {known}"

    def row_at(self, place: int, table: TableWriter) -> bool:
        return table.test("is", place, table.constant(self.expected))

    def holds(self, at: Callable[[Source], Any]) -> bool:
        return at(self.source) is self.expected

    def is_fact(self, out: FileOut) -> bool:
        return not self._is_of_files() or out.is_unchanging(self.source)

    def parts_out(self, out: FileOut) -> Any:
        if not self._is_of_files():
            out.refuse(self.source, f"is {getattr(self.expected, '__name__', self.expected)!r}")
        return out.value(self.expected)

    def _is_of_files(self) -> bool:
        """Whether a file can say which object it is."""
        return any(self.expected is item for item in (None, True, False, Ellipsis))


class EqualsMatch(Expecting):
    """A value of the same type that is equal and cannot be distinguished from it."""

    word, words = "eq", "=="
    before_arrays = is_soft = True

    def change(self, value: Any) -> Tuple[str, str]:
        return repr(self.expected), repr(value)

    def fails(self, writer: GuardWriter) -> str:
        value, expected = writer.path(self.source), self.expected
        differs = f"type({value}) is not {writer.constant(type(expected), 'type')}"
        if expected != expected:
            return f"{differs} or {value} == {value}"
        return f"{differs} or {unlike(value, expected, writer)}"

    def row_at(self, place: int, table: TableWriter) -> bool:
        if type(self.expected) is set and all(type(item) is str for item in self.expected):
            return table.test("texts", place, table.constant(frozenset(self.expected)))
        return _is_comparable(self.expected) and table.test("equals", place, table.constant(self.expected))

    def holds(self, at: Callable[[Source], Any]) -> bool:
        value = at(self.source)
        return type(value) is type(self.expected) and bool(exact(value) == exact(self.expected))

    def is_fact(self, out: FileOut) -> bool:
        return not out.is_atom(self.expected) or out.is_unchanging(self.source)


#: By the type of a container: the row that knows its length.
_LENGTHS: Dict[Any, str] = {dict: "length_of_dict", list: "length_of_list", tuple: "length_of_tuple"}


class LengthMatch(Expecting):
    """``len(value) == expected``."""

    word, words = "len", "has length"
    before_arrays = is_of_model = True

    def change(self, value: Any) -> Tuple[str, str]:
        return f"length {self.expected}", f"length {len(value)}"

    def fails(self, writer: GuardWriter) -> str:
        return f"len({writer.path(self.source)}) != {self.expected}"

    def row_at(self, place: int, table: TableWriter) -> bool:
        row = _LENGTHS.get(table.type_of(self.source))
        return row is not None and table.test(row, place, self.expected)

    def holds(self, at: Callable[[Source], Any]) -> bool:
        return bool(len(at(self.source)) == self.expected)

    @classmethod
    def parts_in(cls, said: Any, file: FileIn) -> Tuple[Any, ...]:
        return need(said, int, "a length"),


class ItemTypesMatch(Expecting):
    """All items of a list, of which there are some, are of this type."""

    word, words = "items", "has items of type"

    def change(self, value: Any) -> Tuple[str, str]:
        found = sorted({type(item).__name__ for item in value})
        return f"items of type {named(self.expected)}", f"items of type {' and '.join(found)}" if found else "no items"

    def fails(self, writer: GuardWriter) -> str:
        return f"{{*map(type, {writer.path(self.source)})}} != {{{writer.constant(self.expected, 'type')}}}"

    def holds(self, at: Callable[[Source], Any]) -> bool:
        return {*map(type, at(self.source))} == {self.expected}

    def parts_out(self, out: FileOut) -> Any:
        return out.type_name(self.expected, self.source)

    @classmethod
    def parts_in(cls, said: Any, file: FileIn) -> Tuple[Any, ...]:
        return file.type_name(said),


class KeysMatch(Expecting):
    """All keys of a mapping, in their order."""

    word, words = "keys", "has keys"
    is_of_model = True

    def change(self, value: Any) -> Tuple[str, str]:
        return f"keys {', '.join(map(repr, self.expected))}", f"keys {', '.join(map(repr, value))}"

    def fails(self, writer: GuardWriter) -> str:
        value, expected = writer.path(self.source), self.expected
        if not all(type(key) is str for key in expected):
            return f"exact(tuple({value})) != {writer.constant(exact(expected))}"
        return f"tuple({value}) != {writer.constant(expected)}"

    def row_at(self, place: int, table: TableWriter) -> bool:
        cls = table.type_of(self.source)
        if cls in (dict, OrderedDict) and not self.expected:
            return table.test("length_of_dict", place, 0)
        return cls is dict and all(type(key) is str for key in self.expected) and table.test(
            "keys", place, table.constant(self.expected))

    def holds(self, at: Callable[[Source], Any]) -> bool:
        return bool(exact(tuple(at(self.source))) == exact(self.expected))


class KeyAbsent(Expecting):
    """``expected not in value``."""

    word, words = "absent", "has no"
    before_arrays = is_soft = True

    def change(self, value: Any) -> Tuple[str, str]:
        return f"without {self.expected!r}", f"with {self.expected!r}"

    def fails(self, writer: GuardWriter) -> str:
        value = writer.path(self.source)
        return f"{writer.constant(self.expected)} in {value}"

    def row_at(self, place: int, table: TableWriter) -> bool:
        return table.type_of(self.source) is dict and type(self.expected) is str and table.test(
            "absent", place, table.constant(self.expected))

    def holds(self, at: Callable[[Source], Any]) -> bool:
        return self.expected not in at(self.source)

    def is_fact(self, out: FileOut) -> bool:
        return not isinstance(self.expected, (str, int, float, bool))


class AttributeAbsent(Expecting):
    """``not hasattr(value, expected)``."""

    word, words = "lacks", "lacks"
    is_of_model = True

    def fails(self, writer: GuardWriter) -> str:
        return f"hasattr({writer.path(self.source)}, {self.expected!r})"

    def holds(self, at: Callable[[Source], Any]) -> bool:
        return not hasattr(at(self.source), self.expected)

    @classmethod
    def parts_in(cls, said: Any, file: FileIn) -> Tuple[Any, ...]:
        return need(said, str, "an attribute"),


@dataclass(frozen=True, eq=False)
class SameObject(PathGuard):
    """The object is also at the end of another path."""

    other: Source
    word = "same"
    before_arrays = is_soft = True

    def describe(self) -> str:
        return f"{self.source.describe()} is {self.other.describe()}"

    def fails(self, writer: GuardWriter) -> str:
        value = writer.path(self.source)
        return f"{value} is not {writer.path(self.other)}"

    def row_at(self, place: int, table: TableWriter) -> bool:
        other = table.place(self.other)
        return other is not None and table.test("same", place, other)

    def moved(self, move: Callable[[Source], Optional[Source]]) -> Optional[Guard]:
        source, other = move(self.source), move(self.other)
        return None if source is None or other is None else replace(self, source=source, other=other)

    def holds(self, at: Callable[[Source], Any]) -> bool:
        return at(self.source) is at(self.other)

    def is_fact(self, out: FileOut) -> bool:
        return not out.is_given(self.other) and not out.is_atom(out.found(self.source))

    def parts_out(self, out: FileOut) -> Any:
        return out.path(self.other)

    @classmethod
    def parts_in(cls, said: Any, file: FileIn) -> Tuple[Any, ...]:
        return file.path(said),


class CellEmpty(PathGuard):
    """A closure cell that holds nothing."""

    word = "unbound"

    def describe(self) -> str:
        return f"{self.source.describe()} is unbound"

    def fails(self, writer: GuardWriter) -> str:
        return f"not is_empty({writer.path(self.source)})"

    def parts_out(self, out: FileOut) -> Any:
        return None

    @classmethod
    def parts_in(cls, said: Any, file: FileIn) -> Tuple[Any, ...]:
        return ()


class LogOff(Expecting):
    """A logger does nothing with messages of the level ``expected``.  No saved model holds it: a model logs nothing."""

    words = "is off for messages of level"

    def fails(self, writer: GuardWriter) -> str:
        return f"not {writer.constant(is_off, 'is_off')}({writer.path(self.source)}, {self.expected})"

    def said(self, out: FileOut) -> None:
        return None


def _is_comparable(value: Any) -> bool:
    """Whether native code can tell if another value is just like this one."""
    if type(value) is tuple:
        return all(map(_is_comparable, value))
    return value is None or type(value) in (bool, int, str) or type(value) is float and value == value


def unlike(text: str, expected: Any, writer: GuardWriter) -> str:
    """The condition under which an expression gives another value of the type that it has."""
    if isinstance(expected, (float, np.floating)) and expected != expected:
        return f"{text} == {text}"                      # only what is not a number differs from itself
    if _has_equals_that_differ(expected):
        return f"exact({text}) != {writer.constant(exact(expected))}"
    return f"{text} != {writer.constant(expected)}"


def _has_equals_that_differ(value: Any) -> bool:
    """Whether there may be an equal value of the same type that is not the same."""
    if isinstance(value, (float, np.floating)):
        return bool(value == 0)
    return isinstance(value, (complex, np.complexfloating, range, set, frozenset))

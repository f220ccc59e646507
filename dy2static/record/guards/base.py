"""What a guard is: something that a capture relied on, and that is checked before every run of its program."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, ClassVar, List, Optional, Protocol, Tuple

from ..files import FileIn, FileOut
from ..paths import GuardWriter, Source, TableWriter


class Guard:
    """Something that a capture relied on.

    source: the path to what it is about; None where it is about several values, or none.
    word: what saved models call it; "" for what they never hold.
    before_arrays: it may be checked before arrays are that an earlier guard is about.  is_of_model: in a saved model it is a fact
    of what is in the model, which is built again as it was.
    is_soft: a diagnosis goes on with the guards behind it where it fails.
    """

    source: Optional[Source]
    word: ClassVar[str] = ""
    before_arrays: ClassVar[bool] = False
    is_soft: ClassVar[bool] = False
    is_of_model: ClassVar[bool] = False

    def describe(self) -> str:
        """For "why did it recompile": what was expected of which value."""
        raise NotImplementedError

    def change(self, value: Any) -> Optional[Tuple[str, str]]:
        """What was expected and what this value has instead, in words; None where no single value tells."""
        return None

    def fails(self, writer: GuardWriter) -> Optional[str]:
        """The condition under which it fails, as text; None where the writer checks it later."""
        raise NotImplementedError

    def row(self, table: TableWriter) -> bool:
        """Whether it has a native form; that goes into the table."""
        return False

    def subject(self) -> Any:
        """What is the same for the guards of two captures that look at the same value."""
        return type(self)

    def moved(self, move: Callable[[Source], Optional[Source]]) -> Optional["Guard"]:
        """The same guard with its paths moved; None where what it is about has moved to None."""
        return self

    def holds(self, at: Callable[[Source], Any]) -> bool:
        """Whether it holds of what is at the end of its paths; False also where that cannot be told from these values."""
        return False

    def said(self, out: GuardsOut) -> Optional[List[Any]]:
        """The guard as JSON; None where the file needs none."""
        raise NotImplementedError

    @classmethod
    def loaded(cls, path: Any, said: Any, file: FileIn) -> "Guard":
        """The guard that `said` wrote.  path: the number of its path, or None."""
        raise NotImplementedError


class GuardsOut(FileOut, Protocol):
    """The file that a saved model goes into, for guards.  check: raises `SaveError` if a guard does not hold now."""

    def check(self, guard: Guard, /) -> None: ...


class JointGuard(Guard):
    """A guard of several values together, or of what is no value."""

    source = None


@dataclass(frozen=True, eq=False)
class PathGuard(Guard):
    """A guard of the value at the end of one path."""

    source: Source

    def row(self, table: TableWriter) -> bool:
        place = table.place(self.source)
        return place is not None and self.row_at(place, table)

    def row_at(self, place: int, table: TableWriter) -> bool:
        """The same where the value has the number ``place``."""
        return False

    def subject(self) -> Any:
        return self.source.path()

    def moved(self, move: Callable[[Source], Optional[Source]]) -> Optional[Guard]:
        source = move(self.source)
        return None if source is None else replace(self, source=source)

    def is_fact(self, out: FileOut) -> bool:
        """Whether it is a fact of a model that is saved: it must hold now, and no more where that is loaded."""
        return self.is_of_model

    def said(self, out: GuardsOut) -> Optional[List[Any]]:
        if not out.is_given(self.source) and self.is_fact(out):
            out.check(self)
            return None
        return [self.word, out.path(self.source), self.parts_out(out)]

    def parts_out(self, out: FileOut) -> Any:
        """What it expects, as JSON."""
        raise NotImplementedError

    @classmethod
    def loaded(cls, path: Any, said: Any, file: FileIn) -> Guard:
        return cls(file.path(path), *cls.parts_in(said, file))

    @classmethod
    def parts_in(cls, said: Any, file: FileIn) -> Tuple[Any, ...]:
        """What it expects, read: its fields behind the path."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Expecting(PathGuard):
    """A guard that compares with one value.  words: the text between path and value in its description."""

    expected: Any
    words: ClassVar[str]

    def describe(self) -> str:
        return f"{self.source.describe()} {self.words} {named(self.expected)}"

    def parts_out(self, out: FileOut) -> Any:
        return out.value(self.expected)

    @classmethod
    def parts_in(cls, said: Any, file: FileIn) -> Tuple[Any, ...]:
        return file.value(said),


def named(value: Any) -> str:
    """A value in a description."""
    return getattr(value, "__name__", None) or repr(value)

"""What a step of a path is, and what its text and its native form go into."""
from __future__ import annotations

from typing import Any, ClassVar, Dict, Iterator, List, Optional, Protocol, Tuple

import numpy as np

from ...ir.dims import Size


class Source:
    """One step of a path: how a value is got from that of ``parent``, which is None where a path begins.

    Steps never change.  `Sources` interns them, so identity is equality.
    number: in the order in which one capture has met them.  word: what `path` calls the step.
    saved: what saved models call it; "" where they have no such step.  words, code: the description and the text, where these are
    the same but for those of the parent.
    """

    __slots__ = ("parent", "key", "number", "_path")

    word: ClassVar[str]
    saved: ClassVar[str] = ""
    words: ClassVar[str] = ""
    code: ClassVar[str] = ""

    def __init__(self, parent: Any, key: Any, number: int):
        self.parent, self.key, self.number = parent, key, number
        self._path: Optional[Tuple] = None

    def describe(self) -> str:
        """The path as a reader would write it: ``self.l1.W``, ``xs[0]``, ``global SCALE``."""
        return self.words.format(self.parent.describe())

    def text(self, writer: GuardWriter) -> str:
        """Generated code that reads the value."""
        return self.code.format(writer.path(self.parent))

    def row(self, table: TableWriter) -> Optional[int]:
        """The number of the value in a table of guards; None where native code cannot read it."""
        place = None if self.parent is None else table.place(self.parent)
        return None if place is None else self.row_behind(place, table)

    def row_behind(self, place: int, table: TableWriter) -> Optional[int]:
        """The same where that of the parent has the number ``place``."""
        return None

    def read(self, parent: Any) -> Any:
        """The value, now.  parent: the one before it.  Raises what Python raises where there is none."""
        raise NotImplementedError

    @property
    def label(self) -> Optional[str]:
        """What the step adds to a name for the value; None for nothing."""
        return None

    @property
    def root(self) -> "Source":
        """Where the path begins."""
        step = self
        while step.parent is not None:
            step = step.parent
        return step

    def path(self) -> Tuple:
        """A hashable form that is equal for equal paths of different captures."""
        if self._path is None:
            self._path = (self.word, self.key) + (() if self.parent is None else self.parent.path())
        return self._path

    def labels(self) -> Iterator[str]:
        """The labels of all steps, the last one first."""
        step = self
        while step is not None:
            if step.label is not None:
                yield step.label
            step = step.parent

    def variable(self) -> str:
        """What generated code calls the value."""
        name = next(filter(str.isidentifier, self.labels()), None)
        return f"v_{self.number}" if name is None else f"{name}{'_vars' if isinstance(self, Namespace) else ''}_{self.number}"


class Namespace(Source):
    """The attributes of an object, as a mapping."""

    __slots__ = ()


class GuardWriter(Protocol):
    """The generated function that the texts of paths and guards go into.

    lines: those so far.  path: gives the name of the value at the end of a path.  constant: text for an object; bound: a name for
    this very object; each with a hint for the name.
    arrays: the names of the arrays of Variables.  fail: gives the statement where a guard fails.  array_differs: gives the
    condition under which an array has another shape or dtype or is on another device (None where it is checked later), told
    whether it is an argument.
    """

    lines: List[str]
    arrays: Dict[Source, str]

    def path(self, source: Source, /) -> str: ...
    def constant(self, value: Any, hint: str = "k", /) -> str: ...
    def bound(self, value: Any, hint: str = "k", /) -> str: ...
    def fail(self) -> str: ...
    def array_differs(self, name: str, shape: Tuple[Size, ...], dtype: np.dtype, is_argument: bool, device: str,
                      /) -> Optional[str]: ...


class TableWriter(Protocol):
    """The table of guards that the native forms of paths and guards go into.

    types: what is known of the types of values at the ends of paths.  arrays: the numbers of the arrays of Variables.
    place: gives the number of the value at the end of a path; None where native code cannot follow it.  type_of: gives its type
    if that is known.  constant: gives the number of an object.
    give: adds a row that gives a value, and gives its number; test: adds a row that tells whether a guard holds.
    """

    types: Dict[Source, type]
    arrays: Dict[Source, int]

    def place(self, source: Source, /) -> Optional[int]: ...
    def type_of(self, source: Source, /) -> Optional[type]: ...
    def constant(self, value: Any, /) -> int: ...
    def give(self, row: str, /, *operands: int) -> int: ...
    def test(self, row: str, /, *operands: int) -> bool: ...

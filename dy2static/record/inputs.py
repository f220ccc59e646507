"""Inputs of a graph: what goes into it at every call, one class for each kind."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Dict, Optional

from ..errors import LoadError
from ..ir.graph import Value
from .builds import EntryWriter
from .documents import entry, need
from .files import FileIn, FileOut
from .paths import Source


class Input:
    """One input of the graph.

    source: the path to it; None for a number.  requires_grad: of a Variable.  word: what saved models call it.
    """

    value: Value
    source: Optional[Source]
    requires_grad: bool
    word: ClassVar[str]

    def describe(self) -> str:
        """The input in words."""
        raise NotImplementedError

    def text(self, writer: EntryWriter) -> str:
        """What generated code calls it."""
        raise NotImplementedError

    def said(self, out: FileOut) -> Dict[str, Any]:
        """The input as JSON."""
        raise NotImplementedError

    @classmethod
    def loaded(cls, said: Dict[str, Any], value: Value, file: FileIn) -> "Input":
        """The input that `said` wrote."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class _PathInput(Input):
    value: Value
    source: Source
    requires_grad: bool = False

    def describe(self) -> str:
        return f"{self.word} {self.source.describe()}"

    def text(self, writer: EntryWriter) -> str:
        return writer.path(self.source)

    def said(self, out: FileOut) -> Dict[str, Any]:
        said = {"kind": self.word, "path": out.path(self.source)}
        return {**said, "requires_grad": True} if self.requires_grad else said

    @classmethod
    def loaded(cls, said: Dict[str, Any], value: Value, file: FileIn) -> Input:
        requires_grad = need(said.get("requires_grad", False), bool, "requires_grad")
        return cls(value, file.path(said.get("path")), requires_grad)


class VariableInput(_PathInput):
    """The array of a Variable."""

    word = "variable"

    def text(self, writer: EntryWriter) -> str:
        return writer.arrays[self.source]


class ArrayInput(_PathInput):
    """An array."""

    word = "array"


class ListInput(_PathInput):
    """The items of a list, of which only the run knows how many there are."""

    word = "list"

    def text(self, writer: EntryWriter) -> str:
        return f"[*{writer.path(self.source)}]"


class ObjectInput(_PathInput):
    """An object that host calls get."""

    word = "object"


@dataclass(frozen=True, eq=False)
class NumberInput(Input):
    """The value of an expression over numbers or texts that vary."""

    value: Value
    expression: str
    word = "number"
    source = None
    requires_grad = False

    def describe(self) -> str:
        return f"number {self.expression}"

    def text(self, writer: EntryWriter) -> str:
        return writer.computed.get(self.expression, self.expression)

    def said(self, out: FileOut) -> Dict[str, Any]:
        return {"kind": self.word, "number": out.expression(self.expression)}

    @classmethod
    def loaded(cls, said: Dict[str, Any], value: Value, file: FileIn) -> Input:
        return cls(value, file.expression(said.get("number")))


#: All kinds, by their words.
INPUTS = {kind.word: kind for kind in (VariableInput, ArrayInput, ListInput, ObjectInput, NumberInput)}


def input_of(said: Any, value: Value, file: FileIn) -> Input:
    """The input that a file holds.  Raises `LoadError`."""
    word = entry(said, "kind", str, "an input")
    if word not in INPUTS:
        raise LoadError(f"there are no inputs of the kind {word[:60]!r}")
    return INPUTS[word].loaded(said, value, file)

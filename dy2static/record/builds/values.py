"""Builds of what is there already: constants, objects at paths, values of the graph, Variables, numbers."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional, Tuple

from ...errors import SaveError
from ...ir.graph import Value
from ..documents import need, pair_of
from ..paths import Source
from ..variables import EscapingVariable
from .base import Build, BuildsIn, BuildsOut, EntryWriter, Leaf, OneField, Values


@dataclass(frozen=True, eq=False)
class Const(Leaf):
    """An object that the program holds."""

    value: Any
    word, form = "const", "value"
    is_placed = True

    def text(self, writer: EntryWriter) -> str:
        return writer.constant(self.value)

    def evaluate(self, values: Values) -> Any:
        return self.value

    def said(self, out: BuildsOut) -> Any:
        try:
            return super().said(out)
        except SaveError as error:
            raise SaveError(f"{error.args[0]}: it is given back or stored") from None


@dataclass(frozen=True, eq=False)
class FromSource(OneField):
    """An object of the user's."""

    source: Source
    word, form = "source", "path"
    is_placed = True

    def text(self, writer: EntryWriter) -> str:
        return writer.path(self.source)

    def graph_value(self, inputs: Mapping[Source, Value]) -> Optional[Value]:
        return inputs.get(self.source)

    def evaluate(self, values: Values) -> Any:
        return values.at(self.source)


@dataclass(frozen=True, eq=False)
class FromValue(OneField):
    """A value of the graph."""

    value: Value
    word, form = "value", "graph_value"
    is_placed = True

    def text(self, writer: EntryWriter) -> str:
        return writer.values[self.value]

    def graph_value(self, inputs: Mapping[Source, Value]) -> Optional[Value]:
        return self.value

    def evaluate(self, values: Values) -> Any:
        return values.array(self.value)


@dataclass(frozen=True, eq=False)
class FromVariable(OneField):
    """A Variable that the call makes."""

    record: EscapingVariable
    word, form = "variable", "variable"
    is_placed = True

    def text(self, writer: EntryWriter) -> str:
        return writer.variable_names[id(self.record)]

    def graph_value(self, inputs: Mapping[Source, Value]) -> Optional[Value]:
        return self.record.value

    def evaluate(self, values: Values) -> Any:
        return values.variable(self.record)


@dataclass(frozen=True, eq=False)
class Number(Leaf):
    """A number or text, as an expression over numbers and texts that vary."""

    expression: str
    word, form = "number", "expression"

    def text(self, writer: EntryWriter) -> str:
        return writer.computed.get(self.expression, self.expression)


@dataclass(frozen=True, eq=False)
class Choice(Build):
    """One of several objects.  number: says which.  options: the objects, by numbers."""

    number: Build
    options: Tuple[Tuple[int, Build], ...]
    word = "choice"

    def text(self, writer: EntryWriter) -> str:
        number, texts = writer.expression(self.number), [(k, writer.expression(part)) for k, part in self.options]
        return f"({''.join([f'{text} if {number} == {k} else ' for k, text in texts[:-1]])}{texts[-1][1]})"

    def said(self, out: BuildsOut) -> Any:
        return [out.build(self.number), [[k, out.build(part)] for k, part in self.options]]

    @classmethod
    def loaded(cls, said: Any, file: BuildsIn) -> Build:
        number, pairs = pair_of(said)
        found = [pair_of(pair) for pair in need(pairs, list, "a choice")]
        return cls(file.build(number), tuple([(need(k, int, "a choice"), file.build(part)) for k, part in found]))

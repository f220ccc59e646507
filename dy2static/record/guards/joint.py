"""Guards of several values together, and of what no path leads to."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ...runtime import definitions
from ...runtime.array_writes import Relation, relation
from ...runtime.decimals import decimal_settings
from ...runtime.definitions import Definitions, Known
from ...runtime.raised_errors import errors_are_raised
from ...runtime.reports import reports_plainly
from ..documents import need, pair_of
from ..files import FileIn, FileOut
from ..paths import GuardWriter, InstanceDict, Source, TableWriter
from ..text import commas
from .base import Guard, GuardsOut, JointGuard
from .values import SameObject, unlike

_unchanged_in_python = definitions.unchanged

_Move = Callable[[Source], Optional[Source]]


@dataclass(frozen=True, eq=False)
class ExpressionMatch(JointGuard):
    """An expression over numbers that are inputs, and its value."""

    text: str
    expected: Any
    word = "expr"
    is_soft = True

    def describe(self) -> str:
        return f"{self.text} == {self.expected!r}"

    def fails(self, writer: GuardWriter) -> str:
        return f"not {self.text}" if self.expected is True else unlike(self.text, self.expected, writer)

    def subject(self) -> Any:
        return self.text

    def said(self, out: FileOut) -> List[Any]:
        return [self.word, None, [out.expression(self.text), out.value(self.expected)]]

    @classmethod
    def loaded(cls, path: Any, said: Any, file: FileIn) -> Guard:
        text, value = pair_of(said)
        return cls(file.expression(text), file.value(value))


@dataclass(frozen=True, eq=False)
class DistinctObjects(JointGuard):
    """Objects at different paths that all differ."""

    sources: Tuple[Source, ...]
    word = "distinct"
    before_arrays = is_soft = True

    def describe(self) -> str:
        return "objects that were different are now one"

    def fails(self, writer: GuardWriter) -> str:
        return f"not distinct({', '.join([writer.path(source) for source in self.sources])})"

    def row(self, table: TableWriter) -> bool:
        places = _places(self.sources, table)
        return places is not None and table.test("distinct", len(places), *places)

    def moved(self, move: _Move) -> Optional[Guard]:
        kept = _kept(self.sources, move)
        return DistinctObjects(kept) if len(kept) > 1 else None

    def holds(self, at: Callable[[Source], Any]) -> bool:
        return len({id(at(source)) for source in self.sources}) == len(self.sources)

    def broken(self, at: Callable[[Source], Any]) -> List[SameObject]:
        """The pairs of paths that lead to one object now."""
        first: Dict[int, Source] = {}
        return [SameObject(_owner(source), _owner(other)) for source in self.sources
                for other in [first.setdefault(id(at(source)), source)] if other is not source]

    def said(self, out: FileOut) -> Optional[List[Any]]:
        rows = [row for row in map(out.identity, map(_owner, self.sources)) if row is not None]
        return [self.word, None, rows] if len(rows) > 1 else None

    @classmethod
    def loaded(cls, path: Any, said: Any, file: FileIn) -> Guard:
        return cls(_paths(said, file))


@dataclass(frozen=True, eq=False)
class NoOverlap(JointGuard):
    """Arrays that are written, which share no memory with each other, nor with other arrays.  on_gpu: some are on a GPU."""

    written: Tuple[Source, ...]
    others: Tuple[Source, ...]
    on_gpu: bool = False
    word = "apart"

    def describe(self) -> str:
        return "an array that is written shares memory with another one, or is read-only"

    def fails(self, writer: GuardWriter) -> str:
        written, others = [f"({commas([writer.path(source) for source in sources])})" for sources in (self.written, self.others)]
        return f"overlap({written}, {others})"

    def row(self, table: TableWriter) -> bool:
        places = None if self.on_gpu else _places((*self.written, *self.others), table)
        if places is None:
            return False
        seen = table.constant(bytes(_BYTES_OF_PLACE * len(places) + 1))
        return table.test("apart", seen, len(self.written), len(places), *places)

    def moved(self, move: _Move) -> Optional[Guard]:
        written = _kept(self.written, move)
        return NoOverlap(written, _kept(self.others, move), self.on_gpu) if written else None

    def said(self, out: FileOut) -> List[Any]:
        return [self.word, None, [[out.path(source) for source in sources] for sources in (self.written, self.others)]]

    @classmethod
    def loaded(cls, path: Any, said: Any, file: FileIn) -> Guard:
        written, others = pair_of(said)
        return cls(_paths(written, file), _paths(others, file))


@dataclass(frozen=True, eq=False)
class SameMemory(JointGuard):
    """Two arrays that may share memory, and how they lie in it."""

    first: Source
    second: Source
    expected: Relation
    word = "memory"

    def describe(self) -> str:
        return "two arrays, one of which is written, lie to each other in memory in another way"

    def fails(self, writer: GuardWriter) -> str:
        first, second = writer.path(self.first), writer.path(self.second)
        return f"{writer.constant(relation, 'relation')}({first}, {second}) != {self.expected!r}"

    def moved(self, move: _Move) -> Optional[Guard]:
        kept = _kept((self.first, self.second), move)
        return SameMemory(*kept, self.expected) if len(kept) == 2 else None

    def said(self, out: FileOut) -> List[Any]:
        return [self.word, None, [[out.path(self.first), out.path(self.second)], out.value(self.expected)]]

    @classmethod
    def loaded(cls, path: Any, said: Any, file: FileIn) -> Guard:
        sources, expected = pair_of(said)
        first, second = pair_of(sources)
        return cls(file.path(first), file.path(second), file.value(expected))


@dataclass(frozen=True, eq=False)
class DefinitionsMatch(JointGuard):
    """Classes and functions of libraries that are as they were.  Of a saved model, this must hold when it is saved."""

    definitions: Definitions
    before_arrays = True

    def describe(self) -> str:
        return self.definitions.difference() or "a class or a function of a library was replaced"

    def fails(self, writer: GuardWriter) -> str:
        condition = self._may_differ(self.definitions.known, writer)
        return f"{condition} and {writer.constant(self.definitions, 'definitions')}.changed()"

    def _may_differ(self, known: Known, writer: GuardWriter) -> str:
        """The condition that is true after an assignment that may matter: a call of the native function, or Python source."""
        if definitions.unchanged is not _unchanged_in_python:
            return f"not unchanged({writer.constant(known, 'known')})"
        tags = writer.constant(known.tags, "tags")
        tests = [f"{writer.constant(view, 'version')}[0] != {tags}[{i}]" for i, view in enumerate(known.views)]
        for function, *parts in zip(known.functions, known.codes, known.defaults, known.keyword_defaults):
            name = writer.constant(function, "function")
            tests += [f"{name}.{part} is not {writer.bound(value)}" for part, value in
                      zip(("__code__", "__defaults__", "__kwdefaults__"), parts)]
        tests += [f"{writer.constant(space, 'module')}.get({key!r}) is not {writer.bound(value)}"
                  for space, key, value in zip(known.spaces, known.keys, known.values)]
        tests += [f"{writer.constant(known.token, 'token')}[0] != get_cache_token()"] if known.token else []
        return f"({' or '.join(tests)})"

    def holds(self, at: Callable[[Source], Any]) -> bool:
        return not self.definitions.changed()

    def said(self, out: GuardsOut) -> None:
        out.check(self)


@dataclass(frozen=True, eq=False)
class DecimalsMatch(JointGuard):
    """Decimals are computed with this precision, rounding and so on.  Of a saved model, this must hold when it is saved."""

    expected: Tuple[Any, ...]

    def describe(self) -> str:
        return "the context of `decimal` is as it was"

    def fails(self, writer: GuardWriter) -> str:
        return f"{writer.constant(decimal_settings, 'decimals')}() != {self.expected!r}"

    def holds(self, at: Callable[[Source], Any]) -> bool:
        return decimal_settings() == self.expected

    def said(self, out: GuardsOut) -> None:
        out.check(self)


@dataclass(frozen=True, eq=False)
class PlainReports(JointGuard):
    """A reporter of Chainer's own takes the reports of these objects, or none does.

    No saved model holds it: there, a report is a call like any other on the host.
    """

    observers: Tuple[Source, ...]

    def describe(self) -> str:
        return "the current reporter is one of the user's, or does not know an object that reports"

    def fails(self, writer: GuardWriter) -> str:
        return f"not {writer.constant(reports_plainly, 'reports')}({', '.join([writer.path(s) for s in self.observers])})"

    def moved(self, move: _Move) -> Optional[Guard]:
        return PlainReports(_kept(self.observers, move))

    def said(self, out: FileOut) -> None:
        return None


@dataclass(frozen=True, eq=False)
class ErrorsNotRaised(JointGuard):
    """NumPy's floating-point errors and warnings are no exceptions, which a ``try`` of the function might catch.

    No saved model holds it: a model has no ``try``.
    """

    def describe(self) -> str:
        return "floating-point errors or warnings are raised (`np.seterr`, `warnings.simplefilter`), inside a `try` or `with`"

    def fails(self, writer: GuardWriter) -> str:
        return f"{writer.constant(errors_are_raised, 'raised')}()"

    def said(self, out: FileOut) -> None:
        return None


#: What native code notes of where an array is.
_BYTES_OF_PLACE = 24


def _owner(source: Source) -> Source:
    """The path of an object that is known by its ``__dict__``; any other path as it is."""
    return source.parent if isinstance(source, InstanceDict) else source


def _places(sources: Sequence[Source], table: TableWriter) -> Optional[List[int]]:
    places = [table.place(source) for source in sources]
    return None if None in places else places           # type: ignore[return-value]


def _kept(sources: Sequence[Source], move: _Move) -> Tuple[Source, ...]:
    return tuple([moved for moved in map(move, sources) if moved is not None])


def _paths(said: Any, file: FileIn) -> Tuple[Source, ...]:
    return tuple([file.path(item) for item in need(said, list, "a list of paths")])

"""What a build is: how to make one object of what a call gives back or stores."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, ClassVar, Dict, Iterator, List, Mapping, Optional, Protocol, Sequence, Tuple

from ...errors import SaveError
from ...ir.graph import Value
from ..files import FileIn, FileOut
from ..paths import GuardWriter, Source
from ..variables import EscapingVariable


class Values(Protocol):
    """What is there, for making the object of a build without a run.

    at: gives what is at the end of a path.  array: what a value of the graph is.  variable: a Variable.  part: the object of a
    part, which has this key in the whole.
    """

    def at(self, source: Source, /) -> Any: ...
    def array(self, value: Value, /) -> Any: ...
    def variable(self, record: EscapingVariable, /) -> Any: ...
    def part(self, build: Build, key: Any, /) -> Any: ...


class Build:
    """How to make one object.

    word: what saved models call it.
    is_object: each evaluation of its text makes another object, so that one that is used twice needs a name.
    is_placed: `evaluate` can make it, given its parts.
    """

    word: ClassVar[str]
    is_object: ClassVar[bool] = False
    is_placed: ClassVar[bool] = False

    def describe(self) -> str:
        """The object in words."""
        return f"a {self.word}"

    def text(self, writer: EntryWriter) -> str:
        """Text that makes the object."""
        raise NotImplementedError

    def parts(self) -> Iterator["Build"]:
        """The builds that it is made of, in order."""
        return _builds_in(tuple(vars(self).values()))

    def mapped(self, change: Callable[[Any], Any]) -> "Build":
        """The same build with all builds, sources, values and Variables in it replaced."""
        return replace(self, **{name: _mapped(part, change) for name, part in vars(self).items()})  # type: ignore[type-var]

    def items(self) -> Dict[Any, "Build"]:
        """The builds of the items of a tuple, list or dict, by the keys that are known."""
        return {}

    def graph_value(self, inputs: Mapping[Source, Value]) -> Optional[Value]:
        """The value of the graph that the object is the array of, if it is."""
        return None

    def evaluate(self, values: Values) -> Any:
        """The object itself.  Raises LookupError where only a run can make it."""
        raise LookupError(self.describe())

    def said(self, out: BuildsOut) -> Any:
        """What it holds, as JSON.  Raises `SaveError` for what no file has."""
        raise SaveError(f"{self.describe()} is given back or stored, which cannot be saved",
                        hint="give back arrays, Variables, numbers, texts, and lists, tuples and dicts of them")

    @classmethod
    def loaded(cls, said: Any, file: BuildsIn) -> "Build":
        """The build that `said` wrote."""
        raise NotImplementedError


class EntryWriter(GuardWriter, Protocol):
    """The generated function that the texts of inputs, builds and writes go into.

    values: the names of values of the graph; computed: of expressions over numbers; variable_names, made: of Variables, and of
    objects that have one, by the ids of their records and builds.  expression: gives text that makes an object.
    may_be_new: the condition under which states of update rules may be new; "" if nothing tells.
    """

    values: Dict[Value, str]
    computed: Dict[str, str]
    variable_names: Dict[int, str]
    made: Dict[int, str]
    may_be_new: str

    def expression(self, build: Build, /) -> str: ...


class BuildsOut(FileOut, Protocol):
    """The file that a saved model goes into, for what results and writes are made of.

    variable, build, marker: give the numbers of Variables, builds, and objects that contain themselves; builds: of many.
    """

    def variable(self, record: EscapingVariable, /) -> int: ...
    def build(self, build: Build, /) -> int: ...
    def builds(self, builds: Sequence[Build], /) -> List[int]: ...
    def marker(self, marker: object, /) -> int: ...


class BuildsIn(FileIn, Protocol):
    """The file that a saved model is read from: the ways back of `BuildsOut`."""

    def variable(self, said: Any, /) -> EscapingVariable: ...
    def build(self, said: Any, /) -> Build: ...
    def builds(self, said: Any, /) -> Tuple[Build, ...]: ...
    def marker(self, said: Any, /) -> object: ...


class OneField(Build):
    """A build with one field.  form: the method of files that writes it, and that reads it."""

    form: ClassVar[str]

    def said(self, out: BuildsOut) -> Any:
        field, = vars(self).values()
        return getattr(out, self.form)(field)

    @classmethod
    def loaded(cls, said: Any, file: BuildsIn) -> Build:
        return cls(getattr(file, cls.form)(said))       # type: ignore[call-arg]


class Leaf(OneField):
    """A build that holds nothing to replace."""

    def parts(self) -> Iterator[Build]:
        return iter(())

    def mapped(self, change: Callable[[Any], Any]) -> Build:
        return self


def walk(build: Build) -> List[Build]:
    """The build and everything in it, parts first."""
    found: List[Build] = []

    def visit(item: Build) -> None:
        for part in item.parts():
            visit(part)
        found.append(item)
    visit(build)
    return found


def _builds_in(item: Tuple[Any, ...]) -> Iterator[Build]:
    for part in item:
        if isinstance(part, Build):
            yield part
        elif type(part) is tuple:
            yield from _builds_in(part)


def _mapped(part: Any, change: Callable[[Any], Any]) -> Any:
    if type(part) is tuple:
        return tuple([_mapped(item, change) for item in part])
    return change(part) if isinstance(part, (Build, Source, Value, EscapingVariable)) else part

"""Builds of objects that every call makes anew: containers, instances, functions with arguments."""
from __future__ import annotations

import collections
import functools
import types
from dataclasses import dataclass
from typing import Any, Callable, Dict, Tuple

from ...errors import LoadError, SaveError
from ...runtime.instances import array_of, make_instance
from ..documents import need, pair_of
from ..text import commas
from .base import Build, BuildsIn, BuildsOut, EntryWriter, Leaf, OneField, Values
from .values import Const


@dataclass(frozen=True, eq=False)
class TupleOf(Build):
    """A tuple, or a named one of this class."""

    cls: type
    elements: Tuple[Build, ...]
    word = "tuple"
    is_object = is_placed = True

    def text(self, writer: EntryWriter) -> str:
        elements = commas([writer.expression(part) for part in self.elements])
        return f"({elements})" if self.cls is tuple else f"{writer.constant(self.cls, 'type')}._make(({elements}))"

    def items(self) -> Dict[Any, Build]:
        return dict(enumerate(self.elements))

    def evaluate(self, values: Values) -> Any:
        elements = [values.part(part, k) for k, part in enumerate(self.elements)]
        return tuple(elements) if self.cls is tuple else self.cls._make(elements)       # type: ignore[attr-defined]

    def said(self, out: BuildsOut) -> Any:
        fields = None if self.cls is tuple else [self.cls.__name__, list(self.cls._fields)]     # type: ignore[attr-defined]
        return [fields, out.builds(self.elements)]

    @classmethod
    def loaded(cls, said: Any, file: BuildsIn) -> Build:
        kind, elements = pair_of(said)
        if kind is None:
            return cls(tuple, file.builds(elements))
        name, fields = pair_of(kind)
        if not all(type(word) is str for word in (name, *need(fields, list, "the fields of a tuple"))):
            raise LoadError("a named tuple has no names")
        try:
            return cls(collections.namedtuple(name, fields), file.builds(elements))
        except ValueError as error:
            raise LoadError(f"a named tuple cannot be: {error}") from None


class Fillable(Build):
    """An object that may contain itself: it is made empty first, and filled then."""

    def empty(self, writer: EntryWriter) -> str:
        """Text that makes it without contents."""
        raise NotImplementedError

    def contents(self, writer: EntryWriter) -> str:
        """Text that gives the contents."""
        raise NotImplementedError

    #: What takes the contents.
    fill: str


@dataclass(frozen=True, eq=False)
class ListOf(OneField, Fillable):
    """A list."""

    elements: Tuple[Build, ...]
    word, form = "list", "builds"
    is_object = is_placed = True
    fill = "extend"

    def text(self, writer: EntryWriter) -> str:
        return f"[{', '.join([writer.expression(part) for part in self.elements])}]"

    def empty(self, writer: EntryWriter) -> str:
        return "[]"

    contents = text

    def items(self) -> Dict[Any, Build]:
        return dict(enumerate(self.elements))

    def evaluate(self, values: Values) -> Any:
        return [values.part(part, k) for k, part in enumerate(self.elements)]


@dataclass(frozen=True, eq=False)
class DictOf(Fillable):
    """A dict."""

    pairs: Tuple[Tuple[Build, Build], ...]
    word = "dict"
    is_object = is_placed = True
    fill = "update"

    def text(self, writer: EntryWriter) -> str:
        return f"{{{', '.join([f'{writer.expression(k)}: {writer.expression(v)}' for k, v in self.pairs])}}}"

    def empty(self, writer: EntryWriter) -> str:
        return "{}"

    contents = text

    def items(self) -> Dict[Any, Build]:
        return {key.value: part for key, part in self.pairs if isinstance(key, Const)}

    def evaluate(self, values: Values) -> Any:
        keys = [values.part(key, None) for key, _ in self.pairs]
        return {key: values.part(part, key) for key, (_, part) in zip(keys, self.pairs)}

    def said(self, out: BuildsOut) -> Any:
        return [out.builds(pair) for pair in self.pairs]

    @classmethod
    def loaded(cls, said: Any, file: BuildsIn) -> Build:
        pairs = [file.builds(pair) for pair in need(said, list, "a dict")]
        if any(len(pair) != 2 for pair in pairs):
            raise LoadError("an item of a dict is no pair")
        return cls(tuple(pairs))                        # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class SetOf(OneField):
    """A set."""

    elements: Tuple[Build, ...]
    word, form = "set", "builds"
    is_object = True

    def text(self, writer: EntryWriter) -> str:
        return f"{{{', '.join([writer.expression(part) for part in self.elements])}}}" if self.elements else "set()"


@dataclass(frozen=True, eq=False)
class ObjectOf(Fillable):
    """An instance of a class of the user's with these attributes.  No saved model holds it."""

    cls: type
    attributes: Tuple[Tuple[str, Build], ...]
    word = "object"
    is_object = True
    fill = "__dict__.update"

    def describe(self) -> str:
        return f"an object of type {self.cls.__name__}"

    def text(self, writer: EntryWriter) -> str:
        return self._made(self.contents(writer), writer)

    def empty(self, writer: EntryWriter) -> str:
        return self._made("{}", writer)

    def contents(self, writer: EntryWriter) -> str:
        return f"{{{', '.join([f'{name!r}: {writer.expression(part)}' for name, part in self.attributes])}}}"

    def _made(self, attributes: str, writer: EntryWriter) -> str:
        return f"{writer.constant(make_instance, 'make')}({writer.constant(self.cls, 'type')}, {attributes})"


@dataclass(frozen=True, eq=False)
class Method(Build):
    """A bound method.  No saved model holds it."""

    function: Build
    owner: Build
    word = "method"
    is_object = True

    def text(self, writer: EntryWriter) -> str:
        return f"{writer.constant(types.MethodType, 'type')}({writer.expression(self.function)}, {writer.expression(self.owner)})"


@dataclass(frozen=True, eq=False)
class Partial(Build):
    """A `functools.partial`.  No saved model holds it."""

    function: Build
    arguments: Tuple[Build, ...]
    keywords: Tuple[Tuple[str, Build], ...]
    word = "partial"
    is_object = True

    def text(self, writer: EntryWriter) -> str:
        items = [writer.expression(part) for part in (self.function, *self.arguments)]
        items += [f"{name}={writer.expression(part)}" for name, part in self.keywords]
        return f"{writer.constant(functools.partial, 'type')}({', '.join(items)})"


#: The functions that builds of saved models may call, by the names that files have for them.
MAKERS: Dict[str, Callable[..., Any]] = {"array of": array_of, "OrderedDict": collections.OrderedDict,
                                         "Counter": collections.Counter}


@dataclass(frozen=True, eq=False)
class Call(Build):
    """What a function makes of arguments."""

    function: Callable[..., Any]
    arguments: Tuple[Build, ...]
    word = "call"
    is_object = True

    def text(self, writer: EntryWriter) -> str:
        return f"{writer.constant(self.function, 'make')}({', '.join([writer.expression(part) for part in self.arguments])})"

    def said(self, out: BuildsOut) -> Any:
        function = self.function
        if isinstance(function, functools.partial) and function.func is collections.deque and not function.args:
            return ["deque", function.keywords.get("maxlen"), out.builds(self.arguments)]
        name = next((name for name, known in MAKERS.items() if known is function), None)
        if name is None:
            raise SaveError("an object of a class of its own is given back or stored, which cannot be saved")
        return [name, None, out.builds(self.arguments)]

    @classmethod
    def loaded(cls, said: Any, file: BuildsIn) -> Build:
        if type(said) is not list or len(said) != 3:
            raise LoadError(f"{str(said)[:80]} makes nothing")
        name, maxlen, arguments = said
        if name == "deque":
            length = maxlen if maxlen is None else need(maxlen, int, "a length")
            return cls(functools.partial(collections.deque, maxlen=length), file.builds(arguments))
        if type(name) is not str or name not in MAKERS:
            raise LoadError(f"there is no way to make {str(name)[:60]!r}")
        return cls(MAKERS[name], file.builds(arguments))


@dataclass(frozen=True, eq=False)
class Cycle(Build):
    """An object that contains itself.  marker: stands for it in an `Again`."""

    marker: object
    whole: Fillable
    word = "cycle"

    def text(self, writer: EntryWriter) -> str:
        name = writer.made[id(self)] = writer.made[id(self.marker)] = f"made{len(writer.made)}"
        writer.lines.append(f"{name} = {self.whole.empty(writer)}")
        contents = self.whole.contents(writer)
        writer.lines.append(f"{name}.{self.whole.fill}({contents})")
        return name

    def said(self, out: BuildsOut) -> Any:
        return [out.marker(self.marker), out.build(self.whole)]

    @classmethod
    def loaded(cls, said: Any, file: BuildsIn) -> Build:
        marker, part = pair_of(said)
        whole = file.build(part)
        if not isinstance(whole, Fillable):
            raise LoadError(f"{whole.describe()} does not contain itself")
        return cls(file.marker(marker), whole)


@dataclass(frozen=True, eq=False)
class Again(Leaf):
    """The object of the `Cycle` with this marker, in which it is."""

    marker: object
    word, form = "again", "marker"

    def text(self, writer: EntryWriter) -> str:
        return writer.made[id(self.marker)]

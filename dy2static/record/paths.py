"""Paths: how every later call finds a value again that a capture has read.  One class for each step."""
from __future__ import annotations

import gc
import re
import threading
from types import CellType, MappingProxyType
from typing import Any, Callable, ClassVar, Dict, FrozenSet, Iterable, Iterator, Mapping, Optional, Tuple, Type

from chainer import Parameter, Variable

from ..runtime.bare_items import bare_items
from ..runtime.guard_tests import has_plain_dict
from ..runtime.rule_states import state_of
from ..runtime.slots import ClassView, SlotsView
from .protocols import GuardWriter, TableWriter

_NAME = re.compile(r"\b(n\d+)\b")                      # of a number, in an expression


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


def with_siblings(path: Tuple) -> Tuple:
    """What is the same for the paths of all items of one list or tuple; the path itself where it is to something else."""
    return (path[0], None, *path[2:]) if len(path) > 2 and type(path[1]) is int else path


def contents_path(path: Tuple) -> Tuple:
    """What stands among paths for all that a list at the end of a path holds, however much that is."""
    return ("contents", None, *path)


def expression_path(text: str, named: Iterable[Tuple[str, Source]]) -> Tuple:
    """What stands among paths for an expression over numbers, in every capture of a function; the path of a number itself.

    named: the numbers that the expression names, and others, with their sources.  Of paths to items, those of all siblings.
    """
    return _of_expression(text, named, with_siblings)


def place_of_expression(text: str, named: Iterable[Tuple[str, Source]]) -> Tuple:
    """The same with the paths of the numbers themselves."""
    return _of_expression(text, named, lambda path: path)


def _of_expression(text: str, named: Iterable[Tuple[str, Source]], form: Callable[[Tuple], Tuple]) -> Tuple:
    split = _NAME.split(text)
    names = set(split[1::2])
    paths = {name: form(source.path()) for name, source in named if name in names}
    parts = tuple([paths.get(part, part) for part in split])
    return parts[1] if len(parts) == 3 and parts[::2] == ("", "") and type(parts[1]) is tuple else ("expression", *parts)


def paths_of(path: Tuple) -> FrozenSet[Tuple]:
    """The paths of the numbers of an expression; the path itself where it is that of a number."""
    return frozenset([part for part in path if type(part) is tuple]) if path[0] == "expression" else frozenset((path,))


def family(path: Tuple) -> Tuple:
    """What is the same for the paths of all values at this place in the items of lists and tuples: ``batch[...].reward``."""
    if path[0] == "expression":
        return tuple([family(part) if type(part) is tuple else part for part in path])
    if int not in map(type, path[1::2]):
        return path                                     # through no item of a sequence
    steps = zip(path[::2], path[1::2])
    return tuple([part for word, key in steps for part in (word, ... if word == Item.word and type(key) is int else key)])


def joined(first: Tuple, second: Tuple) -> Tuple:
    """A path with ``...`` where two of one family differ."""
    return tuple([a if a == b else joined(a, b) if type(a) is tuple else ... for a, b in zip(first, second)])


def stands_for(pattern: Tuple, path: Tuple) -> bool:
    """Whether a path with ``...`` in it stands for another one."""
    return len(pattern) == len(path) and all(
        a is ... or a == b or type(a) is type(b) is tuple and stands_for(a, b) for a, b in zip(pattern, path))


# Where paths begin -------------------------------------------------------------------------------------------------


class Argument(Source):
    """A positional argument.  key: its number."""

    __slots__ = ()
    word, saved = "arg", "argument"

    def describe(self) -> str:
        return f"argument {self.key}"

    def text(self, writer: GuardWriter) -> str:
        return f"args[{self.key}]"

    def row(self, table: TableWriter) -> int:
        return table.give("argument", self.key)

    @property
    def label(self) -> Optional[str]:
        return f"x{self.key}"


class Keyword(Source):
    """An argument that is given by name.  key: the name."""

    __slots__ = ()
    word, saved = "kwarg", "keyword"

    def describe(self) -> str:
        return f"argument {self.key}"

    def text(self, writer: GuardWriter) -> str:
        return f"kwargs[{self.key!r}]"

    def row(self, table: TableWriter) -> int:
        return table.give("keyword", table.constant(self.key))

    @property
    def label(self) -> Optional[str]:
        return str(self.key)


class Constant(Source):
    """An object that the program holds itself.  key: the object.  A saved model has a path to what it holds in its place."""

    __slots__ = ()
    word = "const"

    def describe(self) -> str:
        return getattr(self.key, "__name__", type(self.key).__name__)

    def text(self, writer: GuardWriter) -> str:
        return writer.constant(self.key, "real")

    def row(self, table: TableWriter) -> int:
        return table.give("constant", table.constant(self.key))

    def path(self) -> Tuple:
        return self.word, id(self.key)


def of_argument(path: Tuple, numbers: Mapping[int, int]) -> Optional[Tuple]:
    """A path, or what stands for an expression, that begins with another argument; None if there is none.

    numbers: of that argument, by that of the one with which it begins.
    """
    if path[0] == "expression":
        parts = tuple([of_argument(part, numbers) if type(part) is tuple else part for part in path])
        return None if None in parts else parts
    return (*path[:-1], numbers[path[-1]]) if path[-2] == Argument.word and path[-1] in numbers else None


# How they go on ----------------------------------------------------------------------------------------------------


class Namespace(Source):
    """The attributes of an object, as a mapping."""

    __slots__ = ()


class InstanceDict(Namespace):
    """The ``__dict__`` of an object."""

    __slots__ = ()
    word = saved = "dict"
    words, code = "vars({})", "{}.__dict__"

    def row_behind(self, place: int, table: TableWriter) -> Optional[int]:
        cls = table.type_of(self.parent)
        return table.give("vars", place) if cls is not None and has_plain_dict(cls) else None

    def read(self, parent: Any) -> Any:
        return parent.__dict__


class Slots(Namespace):
    """The slots of an object, and its ``__dict__`` if it has one.  A saved model has a ``__dict__`` in their place."""

    __slots__ = ()
    word, saved, words = "slots", "dict", "slots of {}"

    def text(self, writer: GuardWriter) -> str:
        parent = writer.path(self.parent)
        return f"{writer.constant(SlotsView, 'slots')}({parent})"

    def read(self, parent: Any) -> Any:
        return SlotsView(parent)


class ClassNamespace(Namespace):
    """The attributes of a class itself, which can be assigned."""

    __slots__ = ()
    word, words = "class", "{}"

    def text(self, writer: GuardWriter) -> str:
        parent = writer.path(self.parent)
        return f"{writer.constant(ClassView, 'class_view')}({parent})"

    def read(self, parent: Any) -> Any:
        return ClassView(parent)


class BareItems(Source):
    """The items of a dict or list whose class has its own ways to them."""

    __slots__ = ()
    word, words = "bare", "{}"

    def text(self, writer: GuardWriter) -> str:
        parent = writer.path(self.parent)
        return f"{writer.constant(bare_items, 'bare_items')}({parent})"

    def read(self, parent: Any) -> Any:
        return bare_items(parent)


class Item(Source):
    """``parent[key]``."""

    __slots__ = ()
    word = saved = "item"

    def describe(self) -> str:
        if isinstance(self.parent, Namespace):
            return f"{self.parent.parent.describe()}.{self.key}"
        if isinstance(self.parent, Constant) and type(self.parent.key) is dict and "__builtins__" in self.parent.key:
            return f"global {self.key}"
        return f"{self.parent.describe()}[{self.key!r}]"

    def text(self, writer: GuardWriter) -> str:
        parent = writer.path(self.parent)
        return f"{parent}[{writer.constant(self.key)}]"

    def row_behind(self, place: int, table: TableWriter) -> Optional[int]:
        cls, key = table.type_of(self.parent), self.key
        if cls is dict and type(key) is str:
            return table.give("item", place, table.constant(key))
        return table.give("element", place, key) if cls in (list, tuple) and type(key) is int and 0 <= key < 1 << 31 else None

    def read(self, parent: Any) -> Any:
        return parent[self.key]

    @property
    def label(self) -> Optional[str]:
        return str(self.key)


#: How native code reads attributes of Variables: definitions are guarded on their own.
_OF_VARIABLES = {"creator_node": "creator", "device": "device", "array": "data", "update_rule": "attribute"}
_OF_OTHERS: Dict[Any, str] = {threading.local: "thread_attribute"}


def _has_plain_attribute(cls: Optional[type], name: str) -> bool:
    """Whether instances of a class are classes, whose attribute of this name nothing but their bases decides."""
    return cls is not None and issubclass(cls, type) and cls.__getattribute__ is type.__getattribute__ and not hasattr(cls, name)


class Attribute(Source):
    """``getattr(parent, key)``."""

    __slots__ = ()
    word = saved = "attr"

    def describe(self) -> str:
        return f"{self.parent.describe()}.{self.key}"

    def text(self, writer: GuardWriter) -> str:
        return f"{writer.path(self.parent)}.{self.key}"

    def row_behind(self, place: int, table: TableWriter) -> Optional[int]:
        cls = table.type_of(self.parent)
        if cls in (Variable, Parameter):
            row = _OF_VARIABLES.get(self.key)
        else:
            row = "class_attribute" if _has_plain_attribute(cls, self.key) else _OF_OTHERS.get(cls)
        if row is None:
            return None
        return table.give(row, place, *([table.constant(self.key)] if row.endswith("attribute") else []))

    def read(self, parent: Any) -> Any:
        return getattr(parent, self.key)

    @property
    def label(self) -> Optional[str]:
        return str(self.key)


def shown_by(proxy: MappingProxyType) -> Any:
    """The mapping that a read-only view of it shows."""
    return gc.get_referents(proxy)[0]


class Shown(Source):
    """The mapping that a `types.MappingProxyType` shows."""

    __slots__ = ()
    word, words = "shown", "{}"

    def text(self, writer: GuardWriter) -> str:
        parent = writer.path(self.parent)
        return f"{writer.constant(shown_by, 'shown_by')}({parent})"

    def read(self, parent: Any) -> Any:
        return shown_by(parent)


class CellContents(Source):
    """What a closure cell holds."""

    __slots__ = ()
    word = saved = "cell"
    words, code = "{}", "{}.cell_contents"

    def row_behind(self, place: int, table: TableWriter) -> Optional[int]:
        return table.give("cell", place) if table.type_of(self.parent) is CellType else None

    def read(self, parent: Any) -> Any:
        return parent.cell_contents


class RuleState(Source):
    """The state of the update rule of a Parameter: that which it has, or a new one, of which a write may make it the state.

    key: the path to the attributes of the rule.
    """

    __slots__ = ()
    word, words = "state", "{}.update_rule.state"

    def text(self, writer: GuardWriter) -> str:
        parent = writer.path(self.parent)
        return f"{writer.constant(state_of, 'state_of')}({parent})"

    def row(self, table: TableWriter) -> Optional[int]:
        is_of_parent = self.key.parent.parent is self.parent        # not after only the parent has been replaced by another path
        place = table.place(self.key) if is_of_parent else None
        return None if place is None else table.give("state", place)

    def read(self, parent: Any) -> Any:
        return state_of(parent)

    def path(self) -> Tuple:
        return self.word, None, *self.parent.path()

    @property
    def label(self) -> str:
        return "state"


class Length(Source):
    """``len(parent)``."""

    __slots__ = ()
    word = saved = "len"
    words, code = "len({})", "len({})"

    def read(self, parent: Any) -> Any:
        return len(parent)


class Referent(Source):
    """What a weak reference refers to."""

    __slots__ = ()
    word = "referent"
    words, code = "{}()", "{}()"

    def read(self, parent: Any) -> Any:
        return parent()


class Implementation(Source):
    """What a generic function calls for a type.  parent: its function ``dispatch``.  key: the type."""

    __slots__ = ()
    word = "implementation"

    def describe(self) -> str:
        return f"the implementation for {self.key.__name__}"

    def text(self, writer: GuardWriter) -> str:
        return f"{writer.path(self.parent)}({writer.constant(self.key, 'kind')})"

    def read(self, parent: Any) -> Any:
        return parent(self.key)


#: The steps that files may have, behind the first, by what they call them.
SAVED_STEPS: Dict[str, Type[Source]] = {step.saved: step for step in (InstanceDict, Item, CellContents, Attribute, Length)}


class Sources:
    """Interns the steps of one capture."""

    def __init__(self) -> None:
        self._known: Dict[Tuple, Source] = {}

    def get(self, step: Type[Source], parent: Optional[Source], key: Any = None) -> Source:
        """The step of this class."""
        ident = (step, parent, id(key) if step is Constant else (type(key), key))
        found = self._known.get(ident)
        if found is None:
            found = self._known[ident] = step(parent, key, len(self._known))
        return found


def follow(source: Source, start: Callable[[Source], Any]) -> Any:
    """What is at the end of a path now.  Raises what Python raises where there is nothing.

    start: gives the argument that a path begins with.
    """
    if source.parent is None:
        return source.key if isinstance(source, Constant) else start(source)
    return source.read(follow(source.parent, start))

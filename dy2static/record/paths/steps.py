"""The steps of paths: one class for each."""
from __future__ import annotations

import gc
import threading
from types import CellType, MappingProxyType
from typing import Any, Dict, Optional, Tuple, Type

from chainer import Parameter, Variable

from ...runtime.bare_items import bare_items
from ...runtime.guard_tests import has_plain_dict
from ...runtime.list_arrays import array_of_list, array_of_size
from ...runtime.rule_states import state_of
from ...runtime.slots import ClassView, SlotsView
from .base import GuardWriter, Namespace, Source, TableWriter

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


# How they go on ----------------------------------------------------------------------------------------------------


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


class ArrayOfList(Source):
    """The array that NumPy makes of a list of numbers; None for what holds others.  key: text for its dtype, or None."""

    __slots__ = ()
    word = saved = "array"
    words = "array({})"

    def text(self, writer: GuardWriter) -> str:
        parent = writer.path(self.parent)
        return f"{writer.constant(array_of_list, 'array_of_list')}({parent}, {self.key!r})"

    def read(self, parent: Any) -> Any:
        return array_of_list(parent, self.key)


class ArrayOfSize(Source):
    """An array of as many elements as a number says, so that its size is that number; an error where the number is no size."""

    __slots__ = ()
    word = saved = "elements"
    words = "{}"

    def text(self, writer: GuardWriter) -> str:
        parent = writer.path(self.parent)
        return f"{writer.constant(array_of_size, 'array_of_size')}({parent})"

    def read(self, parent: Any) -> Any:
        return array_of_size(parent)


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
SAVED_STEPS: Dict[str, Type[Source]] = {
    step.saved: step for step in (InstanceDict, Item, CellContents, Attribute, Length, ArrayOfList, ArrayOfSize)}

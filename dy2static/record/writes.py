"""Writes: changes of objects that existed before the call, one class for each kind."""
from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, Callable, ClassVar, Dict, Hashable, Iterable, Iterator, Optional, Tuple, Type

from ..errors import LoadError
from ..runtime import stores
from ..runtime.node import store_gradient
from .builds import Build, BuildsIn, BuildsOut, EntryWriter
from .documents import entry
from .paths import CellContents, Item, Source


@dataclass(frozen=True, eq=False)
class Write:
    """One change of an object that existed before the call.

    key: where in the container, or None.  built: what is written, or None.
    word: what saved models, and the stores in the middle of a graph, call it.
    statement: what its text is.  together: of several in a row, which takes their keys and pairs of container and what is written;
    "" where each has a statement of its own.  perform: does it: a function of the container, the key and what is written.
    reads: the step of a path that leads to what it replaces; None if no one step does.
    is_whole: the container holds nothing behind it of what it held.  is_growing: all of what it held, and more.
    """

    container: Source
    key: Any
    built: Optional[Build]

    word: ClassVar[str]
    statement: ClassVar[str]
    together: ClassVar[str] = ""
    perform: ClassVar[Callable[..., None]]
    reads: ClassVar[Optional[Type[Source]]] = None
    is_whole: ClassVar[bool] = False
    is_growing: ClassVar[bool] = False

    def describe(self) -> str:
        """The write in words."""
        at = "" if self.key is None else f" at {self.key!r}"
        return f"{self.word}: {self.container.describe()}{at}"

    def text(self, writer: EntryWriter) -> str:
        """The statement that does it."""
        container, key = writer.path(self.container), writer.constant(self.key)
        value = None if self.built is None else writer.expression(self.built)
        return self.statement.format(container=container, key=key, value=value)

    @classmethod
    def place(cls, key: Any) -> Optional[Hashable]:
        """Where in its container it writes; None where that is no one place."""
        return None if cls.is_whole or cls.is_growing else (key,)

    def mapped(self, source: Callable[[Source], Source], build: Callable[[Build], Build]) -> "Write":
        """The same write with its path and its build replaced."""
        return replace(self, container=source(self.container), built=None if self.built is None else build(self.built))

    def said(self, out: BuildsOut) -> Dict[str, Any]:
        """The write as JSON."""
        return {"kind": self.word, "to": out.path(self.container), "key": out.value(self.key),
                "build": None if self.built is None else out.build(self.built)}

    @classmethod
    def loaded(cls, said: Dict[str, Any], file: BuildsIn) -> "Write":
        """The write that `said` wrote."""
        built = said.get("build")
        return cls(file.path(said.get("to")), file.value(said.get("key")), None if built is None else file.build(built))


class SetItem(Write):
    """``container[key] = value`` of a dict, or of attributes."""

    word, perform, reads = "set", staticmethod(stores.store_item), Item
    statement = "{container}[{key}] = {value}"


class StoreState(SetItem):
    """``rule._state = state`` of an update rule, which a `RuleState` leads to: it may have this state already."""

    word = "state"
    together = "if {may_be_new}: store_items({keys}, {pairs})"


class DeleteItem(Write):
    """``del container[key]`` of a dict, or of attributes."""

    word, perform = "delete", staticmethod(stores.delete_item)
    # a way through a decision may have deleted it already: see `stores.delete_item`
    statement = "if {key} in {container}: del {container}[{key}]"


class SetListItem(Write):
    """``container[key] = value`` of a list."""

    word, perform, reads = "list set", staticmethod(stores.store_item), Item
    statement = SetItem.statement


class ExtendList(Write):
    """Items that are appended to a list."""

    word, perform, is_growing = "list extend", staticmethod(stores.extend), True
    statement = "{container}.extend({value})"


class AssignList(Write):
    """All items of a list."""

    word, perform, is_whole = "list assign", staticmethod(stores.assign), True
    statement = "{container}[:] = {value}"


class ExtendDeque(Write):
    """Items that are appended to a deque."""

    word, perform, is_growing = "deque extend", staticmethod(stores.extend), True
    statement = ExtendList.statement


class AssignDeque(Write):
    """All items of a deque."""

    word, perform, is_whole = "deque assign", staticmethod(stores.assign_deque), True
    statement = "{container}.clear(); {container}.extend({value})"


class AssignSet(Write):
    """All items of a set."""

    word, perform, is_whole = "set assign", staticmethod(stores.assign_set), True
    statement = "{container}.clear(); {container}.update({value})"


class SetCell(Write):
    """What a closure cell holds."""

    word, perform, is_whole, reads = "cell set", staticmethod(stores.store_cell), True, CellContents
    statement = "{container}.cell_contents = {value}"


class DeleteCell(Write):
    """A closure cell that holds nothing any more."""

    word, perform, is_whole = "cell delete", staticmethod(stores.delete_cell), True
    statement = "del {container}.cell_contents"


class WriteArray(Write):
    """All elements of an array."""

    word, perform = "array", staticmethod(stores.write_array)
    statement, together = "{container}[...] = {value}", "write_arrays({pairs})"


class RebindArray(Write):
    """``variable.array = value``: another array for a Variable."""

    word, perform = "array set", staticmethod(stores.rebind)
    statement = "{container}.array = {value}"

    @classmethod
    def place(cls, key: Any) -> Hashable:
        return "array",


class StoreGradient(Write):
    """The gradient of a Variable.  key: whether it was cleared, and whether something was differentiated."""

    word, perform = "gradient", staticmethod(store_gradient)
    statement, together = "store_gradient({container}, {key}, {value})", "store_gradients({keys}, {pairs})"

    @classmethod
    def place(cls, key: Any) -> Hashable:
        return "gradient",


#: All kinds, by their words.
WRITES: Dict[str, Type[Write]] = {kind.word: kind for kind in (
    SetItem, DeleteItem, SetListItem, ExtendList, AssignList, ExtendDeque, AssignDeque, AssignSet, SetCell, DeleteCell, WriteArray,
    RebindArray, StoreGradient, StoreState)}

#: What a container gives of what was done to it: the kind, the key, and what is written.
Change = Tuple[Type[Write], Any, Any]


def texts_of(writes: Iterable[Write], writer: EntryWriter) -> Iterator[str]:
    """The statements of writes in their order."""
    for kind, alike in itertools.groupby(writes, type):
        if not kind.together:
            yield from (write.text(writer) for write in alike)
            continue
        row = list(alike)
        pairs = ", ".join([text for write in row for text in (writer.path(write.container), writer.expression(write.built))])
        keys = writer.constant(tuple([write.key for write in row]), "keys")
        yield kind.together.format(keys=keys, pairs=pairs, may_be_new=writer.may_be_new or f"not same_items({keys}, {pairs})")


def write_of(said: Any, file: BuildsIn) -> Write:
    """The write that a file holds.  Raises `LoadError`."""
    word = entry(said, "kind", str, "a write")
    if word not in WRITES:
        raise LoadError(f"there are no writes {word[:60]!r}")
    return WRITES[word].loaded(said, file)

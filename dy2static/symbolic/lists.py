"""Lists that converted code makes, whose length may come to depend on array values.

Then the list object stays what it is, and holds one `Items`: what the graph knows of its contents.
"""
from __future__ import annotations

from typing import Any, Iterable, Optional

from ..capture_context import CaptureContext
from ..heap.list_shadows import ShadowList, load_other
from ..heap.right_operands import added, adds_itself
from ..ir.op import OPS
from ..ir.types import Type
from .kinds import describe, number_kind
from .list_holding import Holding
from .list_items import ITEMS, Items, number_value
from .list_lengths import Length, together
from .list_methods import refuse_methods
from .uneven import Uneven, may_follow
from .values import SymbolicArray, SymbolicVariable


class Contents:
    """All that a list holds, as one thing that decisions join and loops carry."""

    def __init__(self, items: Iterable[Any]):
        self.items = list(items)

    @property
    def symbolic(self) -> Optional[Items]:
        """The `Items`, if the length is not known."""
        return self.items[0] if len(self.items) == 1 and type(self.items[0]) in ITEMS else None

    def same(self, other: Any) -> bool:
        """Whether both hold the same objects in the same order."""
        return type(other) is Contents and len(self.items) == len(other.items) and \
            all(a is b for a, b in zip(self.items, other.items))

    def as_items(self, capture: CaptureContext, like: Items) -> Items:
        """The contents as a value of the graph; its nodes go to the current builder."""
        found = self.symbolic
        if found is None:
            parts = [describe_item(capture, item) for item in self.items]
            value, = capture.builder.add(OPS["list_new"], tuple([p.value for p in parts]), {"elem": like.elem}, name="items") \
                if all(p.kind == like.kind and p.elem == like.elem for p in parts) else (None,)
            if value is None:
                other = next(p for p in parts if p.kind != like.kind or p.elem != like.elem)
                refuse_mixed(capture, like, other)
            found = like.replaced(value, requires_grad=False, connected=False, uncertain=False, origins={}, is_new=True,
                                  has_leaves=False)
            for i, part in enumerate(parts):
                found = part.joined(part, value) if i == 0 else found.joined(part, value)
            if not parts:                               # what an empty list holds does not differ from anything
                found = like.replaced(value)
            found.counted(Length(0), len(parts))
        if found.kind != like.kind or found.elem != like.elem:
            refuse_mixed(capture, like, found)
        return found


class Single(Items):
    """One object in the form of a list item; ``value`` is the value of the item."""

    @property
    def elem(self) -> Type:
        """The type of the item."""
        return self.value.type


def describe_item(capture: CaptureContext, item: Any) -> Single:
    """One object as an item of a list."""
    kind = number_kind(item)
    if kind is not None:
        return Single(capture, number_value(capture, item), kind)
    if type(item) is SymbolicArray:
        return Single(capture, item.value, "array")
    if not isinstance(item, SymbolicVariable):
        capture.abort(f"a list grows or shrinks under a decision on array values, and holds {describe(item)}")
    choices, depth = capture.staging.choices, capture.staging.depth
    is_new = not choices.of(item, depth).is_open and "source" not in item.__dict__
    return Single(capture, item._data[0].value, "variable", item.requires_grad, item.connected,
                  bool(item.__dict__.get("uncertain")), choices.origins((item,), depth), is_new,
                  item.requires_grad and not item.connected)


def refuse_mixed(capture: CaptureContext, items: Items, other: Items) -> None:
    """Stop: a list of the graph holds items of one type."""
    capture.abort(f"a list whose length depends on array values holds {items.kind} {items.elem} and {other.kind} {other.elem}",
                  because=items)


class StagedList(Holding):
    """A list made by converted code: a list, until a decision on array values makes its length unknown."""

    def __init__(self, capture: CaptureContext, items: Iterable[Any]):
        super().__init__(items)
        self.capture = capture

    @property
    def symbolic(self) -> Optional[Items]:
        """The contents, where the length is not known."""
        self.settle()
        slots = self.slots
        if slots is not None:
            self.hold(slots.owner.whole(slots))
        first = list.__getitem__(self, 0) if list.__len__(self) == 1 else None
        if type(first) is Uneven:
            refuse_mixed(self.capture, first.items, describe_item(self.capture, first.rest[0]))
        return first if type(first) in ITEMS else None

    @property
    def is_plain(self) -> bool:
        """Whether this is a list like others, of a known length."""
        return self.uneven is None and self.symbolic is None

    def __len__(self) -> int:
        assigned = self.assigned
        if assigned is None and self.symbolic is not None:
            self._refuse("used by a library")
        return list.__len__(self) if assigned is None else len(assigned.base)

    def __setitem__(self, index: Any, item: Any) -> None:
        slots = self.slots
        if slots is not None and type(index) is not slice:
            slots.owner.put(slots, index, item)
            return
        if self.capture.assigned_items.put(self, index, item):
            return
        if self.symbolic is not None:
            self._refuse("assigned to")
        load_other(self, item)
        list.__setitem__(self, index, item)

    def append(self, item: Any) -> None:
        uneven = self.uneven
        items = self.symbolic if uneven is None else uneven.items
        if items is None:
            list.append(self, item)
            return
        part = describe_item(self.capture, item)
        if (uneven is not None or part.elem != items.elem) and may_follow(items, part):
            self.hold(Uneven(items, (item,)) if uneven is None else uneven.followed_by(item))
            return
        if uneven is not None or part.kind != items.kind or part.elem != items.elem:
            refuse_mixed(self.capture, items, part)
        value, = self.capture.builder.add(OPS["list_append"], (items.value, part.value), {}, name="items")
        length, more = items.count
        self.hold(items.joined(part, value).counted(length, more + 1))

    def extend(self, other: Iterable[Any]) -> None:
        theirs = symbolic_items(other)
        if self.symbolic is None and theirs is None:
            list.extend(self, other)
        elif self.symbolic is not None and theirs is None and type(other) in (list, tuple, StagedList):
            for item in list(other):
                self.append(item)
        elif theirs is not None:
            own = Contents(list.copy(self)).as_items(self.capture, theirs)
            value, = self.capture.builder.add(OPS["list_extend"], (own.value, theirs.value), {}, name="items")
            self.hold(own.joined(theirs, value).counted(*together(own, theirs)))
        else:
            self._refuse("extended")

    def insert(self, place: Any, item: Any) -> None:
        if self.symbolic is None:
            list.insert(self, place, item)
        elif type(place) is int and place == 0:
            self.hold((StagedList(self.capture, [item]) + self).symbolic)       # type: ignore[arg-type]
        else:
            self._refuse("inserted into")

    def reverse(self) -> None:
        items = self.symbolic
        list.reverse(self) if items is None else self.hold(items.part(slice(None, None, -1)))

    def copy(self) -> "StagedList":
        items = self.symbolic
        return StagedList(self.capture, list.copy(self) if items is None else [items.part(slice(None))])

    def __iadd__(self, other: Iterable[Any]) -> "StagedList":
        if adds_itself(other):
            return NotImplemented
        self.extend(other)
        return self

    def __add__(self, other: Any) -> "StagedList":
        return self._followed_by(other) if isinstance(other, list) else added(self, other)

    def __radd__(self, other: Any) -> "StagedList":
        return StagedList(self.capture, other)._followed_by(self) if isinstance(other, list) else NotImplemented

    def _followed_by(self, other: list) -> "StagedList":
        """A new list of the items of both."""
        load_other(self, other)
        made = self.copy()
        made.extend(other if symbolic_items(other) is not None else list(other))
        return made

    def pop(self, *index: Any) -> Any:
        items = self.symbolic
        if items is None:
            return list.pop(self, *index)
        if index and index != (-1,):
            self._refuse("popped from anywhere but the end")
        self.capture.effects.store_writes()
        value, = self.capture.builder.add(OPS["list_pop"], (items.value,), {}, name="items")
        length, more = items.count
        self.hold(items.replaced(value).counted(length, more - 1))
        return items.item(-1)

    def clear(self) -> None:
        list.clear(self)

    def __getitem__(self, index: Any) -> Any:
        slots = self.slots
        if slots is not None and type(index) is not slice:
            return slots.owner.get(slots, index)
        found = NotImplemented if self.uneven is None else self.uneven.item(index)
        if found is not NotImplemented:
            return found
        items = self.symbolic
        if items is not None:
            return StagedList(self.capture, [items.part(index)]) if type(index) is slice else items.item(index)
        found = NotImplemented if type(index) in (int, slice) else self.capture.assigned_items.get(self, index)
        return list.__getitem__(self, index) if found is NotImplemented else found

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.symbolic is not None:
            self._refuse("copied")
        return list, (list.copy(self),)

    __hash__ = None

    def _refuse(self, what: str) -> Any:
        return self.capture.abort(f"a list whose length depends on array values is {what}", because=self.symbolic)


refuse_methods(StagedList)


def as_staged(value: Any) -> Any:
    """A list of the graph in place of one of the user's whose length is not known; anything else as it is."""
    numbers = value.numbers() if issubclass(type(value), ShadowList) else None      # `isinstance` would ask values what they are
    return value if numbers is None else numbers


def symbolic_items(value: Any) -> Optional[Items]:
    """The contents of a list of unknown length; None for anything else."""
    value = as_staged(value)
    return value.symbolic if type(value) is StagedList else None


def uneven_items(value: Any) -> Optional[Uneven]:
    """The contents of a list whose last items have other shapes; None for anything else."""
    return value.uneven if type(value) is StagedList else None


# Joins and loops --------------------------------------------------------------------------------------------------

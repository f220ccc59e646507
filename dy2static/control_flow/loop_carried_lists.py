"""Lists that a loop carries, and how many items they are known to have in common."""
from __future__ import annotations

from typing import Any, Dict, Iterable, List, Tuple

from ..capture_context import CaptureContext
from ..ir.graph import Value
from ..ir.types import List as ListType
from ..symbolic.list_items import Items
from ..symbolic.list_kinds import is_list, kind_of
from ..symbolic.list_lengths import Length
from ..symbolic.lists import Contents, StagedList, describe_item, symbolic_items


class ListSlot:
    """A list that a loop carries.  like: what its items are."""

    def __init__(self, capture: CaptureContext, initial: Contents, name: str, flags: Tuple[bool, bool, Dict], after: Any):
        self.capture, self.initial, self.before, self.name = capture, initial, initial, name
        self.requires_grad, self.connected = flags[:2]
        self.like = kind_of(capture, (initial, after))
        self.lengths = Length(), Length()           # at the start of an iteration, after the loop
        self.inside = [Value(ListType(self.like.elem), capture.builder.fresh("items"))]

    def wrap(self, values: Any, *after: Any) -> Contents:
        """The list at the start of an iteration or, with what the body leaves there, after all."""
        parts = [found for found in (self.before.symbolic, *(x.symbolic for x in after)) if found is not None]
        plain = [describe_item(self.capture, x) for x in self.before.items if type(x) is not Items]
        made = self.like.replaced(next(values), requires_grad=self.requires_grad, connected=self.connected)
        for part in (*parts, *plain):
            made = made.joined(part, made.value)
        return Contents([made.counted(self.lengths[bool(after)], 0)])

    @property
    def begins(self) -> Any:
        """How many items there are before the loop: a number, or the `count` of `Items`."""
        found = self.before.symbolic
        return len(self.before.items) if found is None else found.count

    @property
    def begin_size(self) -> Any:
        """How many items there are before the loop, as a size; None where that is not known."""
        found = self.before.symbolic
        return len(self.before.items) if found is None else found.size

    def values_of(self, item: Any) -> List[Value]:
        """The value of the graph for what is in the list."""
        if type(item) is not Contents:
            self.capture.abort(f"{self.name} is a list before a loop on array values and becomes something else in it")
        return [item.as_items(self.capture, self.like).value]


class GrownSlot(ListSlot):
    """A name, or another place, of a list that a loop replaces with one of another length."""

    def __init__(self, capture: CaptureContext, initial: list, name: str, flags: Tuple[bool, bool, Dict], after: list):
        super().__init__(capture, Contents(list.copy(initial)), name, flags, Contents(list.copy(after)))
        self.initial = initial          # type: ignore[assignment]

    def wrap(self, values: Any, *after: Any) -> StagedList:     # type: ignore[override]
        """A list with what is in it."""
        return StagedList(self.capture, super().wrap(values, *[Contents(list.copy(x)) for x in after]).items)

    def values_of(self, item: Any) -> List[Value]:
        """The value of the graph for what is in the list."""
        return super().values_of(Contents(list.copy(item)) if is_list(item) else item)

    def containers_in(self, item: Any) -> List[Tuple[Any, List[Any]]]:
        """The list, with what is in it."""
        return [(item, list.copy(item))] if is_list(item) else []


def share_lengths(slots: Iterable[Any]) -> None:
    """Take lists that begin with equally many items to have equally many in each iteration: `check_lengths` looks whether."""
    found: Dict[Any, Tuple[Length, Length]] = {}
    for slot in slots:
        if isinstance(slot, ListSlot):
            slot.lengths = found.setdefault(slot.begins, (Length(), Length()))


def check_lengths(capture: CaptureContext, slots: Dict[Any, Any], after: Dict[Any, Any], trips: Any) -> None:
    """Stop where lists that were taken to be of one length, and arrays made of them of one size, are not after an iteration.

    after: what the body leaves in the places of the slots.  trips: how many iterations there are, as a size, if that is known.
    """
    grown: Dict[Tuple[Length, Length], Dict[Any, None]] = {}
    for key, slot in slots.items():
        if isinstance(slot, ListSlot):
            items = after[key].symbolic if type(after[key]) is Contents else symbolic_items(after[key])
            by = object() if items is None else items.count[1] if items.count[0] is slot.lengths[0] else items.count
            grown.setdefault(slot.lengths, {})[by] = None
    for (inside, _), ways in grown.items():
        if len(ways) > 1 and any(len(lists) > 1 for lists in inside.users.values()):
            capture.abort("arrays are made of two lists in a loop on array values, which may come to have other lengths")
    for slot in slots.values():
        if not isinstance(slot, ListSlot):
            continue
        if len(grown[slot.lengths]) > 1:
            slot.lengths = slot.lengths[0], Length()
            continue
        by, = grown[slot.lengths]
        if trips is not None and slot.begin_size is not None and type(by) is int:
            slot.lengths[1].size = slot.begin_size + by * trips

"""Lists of as many items as an axis of unknown size has elements, ``[None] * len(x)``, which loops fill in order.

Each iteration of ``for i in range(len(x))`` assigns the item at ``i``: such a list grows.  So do those that a loop fills from
the end.
"""
from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Optional, Tuple

from ..ir.dims import equal
from ..ir.size_bounds import not_below
from ..symbolic.list_items import Items
from ..symbolic.lists import StagedList
from ..symbolic.rollback import WHOLE
from ..symbolic.sequences import Range
from ..symbolic.slots import Slots
from ..symbolic.values import SymbolicScalar

if TYPE_CHECKING:
    from .protocols import Capture


class FilledLists:
    """These lists of one capture."""

    def __init__(self, capture: Capture):
        self.capture = capture

    def repeated(self, items: list, size: Any) -> StagedList:
        """``items * size``."""
        if type(items) is not list or len(items) != 1 or items[0] is not None and type(items[0]) not in (bool, int, float):
            self.capture.abort("a list is repeated as often as only the run knows", sizes=size.symbols,
                               hint="begin with `[None] * n` or `[0] * n`, or append")
        return StagedList(self.capture, [Slots(self, size, items[0], StagedList(self.capture, []))])

    def put(self, slots: Slots, index: Any, item: Any) -> None:
        """``items[index] = item``."""
        place, filled = self._place(slots, index), slots.filled
        if place is None or place != self._begin(filled):
            self._refuse(slots, "are not assigned one after the other")
        filled.append(item)

    def get(self, slots: Slots, index: Any) -> Any:
        """``items[index]``, where this is the item that was assigned last."""
        if slots.fill is not None and not list.__len__(slots.filled):
            return self.whole(slots).item(index)
        place = self._place(slots, index)
        if place is None or place < 0 or place != self._last(slots.filled):
            self._refuse(slots, "are read before all are assigned")
        return slots.filled[-1]

    def whole(self, slots: Slots) -> Items:
        """All items; the capture stops where some are None."""
        if slots.is_complete:
            items = slots.filled.symbolic
            return items.part(slice(None, None, -1)) if slots.is_backwards else items      # type: ignore[no-any-return]
        if slots.fill is None or list.__len__(slots.filled):
            self._refuse(slots, "are read before all are assigned")
        body = functools.partial(_append, slots.filled, slots.fill)
        self.capture.staging.loops.for_(Range(self.capture, slots.size.number), body, (), (), None)
        if not slots.is_complete:
            self._refuse(slots, "are read in a loop")
        return slots.filled.symbolic                    # type: ignore[no-any-return]

    def _refuse(self, slots: Slots, what: str) -> None:
        self.capture.abort(f"the items of a list as long as an axis of unknown size {what}", sizes=slots.size.symbols)

    def _place(self, slots: Slots, index: Any) -> Optional[int]:
        """After how many others an index is, in the order in which items are assigned; of a loop's in its first iteration."""
        capture, ranges, size = self.capture, self.capture.index_ranges, slots.size.plain
        known, is_backwards = capture.expressions.size_of(index), False
        found: Any = None
        if known is not None and slots.filled.symbolic is None:
            known = size + known if isinstance(known, int) and known < 0 else known
            is_backwards = not isinstance(known, int)
            found = size - 1 - known if is_backwards else known
            found = found if type(found) is int and found >= 0 and not_below(size, found + 1) else None
        elif type(index) is SymbolicScalar and index.text is None and capture.staging.loops.trials:
            trial = capture.staging.loops.trials[-1]
            place, first = getattr(trial.inside.get(0), "value", None), trial.initial[0] if trial.initial else None
            multiple, mirrored = ranges.multiples.get(index.value), ranges.mirrored.get(index.value)
            if place is not None and multiple is not None and multiple.place is place and multiple.scale == 1 and \
                    not_below(size, ranges.places[place] + multiple.more):
                found = first + multiple.more
            elif place is not None and mirrored is not None and mirrored[0] is place and equal(mirrored[1], size) is True:
                found, is_backwards = first, True
        if slots.filled.symbolic is None and not list.__len__(slots.filled):
            slots.is_backwards = is_backwards
        return found if type(found) is int and is_backwards is slots.is_backwards else None

    def _begin(self, filled: StagedList) -> Any:
        """How many items are there, in a loop before its first iteration."""
        slot = self._slot(filled)
        return slot.begins if slot is not None else list.__len__(filled) if filled.symbolic is None else None

    def _last(self, filled: StagedList) -> Any:
        """The place of the item that was assigned last, in the first iteration of a loop."""
        slot, items = self._slot(filled), filled.symbolic
        if slot is None:
            return list.__len__(filled) - 1 if items is None else None
        length, more = items.count if items is not None else (None, 0)
        return slot.begins + more - 1 if length is slot.lengths[0] and type(slot.begins) is int else None

    def _slot(self, filled: StagedList) -> Any:
        """Where the innermost loop carries a list; None if it does not."""
        trials = self.capture.staging.loops.trials
        return trials[-1].slots.get((id(filled), WHOLE)) if trials else None


def _append(filled: StagedList, item: Any, _: Any) -> Tuple:
    filled.append(item)
    return ()

"""What a loop carries: guessed, and found by capturing its test and body with the guess."""
from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from ..heap.object_shadows import ShadowBase
from ..ir.graph import Value
from ..runtime.unbound import Undefined
from ..symbolic.kinds import number_kind
from ..symbolic.list_kinds import flags_of, is_list
from ..symbolic.lists import Contents
from ..symbolic.rollback import Snapshot
from ..symbolic.values import Maybe, SymbolicArray, SymbolicVariable
from .loop_carried import COUNTS, STAYS, CompoundSlot, CounterSlot, MaybeSlot, Slot, Unchanged, VariableSlot, may_count, stays
from .loop_carried_lists import GrownSlot, ListSlot, share_lengths
from .loop_carried_trees import changed, compound_of, containers_in, is_like, is_plain
from .protocols import Staging

_SAME = object()

class Trial:
    """One capture of a loop's test and body with a guess at what the loop carries.

    unrelated: pairs of carried values; the Variable of the first must not have been computed from that of the second.
    """

    def __init__(self, staging: Staging, before: Snapshot, state: Tuple, slots: Dict[Any, Slot], names: Sequence[str]):
        self.staging, self.capture = staging, staging.capture
        self.initial, self.slots, self.names = state, slots, names
        share_lengths(slots.values())
        self.inside = {key: slot.wrap(iter(slot.inside)) for key, slot in slots.items()}
        for key, slot in self._single:
            self.capture.index_ranges.tables.carry(key, slot.inside[0], present(slot.initial))
        self.state = tuple([self.inside.get(i, item) for i, item in enumerate(state)])
        for key, item in self.inside.items():
            if isinstance(key, tuple):
                before.write(key, item)
        self._note_written(before)
        self.found: Dict[Any, Any] = {}
        self.unrelated: List[Tuple[Value, Value]] = []
        for key in self._compounds:
            staging.replaced.note(present(slots[key].initial), present(self.inside[key]))
        self.containers = [each for key in self._compounds for each in self._carried(key, self.inside[key])]

    @property
    def _compounds(self) -> List[Any]:
        return [key for key, slot in self.slots.items() if isinstance(present(slot), (CompoundSlot, GrownSlot))]

    @property
    def _single(self) -> List[Tuple[Any, Slot]]:
        """The places of arrays, Variables and numbers."""
        return [(key, present(slot)) for key, slot in self.slots.items() if isinstance(present(slot), Slot)]

    def carries(self, value: Value) -> bool:
        """Whether a value is what some place holds at the start of an iteration."""
        return any(value in slot.inside for slot in self.slots.values())

    def _carried(self, key: Any, item: Any) -> List[Tuple[Any, List[Any]]]:
        """The containers of a place that are new in every iteration."""
        return present(self.slots[key]).containers_in(present(item))

    @property
    def found_more(self) -> bool:
        """Whether the body changed something that was not carried, or a Variable came to require grad."""
        return bool(self.found)

    def changed_by_test(self, before: Snapshot) -> bool:
        """Whether the test of the loop wrote something."""
        return any(not _is_same(self.inside.get(place, _SAME), item) for place, item in before.changes().items())

    def after(self, results: Tuple, before: Snapshot) -> Dict[Any, Any]:
        """What is in every carried place after the body; notes the places that should be carried too."""
        found: Dict[Any, Any] = {i: item for i, item in enumerate(results)
                                 if i in self.slots or item is not self.state[i]}
        found.update(before.changes())
        for key in self.slots:
            if key not in found:
                found[key] = before.read(key) if isinstance(key, tuple) else results[key]
        self._check_containers(found)
        for key, item in found.items():
            if key not in self.slots or self._is_more(item, self.slots[key]):
                self.found[key] = item
        single = [(key, slot.inside[0], present(found[key])) for key, slot in self._single]
        self.found.update({key: found[key] for key in self.capture.index_ranges.tables.broken(single)})
        self._note_written(before)
        return found

    def _note_written(self, before: Snapshot) -> None:
        """What reads the carried memories, before the loop or in an iteration, does so before another iteration writes them."""
        for key in self.slots:
            memory = before.memory(key) if isinstance(key, tuple) else None
            if memory is not None:
                self.capture.array_writes.carried(memory)

    def _check_containers(self, found: Dict[Any, Any]) -> None:
        """Stop where it shows that a container that is replaced was another object eagerly."""
        new, initial = ([id(item) for item, _ in each] for each in (
            [pair for key in self._compounds for pair in self._carried(key, found[key])],
            [pair for key in self._compounds for pair in self._carried(key, self.slots[key].initial)]))
        if any(changed(item, parts) for item, parts in self.containers) or len(set(new)) < len(new) or \
                any(isinstance(key, tuple) and key[0] in initial for key in found):
            self.capture.abort("a loop on array values both replaces a list, dict or object and changes it in place, or keeps "
                               "it in two places")

    def _is_more(self, item: Any, slot: Any) -> bool:
        """Whether a Variable has more about it than the slot was made for."""
        item, slot = present(item), present(slot)
        if isinstance(slot, CounterSlot):
            return not slot.holds_for(item)
        if isinstance(slot, Unchanged):
            return not stays(item, slot.initial)
        if isinstance(slot, CompoundSlot):
            return is_like(item, slot.initial) and any(map(self._is_more, compound_of(item).parts, slot.parts))
        if isinstance(slot, GrownSlot) and is_list(item):
            item = Contents(list.copy(item))
        if isinstance(slot, ListSlot) and type(item) is Contents:
            requires_grad, connected = flags_of(item)
            return requires_grad > slot.requires_grad or connected > slot.connected
        if not isinstance(item, SymbolicVariable) or not isinstance(slot, VariableSlot):
            return False
        among = self.staging.choices.of(item, slot.depth).among
        return item.requires_grad > slot.requires_grad or item.connected > (slot.connected or slot.is_open) or \
            not slot.among.keys() >= among.keys()

    def wanted(self, after: Dict[Any, Any], before: Snapshot) -> Dict[Any, Any]:
        """The places of the next guess, with what Variables there are: with gradient, with a creator, which objects.

        before: restored by now.
        """
        return {key: self._flags(self.slots.get(key), before.read(key) if isinstance(key, tuple) else self.initial[key],
                                 after[key], before) for key in {**self.slots, **self.found}}

    def _flags(self, slot: Any, initial: Any, item: Any, before: Snapshot, depth: int = 0) -> Any:
        if depth > _DEEPEST:
            self.capture.abort("a loop on array values replaces an object that holds itself, or a chain of objects")
        maybe = type(slot) is MaybeSlot or type(initial) in (Maybe, Undefined)
        slot, initial, item = present(slot), present(initial), present(item)
        if maybe and any(isinstance(x, ShadowBase) for x, _ in containers_in(item)):
            return False, False, {}                         # of these it matters which object they are
        if type(initial) is Undefined and (type(item) is tuple or is_plain(item)):
            new = compound_of(item).parts                   # type: ignore[union-attr]
            parts = slot.parts if isinstance(slot, CompoundSlot) else [None] * len(new)
            return [self._flags(part, initial, y, before, depth + 1) if _is_carried(y, before) else STAYS
                    for part, y in zip(parts, new)]
        if slot is None and may_count(initial, item):
            return COUNTS
        if isinstance(slot, CounterSlot) and slot.holds_for(item):
            return COUNTS
        if is_like(initial, item):
            old, new = compound_of(initial).parts, compound_of(item).parts
            parts = slot.parts if isinstance(slot, CompoundSlot) else [Unchanged(self.capture, x, "") for x in old]
            return [STAYS if isinstance(part, Unchanged) and stays(x, y) else self._flags(part, x, y, before, depth + 1)
                    for part, x, y in zip(parts, old, new)]
        if is_list(initial) and is_list(item):
            item = Contents(list.copy(item))
        if type(item) is Contents:
            flags = [flags_of(item)] + ([(slot.requires_grad, slot.connected)] if isinstance(slot, ListSlot) else [])
            return any(r for r, _ in flags), any(c for _, c in flags), {}
        sides = [x for x in (slot, item) if isinstance(x, (VariableSlot, SymbolicVariable))]
        among = dict(slot.among) if isinstance(slot, VariableSlot) else {}
        if isinstance(item, SymbolicVariable):
            among.update(self.staging.choices.of(item, self.staging.depth).among)
        return any(x.requires_grad for x in sides), any(x.connected for x in sides), among

    def finish(self, values: Sequence[Value], after: Dict[Any, Any], before: Snapshot, has_run: bool) -> Tuple:
        """The local names after the loop; writes what it left in objects.  has_run: whether there are iterations in any case."""
        choices, self.staging.choices.has_run = self.staging.choices, has_run
        try:
            return self._finish(values, after, before)
        finally:
            choices.has_run = False

    def _finish(self, values: Sequence[Value], after: Dict[Any, Any], before: Snapshot) -> Tuple:
        state, rest = list(self.initial), iter(values)
        alike: Dict[Tuple[int, int], SymbolicVariable] = {}
        compounds = set(self._compounds)
        for key, slot in self.slots.items():
            item = slot.wrap(rest, after[key])
            if key in compounds:
                for other in (slot.initial, after[key]):
                    self.staging.replaced.note(present(other), present(item))
            if isinstance(item, SymbolicVariable):      # two places of one Variable, before and after each iteration
                item = alike.setdefault((id(slot.initial), id(after[key])), item)
            if isinstance(key, tuple):
                before.write(key, item)
            else:
                state[key] = item
        return tuple(state)


def _is_same(item: Any, other: Any) -> bool:
    return item.same(other) if type(item) is Contents else item is other


def _is_carried(item: Any, before: Snapshot) -> bool:
    """Whether a part of a compound is a value of the graph, or has some; what was there before a loop has not."""
    return isinstance(item, (SymbolicArray, SymbolicVariable)) or number_kind(item) is not None or \
        type(item) is tuple or is_plain(item) and not before.holds(item)


#: A compound that a loop replaces holds others no deeper than this.
_DEEPEST = 16


def present(item: Any) -> Any:
    """The value of a name that may be unbound; other items as they are."""
    return item.value if type(item) in (Maybe, MaybeSlot) else item

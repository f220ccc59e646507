"""What a block of code did to objects: seen by comparing with a snapshot, and undone."""
from __future__ import annotations

import builtins
import functools
import types
from operator import is_not
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..capture_context import CaptureContext
from ..heap.dict_shadows import ShadowDict
from ..heap.list_shadows import ShadowList, Unread
from ..heap.own_collections import OwnItems
from ..heap.ownership import is_library_class
from ..heap.set_shadows import ShadowSet
from .array_or_variable import ArrayOrVariable
from .contents import assign, assign_key, container_of, contents_of, insides_of, is_iterator, is_namespace, is_reordered, same
from .kept_gradients import KeptGradient
from .kinds import ABSENT
from .list_items import Items
from .lists import Contents, StagedList
from .memories import Memory
from .sequences import Parts
from .slots import Slots
from .values import Maybe, SymbolicArray, SymbolicParameter, SymbolicScalar, SymbolicVariable, is_symbolic

#: The key of the place that is everything in a list whose length changes.
WHOLE = "all items"

#: A place that code can write: the id of a container and a key (index of a list, key of a dict, None for a cell).
Place = Tuple[int, Any]


class Kept(NamedTuple):
    """One container as it was: its contents, and for shadows what had been loaded and written back by then."""

    item: Any
    contents: Any
    loaded: Any = None
    original: Any = None
    whole: bool = False
    removed: Any = ()
    dropped: Any = ()


class Snapshot:
    """The contents of everything mutable that a block can reach, before the block runs.

    capture: gives the shadows that the whole capture has read so far.
    roots: the local values and functions of the block.
    """

    def __init__(self, capture: CaptureContext, roots: Iterable[Any]):
        self.capture = capture
        self.kept: Dict[int, Kept] = {}
        self.fixed: Dict[int, Tuple[Any, List[Any]]] = {}
        self.cells = [(cell, cell.before) for cell in capture.functions.shadow_cells()]
        self.own_items = [(items, items.before) for items in capture.heap.containers if type(items) is OwnItems]
        self.serial = capture.array_writes.serial
        self.memories = {id(m): (m, m.contents, m.stored) for m in capture.array_writes.memories}
        self.gradients = {id(kept): (kept, kept.gradient, kept.before, kept.stored_scale) for kept in capture.grad_state.places}
        self.rebound = capture.rebound_arrays.written_back()
        self.attributes: Set[int] = set()       # the ids of the containers of attributes
        self._found: Dict[int, Any] = {}
        self._reach([*roots, *capture.heap.containers, *[cell.shadow for cell, _ in self.cells]])

    def holds(self, item: Any) -> bool:
        """Whether a container was there before the block."""
        container = container_of(item)
        return id(container) in self.kept and self.kept[id(container)].item is container

    def changes(self) -> Dict[Place, Any]:
        """What is different now, by place: the new contents, or `ABSENT`.

        Stops the capture where a container changed in a way that cannot be joined with another branch.
        """
        self._check_fixed()
        found: Dict[Place, Any] = {}
        for key, (item, before) in self._bases().items():
            now = contents_of(item)
            is_open = type(item) is StagedList and item.slots is None and item.uneven is None
            if is_open and (item.symbolic is not None or len(before) != len(now)):
                if not Contents(now).same(Contents(before)):
                    found[key, WHOLE] = Contents(now)
            elif isinstance(item, list):
                if len(before) != len(now):
                    self.capture.abort("a list grows or shrinks under a decision on array values")
                found.update({(key, i): b for i, (a, b) in enumerate(zip(before, now)) if a is not b})
            elif isinstance(item, dict):
                kept = self.kept.get(key)
                if key not in self.attributes and not is_namespace(item) and \
                        is_reordered(item, now, before, len(kept.dropped) if kept else 0):
                    self.capture.abort("the order of the keys of a dict depends on a decision on array values")
                found.update({(key, name): now.get(name, ABSENT) for name in {**before, **now}
                              if before.get(name, ABSENT) is not now.get(name, ABSENT)})
            elif isinstance(item, set):
                if before != now:
                    self.capture.abort("a set changes under a decision on array values")
            elif before is not now:
                found[key, None] = now
        return found

    def restore(self, stays: bool = False) -> None:
        """Put everything back.

        stays: the nodes of the block stay.  Of what they wrote back, only a run knows whether it is: it is written again.
        """
        self._check_fixed()
        for key, (item, before) in self._bases().items():
            if not same(contents_of(item), before):
                assign(item, before)
            kept = self.kept.get(key)
            if isinstance(item, ShadowDict):
                known = kept.original if kept else {}
                loaded = {k: v for k, v in item.original.items() if k not in known}
                loaded.update(kept.loaded if kept else {})
                if stays:
                    there = (loaded, kept.contents if kept else {})
                    loaded.update({k: _UNKNOWN for k in {**loaded, **item.loaded} if any(k in part for part in there)
                                   and item.loaded.get(k, ABSENT) is not loaded.get(k, ABSENT)})
                item.loaded = loaded
                item.removed, item.dropped = (set(kept.removed), list(kept.dropped)) if kept else (set(), [])
            elif isinstance(item, ShadowList):
                item.before = _written_back(item, kept, stays)
            elif isinstance(item, ShadowSet):
                members = set(kept.loaded if kept else item.real)
                item.before = {_UNKNOWN} if stays and members != item.before else members
        cells = {id(cell): before for cell, before in self.cells}
        for cell in self.capture.functions.shadow_cells():
            content = cells.get(id(cell), cell.initial)
            cell.before = _UNKNOWN if stays and cell.before is not content else content
        own = {id(items): before for items, before in self.own_items}
        for items in self.capture.heap.containers:
            if type(items) is OwnItems:
                then = own.get(id(items), items.original)
                items.before = _unknown(then, items.before) if stays else then
        for kept in self.capture.grad_state.places:
            if id(kept) in self.gradients:
                _, _, kept.before, kept.stored_scale = self.gradients[id(kept)]
        for memory in self.capture.array_writes.memories:
            memory.stored = self.memories[id(memory)][2] if id(memory) in self.memories else memory.initial
        self.capture.rebound_arrays.set_written_back(self.rebound)

    def _check_fixed(self) -> None:
        """Stop if something changed that cannot be put back."""
        for item, before in self.fixed.values():
            now = self._insides(item) or []
            if len(now) != len(before) or any(a is not b for a, b in zip(now, before)):
                self.capture.abort(f"an object of type {type(item).__name__} changes under a decision on array values",
                                   hint="plain classes, lists and dicts may change there")

    def write(self, place: Place, value: Any) -> None:
        """Change one place, as both branches together do."""
        item, key = self._item(place), place[1]
        if key == WHOLE:
            assign(item, value.items)
        elif isinstance(item, list):
            list.__setitem__(item, key, value)
        elif isinstance(item, dict):
            assign_key(item, key, value)
        else:
            assign(item, value)

    def read(self, place: Place) -> Any:
        """What is in a place now; what was written before anybody read it is read from the real object."""
        item = self._item(place)
        if isinstance(item, ShadowDict):
            return item.get(place[1], ABSENT)
        now = contents_of(item)
        if place[1] == WHOLE:
            return Contents(now)
        if isinstance(item, list):
            return now[place[1]]
        return now.get(place[1], ABSENT) if isinstance(item, dict) else now

    def memory(self, place: Place) -> Optional[Memory]:
        """The memory of arrays that a place is; None for others."""
        item = self._item(place)
        return item if isinstance(item, Memory) else None

    def holds_gradient(self, place: Place) -> bool:
        """Whether a place is the gradient of a Variable."""
        return isinstance(self._item(place), KeptGradient)

    def take_lists_whole(self, sides: List[Dict[Place, Any]]) -> None:
        """Where one side changes the length of a list, let no side write single items of it."""
        whole = {place[0] for writes in sides for place in writes if place[1] == WHOLE}
        for writes in sides:
            for key in whole:
                places = [place for place in writes if place[0] == key and place[1] != WHOLE]
                if places:
                    items = contents_of(self._item(places[0]))
                    for place in places:
                        items[place[1]] = writes.pop(place)
                    writes[key, WHOLE] = Contents(items)

    def check_orders(self, sides: Sequence[Dict[Place, Any]]) -> None:
        """Stop where both sides add the same keys to a dict, in another order."""
        first, other = [[place for place in writes if place in sides[0] and place in sides[1]] for writes in sides]
        if first != other:
            first, other = [[place for place in places if self._is_added(place)] for places in (first, other)]
            for number in {place[0] for place in first}:
                if [place for place in first if place[0] == number] != [place for place in other if place[0] == number]:
                    self.capture.abort("the order of the keys of a dict depends on a decision on array values")

    def _is_added(self, place: Place) -> bool:
        """Whether a place is a key of a dict that did not have it."""
        item = self._item(place)
        if not isinstance(item, dict) or place[0] in self.attributes or is_namespace(item):
            return False
        return place[1] not in (item.real if isinstance(item, ShadowDict) else self.kept[place[0]].contents)

    def _item(self, place: Place) -> Any:
        """The container of a place: it was there before the block, or is of the caller's and was only read since."""
        if place[0] not in self._found:
            self._found = {key: item for key, (item, _) in self._bases().items()}
        return self._found[place[0]]

    def _bases(self) -> Dict[int, Tuple[Any, Any]]:
        """Every container with its contents at the time of the snapshot, what was only read since included."""
        found = {key: (kept.item, self._base(kept)) for key, kept in self.kept.items()}
        for item in self.capture.heap.containers:
            if type(item) is OwnItems:
                found.setdefault(id(item.shadow), (item.shadow, item.original))
            else:
                found.setdefault(id(item), (item, _initial(item)))
        for cell in self.capture.functions.shadow_cells():
            found.setdefault(id(cell.shadow), (cell.shadow, cell.initial))
        found.update({key: (memory, contents) for key, (memory, contents, _) in self.memories.items()})
        for gradient in self.capture.grad_state.places:
            found[id(gradient)] = gradient, self.gradients[id(gradient)][1] if id(gradient) in self.gradients else gradient.initial
        for memory in self.capture.array_writes.memories:
            if memory.serial <= self.serial:
                found.setdefault(id(memory), (memory, memory.initial))
        return found

    def _base(self, kept: Kept) -> Any:
        if isinstance(kept.item, ShadowDict):
            read_since = {k: v for k, v in kept.item.original.items() if k not in kept.original}
            return kept.item.in_order({**read_since, **kept.contents}, kept.removed)
        if isinstance(kept.item, ShadowList) and kept.item.whole and not kept.whole:
            return kept.item.originals + kept.contents[len(kept.item.originals):]
        return kept.contents

    def _reach(self, roots: List[Any]) -> None:
        waiting = list(roots)
        seen = {id(vars(builtins)), id(self.capture.imports.builtins)}      # `Imports.check` looks at these
        while waiting:
            item = waiting.pop()
            if type(item) in _HOLDING_NOTHING:
                continue
            if id(item) in seen or type(item) in (Unread, Items):
                continue
            seen.add(id(item))
            if is_iterator(item):
                self.capture.abort("an iterator is alive across a decision on array values")
            container = container_of(item)
            inside = self._insides(item)
            if inside is not None:
                self.fixed[id(item)] = item, inside
                waiting += inside
            if container is not item:
                waiting += self._parts(item)
            if container is not None and id(container) not in self.kept:
                now = contents_of(container)
                self.kept[id(container)] = _keep(container, now)
                if container is not item:
                    self.attributes.add(id(container))
                if isinstance(container, types.CellType):
                    waiting.append(now)
                else:
                    waiting += list(now.values() if isinstance(now, dict) else now)

    def _insides(self, item: Any) -> Optional[List[Any]]:
        """`insides_of`, and the attributes of a class that the call has made: that of the caller has a shadow."""
        if isinstance(item, type) and not is_library_class(item) and not self.capture.heap.has_met(item):
            return list(vars(item).values())
        return insides_of(item)

    def _parts(self, item: Any) -> List[Any]:
        """What can be reached through an object that cannot change itself; of functions, only converted ones."""
        if isinstance(item, types.FunctionType):
            staged = item.__code__ in self.capture.calls.staged_codes
            return [*(item.__closure__ or ()), *(item.__defaults__ or ())] if staged else []
        if isinstance(item, types.MethodType):
            return [item.__func__, item.__self__]
        if isinstance(item, types.BuiltinMethodType):
            return [item.__self__]
        if isinstance(item, functools.partial):
            return [item.func, *item.args, *item.keywords.values()]
        if type(item) is Maybe:
            return [item.value]
        if isinstance(item, Parts):
            return list(item.over)
        if type(item) is Slots:
            return [item.filled]
        return list(item) if isinstance(item, tuple) and not is_symbolic(item) else []


#: What is passed over at once: each decision goes over all that the capture has met.
_HOLDING_NOTHING = frozenset((
    int, float, bool, str, bytes, type(None), ArrayOrVariable, SymbolicArray, SymbolicScalar, SymbolicVariable, SymbolicParameter))


#: What is in a place of the user's object where only a run knows whether it was written back.
_UNKNOWN = object()


def _written_back(item: ShadowList, kept: Optional[Kept], stays: bool) -> List[Any]:
    """What was written back of a list at the time of the snapshot; unknown items where the block may have written."""
    if kept is not None and kept.whole and kept.original is item.originals:
        then = list(kept.loaded)
    else:
        then = item.originals + (kept.loaded[len(item.originals):] if kept else [])
    is_stored = stays and item.whole and (len(then) != len(item.before) or any(map(is_not, then, item.before)))
    return [_UNKNOWN] * 2 if is_stored else then        # two: then all items are written, not one


def _unknown(then: Any, now: Any) -> Any:
    """The contents that a list or dict had, with unknown ones where others were written back since."""
    if isinstance(then, dict):
        return {key: then.get(key) if then.get(key, ABSENT) is now.get(key, ABSENT) else _UNKNOWN for key in {**then, **now}}
    return then if len(then) == len(now) and not any(map(is_not, then, now)) else [_UNKNOWN, *then]


def _keep(item: Any, now: Any) -> Kept:
    if isinstance(item, ShadowDict):
        return Kept(item, now, dict(item.loaded), dict(item.original), False, frozenset(item.removed), tuple(item.dropped))
    if isinstance(item, ShadowList):
        return Kept(item, now, list(item.before), item.originals, item.whole)
    if isinstance(item, ShadowSet):
        return Kept(item, now, set(item.before))
    return Kept(item, now)


def _initial(item: Any) -> Any:
    """The contents of a shadow made after the snapshot, as it was read."""
    if isinstance(item, ShadowDict):
        return item.in_order(item.original)
    return set(item.real) if isinstance(item, ShadowSet) else list(item.originals)

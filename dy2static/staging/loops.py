"""Loops on symbolic values: the body is captured until it is clear what the loop carries."""
from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from ..ir.dims import Dim, less
from ..ir.graph import Node, Value
from ..ir.op import OPS
from ..passes.effects import has_effect
from ..runtime import dy
from ..runtime.dy import Undefined
from ..symbolic.kinds import name_at, number_kind
from ..symbolic.lists import Contents, GrownSlot, ListSlot, flags_of, is_list, known_length, truth_of
from ..symbolic.rollback import WHOLE, Snapshot
from ..symbolic.sizes import without_sizes
from ..symbolic.values import Maybe, SymbolicArray, SymbolicVariable
from ..world.aborts import CaptureAborted
from ..world.regions import close, free_values
from ..world.shadows import ShadowBase
from .compounds import changed, compound_of, containers_in, is_like, is_plain
from .joining import Branch
from .slots import STAYS, CompoundSlot, MaybeSlot, Slot, Unchanged, VariableSlot, slot_of, stays

_SAME = object()

#: So many times the body of a loop is captured before it must be clear what it carries.
_MOST_TRIALS = 8


#: A compound that a loop replaces holds others no deeper than this.
_DEEPEST = 16


class Loops:
    """Of a `Staging`: ``while``, and ``for`` whose end is symbolic.  in_loop: how many loops what is captured now is in."""

    in_loop = 0

    def for_rest(self, done: Any, iterator: Iterator, body: Callable, state: Tuple, names: Sequence[str],
                 stop: Callable) -> Tuple:
        """The rest of a ``for`` over Python values that ends where an array value says so."""
        return Rest(self, Replayed(iterator), 0, body, names, stop).unless(done, state)

    def for_(self, sequence: Any, body: Callable, state: Tuple, names: Sequence[str],
             stop: Optional[Callable[..., Any]]) -> Tuple:
        """``for`` over something of which only the run knows the length: a ``while`` over the places."""
        test, step = functools.partial(_has_more, sequence, stop), functools.partial(_step, sequence, body)
        return dy.while_(test, step, (0, *state), names=("the place in a list", *names))[1:]

    def while_(self, again: Any, test: Callable, body: Callable, state: Tuple, names: Sequence[str] = ()) -> Tuple:
        """``while`` whose test of the present state is symbolic.

        What the body changes becomes state of the loop: found by capturing it until nothing new changes.  Where that
        cannot be carried, because it is of another kind before the loop, the first iteration is taken out of it.
        """
        state = tuple(map(without_sizes, state))
        side = self.path.side(self.predicate(again), self.capture.builder.nodes)
        if side is not None:
            return dy.while_(test, body, body(*state), names=names) if side else state
        if self._begins(test, state):
            found = self.attempted(lambda: self._carried(again, test, body, state, names), (state, test, body))
            return dy.while_(test, body, body(*state), names=names) if found is None else found
        with self.path.joining():
            return self._carried(again, test, body, state, names)

    def _begins(self, test: Callable, state: Tuple) -> bool:
        """Whether a ``for`` has another iteration for all sizes of what it is over: that is no decision."""
        if not _is_for(test) or type(state[0]) is not int:
            return False
        length = self.capture.size_of(known_length(test.args[0]))       # type: ignore[attr-defined]
        return isinstance(length, Dim) and less(state[0], length) is True

    def _note_place(self, place: Value, sequence: Any) -> None:
        """In the body of a ``for``, the place is below the length."""
        length = self.capture.size_of(known_length(sequence))
        if isinstance(length, Dim):
            self.capture.index_ranges.places[place] = length

    def attempted(self, loop: Callable[[], Tuple], roots: Tuple) -> Optional[Tuple]:
        """What a loop leaves; None, and nothing changed, where it cannot be captured."""
        capture = self.capture
        before, kept, replaced = Snapshot(capture, roots), len(capture.builder.nodes), len(self.replaced)
        try:
            return loop()
        except CaptureAborted as stop:
            if stop.final:
                raise
        capture.failed = None
        del capture.builder.nodes[kept:]
        self.replaced.forget_from(replaced)
        before.restore()
        return None

    def _carried(self, again: Any, test: Callable, body: Callable, state: Tuple, names: Sequence[str]) -> Tuple:
        before = Snapshot(self.capture, (state, test, body))
        # a place in a sequence is never taken for the number that it is at first
        slots: Dict[Any, Slot] = {0: self._slot(0, (False, False, {}), before, state, names, state[0])} if _is_for(test) else {}
        replaced = len(self.replaced)
        for _ in range(_MOST_TRIALS):
            self.replaced.forget_from(replaced)
            trial = Trial(self, before, state, slots, names)
            if _is_for(test):
                self._note_place(trial.inside[0].value, test.args[0])       # type: ignore[attr-defined]
            start = Snapshot(self.capture, (trial.state, test, body))
            with self.region() as test_nodes:
                (decision,), _ = self.run_block(functools.partial(self._test, test), trial.state, start)
                if not self.capture.decides(decision):
                    self.capture.abort("the test of a loop stops depending on array values inside the loop")
                predicate = self.predicate(decision)
            if trial.changed_by_test(before) or any(map(has_effect, test_nodes)):
                before.restore()
                return self._tested_in_body(again, test, body, state, names)
            with self.region() as body_nodes, self._iteration():
                results, _ = self.run_block(functools.partial(self._body, body), trial.state, start)
                after = trial.after(results, before)
            if not trial.found_more:
                return self._emit_loop(trial, after, before, (test_nodes, [predicate]), body_nodes)
            before.restore()
            wanted = trial.wanted(after, before)
            if any((key[0], WHOLE) in wanted for key in wanted if isinstance(key, tuple) and key[1] != WHOLE):
                self.capture.abort("a loop on array values both changes the length of a list and assigns to its items")
            slots = {key: self._slot(key, flags, before, state, names, after[key]) for key, flags in wanted.items()}
        return self.capture.abort("what a loop changes does not settle")

    def _test(self, test: Callable, *state: Any) -> Tuple:
        try:
            return (truth_of(test(*state)),)
        except Exception as error:      # user code raised it
            return self.capture.abort(f"{type(error).__name__} in the test of a loop on array values")

    def _body(self, body: Callable, *state: Any) -> Tuple:
        """The state after the body; where it raises, the host does so if the loop runs, and the state does not matter."""
        try:
            return body(*state)
        except Exception as error:      # user code raised it
            self.raise_at_run(error)
            return state

    @contextlib.contextmanager
    def _iteration(self) -> Iterator[None]:
        self.in_loop += 1
        try:
            yield
        finally:
            self.in_loop -= 1

    def _tested_in_body(self, again: Any, test: Callable, body: Callable, state: Tuple, names: Sequence[str]) -> Tuple:
        """A loop whose test has effects, once before the loop, where it was captured, and once after each iteration."""
        tested = functools.partial(_and_tested, self.truth, test, body)
        names = (*[names[i] if i < len(names) else "" for i in range(len(state))], "the test")
        return self._carried(None, lambda *inner: inner[-1], tested, (*state, self.truth(again)), names)[:-1]

    def _slot(self, key: Any, flags: Tuple[bool, bool, Dict], before: Snapshot, state: Tuple, names: Sequence[str],
              item: Any) -> "Slot":
        initial = before.read(key) if isinstance(key, tuple) else state[key]
        if type(initial) is Undefined:
            builder = Branch(before, (), (), {})
            initial = Maybe(self._filler(item.value if type(item) is Maybe else item, builder), False, initial.name)
            self.capture.builder.nodes.extend(builder.nodes)
        if type(initial) is Maybe:
            return MaybeSlot(self.capture, initial, name_at(names, key), flags, _present(item))
        name = str(key[1]) if isinstance(key, tuple) else name_at(names, key)
        return slot_of(self.capture, initial, name, flags, item)

    def _emit_loop(self, trial: "Trial", after: Dict[Any, Any], before: Snapshot, test: Tuple, body: List[Node]) -> Tuple:
        capture, slots = self.capture, list(trial.slots.values())
        with self.region() as closing:
            results = [v for key, slot in trial.slots.items() for v in slot.values_of(after[key])]
        before.restore()
        initial = [v for slot in slots for v in slot.values_of(slot.initial)]
        own = [v for slot in slots for v in slot.inside]
        nodes, outputs = [*body, *closing], results
        free = free_values([*test[0], *nodes], [*test[1], *outputs])
        invariants = [v for v in free if v not in own]
        regions = tuple(close(capture.builder, part, values, (*own, *invariants), name)
                        for part, values, name in ((*test, "test"), (nodes, outputs, "body")))
        capture.event("staged", "while")
        made = capture.builder.add(OPS["while_"], (*initial, *invariants), {"carried": len(own)}, regions, name="loop")
        return trial.finish(made, after, before)


class Trial:
    """One capture of a loop's test and body with a guess at what the loop carries."""

    def __init__(self, staging: Any, before: Snapshot, state: Tuple, slots: Dict[Any, Slot], names: Sequence[str]):
        self.capture, self.initial, self.slots, self.names = staging.capture, state, slots, names
        self.inside = {key: slot.wrap(iter(slot.inside)) for key, slot in slots.items()}
        self.state = tuple([self.inside.get(i, item) for i, item in enumerate(state)])
        for key, item in self.inside.items():
            if isinstance(key, tuple):
                before.write(key, item)
        self.found: Dict[Any, Any] = {}
        for key in self._compounds:
            staging.replaced.note(_present(slots[key].initial), _present(self.inside[key]))
        self.containers = [each for key in self._compounds for each in self._carried(key, self.inside[key])]

    @property
    def _compounds(self) -> List[Any]:
        return [key for key, slot in self.slots.items() if isinstance(_present(slot), (CompoundSlot, GrownSlot))]

    def _carried(self, key: Any, item: Any) -> List[Tuple[Any, List[Any]]]:
        """The containers of a place that are new in every iteration."""
        return _present(self.slots[key]).containers_in(_present(item))

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
        return found

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
        item, slot = _present(item), _present(slot)
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
        among = self.capture.staging.choices.of(item, slot.depth).among
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
        slot, initial, item = _present(slot), _present(initial), _present(item)
        if maybe and any(isinstance(x, ShadowBase) for x, _ in containers_in(item)):
            return False, False, {}                         # of these it matters which object they are
        if type(initial) is Undefined and (type(item) is tuple or is_plain(item)):
            new = compound_of(item).parts                   # type: ignore[union-attr]
            parts = slot.parts if isinstance(slot, CompoundSlot) else [None] * len(new)
            return [self._flags(part, initial, y, before, depth + 1) if _is_carried(y, before) else STAYS
                    for part, y in zip(parts, new)]
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
            among.update(self.capture.staging.choices.of(item, self.capture.staging.depth).among)
        return any(x.requires_grad for x in sides), any(x.connected for x in sides), among

    def finish(self, values: Sequence[Value], after: Dict[Any, Any], before: Snapshot) -> Tuple:
        """The local names after the loop; writes what it left in objects."""
        state, rest = list(self.initial), iter(values)
        alike: Dict[Tuple[int, int], SymbolicVariable] = {}
        compounds = set(self._compounds)
        for key, slot in self.slots.items():
            item = slot.wrap(rest, after[key])
            if key in compounds:
                for other in (slot.initial, after[key]):
                    self.capture.staging.replaced.note(_present(other), _present(item))
            if isinstance(item, SymbolicVariable):      # two places of one Variable, before and after each iteration
                item = alike.setdefault((id(slot.initial), id(after[key])), item)
            if isinstance(key, tuple):
                before.write(key, item)
            else:
                state[key] = item
        return tuple(state)


def _is_for(test: Callable) -> bool:
    """Whether a test is that of a ``for``, whose state begins with the place."""
    return isinstance(test, functools.partial) and test.func is _has_more


def _has_more(sequence: Any, stop: Any, place: Any, *state: Any) -> Any:
    more = place < known_length(sequence)
    return more if stop is None else dy.and_(more, lambda: dy.not_(stop(*state)))


def _step(sequence: Any, body: Callable, place: Any, *state: Any) -> Tuple:
    return (place + 1, *body(sequence[place], *state))


def _and_tested(truth: Callable, test: Callable, body: Callable, *state: Any) -> Tuple:
    after = body(*state[:-1])
    return (*after, truth(test(*after)))


def _is_same(item: Any, other: Any) -> bool:
    return item.same(other) if type(item) is Contents else item is other


def _is_carried(item: Any, before: Snapshot) -> bool:
    """Whether a part of a compound is a value of the graph, or has some; what was there before a loop has not."""
    return isinstance(item, (SymbolicArray, SymbolicVariable)) or number_kind(item) is not None or \
        type(item) is tuple or is_plain(item) and not before.holds(item)


def _present(item: Any) -> Any:
    return item.value if type(item) in (Maybe, MaybeSlot) else item


class Replayed:
    """The items of an iterator, again for every capture of the rest of a loop."""

    def __init__(self, iterator: Iterator):
        self.iterator = iterator
        self.items: List[Any] = []

    def at(self, place: int, capture: Any) -> Any:
        """The item at a place.  Raises StopIteration at the end."""
        if place < len(self.items):
            if _computes(self.iterator):
                capture.abort("the rest of a loop over a generator is captured again")
            return self.items[place]
        self.items.append(next(self.iterator))
        return self.items[-1]


    def left(self) -> Optional[range]:
        """The numbers that are left, if they are those of a range."""
        if type(self.iterator).__name__ != "range_iterator" or self.items:
            return None
        _, (numbers,), place = self.iterator.__reduce__()
        return numbers[place or 0:]


#: Iterators whose items are there already.
_HOLDING = ("list_iterator", "tuple_iterator", "range_iterator", "dict_keyiterator", "dict_itemiterator",
            "dict_valueiterator", "list_reverseiterator")


def _computes(iterator: Any) -> bool:
    """Whether items are computed when they are asked for."""
    if type(iterator) in (zip, enumerate):
        return any(_computes(part) for part in iterator.__reduce__()[1] if hasattr(part, "__next__"))
    return type(iterator).__name__ not in _HOLDING


#: So many iterations of a ``for`` over a range are written out; with more it becomes a loop of the graph.
_FEW = 8


def _goes_on(count: int, place: Any, done: Any, *state: Any) -> Any:
    return dy.and_(dy.not_(done), lambda: place < count)


def _next_number(numbers: range, body: Callable, stop: Callable, staging: Any, place: Any, done: Any, *state: Any) -> Tuple:
    after = body(numbers.start + place * numbers.step, *state)
    return (place + 1, staging.truth(stop(*after)), *after)


class Rest:
    """The iterations that are left of a loop whose end is symbolic: each under the decision before it."""

    def __init__(self, staging: Any, items: Replayed, place: int, body: Callable, names: Sequence[str], stop: Callable):
        self.staging, self.items, self.place, self.body, self.names, self.stop = staging, items, place, body, names, stop

    def unless(self, done: Any, state: Tuple) -> Tuple:
        """The local names after the loop, if it goes on unless ``done``."""
        rolled = self._rolled(done, state) if self.place == 0 else None
        return rolled or self.staging.cond(done, _keep, self, state, self.names, (self.body, self.stop))

    def _rolled(self, done: Any, state: Tuple) -> Optional[Tuple]:
        """The local names after what is left of a long ``range``, as a loop of the graph; None where that cannot be."""
        numbers = self.items.left()
        if numbers is None or len(numbers) < _FEW:
            return None
        test = functools.partial(_goes_on, len(numbers))
        step = functools.partial(_next_number, numbers, self.body, self.stop, self.staging)
        whole, names = (0, self.staging.truth(done), *state), ("the place in a range", "the end", *self.names)
        found = self.staging.attempted(lambda: self.staging.while_(test(*whole), test, step, whole, names),
                                        (whole, self.body, self.stop))
        return None if found is None else found[2:]

    def __call__(self, *state: Any) -> Tuple:
        place, capture = self.place, self.staging.capture
        while True:
            try:
                item = self.items.at(place, capture)
            except StopIteration:
                return state
            place += 1
            state = self.body(item, *state)
            done = self.stop(*state)
            if capture.decides(done):
                return Rest(self.staging, self.items, place, self.body, self.names, self.stop).unless(done, state)
            if done:
                return state


def _keep(*state: Any) -> Tuple:
    return state

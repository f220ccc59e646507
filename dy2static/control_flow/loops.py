"""Loops on symbolic values: the body is captured until it is clear what the loop carries."""
from __future__ import annotations

import contextlib
import functools
import operator
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from ..heap.aborts import CaptureAborted
from ..heap.regions import close, free_values
from ..ir.dims import Dim, less
from ..ir.graph import Node, Value
from ..ir.op import OPS
from ..ir.size_bounds import maximum
from ..ir.size_needed import SizeNeeded
from ..ir.types import Tensor, dims_in
from ..passes.effects import has_effect
from ..runtime import dy
from ..runtime.unbound import Undefined
from ..symbolic.kinds import name_at
from ..symbolic.least_numbers import Least
from ..symbolic.list_kinds import known_length, truth_of
from ..symbolic.lists import StagedList, symbolic_items, uneven_items
from ..symbolic.rollback import WHOLE, Snapshot
from ..symbolic.sequences import Parts
from ..symbolic.size_trials import without_sizes
from ..symbolic.uneven import Uneven
from ..symbolic.values import Maybe, SymbolicScalar
from .branches import Branch
from .for_rest import Replayed, Rest, check_unnamed
from .loop_carried import GradientSlot, MaybeSlot, Slot, slot_of
from .loop_carried_lists import check_lengths
from .loop_guesses import Guess, Guesses, is_right
from .loop_trials import Trial, present
from .protocols import Staging
from .raising import is_of_user_code

_SAME = object()

#: So many times the body of a loop is captured before it must be clear what it carries.
_MOST_TRIALS = 8


class Loops:
    """The loops of one capture: ``while``, and ``for`` whose end is symbolic."""

    def __init__(self, staging: Staging):
        self.staging, self.capture = staging, staging.capture
        self.trials: List[Trial] = []                   # of the loops that are captured now, the innermost last
        self._guesses = Guesses()

    def are_unrelated(self, value: Value, target: Value) -> bool:
        """Whether one loop carries both values, and neither was computed from the other: the loop looks, when it is complete."""
        for trial in self.trials:
            if trial.carries(value) and trial.carries(target):
                trial.unrelated.append((value, target))
                return True
        return False

    def for_rest(self, done: Any, iterator: Iterator, body: Callable, state: Tuple, names: Sequence[str],
                 stop: Callable) -> Tuple:
        """The rest of a ``for`` over Python values that ends where an array value says so."""
        check_unnamed(iterator, self.capture)
        return Rest(self.staging, Replayed(iterator), 0, body, names, stop).unless(done, state)

    def for_(self, sequence: Any, body: Callable, state: Tuple, names: Sequence[str],
             stop: Optional[Callable[..., Any]]) -> Tuple:
        """``for`` over something of which only the run knows the length: a ``while`` over the places.

        A last step that is another one than the others comes behind that loop, or before it, where the loop goes backwards.
        """
        lead = sequence.lead() if isinstance(sequence, Parts) else None
        if lead is not None:
            first, others = lead
            state = _step_of(first, body, state, names, stop)
            if others is not None:
                state = self.for_(others, body, state, names, stop)
            sequence.lead()                             # which stops where a list has changed
            return state
        found = self._split(sequence)
        if found is not None:
            whole, last = found
            state = state if whole is None else self.for_(whole, body, state, names, stop)
            state = _step_of(last, body, state, names, stop)
            if type(sequence) is StagedList and (self._split(sequence) or (None, None))[1] is not last:
                self.capture.abort("a list changes while a loop goes over it")
            if isinstance(sequence, Parts) and sequence.over:
                self._split(sequence)                   # which stops where a list has changed
            return state
        steps = sequence.steps if isinstance(sequence, Parts) else {}
        try:
            return self._over_places(sequence, body, state, names, stop)
        except (CaptureAborted, SizeNeeded) as error:
            if not steps or getattr(error, "final", False):
                raise
        raise SizeNeeded("whether a loop has a last step that is a part of one", sum(map(Dim, steps)), steps=steps)

    def _split(self, sequence: Any) -> Optional[Tuple]:
        """Steps that are like each other, or None, and a last one that is not; None where there is none, or it is not known."""
        if isinstance(sequence, Parts):
            return sequence.split()
        uneven = uneven_items(sequence)
        if uneven is None:
            return None
        before = Uneven(uneven.items, uneven.rest[:-1]) if len(uneven.rest) > 1 else uneven.items
        return StagedList(self.capture, [before]), uneven.rest[-1]

    def _over_places(self, sequence: Any, body: Callable, state: Tuple, names: Sequence[str],
                     stop: Optional[Callable[..., Any]]) -> Tuple:
        test, step = functools.partial(_has_more, sequence, stop), functools.partial(_step, sequence, body)
        return dy.while_(test, step, (0, *state), names=("the place in a list", *names))[1:]

    def counted(self, sequence: Any, body: Callable, state: Tuple, names: Sequence[str]) -> Tuple:
        """``for`` over a sequence of known length that is not empty, as a loop of the graph in any case."""
        test, step = functools.partial(_has_more, sequence, None), functools.partial(_step, sequence, body)
        state = tuple(map(without_sizes, state))
        return self._carried(None, test, step, (0, *state), ("the place in a sequence", *names), has_run=True)[1:]

    def while_(self, again: Any, test: Callable, body: Callable, state: Tuple, names: Sequence[str] = ()) -> Tuple:
        """``while`` whose test of the present state is symbolic.

        What the body changes becomes state of the loop: found by capturing it until nothing new changes.  Where that
        cannot be carried, because it is of another kind before the loop, the first iteration is taken out of it.
        """
        state = tuple(map(without_sizes, state))
        side = self.staging.path.side(self.staging.predicate(again), self.capture.builder.nodes)
        if side is not None:
            return dy.while_(test, body, body(*state), names=names) if side else state
        if self._begins(test, state):
            has_run = test.args[1] is None          # type: ignore[attr-defined]  # no `break` can end it before its first iteration
            found = self.attempted(lambda: self._carried(again, test, body, state, names, has_run), (state, test, body))
            return self._after_first(test, body, state, names) if found is None else found
        with self.staging.path.joining():
            return self._carried(again, test, body, state, names)

    def _after_first(self, test: Callable, body: Callable, state: Tuple, names: Sequence[str]) -> Tuple:
        """What a loop leaves whose first iteration is written out.  What that reports, the others report over it."""
        known, before = self.capture.reports, len(self.capture.reports.made)
        state = body(*state)
        reports = known.made[before:]
        if not reports or not _is_for(test) or test.args[1] is not None:        # type: ignore[attr-defined]
            return dy.while_(test, body, state, names=names)
        if not self._begins(test, state):
            length = known_length(test.args[0])                                 # type: ignore[attr-defined]
            raise SizeNeeded("whether a loop has a second iteration", self.capture.expressions.size_of(length))

        def reporting(*inner: Any) -> Tuple:
            with known.in_iteration(reports) as made:
                after = body(*inner[:-1])
            return (*after, known.values_of(made))
        given, names = (*state, known.values_of(reports)), (*names, "what is reported")
        *found, values = self._carried(None, test, reporting, given, names, has_run=True)
        known.repeat(reports, values)
        return tuple(found)

    def _begins(self, test: Callable, state: Tuple) -> bool:
        """Whether a ``for`` has another iteration for all sizes of what it is over: that is no decision."""
        if not _is_for(test) or type(state[0]) is not int:
            return False
        length = self.capture.expressions.size_of(known_length(test.args[0]))       # type: ignore[attr-defined]
        return isinstance(length, Dim) and less(state[0], length) is True

    def _trips(self, test: Callable, state: Tuple) -> Any:
        """How many iterations a ``for`` has if nothing changes what it is over, as a size; None where that is not known."""
        if not _is_for(test) or test.args[1] is not None or type(state[0]) is not int:      # type: ignore[attr-defined]
            return None
        length = self.capture.expressions.size_of(known_length(test.args[0]))       # type: ignore[attr-defined]
        return None if length is None else maximum(length - state[0], 0)

    def _note_place(self, place: Value, sequence: Any, start: Any) -> None:
        """In the body of a ``for``, the place is below the length, and not below that of the first iteration."""
        if type(start) is int:
            self.capture.index_ranges.least[place] = Least(start, place, 0)
        length = self.capture.expressions.size_of(known_length(sequence))
        if isinstance(length, (int, Dim)):
            self.capture.index_ranges.is_place(place, length)

    def attempted(self, loop: Callable[[], Tuple], roots: Tuple) -> Optional[Tuple]:
        """What a loop leaves; None, and nothing changed, where it cannot be captured."""
        capture = self.capture
        before, kept, replaced = Snapshot(capture, roots), len(capture.builder.nodes), len(self.staging.replaced)
        mark = capture.mark()
        try:
            return loop()
        except CaptureAborted as stop:
            if stop.final:
                raise
        del capture.builder.nodes[kept:]
        self.staging.replaced.forget_from(replaced)
        capture.go_back(mark)
        before.restore()
        return None

    def _carried(self, again: Any, test: Callable, body: Callable, state: Tuple, names: Sequence[str],
                 has_run: bool = False) -> Tuple:
        guesses = self._guesses.of(test, body, state, self.staging.is_inexact)
        if guesses:
            loop = functools.partial(self._settled, again, test, body, state, names, has_run, guesses)
            found = self.attempted(loop, (state, test, body))
            if found is not None:
                return found
            self._guesses.give_up(test, body)
        return self._settled(again, test, body, state, names, has_run, {})

    def _settled(self, again: Any, test: Callable, body: Callable, state: Tuple, names: Sequence[str], has_run: bool,
                 guesses: Dict[int, Guess]) -> Tuple:
        """What a loop leaves, once it is clear what it carries.  guesses: what it carries; it stops if that is not so."""
        before = Snapshot(self.capture, (state, test, body))
        # a place in a sequence is never taken for the number that it is at first
        slots: Dict[Any, Slot] = {0: self._slot(0, (False, False, {}), before, state, names, state[0])} if _is_for(test) else \
            {key: self._slot(key, guess.flags, before, state, names, state[key]) for key, guess in guesses.items()}
        trips = self._trips(test, state)
        contents = None if trips is None else _contents(test)
        replaced, is_exposed = len(self.staging.replaced), False
        overwritten = self.capture.array_writes.overwritten.state()
        for _ in range(_MOST_TRIALS):
            exposures = self.capture.deciding.exposures
            self.staging.replaced.forget_from(replaced)
            self.capture.array_writes.overwritten.go_back(overwritten)
            trial = Trial(self.staging, before, state, slots, names)
            if _is_for(test):
                self._note_place(trial.inside[0].value, test.args[0], state[0])         # type: ignore[attr-defined]
            start = Snapshot(self.capture, (trial.state, test, body))
            with self.staging.region() as test_nodes, self._on_trial(trial):
                (decision,), _ = self.staging.blocks.run_block(functools.partial(self._test, test), trial.state, start)
                if not self.capture.decides(decision):
                    self.capture.abort("the test of a loop stops depending on array values inside the loop")
                predicate = self.staging.predicate(decision)
            if trial.changed_by_test(before) or any(map(has_effect, test_nodes)):
                before.restore()
                _check_guessed(not guesses)
                return self._tested_in_body(again, test, body, state, names)
            with self.staging.region() as body_nodes, self._iteration(), self._on_trial(trial):
                results, _ = self.staging.blocks.run_block(functools.partial(self._body, body), trial.state, start)
                after = trial.after(results, before)
            # what a call in the body may write into was taken for what it was before the loop
            is_first, is_exposed = not is_exposed, is_exposed or exposures != self.capture.deciding.exposures
            _check_guessed(not guesses or is_right(guesses, trial, after) and not is_exposed)
            if not trial.found_more and not (is_first and is_exposed):
                is_even = trips is None or _contents(test) == contents
                found = self._emit_loop(trial, after, before, (test_nodes, [predicate]), body_nodes, has_run,
                                        trips if is_even else None)
                self._guesses.note(test, body, slots)
                return found
            before.restore()
            wanted = trial.wanted(after, before)
            if any((key[0], WHOLE) in wanted for key in wanted if isinstance(key, tuple) and key[1] != WHOLE):
                self.capture.abort("a loop on array values both changes the length of a list and assigns to its items")
            slots = {key: self._slot(key, flags, before, state, names, after[key]) for key, flags in wanted.items()}
        return self.capture.abort("a loop on array values changes other objects in each iteration")

    def _test(self, test: Callable, *state: Any) -> Tuple:
        try:
            return (truth_of(test(*state)),)
        except Exception as error:      # user code raised it
            return self.capture.abort(f"{type(error).__name__} in the test of a loop on array values")

    def _body(self, body: Callable, *state: Any) -> Tuple:
        """The state after the body; where it raises, the host does so if the loop runs, and the state does not matter."""
        try:
            return body(*state)
        except BaseException as error:  # user code raised it
            if not is_of_user_code(error):
                raise
            self.staging.blocks.raise_at_run(error)
            return state

    @contextlib.contextmanager
    def _iteration(self) -> Iterator[None]:
        self.staging.in_loop += 1
        try:
            yield
        finally:
            self.staging.in_loop -= 1

    @contextlib.contextmanager
    def _on_trial(self, trial: Trial) -> Iterator[None]:
        self.trials.append(trial)
        try:
            yield
        finally:
            self.trials.pop()

    def _tested_in_body(self, again: Any, test: Callable, body: Callable, state: Tuple, names: Sequence[str]) -> Tuple:
        """A loop whose test has effects, once before the loop, where it was captured, and once after each iteration."""
        tested = functools.partial(_and_tested, self.staging.truth, test, body)
        names = (*[names[i] if i < len(names) else "" for i in range(len(state))], "the test")
        return self._carried(None, lambda *inner: inner[-1], tested, (*state, self.staging.truth(again)), names)[:-1]

    def _slot(self, key: Any, flags: Tuple[bool, bool, Dict], before: Snapshot, state: Tuple, names: Sequence[str],
              item: Any) -> "Slot":
        initial = before.read(key) if isinstance(key, tuple) else state[key]
        if isinstance(key, tuple) and before.holds_gradient(key):
            return GradientSlot(self.capture, initial, item)
        if type(initial) is Undefined:
            builder = Branch(before, (), (), {})
            initial = Maybe(self.staging.joins.filler(item.value if type(item) is Maybe else item, builder), False, initial.name)
            self.capture.builder.nodes.extend(builder.nodes)
        if type(initial) is Maybe:
            return MaybeSlot(self.capture, initial, name_at(names, key), flags, present(item))
        name = str(key[1]) if isinstance(key, tuple) else name_at(names, key)
        return slot_of(self.capture, initial, name, flags, item)

    def _emit_loop(self, trial: "Trial", after: Dict[Any, Any], before: Snapshot, test: Tuple, body: List[Node],
                   has_run: bool, trips: Any) -> Tuple:
        capture, slots = self.capture, list(trial.slots.values())
        with self.staging.region() as closing:
            results = [v for key, slot in trial.slots.items() for v in slot.values_of(after[key])]
        check_lengths(capture, trial.slots, after, trips)
        self._keep_sizes_inside([*test[0], *body, *closing], results)
        before.restore(stays=True)
        initial = [v for slot in slots for v in slot.values_of(slot.initial)]
        own = [v for slot in slots for v in slot.inside]
        nodes, outputs = [*body, *closing], results
        if trial.unrelated:
            capture.gradients.crossings.check_loop(trial.unrelated, nodes, dict(zip(own, initial)), dict(zip(own, outputs)))
        free = free_values([*test[0], *nodes], [*test[1], *outputs])
        invariants = [v for v in free if v not in own]
        if trips is not None:
            nodes = [self._reaching_last(node, own[0], invariants) for node in nodes]
        same = _carried_twice(own, initial, outputs)
        regions = tuple(close(capture.builder, part, values, (*own, *invariants), name, same)
                        for part, values, name in ((*test, "test"), (nodes, outputs, "body")))
        capture.event("staged", "while")
        attrs = {"carried": len(own), "runs": has_run}
        made = dict(zip(own, capture.builder.add(OPS["while_"], (*initial, *invariants), attrs, regions, name="loop")))
        return trial.finish([made[same.get(v, v)] for v in own], after, before, has_run)

    def _reaching_last(self, node: Node, place: Value, invariants: Sequence[Value]) -> Node:
        """A node of the body of a ``for`` that goes on to its end; one that takes each item of a list takes the last one, too."""
        reaches = node.op.name == "list_get" and node.inputs[1] is place and node.inputs[0] in invariants and \
            node.outputs[0] in self.capture.index_ranges.reaching
        return replace(node, attrs={**node.attrs, "is_last": True}) if reaches else node

    def _keep_sizes_inside(self, nodes: Sequence[Node], results: Sequence[Value]) -> None:
        """Stop where a loop leaves arrays of a size that each iteration finds out for itself."""
        made = {symbol for node in nodes for inner in node.walk() if inner.op.name == "list_stack"
                for symbol in inner.attrs["extent"].symbols}
        if made and any(not made.isdisjoint(dim.symbols) for v in results for dim in dims_in(v.type)):
            self.capture.abort("a loop on array values leaves arrays whose size is that of a list that grows in it")


def _carried_twice(own: Sequence[Value], initial: Sequence[Value], after: Sequence[Value]) -> Dict[Value, Value]:
    """What a loop carries once more, such as an attribute and a name for one array: it is the same before and after each iteration.

    Gradients of both are then known to be there if those of one are.
    """
    first: Dict[Tuple[Value, Value], Value] = {}
    pairs = [(v, first.setdefault((a, b), v)) for v, a, b in zip(own, initial, after) if isinstance(v.type, Tensor)]
    return {v: other for v, other in pairs if v is not other}


def _check_guessed(is_right: bool) -> None:
    """Stop a capture of a loop that has been taken to carry something else than it does."""
    if not is_right:
        raise CaptureAborted("a loop carries something else than it did before")


def _is_for(test: Callable) -> bool:
    """Whether a test is that of a ``for``, whose state begins with the place."""
    return isinstance(test, functools.partial) and test.func is _has_more


def _contents(test: Callable) -> List[Any]:
    """What the lists hold now that a ``for`` is over."""
    sequence = test.args[0]                             # type: ignore[attr-defined]
    found = [symbolic_items(each) for each in (sequence.over if isinstance(sequence, Parts) else (sequence,))]
    return [items and items.value for items in found]


def _step_of(item: Any, body: Callable, state: Tuple, names: Sequence[str], stop: Optional[Callable[..., Any]]) -> Tuple:
    """The state after the body has run for an item, unless the loop has ended before."""
    if stop is None:
        return body(item, *state)       # type: ignore[no-any-return]
    return dy.cond(dy.not_(stop(*state)), functools.partial(body, item), _unchanged, state, names=names)


def _unchanged(*state: Any) -> Tuple:
    return state


def _has_more(sequence: Any, stop: Any, place: Any, *state: Any) -> Any:
    """The test of a ``for``.  Where the place is known, it is not decided here: the loop finds what holds for all lengths."""
    length = known_length(sequence)
    if type(place) is int and type(length) is SymbolicScalar and length.text is None:
        more = length.capture.numpy.call(operator.gt, (length, place), {})
    else:
        more = place < length
    return more if stop is None else dy.and_(more, lambda: dy.not_(stop(*state)))


def _step(sequence: Any, body: Callable, place: Any, *state: Any) -> Tuple:
    return (place + 1, *body(sequence[place], *state))


def _and_tested(truth: Callable, test: Callable, body: Callable, *state: Any) -> Tuple:
    after = body(*state[:-1])
    return (*after, truth(test(*after)))

"""Decisions on symbolic values: both blocks are captured as regions, their writes joined, and one node is made."""
from __future__ import annotations

import contextlib
import dis
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from ..ir.building import Builder, building
from ..ir.graph import Graph, Node, Value
from ..ir.op import OPS
from ..ir.types import python_scalar
from ..passes.effects import has_effect
from ..passes.rewriting import with_inputs
from ..runtime import dy
from ..runtime.dy import Undefined, read
from .choices import Choice, Choices, is_uncertain
from .locations import error_location
from .rollback import ABSENT, Place, Snapshot
from .values import Maybe, SymbolicArray, SymbolicObject, SymbolicScalar, SymbolicVariable

_NUMBERS = {bool: "py_bool", int: "py_int", float: "py_float"}


class Branch:
    """One captured block: its nodes, what it returned and what it wrote."""

    def __init__(self, nodes: Sequence[Node], results: Tuple, writes: Dict[Place, Any]):
        self.nodes, self.results, self.writes = list(nodes), results, writes
        self.outputs: List[Value] = []
        self.merged: Dict[Tuple[int, int], Callable] = {}


class Staging:
    """The decisions of one capture."""

    def __init__(self, capture: Any):
        self.capture = capture
        self.choices = Choices()
        self.truths: Set[Value] = set()                 # stand for a bool of Python's or NumPy's, who knows
        self.depth = 0

    # --- what converted code calls ------------------------------------------------------------------------------------

    def cond(self, test: Any, then: Callable, orelse: Callable, state: Tuple, names: Sequence[str] = (),
             others: Tuple = ()) -> Tuple:
        """``if`` on a symbolic test.  others: functions that the blocks call."""
        return self._cond(test, then, orelse, state, names, others)

    def _cond(self, test: Any, then: Callable, orelse: Callable, state: Tuple, names: Sequence[str] = (),
              others: Tuple = (), truth: bool = False) -> Tuple:
        predicate = self.predicate(test)
        before = Snapshot(self.capture, (state, then, orelse, *others))
        branches = [self._branch(block, state, before) for block in (then, orelse)]
        return self._join(predicate, branches, before, names, truth)

    def if_exp(self, test: Any, then: Callable, orelse: Callable) -> Any:
        """``a if test else b`` on a symbolic test."""
        return self.cond(test, lambda: (then(),), lambda: (orelse(),), ())[0]

    def and_(self, first: Any, *rest: Callable[[], Any]) -> Any:
        """``first and …``: the rest is evaluated where the first is true."""
        return self._cond(first, lambda: (self._rest(rest, dy.and_),), lambda: (first,), (), truth=True)[0]

    def or_(self, first: Any, *rest: Callable[[], Any]) -> Any:
        """``first or …``: the rest is evaluated where the first is false."""
        return self._cond(first, lambda: (first,), lambda: (self._rest(rest, dy.or_),), (), truth=True)[0]

    def _rest(self, rest: Sequence[Callable[[], Any]], operator: Callable) -> Any:
        return operator(rest[0](), *rest[1:])

    def truth(self, value: Any) -> Any:
        """``bool(value)``, symbolic for symbolic values."""
        if type(value) is SymbolicArray and value.value not in self.capture.known:
            return self.capture.numpy_call(bool, (value,), {})
        return value if type(value) is SymbolicScalar and value.text is None else bool(value)

    def is_inexact(self, value: Any) -> bool:
        """Whether a value has the truth of what it is eagerly, but not its type."""
        return type(value) is SymbolicScalar and value.text is None and value.value in self.truths

    def not_(self, value: Any) -> Any:
        """``not value`` of a symbolic value."""
        truth = self.truth(value)
        return self.capture.numpy_call(_negation, (truth,), {}) if type(truth) is SymbolicScalar else not truth

    def predicate(self, test: Any) -> Value:
        """The value of the graph that decides."""
        if type(test) is SymbolicArray and test.size != 1:
            self.capture.abort("the truth of an array with more than one element")
        return test.value

    # --- capturing blocks -----------------------------------------------------------------------------------------------

    def _branch(self, block: Callable, state: Tuple, before: Snapshot) -> Branch:
        with self.region() as nodes:
            try:
                results: Any = block(*state)
            except Exception as error:
                results = self._raise_at_run(error)
        branch = Branch(nodes, results, before.changes())
        before.restore()
        return branch

    def _raise_at_run(self, error: Exception) -> None:
        """Let the host raise what this block raises; what was written before has happened by then."""
        if not (is_raised(error) and is_plain(error)):
            self.capture.abort(f"{type(error).__name__}, raised under a decision on array values, cannot be made again")
        self.capture.store_writes()
        self.capture.host_call(_raise, (type(error), *error.args), {}, (), None, name="raise")
        self.capture.builder.nodes[-1] = replace(self.capture.builder.nodes[-1], loc=error_location(error))

    @contextlib.contextmanager
    def region(self) -> Iterator[List[Node]]:
        """Nodes made inside the block go into a region; the list is complete when the block ends."""
        capture, outer = self.capture, self.capture.builder
        inner = outer.region()
        nodes: List[Node] = inner.nodes
        capture.builder, self.depth = inner, self.depth + 1
        try:
            with building(inner):
                yield nodes
        finally:
            capture.builder, self.depth = outer, self.depth - 1

    # --- loops ----------------------------------------------------------------------------------------------------------

    def for_rest(self, done: Any, iterator: Iterator, body: Callable, state: Tuple, names: Sequence[str],
                 stop: Callable) -> Tuple:
        """The rest of a ``for`` over Python values that ends where an array value says so."""
        return Rest(self, iterator, body, names, stop).unless(done, state)

    def assert_(self, test: Any, message: Optional[Callable[[], Any]] = None) -> None:
        """``assert`` on a symbolic test: checked by the host at every run."""
        text = None if message is None else message()
        self.capture.store_writes()
        self.capture.host_call(_check, (self.truth(test), text), {}, (), None, name="assert")

    def while_(self, again: Any, test: Callable, body: Callable, state: Tuple, names: Sequence[str] = ()) -> Tuple:
        """``while`` whose test of the present state is symbolic.

        What the body changes becomes state of the loop: found by capturing it until nothing new changes.
        """
        before = Snapshot(self.capture, (state, test, body))
        slots: Dict[Any, Slot] = {}
        for _ in range(_MOST_TRIALS):
            trial = Trial(self, before, state, slots, names)
            with self.region() as test_nodes:
                decision = test(*trial.state)
                if not self.capture.decides(decision):
                    self.capture.abort("the test of a loop stops depending on array values inside the loop")
                predicate = self.predicate(decision)
            if trial.changed_by_test(before) or any(map(has_effect, test_nodes)):
                before.restore()
                return self._tested_in_body(again, test, body, state, names)
            with self.region() as body_nodes:
                results = body(*trial.state)
                after = trial.after(results, before)
            if not trial.found_more:
                return self._emit_loop(trial, after, before, (test_nodes, [predicate]), body_nodes)
            wanted = trial.wanted(after)
            before.restore()
            slots = {key: self._slot(key, flags, before, state, names, after[key]) for key, flags in wanted.items()}
        return self.capture.abort("what a loop changes does not settle")

    def _tested_in_body(self, again: Any, test: Callable, body: Callable, state: Tuple, names: Sequence[str]) -> Tuple:
        """A loop whose test has effects, once before the loop, where it was captured, and once after each iteration."""
        def tested(*inner: Any) -> Tuple:
            after = body(*inner[:-1])
            return (*after, self.truth(test(*after)))
        names = (*[names[i] if i < len(names) else "" for i in range(len(state))], "the test")
        return self.while_(None, lambda *inner: inner[-1], tested, (*state, self.truth(again)), names)[:-1]

    def _slot(self, key: Any, flags: Tuple[bool, bool, Dict], before: Snapshot, state: Tuple, names: Sequence[str],
              item: Any) -> "Slot":
        initial = before.read(key) if isinstance(key, tuple) else state[key]
        if type(initial) is Undefined:
            builder = Branch((), (), {})
            initial = Maybe(self._filler(item.value if type(item) is Maybe else item, builder), False, initial.name)
            self.capture.builder.nodes.extend(builder.nodes)
        if type(initial) is Maybe:
            return MaybeSlot(self.capture, initial, _name(names, key), flags)
        return slot_of(self.capture, initial, str(key[1]) if isinstance(key, tuple) else _name(names, key), flags)

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

    # --- joining --------------------------------------------------------------------------------------------------------

    def _join(self, predicate: Value, branches: List[Branch], before: Snapshot, names: Sequence[str],
              truth: bool) -> Tuple:
        then, orelse = self._with_an_end(branches)
        if truth and _decide_unlike(*then.results, *orelse.results):
            joined = [self._merge_truths(*then.results, *orelse.results, branches)]
        else:
            joined = [self._merge(a, b, branches, _name(names, i))
                      for i, (a, b) in enumerate(zip(then.results, orelse.results))]
        places = {}
        for place in {**then.writes, **orelse.writes}:
            a, b = (branch.writes.get(place, _SAME) for branch in branches)
            a, b = (before.read(place) if side is _SAME else side for side in (a, b))
            places[place] = self._merge(a, b, branches, str(place[1]))
        outputs = self._emit(predicate, branches)
        for place, merged in places.items():
            before.write(place, merged(outputs))
        return tuple([merged(outputs) for merged in joined])

    def _with_an_end(self, branches: List[Branch]) -> List[Branch]:
        """The branches; one that raises gets results and writes that nobody will see."""
        if all(branch.results is None for branch in branches):
            self.capture.abort("both sides of a decision on array values raise")
        for branch, other in zip(branches, reversed(branches)):
            if branch.results is None:
                branch.results = tuple([self._filler_of_name(item, branch) for item in other.results])
                branch.writes = {place: self._filler_of_name(item, branch) for place, item in other.writes.items()}
        return branches

    def _filler_of_name(self, item: Any, branch: Branch) -> Any:
        if type(item) is Maybe:
            return Maybe(self._filler(item.value, branch), False, item.name)
        return self._filler(item, branch)

    def _merge(self, a: Any, b: Any, branches: List[Branch], name: str) -> Callable[[Sequence[Value]], Any]:
        """How to make, from the outputs of the node, the value that is ``a`` or ``b``."""
        if a is b or (type(a) is type(b) and type(a) in (bool, int, float, str, type(None)) and repr(a) == repr(b)):
            return lambda outputs: a
        if type(a) is Undefined and type(b) is Undefined:
            return lambda outputs: a
        if any(type(x) in (Undefined, Maybe) for x in (a, b)):
            return self._merge_maybe(a, b, branches, name)
        if isinstance(a, SymbolicVariable) and isinstance(b, SymbolicVariable):
            return self._merge_variables(a, b, branches, name)
        if type(a) is SymbolicArray and type(b) is SymbolicArray and a.type == b.type:
            index = self._output(branches, a.value, b.value)
            return lambda outputs: SymbolicArray(self.capture, outputs[index])
        kinds = [_number_kind(x) for x in (a, b)]
        if all(_is_truth(x) for x in (a, b)):
            return self._merge_truths(a, b, branches)
        if kinds[0] is not None and kinds[0] == kinds[1]:
            index = self._output(branches, *[self._number(x, branch, kinds[0]) for x, branch in zip((a, b), branches)])
            return lambda outputs: SymbolicScalar(self.capture, kinds[0], value=outputs[index])
        if type(a) is tuple and type(b) is tuple and len(a) == len(b):
            parts = [self._merge(x, y, branches, name) for x, y in zip(a, b)]
            return lambda outputs: tuple([part(outputs) for part in parts])
        self.capture.abort(f"{name} is {_describe(a)} or {_describe(b)}, by a decision on array values",
                           hint="let both branches give the same kind of value")

    def _merge_truths(self, a: Any, b: Any, branches: List[Branch]) -> Callable[[Sequence[Value]], Any]:
        """A bool of Python's or NumPy's: kept as its truth, which may decide, but must not leave the function."""
        values = []
        for item, branch in zip((a, b), branches):
            if _number_kind(item) != "py_bool":
                with self.region() as nodes:
                    item = self.capture.numpy_call(bool, (item,), {}) if self.capture.decides(item) else bool(item)
                branch.nodes += nodes
            values.append(self._number(item, branch, "py_bool"))
        index = self._output(branches, *values)
        exact = all(_number_kind(x) == "py_bool" and not self.is_inexact(x) for x in (a, b))

        def merged(outputs: Sequence[Value]) -> SymbolicScalar:
            if not exact:
                self.truths.add(outputs[index])
            return SymbolicScalar(self.capture, "py_bool", value=outputs[index])
        return merged

    def _merge_maybe(self, a: Any, b: Any, branches: List[Branch], name: str) -> Callable[[Sequence[Value]], Any]:
        """A name that may be unbound: its value where it is bound, and whether it is."""
        there = [x.value if type(x) is Maybe else x for x in (a, b)]
        filled = [self._filler(there[1 - i], branch) if type(x) is Undefined else x
                  for i, (x, branch) in enumerate(zip(there, branches))]
        value = self._merge(*filled, branches, name)
        bound = self._merge(*[x.bound if type(x) is Maybe else type(x) is not Undefined for x in (a, b)], branches, name)
        label = next(x.name for x in (a, b) if type(x) in (Undefined, Maybe))
        return lambda outputs: Maybe(value(outputs), bound(outputs), label)

    def _filler(self, item: Any, branch: Branch) -> Any:
        """Something of the same kind, for where a name is unbound."""
        if type(item) is tuple:
            return tuple([self._filler(part, branch) for part in item])
        kind = _number_kind(item)
        if kind is not None:
            return {"py_bool": False, "py_int": 0, "py_float": 0.0}[kind]
        if not isinstance(item, SymbolicVariable) and type(item) is not SymbolicArray:
            return item
        builder = self.capture.builder.region()
        with building(builder):
            zeros = OPS["full"](shape=item.shape, value=0, dtype=item.dtype)
        branch.nodes += builder.nodes
        array = SymbolicArray(self.capture, zeros)
        if not isinstance(item, SymbolicVariable):
            return array
        filler = SymbolicVariable(self.capture, array, item.requires_grad, item.connected)
        filler.__dict__["filler"] = item
        return filler

    def read(self, maybe: "Maybe") -> Any:
        """The value of a name that may be unbound; the host checks at every run that it is bound."""
        if maybe.bound is not True:
            self.capture.store_writes()
            self.capture.host_call(_check_bound, (maybe.bound, maybe.name), {}, (), None, name="read")
        return maybe.value

    def _merge_variables(self, a: Any, b: Any, branches: List[Branch], name: str) -> Callable[[Sequence[Value]], Any]:
        if a.value.type != b.value.type:
            self.capture.abort(f"{name} is {a.value.type} or {b.value.type}, by a decision on array values")
        known = branches[0].merged.get((id(a), id(b)))
        if known is not None:                           # two names of one Variable in both branches
            return known
        index = self._output(branches, a.value, b.value)
        sides = [self.choices.of(v, self.depth) for v in (a, b)]
        among = {**sides[0].among, **sides[1].among}
        number: Any = min(among)
        position = None
        if Choice(number, among).is_open:
            position = self._output(branches, *[self._selector(side, branch) for side, branch in zip(sides, branches)])
        made: List[SymbolicVariable] = []

        def merged(outputs: Sequence[Value]) -> SymbolicVariable:
            if not made:
                choice = Choice(number if position is None else outputs[position], among)
                made.append(self.choices.variable(self.capture, outputs[index], choice, (a, b), self.depth))
            return made[0]
        branches[0].merged[id(a), id(b)] = merged
        return merged

    def _selector(self, choice: Choice, branch: Branch) -> Value:
        return choice.number if isinstance(choice.number, Value) else self._number(choice.number, branch, "py_int")

    def _output(self, branches: List[Branch], a: Value, b: Value) -> int:
        pair = branches[0].outputs, branches[1].outputs
        for index, found in enumerate(zip(*pair)):
            if found[0] is a and found[1] is b:
                return index
        pair[0].append(a)
        pair[1].append(b)
        return len(pair[0]) - 1

    def _number(self, number: Any, branch: Branch, kind: str) -> Value:
        if type(number) is SymbolicScalar:
            return number.value
        builder = self.capture.builder.region()
        value, = builder.add(OPS["py_constant"], (), {"value": number}, name="number")
        branch.nodes += builder.nodes
        return value

    def _emit(self, predicate: Value, branches: List[Branch]) -> Tuple[Value, ...]:
        captured = free_values([node for b in branches for node in b.nodes], [v for b in branches for v in b.outputs])
        regions = tuple(close(self.capture.builder, b.nodes, b.outputs, captured, name)
                        for b, name in zip(branches, ("then", "orelse")))
        self.capture.event("staged", "if")
        return self.capture.builder.add(OPS["if_"], (predicate, *captured), {}, regions, name="joined")


def slot_of(capture: Any, initial: Any, name: str, flags: Tuple[bool, bool, Dict]) -> Any:
    """The slot for a place that has this before a loop."""
    return VariableSlot(capture, initial, name, *flags) if isinstance(initial, SymbolicVariable) else \
        Slot(capture, initial, name)


class Slot:
    """One place that a loop carries.  initial: what is there before.  inside: the value in the regions."""

    def __init__(self, capture: Any, initial: Any, name: str):
        self.capture, self.initial, self.name = capture, initial, name
        self.kind = _number_kind(initial)
        self.is_truth = capture.staging.is_inexact(initial)
        if self.kind is None and not isinstance(initial, (SymbolicArray, SymbolicVariable)):
            capture.abort(f"{name} is {_describe(initial)} before a loop on array values and changes in it",
                          hint="give it its first value of the same kind before the loop")
        type_ = python_scalar(self.kind) if self.kind else initial._data[0].type if isinstance(initial, SymbolicVariable) \
            else initial.type
        self.inside = [Value(type_, capture.builder.fresh("carried"))]

    def wrap(self, values: Iterator[Value], *_: Any) -> Any:
        """The symbolic form of the place's value."""
        value = next(values)
        if self.is_truth:
            self.capture.staging.truths.add(value)
        return SymbolicScalar(self.capture, self.kind, value=value) if self.kind else SymbolicArray(self.capture, value)

    def values_of(self, item: Any) -> List[Value]:
        """The values of the graph for what is in the place; stops the capture where it is of another kind."""
        if self.kind and _number_kind(item) == self.kind:
            if type(item) is SymbolicScalar:
                if self.capture.staging.is_inexact(item):
                    self.capture.staging.truths.update(self.inside)
                    self.is_truth = True
                return [item.value]
            return [self.capture.builder.add(OPS["py_constant"], (), {"value": item}, name="number")[0]]
        alike = isinstance(self.initial, SymbolicVariable) == isinstance(item, SymbolicVariable)
        value = getattr(item, "value", None) if alike and not self.kind and _number_kind(item) is None else None
        if not isinstance(value, Value) or value.type != self.inside[0].type:
            self.capture.abort(f"{self.name} is {_describe(self.initial)} before a loop on array values and becomes "
                               f"{_describe(item)} in it")
        return [value]


class VariableSlot(Slot):
    """A place of a Variable: its value, and the number of the object that it is.

    requires_grad, connected: of what is there at the start of an iteration.  among: the objects it may be there.
    """

    def __init__(self, capture: Any, initial: SymbolicVariable, name: str, requires_grad: bool, connected: bool,
                 among: Dict[int, Any]):
        super().__init__(capture, initial, name)
        self.depth = capture.staging.depth
        own = capture.staging.choices.of(initial, self.depth)
        self.requires_grad, self.connected = requires_grad or initial.requires_grad, connected or initial.connected
        self.among = {**own.among, **among}
        self.is_open = Choice(0, self.among).is_open
        if self.is_open:
            self.inside.append(Value(python_scalar("py_int"), capture.builder.fresh("which")))

    def wrap(self, values: Iterator[Value], *after: SymbolicVariable) -> SymbolicVariable:
        """The Variable in the place, at the start of an iteration or, with what the body leaves there, after all."""
        array = SymbolicArray(self.capture, next(values))
        made = SymbolicVariable(self.capture, array, self.requires_grad, self.connected or self.is_open and self.requires_grad)
        if self.is_open:
            made.__dict__["choice"] = Choice(next(values), self.among)
        origins = self.capture.staging.choices.origins((self.initial, *after), self.depth)
        made.__dict__["origins"] = origins if after else {**origins, id(made): made}
        made.__dict__["uncertain"] = is_uncertain((self.initial, made, *after))
        return made

    def values_of(self, item: Any) -> List[Value]:
        """Its array and its number."""
        found = super().values_of(item)
        if self.is_open:
            number = self.capture.staging.choices.of(item, self.depth).number
            found.append(number if isinstance(number, Value) else
                         self.capture.builder.add(OPS["py_constant"], (), {"value": number}, name="number")[0])
        return found


class MaybeSlot:
    """A place that may be unbound: its value, and whether it is bound."""

    def __init__(self, capture: Any, initial: Maybe, name: str, flags: Tuple[bool, bool, Dict]):
        self.initial = initial
        self.value, self.bound = slot_of(capture, initial.value, name, flags), Slot(capture, initial.bound, name)
        self.inside = self.value.inside + self.bound.inside

    def wrap(self, values: Iterator[Value], *after: Any) -> Maybe:
        """The symbolic form of the place's value."""
        there = [item.value if type(item) is Maybe else item for item in after]
        return Maybe(self.value.wrap(values, *there), self.bound.wrap(values), self.initial.name)

    def values_of(self, item: Any) -> List[Value]:
        """The two values of the graph for what is in the place."""
        parts = (item.value, item.bound) if type(item) is Maybe else (item, True)
        return self.value.values_of(parts[0]) + self.bound.values_of(parts[1])


class Trial:
    """One capture of a loop's test and body with a guess at what the loop carries."""

    def __init__(self, staging: Staging, before: Snapshot, state: Tuple, slots: Dict[Any, Slot], names: Sequence[str]):
        self.capture, self.initial, self.slots, self.names = staging.capture, state, slots, names
        self.inside = {key: slot.wrap(iter(slot.inside)) for key, slot in slots.items()}
        self.state = tuple([self.inside.get(i, item) for i, item in enumerate(state)])
        for key, item in self.inside.items():
            if isinstance(key, tuple):
                before.write(key, item)
        self.found: Dict[Any, Any] = {}

    @property
    def found_more(self) -> bool:
        """Whether the body changed something that was not carried, or a Variable came to require grad."""
        return bool(self.found)

    def changed_by_test(self, before: Snapshot) -> bool:
        """Whether the test of the loop wrote something."""
        return any(self.inside.get(place, _SAME) is not item for place, item in before.changes().items())

    def after(self, results: Tuple, before: Snapshot) -> Dict[Any, Any]:
        """What is in every carried place after the body; notes the places that should be carried too."""
        found: Dict[Any, Any] = {i: item for i, item in enumerate(results)
                                 if i in self.slots or item is not self.state[i]}
        found.update(before.changes())
        for key in self.slots:
            if key not in found:
                found[key] = before.read(key) if isinstance(key, tuple) else results[key]
        for key, item in found.items():
            if key not in self.slots or self._is_more(item, self.slots[key]):
                self.found[key] = item
        return found

    def _is_more(self, item: Any, slot: Any) -> bool:
        """Whether a Variable has more about it than the slot was made for."""
        item, slot = _present(item), _present(slot)
        if not isinstance(item, SymbolicVariable) or not isinstance(slot, VariableSlot):
            return False
        among = self.capture.staging.choices.of(item, slot.depth).among
        return item.requires_grad > slot.requires_grad or item.connected > (slot.connected or slot.is_open) or \
            not slot.among.keys() >= among.keys()

    def wanted(self, after: Dict[Any, Any]) -> Dict[Any, Tuple[bool, bool, Dict]]:
        """The places of the next guess, with what Variables there are: with gradient, with a creator, which objects."""
        found = {}
        for key in {**self.slots, **self.found}:
            slot, item = _present(self.slots.get(key)), _present(after[key])
            sides = [x for x in (slot, item) if isinstance(x, (VariableSlot, SymbolicVariable))]
            among = dict(slot.among) if isinstance(slot, VariableSlot) else {}
            if isinstance(item, SymbolicVariable):
                among.update(self.capture.staging.choices.of(item, self.capture.staging.depth).among)
            found[key] = any(x.requires_grad for x in sides), any(x.connected for x in sides), among
        return found

    def finish(self, values: Sequence[Value], after: Dict[Any, Any], before: Snapshot) -> Tuple:
        """The local names after the loop; writes what it left in objects."""
        state, rest = list(self.initial), iter(values)
        alike: Dict[Tuple[int, int], SymbolicVariable] = {}
        for key, slot in self.slots.items():
            item = slot.wrap(rest, after[key])
            if isinstance(item, SymbolicVariable):      # two places of one Variable, before and after each iteration
                item = alike.setdefault((id(slot.initial), id(after[key])), item)
            if isinstance(key, tuple):
                before.write(key, item)
            else:
                state[key] = item
        return tuple(state)


def _present(item: Any) -> Any:
    return item.value if type(item) in (Maybe, MaybeSlot) else item


def _check_bound(bound: bool, name: str) -> None:
    if not bound:
        read(Undefined(name))


def is_raised(error: Exception) -> bool:
    """Whether a ``raise`` statement made the exception; others may come from what is symbolic."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is not None and step.tb_frame.f_code.co_code[step.tb_lasti] == dis.opmap["RAISE_VARARGS"] and \
        not (error.args and type(error.args[0]) is str and error.args[0].startswith("exceptions must derive"))


def is_plain(error: Exception) -> bool:
    """Whether the exception is its class and arguments, and nothing more."""
    own = [cls for cls in type(error).__mro__ if "__init__" in cls.__dict__ or "__new__" in cls.__dict__]
    return own[0].__module__ == "builtins" and error.__cause__ is None and not error.__dict__


def _raise(kind: type, *args: Any) -> None:
    raise kind(*args)


def _check(test: Any, message: Any) -> None:
    if not test:
        raise AssertionError if message is None else AssertionError(message)


_SAME = object()

#: So many times the body of a loop is captured before it must be clear what it carries.
_MOST_TRIALS = 8


def _negation(value: Any) -> bool:
    return not value


def _name(names: Sequence[str], index: int) -> str:
    return f"`{names[index]}`" if index < len(names) else "a value"


def _describe(value: Any) -> str:
    if type(value) is Undefined:
        return "unbound"
    if value is ABSENT:
        return "absent"
    if isinstance(value, SymbolicVariable):
        return f"a Variable {value.value.type}"
    if type(value) is SymbolicArray:
        return f"an array {value.type}"
    return repr(value) if value is None or type(value) in (bool, int, float, str) else f"a {type(value).__name__}"


def _number_kind(value: Any) -> Optional[str]:
    return value.kind if type(value) is SymbolicScalar else _NUMBERS.get(type(value))


def _is_truth(value: Any) -> bool:
    if type(value) is SymbolicArray:
        return value.is_scalar and value.dtype.kind == "b"
    return _number_kind(value) == "py_bool"


def _decide_unlike(a: Any, b: Any) -> bool:
    """Whether these are numbers of different types, which can only be joined as truths."""
    kinds = [_number_kind(x) or (x.type if type(x) is SymbolicArray and x.size == 1 else None) for x in (a, b)]
    return None not in kinds and kinds[0] != kinds[1]


def free_values(nodes: Sequence[Node], outputs: Sequence[Value]) -> Tuple[Value, ...]:
    """The values that nodes read, or that are outputs, and that none of the nodes makes; in order."""
    made = {v for node in nodes for v in node.outputs}
    read = [v for node in nodes for v in node.inputs] + list(outputs)
    return tuple(dict.fromkeys(v for v in read if v not in made))


def close(builder: Builder, nodes: Sequence[Node], outputs: Sequence[Value], captured: Sequence[Value], name: str) -> Graph:
    """The region of these nodes: what it reads from outside becomes its inputs."""
    inner = {v: Value(v.type, builder.fresh(v.name)) for v in captured}
    closed = tuple(with_inputs(node, tuple(inner.get(v, v) for v in node.inputs)) for node in nodes)
    return Graph(tuple(inner.values()), tuple(inner.get(v, v) for v in outputs), closed, name)



class Rest:
    """The iterations that are left of a loop whose end is symbolic: each under the decision before it."""

    def __init__(self, staging: Staging, iterator: Iterator, body: Callable, names: Sequence[str], stop: Callable):
        self.staging, self.iterator, self.body, self.names, self.stop = staging, iterator, body, names, stop

    def unless(self, done: Any, state: Tuple) -> Tuple:
        """The local names after the loop, if it goes on unless ``done``."""
        return self.staging.cond(done, _keep, self, state, self.names, (self.body, self.stop))

    def __call__(self, *state: Any) -> Tuple:
        for item in self.iterator:
            state = self.body(item, *state)
            done = self.stop(*state)
            if self.staging.capture.decides(done):
                return self.unless(done, state)
            if done:
                break
        return state


def _keep(*state: Any) -> Tuple:
    return state


def _handler(method: Callable[..., Any]) -> Callable[..., Any]:
    """A handler of `dy` whose first argument decides: left to Python where its truth is known."""
    def handle(capture: Any, decision: Any, *arguments: Any) -> Any:
        if capture is None or not capture.decides(decision):
            return NotImplemented
        return method(capture.staging, decision, *arguments)
    return handle


#: What takes over the functions of `dy` where a symbolic value decides.
HANDLERS: Dict[str, Callable[..., Any]] = {
    "cond": _handler(Staging.cond), "if_exp": _handler(Staging.if_exp), "and_": _handler(Staging.and_),
    "or_": _handler(Staging.or_), "not_": _handler(Staging.not_), "while_": _handler(Staging.while_),
    "for_rest": _handler(Staging.for_rest), "assert_": _handler(Staging.assert_),
    "read": lambda capture, maybe: capture.staging.read(maybe) if type(maybe) is Maybe else NotImplemented,
}

#: The types that `dy` asks these for.
SYMBOLIC_TYPES = frozenset((SymbolicArray, SymbolicScalar, SymbolicObject, SymbolicVariable, Maybe))

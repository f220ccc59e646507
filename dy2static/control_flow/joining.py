"""Joining what two branches leave behind: one node, and one value for each name and place that they write."""
from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from ..heap.regions import close, free_values
from ..ir.building import building
from ..ir.graph import Value
from ..ir.op import OPS
from ..ir.types import type_of
from ..lowering.host import numpy_call
from ..passes.rewriting import with_inputs
from ..runtime.host_calls import Call, as_it_is
from ..runtime.unbound import Undefined
from ..symbolic.kinds import decides_unlike, describe, is_truth, name_at, number_kind
from ..symbolic.list_kinds import is_list, kind_of
from ..symbolic.list_lengths import chosen
from ..symbolic.lists import Contents, StagedList
from ..symbolic.rollback import Snapshot
from ..symbolic.sizes import Size
from ..symbolic.values import Maybe, SymbolicArray, SymbolicScalar, SymbolicVariable
from ..symbolic.variable_identity import Choice
from .branches import Branch, Decided
from .joining_kinds import differ_in_kind, merge_kinds
from .joining_sizes import differ_in_size, merge_sizes
from .loop_carried_trees import compound_of, fill, is_finite, is_like, is_plain, rebuilt
from .protocols import Staging

_SAME = object()


def _numpy_type(item: Any) -> Any:
    """The type of a number of NumPy's; None for anything else."""
    is_number = item.is_scalar if type(item) is SymbolicArray else isinstance(item, np.generic)
    return item.dtype.type if is_number else None


class Joins:
    """Joins the captured branches of one capture's decisions."""

    def __init__(self, staging: Staging):
        self.staging, self.capture = staging, staging.capture

    def join(self, predicate: Value, branches: List[Branch], before: Optional[Snapshot], names: Sequence[str],
              truth: bool) -> Tuple:
        """Join two captured branches into one node, and return the results."""
        then, orelse = self._with_an_end(branches)
        if before is not None:
            before.take_lists_whole([branch.writes for branch in branches])
            before.check_orders([branch.writes for branch in branches])
        if truth and decides_unlike(*then.results, *orelse.results):
            joined = [self._merge_truths(*then.results, *orelse.results, branches)]
        else:
            joined = [self._merge(a, b, branches, name_at(names, i))
                      for i, (a, b) in enumerate(zip(then.results, orelse.results))]
        places = {}
        for place in {**then.writes, **orelse.writes}:
            a, b = (branch.writes.get(place, _SAME) for branch in branches)
            a, b = (before.read(place) if side is _SAME else side for side in (a, b))
            merge = self._merge_gradients if before.holds_gradient(place) else self._merge
            places[place] = merge(a, b, branches, str(place[1]))
        outputs = self._emit(predicate, branches)
        for place, merged in places.items():
            before.write(place, merged(outputs))
        return tuple([merged(outputs) for merged in joined])

    def _with_an_end(self, branches: List[Branch]) -> List[Branch]:
        """The branches; one that raises gets results and writes that are never used."""
        if all(branch.results is None for branch in branches):
            self.capture.abort("both sides of a decision on array values raise")
        for branch, other in zip(branches, reversed(branches)):
            if branch.results is None:
                branch.results = tuple([self._filler_of_name(item, branch) for item in other.results])
                branch.writes = {place: self._filler_of_name(item, branch) for place, item in other.writes.items()}
        return branches

    def _filler_of_name(self, item: Any, branch: Branch) -> Any:
        if type(item) is Maybe:
            return Maybe(self.filler(item.value, branch), False, item.name)
        return self.filler(item, branch)

    def _merge(self, a: Any, b: Any, branches: List[Branch], name: str) -> Callable[[Sequence[Value]], Any]:
        """How to make, from the outputs of the node, the value that is ``a`` or ``b``."""
        if a is b or (type(a) is type(b) and type(a) in (bool, int, float, str, type(None)) and repr(a) == repr(b)):
            return lambda outputs: a
        if type(a) is Undefined and type(b) is Undefined:
            return lambda outputs: a
        if type(a) is Contents and type(b) is Contents:
            return self._merge_lists(a, b, branches)
        if any(type(x) in (Undefined, Maybe) for x in (a, b)):
            return self._merge_maybe(a, b, branches, name)
        if differ_in_kind(a, b):
            return merge_kinds(self, a, b, branches, name)
        if isinstance(a, SymbolicVariable) and isinstance(b, SymbolicVariable):
            return self.merge_variables(a, b, branches, name)
        if type(a) is SymbolicArray and type(b) is SymbolicArray and a.type == b.type:
            return self._merge_arrays(a, b, branches)
        if differ_in_size(a, b) and self.staging.path.was_here() and not self.staging.in_loop:
            return merge_sizes(self, a, b, branches)
        if any(type(x) is Size for x in (a, b)):
            return self._merge(*[self._of_size(x, branch) for x, branch in zip((a, b), branches)], branches, name)
        kinds = [number_kind(x) for x in (a, b)]
        if all(is_truth(x) for x in (a, b)):
            return self._merge_truths(a, b, branches)
        if any(isinstance(x, np.generic) and type(x) is not SymbolicArray for x in (a, b)) and _numpy_type(a) is _numpy_type(b):
            return self._merge(*[self._numpy_number(x, branch) for x, branch in zip((a, b), branches)], branches, name)
        if kinds[0] is not None and kinds[0] == kinds[1]:
            index = self.output(branches, *[self._number(x, branch, kinds[0]) for x, branch in zip((a, b), branches)])
            return lambda outputs: SymbolicScalar(self.capture, kinds[0], value=outputs[index])
        if type(a) is tuple and type(b) is tuple and len(a) == len(b):
            parts = [self._merge(x, y, branches, name) for x, y in zip(a, b)]
            return lambda outputs: tuple([part(outputs) for part in parts])
        if is_like(a, b):
            joined = self._merge_containers(a, b, branches, name)
            if joined is not None:
                return joined
            self.capture.abort(f"which {'list' if isinstance(a, list) else 'dict' if type(a) is dict else 'object'} {name} is "
                               f"depends on a decision on array values")
        if is_list(a) and is_list(b) and self._may_be_chosen(a, b, branches):
            return self._merge_grown(a, b, branches)
        kinds = dict.fromkeys([describe(a), describe(b)])
        if len(kinds) == 1:
            self.capture.abort(f"{name} is {describe(a)} whose structure depends on a decision on array values")
        self.capture.abort(f"{name} is {' or '.join(kinds)}, by a decision on array values",
                           hint="let both branches give the same kind of value")

    def _merge_arrays(self, a: SymbolicArray, b: SymbolicArray, branches: List[Branch]) -> Callable[[Sequence[Value]], Any]:
        """An array that may share memory with either."""
        index = self.output(branches, *[branch.value_of(x, is_kept=False) for x, branch in zip((a, b), branches)])
        decided = Decided(self.staging.path.decision)

        def merged(outputs: Sequence[Value]) -> SymbolicArray:
            made = SymbolicArray(self.capture, outputs[index])
            if not made.is_scalar:
                self.capture.array_writes.chose(made, (a, b), decided)
            return made
        return merged

    def _merge_gradients(self, a: Any, b: Any, branches: List[Branch], name: str) -> Callable[[Sequence[Value]], Any]:
        """The gradient that a Variable keeps: an array whose identity does not matter."""
        alike = [x for x in (a, b) if isinstance(x, SymbolicVariable) and not x.connected and "choice" not in x.__dict__]
        if len(alike) < 2 or a.value.type != b.value.type or a.requires_grad is not b.requires_grad:
            self.capture.abort("the gradient of a Variable depends on a decision on array values")
        is_own = all(self.capture.array_writes.is_own(x._data[0]) for x in (a, b))
        index = self.output(branches, *[branch.value_of(x) for x, branch in zip((a, b), branches)])

        def merged(outputs: Sequence[Value]) -> SymbolicVariable:
            made = SymbolicVariable(self.capture, SymbolicArray(self.capture, outputs[index]), a.requires_grad)
            if is_own:
                self.capture.array_writes.filled(made._data[0])
            return made
        return merged

    def _merge_containers(self, a: Any, b: Any, branches: List[Branch], name: str) -> Optional[Callable]:
        """A container with joined parts; None where it could be seen that it is another object.

        One that only one branch makes, where the other has none, stays the object that it is.
        """
        known = branches[0].merged.get((id(a), id(b)))
        if known is not None:
            return known
        made = [item for item in (a, b) if id(item) not in self.staging.made_up]
        if len(made) == 1 and branches[0].before.holds(made[0]):
            return None
        if len(made) > 1 and not (all(map(is_plain, made)) and self._may_be_chosen(a, b, branches)):
            return None
        parts = [self._merge(x, y, branches, name) for x, y in
                 zip(*[compound_of(item).parts for item in (a, b)])]            # type: ignore[union-attr]
        found: List[Any] = []

        def merged(outputs: Sequence[Value]) -> Any:
            if not found:
                joined = [part(outputs) for part in parts]
                if len(made) == 1:
                    found.append(made[0])
                    fill(made[0], joined)
                else:
                    found.append(rebuilt(a, joined))
                    for side in made:
                        self.staging.replaced.note(side, found[0], self.staging.path.decision)
            return found[0]
        branches[0].merged[id(a), id(b)] = merged
        return merged

    def _may_be_chosen(self, a: Any, b: Any, branches: List[Branch]) -> bool:
        """Whether no branch changes one of the containers, which was there before then.

        Outside of loops the rest of the function is rather captured for each branch.
        """
        written = {place[0] for branch in branches for place in branch.writes}
        return bool(self.staging.in_loop or self.staging.path.was_here()) and written.isdisjoint((id(a), id(b)))

    def _merge_grown(self, a: list, b: list, branches: List[Branch]) -> Callable[[Sequence[Value]], Any]:
        """A list of which the decision gives the length, too."""
        known = branches[0].merged.get((id(a), id(b)))
        if known is not None:
            return known
        contents = self._merge_lists(Contents(list.copy(a)), Contents(list.copy(b)), branches)
        found: List[StagedList] = []

        def merged(outputs: Sequence[Value]) -> StagedList:
            if not found:
                found.append(StagedList(self.capture, contents(outputs).items))
                for side in (a, b):
                    self.staging.replaced.note(side, found[0], self.staging.path.decision)
            return found[0]
        branches[0].merged[id(a), id(b)] = merged
        return merged

    def _numpy_number(self, item: Any, branch: Branch) -> SymbolicArray:
        """A number of NumPy's as one of the graph."""
        if type(item) is SymbolicArray:
            return item
        builder = self.capture.builder.region()
        same = np.bool_ if isinstance(item, np.bool_) else np.positive      # which takes no truths
        call = Call(same, (item,), {}, as_it_is, "positive", True)
        value, = builder.add(numpy_call, (), {"call": call, "types": (type_of(item),)}, name="number")
        branch.nodes += builder.nodes
        return SymbolicArray(self.capture, value)

    def _of_size(self, item: Any, branch: Branch) -> Any:
        """A size as a number of the graph, at the end of the branch; anything else as it is."""
        if type(item) is not Size:
            return item
        with self.staging.region() as nodes:
            number = item.number
        branch.nodes += nodes
        return number

    def _merge_lists(self, a: Contents, b: Contents, branches: List[Branch]) -> Callable[[Sequence[Value]], Any]:
        """What a list holds: item by item where its length is the same, else as a list of the graph."""
        if a.symbolic is None and b.symbolic is None and len(a.items) == len(b.items):
            parts = [self._merge(x, y, branches, "an item of a list") for x, y in zip(a.items, b.items)]
            return lambda outputs: Contents([part(outputs) for part in parts])
        merged = self.staging.in_loop or self.staging.growing or self.staging.path.was_here()
        if a.symbolic is None and b.symbolic is None and not merged:
            self.capture.abort("a list grows or shrinks under a decision on array values")
        like, found = kind_of(self.capture, (a, b)), []
        for side, branch in zip((a, b), branches):
            with self.staging.region() as nodes:
                found.append(side.as_items(self.capture, like))
            branch.nodes += nodes
        index = self.output(branches, found[0].value, found[1].value)
        count = chosen(branches[0].lengths, *found)
        return lambda outputs: Contents([found[0].joined(found[1], outputs[index]).counted(*count)])

    def _merge_truths(self, a: Any, b: Any, branches: List[Branch]) -> Callable[[Sequence[Value]], Any]:
        """A bool of Python's or NumPy's: kept as its truth, which may decide, but must not leave the function."""
        values = []
        for item, branch in zip((a, b), branches):
            if number_kind(item) != "py_bool":
                with self.staging.region() as nodes:
                    item = self.capture.numpy.call(bool, (item,), {}) if self.capture.decides(item) else bool(item)
                branch.nodes += nodes
            values.append(self._number(item, branch, "py_bool"))
        index = self.output(branches, *values)
        exact = all(number_kind(x) == "py_bool" and not self.staging.is_inexact(x) for x in (a, b))

        def merged(outputs: Sequence[Value]) -> SymbolicScalar:
            if not exact:
                self.staging.truths[outputs[index]] = Decided(self.staging.path.decision)
            return SymbolicScalar(self.capture, "py_bool", value=outputs[index])
        return merged

    def _merge_maybe(self, a: Any, b: Any, branches: List[Branch], name: str) -> Callable[[Sequence[Value]], Any]:
        """A name that may be unbound: its value where it is bound, and whether it is."""
        there = [x.value if type(x) is Maybe else x for x in (a, b)]
        filled = [self.filler(there[1 - i], branch) if type(x) is Undefined else x
                  for i, (x, branch) in enumerate(zip(there, branches))]
        value = self._merge(*filled, branches, name)
        bound = self._merge(*[x.bound if type(x) is Maybe else type(x) is not Undefined for x in (a, b)], branches, name)
        label = next(x.name for x in (a, b) if type(x) in (Undefined, Maybe))
        return lambda outputs: Maybe(value(outputs), bound(outputs), label)

    def filler(self, item: Any, branch: Branch) -> Any:
        """Something of the same kind, for where a name is unbound."""
        if type(item) is tuple:
            return tuple([self.filler(part, branch) for part in item])
        if not isinstance(item, tuple) and is_finite(item) and not branch.before.holds(item):
            made = rebuilt(item, [self.filler(part, branch) for part in compound_of(item).parts])  # type: ignore[union-attr]
            self.staging.made_up[id(made)] = made
            return made
        if type(item) is Contents and item.symbolic is None:
            return Contents([self.filler(part, branch) for part in item.items])
        if type(item) is Contents:
            with self.staging.region() as nodes:
                nothing = OPS["nothing"](type=item.symbolic.value.type)
            branch.nodes += nodes
            return Contents([item.symbolic.replaced(nothing)])
        kind = number_kind(item)
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

    def merge_variables(self, a: Any, b: Any, branches: List[Branch], name: str) -> Callable[[Sequence[Value]], Any]:
        """A Variable that is one of two."""
        if a.value.type != b.value.type:
            self.capture.abort(f"{name} is {describe(a)} or {describe(b)}, by a decision on array values")
        known = branches[0].merged.get((id(a), id(b)))
        if known is not None:                           # two names of one Variable in both branches
            return known
        index = self.output(branches, *[branch.value_of(x) for x, branch in zip((a, b), branches)])
        sides = [self.staging.choices.of(v, self.staging.depth) for v in (a, b)]
        among = {**sides[0].among, **sides[1].among}
        number: Any = min(among)
        position = None
        if Choice(number, among).is_open:
            position = self.output(branches, *[self._selector(side, branch) for side, branch in zip(sides, branches)])
        made: List[SymbolicVariable] = []

        def merged(outputs: Sequence[Value]) -> SymbolicVariable:
            if not made:
                choice = Choice(number if position is None else outputs[position], among)
                made.append(self.staging.choices.variable(self.capture, outputs[index], choice, (a, b), self.staging.depth))
            return made[0]
        branches[0].merged[id(a), id(b)] = merged
        return merged

    def _selector(self, choice: Choice, branch: Branch) -> Value:
        return choice.number if isinstance(choice.number, Value) else self._number(choice.number, branch, "py_int")

    def output(self, branches: List[Branch], a: Value, b: Value) -> int:
        """The place of what is ``a`` or ``b`` among the outputs of the node."""
        pair = branches[0].outputs, branches[1].outputs
        for index, found in enumerate(zip(*pair)):
            if found[0] is a and found[1] is b:
                return index
        pair[0].append(a)
        pair[1].append(b)
        return len(pair[0]) - 1

    def _number(self, number: Any, branch: Branch, kind: str) -> Value:
        if type(number) is SymbolicScalar:
            return number.truth if kind == "py_bool" else number.value
        builder = self.capture.builder.region()
        value, = builder.add(OPS["py_constant"], (), {"value": number}, name="number")
        branch.nodes += builder.nodes
        return value

    def _emit(self, predicate: Value, branches: List[Branch]) -> Tuple[Value, ...]:
        for b in branches:
            if b.names:
                b.nodes = [with_inputs(node, tuple([b.names.get(v, v) for v in node.inputs])) for node in b.nodes]
                b.outputs = [b.names.get(v, v) for v in b.outputs]
        captured = free_values([node for b in branches for node in b.nodes], [v for b in branches for v in b.outputs])
        regions = tuple(close(self.capture.builder, b.nodes, b.outputs, captured, name)
                        for b, name in zip(branches, ("then", "orelse")))
        self.capture.event("staged", "if")
        return self.capture.builder.add(OPS["if_"], (predicate, *captured), {}, regions, name="joined")

"""The places that a loop carries, and their values in its regions."""
from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple

from ..capture_context import CaptureContext
from ..ir.graph import Value
from ..ir.op import OPS
from ..ir.types import python_scalar
from ..symbolic.kinds import describe, number_kind
from ..symbolic.least_numbers import Least
from ..symbolic.list_kinds import is_list
from ..symbolic.lists import Contents
from ..symbolic.values import Maybe, SymbolicArray, SymbolicScalar, SymbolicVariable
from ..symbolic.variable_identity import Choice, is_uncertain
from .loop_carried_lists import GrownSlot, ListSlot
from .loop_carried_trees import compound_of, is_like, rebuilt

#: In place of the flags of a place: what is in it before a loop stays in it; it is a number that becomes no less.
STAYS, COUNTS = "stays", "counts"


def slot_of(capture: CaptureContext, initial: Any, name: str, flags: Any, after: Any = None) -> Any:
    """The slot for a place that has this before a loop."""
    if flags == STAYS:
        return Unchanged(capture, initial, name)
    if is_like(initial, after) and isinstance(flags, list):
        return CompoundSlot(capture, initial, name, flags, after)
    if type(initial) is Contents:
        return ListSlot(capture, initial, "a list", flags, after)
    if is_list(initial) and is_list(after):
        return GrownSlot(capture, initial, name, flags, after)
    if flags == COUNTS:
        return CounterSlot(capture, initial, name)
    return VariableSlot(capture, initial, name, *flags) if isinstance(initial, SymbolicVariable) else \
        Slot(capture, initial, name)


class Slot:
    """One place that a loop carries.  initial: what is there before.  inside: the value in the regions."""

    def __init__(self, capture: CaptureContext, initial: Any, name: str):
        self.capture, self.initial, self.name = capture, initial, name
        self.kind = number_kind(initial)
        self.is_truth = self._known_as(initial)
        if self.kind is None and not isinstance(initial, (SymbolicArray, SymbolicVariable)):
            capture.abort(f"{name} is {describe(initial)} before a loop on array values and changes in it",
                          hint="give it a first value of the same kind before the loop")
        type_ = python_scalar(self.kind) if self.kind else initial._data[0].type if isinstance(initial, SymbolicVariable) \
            else initial.type
        self.inside = [Value(type_, capture.builder.fresh("carried"))]

    def _known_as(self, item: Any) -> Any:
        """Which decision a number is owed to, of which only the truth is known; None for all others."""
        staging = self.capture.staging
        return staging.truths[item.truth] if staging.is_inexact(item) else None

    def wrap(self, values: Iterator[Value], *_: Any) -> Any:
        """The symbolic form of the place's value."""
        value = next(values)
        if self.is_truth:
            self.capture.staging.truths[value] = self.is_truth
        return SymbolicScalar(self.capture, self.kind, value=value) if self.kind else SymbolicArray(self.capture, value)

    def values_of(self, item: Any) -> List[Value]:
        """The values of the graph for what is in the place; stops the capture where it is of another kind."""
        if isinstance(item, SymbolicVariable):
            item._data[0].shared = "kept"
            self.capture.array_writes.by_reference(item._data[0])
        if self.kind and number_kind(item) == self.kind:
            if type(item) is SymbolicScalar:
                self.is_truth = self.is_truth or self._known_as(item)
                if self.is_truth:
                    self.capture.staging.truths[self.inside[0]] = self.is_truth
                return [item.truth]
            return [self.capture.builder.add(OPS["py_constant"], (), {"value": item}, name="number")[0]]
        alike = isinstance(self.initial, SymbolicVariable) == isinstance(item, SymbolicVariable)
        value = getattr(item, "value", None) if alike and not self.kind and number_kind(item) is None else None
        if not isinstance(value, Value) or value.type != self.inside[0].type:
            self.capture.abort(f"{self.name} is {describe(self.initial)} before a loop on array values and becomes "
                               f"{describe(item)} in it")
        return [value]


def stays(item: Any, other: Any) -> bool:
    """Whether both are one object, or equal constants."""
    constant = type(item) is type(other) and type(item) in (bool, int, float, str, type(None))
    return item is other or constant and repr(item) == repr(other)


class Unchanged:
    """A part of a compound that is the same in every iteration."""

    def __init__(self, capture: CaptureContext, initial: Any, name: str):
        self.capture, self.initial, self.name = capture, initial, name
        self.inside: List[Value] = []

    def wrap(self, values: Iterator[Value], *_: Any) -> Any:
        """What it is."""
        return self.initial

    def values_of(self, item: Any) -> List[Value]:
        """None at all."""
        return []


class CompoundSlot:
    """A place of a tuple, or of a container that every iteration makes anew: the slots of its parts."""

    def __init__(self, capture: CaptureContext, initial: Any, name: str, flags: List, after: Any):
        self.capture, self.initial, self.name = capture, initial, name
        parts = zip(compound_of(initial).parts, flags, compound_of(after).parts)        # type: ignore[union-attr]
        self.parts = [slot_of(capture, part, name, flag, new) for part, flag, new in parts]

    def containers_in(self, item: Any) -> List[Tuple[Any, List[Any]]]:
        """What can be changed in place of such a compound, with its parts, but for what stays."""
        parts = compound_of(item).parts                         # type: ignore[union-attr]
        own = [] if isinstance(item, tuple) else [(item, parts)]
        return own + [each for slot, part in zip(self.parts, parts) if isinstance(slot, CompoundSlot)
                      for each in slot.containers_in(part)]

    @property
    def inside(self) -> List[Value]:
        """The values in the regions, of one part after the other."""
        return [value for part in self.parts for value in part.inside]

    def wrap(self, values: Iterator[Value], *after: Any) -> Any:
        """What is in the place."""
        found = [compound_of(item).parts for item in after]     # type: ignore[union-attr]
        return rebuilt(self.initial, [part.wrap(values, *[parts[k] for parts in found]) for k, part in enumerate(self.parts)])

    def values_of(self, item: Any) -> List[Value]:
        """The values of the graph for all parts."""
        if not is_like(self.initial, item):
            self.capture.abort(f"{self.name} is {describe(self.initial)} before a loop on array values and becomes "
                               f"{describe(item)} in it")
        parts = compound_of(item).parts                         # type: ignore[union-attr]
        return [value for slot, part in zip(self.parts, parts) for value in slot.values_of(part)]


class VariableSlot(Slot):
    """A place of a Variable: its value, and the number of the object that it is.

    requires_grad, connected: of what is there at the start of an iteration.  among: the objects it may be there.
    """

    def __init__(self, capture: CaptureContext, initial: SymbolicVariable, name: str, requires_grad: bool, connected: bool,
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
            made.__dict__["choice"] = array.choice = Choice(next(values), self.among)
        choices = self.capture.staging.choices
        origins = choices.origins(after if choices.has_run else (self.initial, *after), self.depth)
        made.__dict__["origins"] = origins if after else {**origins, id(made): made}
        made.__dict__["uncertain"] = is_uncertain((self.initial, made, *after))
        self.capture.grad_state.join(made, (self.initial, *after), known=bool(after))
        made.__dict__["decision"] = self.capture.staging.path.decision
        if not after:
            made.__dict__["depth"] = self.depth + 1     # it is one of the iteration
        return made

    def values_of(self, item: Any) -> List[Value]:
        """Its array and its number."""
        found = super().values_of(item)
        if self.is_open:
            number = self.capture.staging.choices.of(item, self.depth).number
            found.append(number if isinstance(number, Value) else
                         self.capture.builder.add(OPS["py_constant"], (), {"value": number}, name="number")[0])
        return found


class GradientSlot(Slot):
    """The place of a gradient that a Variable keeps: its array, which no decision tells from another.

    is_own: whether the array has no other references, so that it may be written in place.
    """

    def __init__(self, capture: CaptureContext, initial: Any, after: Any):
        if not isinstance(initial, SymbolicVariable) or "source" in initial.__dict__:
            capture.abort("a Variable gets its first gradient of a call in a loop on array values")
        super().__init__(capture, initial, "a gradient")
        self.requires_grad = initial.requires_grad
        self.is_own = all(isinstance(x, SymbolicVariable) and capture.array_writes.is_own(x._data[0]) for x in (initial, after))

    def wrap(self, values: Iterator[Value], *_: Any) -> SymbolicVariable:
        """The gradient in the place."""
        made = SymbolicVariable(self.capture, SymbolicArray(self.capture, next(values)), self.requires_grad)
        if self.is_own:
            self.capture.array_writes.filled(made._data[0])
        return made

    def values_of(self, item: Any) -> List[Value]:
        """Its array now."""
        own = getattr(item, "__dict__", {})
        if not isinstance(item, SymbolicVariable) or item.connected or item.requires_grad is not self.requires_grad or \
                item.value.type != self.inside[0].type or "origins" in own or "choice" in own:
            self.capture.abort("a gradient becomes one of another kind in a loop on array values")
        return [item.value]


class CounterSlot(Slot):
    """The place of a whole number that no iteration makes less."""

    more = 0

    def wrap(self, values: Iterator[Value], *after: Any) -> Any:
        """The number; at the start of an iteration, and behind the loop, it is not below what it is before the loop."""
        made = super().wrap(values)
        if type(made) is SymbolicScalar and made.text is None:
            known = _least_of(self.initial)
            start, self.more = (self.initial, 0) if known is None else (known.start, known.more)
            self.capture.index_ranges.least[made.truth] = Least(start, made.truth if after else self.inside[0], self.more)
        return made

    def holds_for(self, item: Any) -> bool:
        """Whether what an iteration leaves is not less."""
        found = _least_of(item)
        return found is not None and found.base is self.inside[0] and found.more >= self.more


def _least_of(number: Any) -> Optional[Least]:
    """The lower bound of a number that only the run knows; None if there is none."""
    is_of_run = type(number) is SymbolicScalar and number.text is None
    return number.capture.index_ranges.least.get(number.truth) if is_of_run else None


def may_count(initial: Any, after: Any) -> bool:
    """Whether a number may be one that no iteration makes less, as far as this call tells."""
    known = _least_of(initial), _least_of(after)
    if None not in known:
        return known[0].base is known[1].base and known[0].more <= known[1].more        # type: ignore[union-attr]
    hints = [x.hint if type(x) is SymbolicScalar and x.text is not None else x for x in (initial, after)]
    return all(type(x) is int for x in hints) and hints[0] <= hints[1]


class MaybeSlot:
    """A place that may be unbound: its value, and whether it is bound."""

    def __init__(self, capture: CaptureContext, initial: Maybe, name: str, flags: Any, after: Any):
        self.initial = initial
        self.value, self.bound = slot_of(capture, initial.value, name, flags, after), Slot(capture, initial.bound, name)
        self.inside = self.value.inside + self.bound.inside

    def wrap(self, values: Iterator[Value], *after: Any) -> Maybe:
        """The symbolic form of the place's value."""
        there = [item.value if type(item) is Maybe else item for item in after]
        return Maybe(self.value.wrap(values, *there), self.bound.wrap(values), self.initial.name)

    def values_of(self, item: Any) -> List[Value]:
        """The two values of the graph for what is in the place."""
        parts = (item.value, item.bound) if type(item) is Maybe else (item, True)
        return self.value.values_of(parts[0]) + self.bound.values_of(parts[1])

"""Variables that are made in the function and leave it: each is one object, wherever the user gets hold of it."""
from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Iterator, List, NoReturn, Sequence, Set, Tuple

import chainer

from ..ir.graph import Node, Value
from ..ir.types import Dynamic
from ..lowering import host
from ..record.builds import Build, Call, FromVariable
from ..record.variables import EscapingVariable
from ..runtime.host_calls import Hole, Report, StateCall, as_it_is, nothing
from ..runtime.node import give_gradients, make_variable, settle_leaf
from ..symbolic.values import SymbolicVariable

if TYPE_CHECKING:
    from .protocols import Capture


def _within(nodes: Sequence[Node]) -> Iterator[Node]:
    """Nodes, and those of their regions."""
    for node in nodes:
        yield node
        for region in node.regions:
            yield from _within(region.nodes)


class Escaping:
    """The Variables made during one capture that the user can get hold of.  variables: their records, in order."""

    def __init__(self, capture: Capture):
        self.capture = capture
        self.variables: List[EscapingVariable] = []
        self._records: Dict[int, Tuple[SymbolicVariable, EscapingVariable]] = {}

    def record(self, variable: SymbolicVariable) -> EscapingVariable:
        """The record of a Variable made here that the user can get hold of."""
        key = id(variable)
        if "volatile" in variable.__dict__:
            self.capture.abort("a Variable that is made here leaves the compiled function with an attribute")
        if "named" in variable.__dict__:
            self.capture.abort("a Variable that is made here leaves the compiled function with a name",
                               hint="give it the name outside, or none", at=variable.__dict__["named"][1])
        if "elsewhere" in variable.__dict__:
            self.capture.abort("a Variable leaves the compiled function that is read from a list which also holds Variables from "
                               "elsewhere, and whose length depends on array values", because=variable)
        if "copied" in variable.__dict__:
            self.capture.abort("an item of a list, which may be a view of another array, leaves the compiled function after items "
                               "were assigned at places that only the run knows", at=variable.__dict__["copied"])
        if key not in self._records:
            if self.capture.staging.depth and not self._is_made_outside(variable.value):
                self.capture.abort("a Variable that is made in a loop or decision on array values is stored or shown there",
                           hint="store it after the loop or decision, or show its array (`x.array`)")
            record = EscapingVariable(variable.value, variable.requires_grad, variable.connected)
            self._records[key] = variable, record
            self.variables.append(record)
        return self._records[key][1]

    def adopt(self, variable: SymbolicVariable, made: Value) -> None:
        """A Parameter that is made here, as an object of the graph: the user can get hold of it by what keeps it."""
        record = EscapingVariable(variable.value, True, False, (made,))
        self._records[id(variable)] = variable, record
        self.variables.append(record)

    def forget_from(self, count: int) -> None:
        """Forget all but the first ones."""
        gone = self.variables[count:]
        del self.variables[count:]
        self._records = {key: pair for key, pair in self._records.items() if not any(pair[1] is record for record in gone)}

    def is_known(self, variable: SymbolicVariable) -> bool:
        """Whether the user can get hold of a Variable made here already."""
        return id(variable) in self._records

    def is_only_reported(self, variable: SymbolicVariable) -> bool:
        """Whether nothing but reports, which keep copies without a graph, has got hold of a Variable so far."""
        record = self._records[id(variable)][1]
        return bool(record.early) and all(
            type(node.attrs.get("call")) is Report and not node.attrs["call"].keeps
            for node in _within(self.capture.root.nodes) if not set(record.early).isdisjoint(node.inputs))

    def is_only_stored(self, variable: SymbolicVariable) -> bool:
        """Whether nothing but stores, which happen ahead of what may fail, and reports have got hold of a Variable so far."""
        early = set(self._records[id(variable)][1].early)
        nodes = [node for node in _within(self.capture.root.nodes) if node.op.name == "host_call"]
        first = next((place for place, node in enumerate(nodes) if not early.isdisjoint(node.outputs)), len(nodes))
        return len(early) == 1 and all(isinstance(node.attrs["call"], (StateCall, Report)) for node in nodes[first:])

    def cut(self, variable: SymbolicVariable) -> None:
        """Let a Variable that the user can get hold of have no creator when the call is over."""
        if not self.is_known(variable):
            return
        record = self._records[id(variable)][1]
        if record.early and record.connected:
            call = StateCall(settle_leaf, (Hole(0),), {}, nothing, "unchain")
            self.capture.builder.add(host.host_call, record.early, {"call": call, "types": ()}, name="unchain")
        record.connected = False

    def early(self, variable: SymbolicVariable) -> Value:
        """The Variable itself as a value of the graph, for a host call that sees it."""
        if "made" in variable.__dict__:
            return variable.__dict__["made"].value
        record, array = self.record(variable), variable._data[0]
        self._check_gradient(variable)
        if array.shared == "held":
            array.shared = "kept"                       # what the host sees holds what it does now
        if not record.early:
            arguments = (Hole(0), record.requires_grad, record.connected)
            call = StateCall(make_variable, arguments, {}, as_it_is, "make_variable", single=True)
            with self.capture.effects.outside():
                record.early = self.capture.builder.add(host.host_call, (record.value,), {"call": call, "types": (Dynamic(),)},
                                                name="variable")
        return record.early[0]

    def check_decided(self) -> None:
        """Refuse results whose identity with each other depends on a decision."""
        if not chainer.config.enable_backprop and any(record.connected for record in self.variables):
            self.capture.abort("a part of a function without backprop is differentiated")
        leaving = [record.value for record in self.variables if record.connected and record.requires_grad]
        if leaving:
            self.capture.gradients.unchaining.check_leaving(leaving)
            self.capture.array_writes.overwritten.check_end(self.capture.gradients.out_of_reach(leaving))
        seen: Dict[int, SymbolicVariable] = {}
        for variable, record in list(self._records.values()):
            if record.early:
                self._check_gradient(variable)
            for origin in variable.__dict__.get("origins") or (id(variable),):
                known = seen.setdefault(origin, variable)
                # items of one list that holds no Variable twice are apart from each other
                if known is not variable and variable.__dict__.get("apart", known) is not known.__dict__.get("apart"):
                    self.capture.abort("whether two results are one Variable depends on a decision on array values",
                                       because=variable if variable.__dict__.get("decision") is not None else known)

    def _is_made_outside(self, value: Value) -> bool:
        """Whether a value was there before the outermost decision that is being captured."""
        return value in self.capture.root.inputs or any(value in node.outputs for node in reversed(self.capture.root.nodes))

    def with_gradients(self, result: Build) -> Build:
        """The result, made when the Variables that nothing has seen before the call is over have been given their gradients."""
        given: List[Build] = []
        seen: Set[int] = set()
        while len(seen) < len(self._records):                           # a gradient is a Variable, too
            for key, (variable, record) in list(self._records.items()):
                if key not in seen and not record.early and self.capture.grad_state.keeps(variable):
                    if self.capture.grad_state.loss_scale(variable) is not None:
                        self._refuse_gradient()
                    given += [FromVariable(record), self.capture.materialiser.build(self.capture.grad_state.get(variable))]
                seen.add(key)
        return Call(give_gradients, (result, *given)) if given else result

    def _check_gradient(self, variable: SymbolicVariable) -> None:
        if self.capture.grad_state.keeps(variable):
            self._refuse_gradient()

    def _refuse_gradient(self) -> NoReturn:
        self.capture.abort("a Variable that is made here leaves the compiled function with a gradient")

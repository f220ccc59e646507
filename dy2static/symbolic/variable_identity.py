"""Which object a Variable is, where that depends on decisions: a number in the graph, and what the numbers mean."""
from __future__ import annotations

from functools import reduce
from typing import Any, Dict, NamedTuple, Sequence, Tuple, Union

from ..capture_context import CaptureContext
from ..ir.graph import Value
from ..ir.op import OPS
from .values import SymbolicArray, SymbolicVariable

#: Numbers of Variables that are made under the decision: with a creator, without gradient, leaves with gradient.
NEW, DETACHED, LEAF = range(3)

KINDS = {NEW: "new", DETACHED: "detached", LEAF: "leaf"}


class Choice(NamedTuple):
    """The number of the object that a Variable is, and the objects: None for those that are made anew."""

    number: Union[int, Value]
    among: Dict[int, Any]

    @property
    def is_open(self) -> bool:
        """Whether a run decides which object it is; Variables made anew in one way need not be told apart."""
        return len(self.among) > 1 or not set(self.among).issubset(KINDS)


class Choices:
    """The numbers of the Variables of one capture.

    has_run: whether what a loop leaves is what its last iteration left, since it has iterations in any case.
    """

    def __init__(self) -> None:
        self.has_run = False
        self._numbers: Dict[int, Tuple[int, SymbolicVariable]] = {}

    def of(self, variable: SymbolicVariable, depth: int) -> Choice:
        """Which object this is, for a decision at ``depth``: what was made deeper is new."""
        own = variable.__dict__
        if "choice" in own:
            return own["choice"]
        if "filler" in own:
            among = self.of(own["filler"], depth).among
            return Choice(min(among), among)
        if "source" in own or not variable.connected and own["depth"] == 0 and not self.is_new(variable, depth):
            number = self._numbers.setdefault(id(variable), (len(self._numbers) + len(KINDS), variable))[0]
            return Choice(number, {number: variable})
        kind = NEW if variable.connected else LEAF if variable.requires_grad else DETACHED
        return Choice(kind, {kind: None})

    def is_new(self, variable: SymbolicVariable, depth: int) -> bool:
        """Whether a Variable was made under the decision."""
        return variable.__dict__["depth"] > depth

    def origins(self, variables: Sequence[SymbolicVariable], depth: int) -> Dict[int, SymbolicVariable]:
        """The Variables made in the function, one of which a Variable is that is one of these."""
        found: Dict[int, SymbolicVariable] = {}
        for variable in variables:
            if set(self.of(variable, depth).among) & set(KINDS):
                found.update(variable.__dict__.get("origins") or {id(variable): variable})
        return found

    def requires_grad(self, capture: CaptureContext, variable: SymbolicVariable) -> Value:
        """In the graph, whether an uncertain Variable requires a gradient in this run."""
        number, among = variable.__dict__["choice"]
        found = [capture.builder.add(OPS["py_compare"], (number, _constant(capture, k)), {"op": "=="}, name="requires")[0]
                 for k, known in among.items() if (k in (NEW, LEAF) if known is None else known.requires_grad)]
        return reduce(lambda a, b: capture.builder.add(OPS["py_or"], (a, b), {}, name="requires")[0], found)

    def result(self, capture: CaptureContext, variables: Sequence[SymbolicVariable]) -> Choice:
        """Of what is computed from these: new if one of them requires a gradient, else detached."""
        add, required = capture.builder.add, [self.requires_grad(capture, v) for v in variables]
        some = reduce(lambda a, b: add(OPS["py_or"], (a, b), {}, name="requires")[0], required)
        none = add(OPS["py_int"], add(OPS["py_not"], (some,), {}, name="detached"), {}, name="which")[0]
        return Choice(none, {NEW: None, DETACHED: None})

    def variable(self, capture: CaptureContext, value: Value, choice: Choice, sides: Sequence[SymbolicVariable],
                 depth: int) -> SymbolicVariable:
        """The Variable that is one of several."""
        requires_grad = any(v.requires_grad for v in sides)
        connected = requires_grad if choice.is_open else any(v.connected for v in sides)
        made = SymbolicVariable(capture, SymbolicArray(capture, value), requires_grad, connected)
        if choice.is_open:
            made.__dict__["choice"] = made._data[0].choice = choice
        made.__dict__["origins"] = self.origins(sides, depth)
        made.__dict__["uncertain"] = is_uncertain(sides)
        capture.grad_state.join(made, sides)
        made.__dict__["decision"] = capture.staging.path.decision
        return made


def is_uncertain(sides: Sequence[SymbolicVariable]) -> bool:
    """Whether a run decides if a Variable that is one of these requires a gradient."""
    return len({v.requires_grad for v in sides}) > 1 or any(v.__dict__.get("uncertain") for v in sides)


def _constant(capture: CaptureContext, number: int) -> Value:
    return capture.builder.add(OPS["py_constant"], (), {"value": number}, name="number")[0]

"""A capture as its parts know it, and those of its parts that lead back to it."""
from __future__ import annotations

import types
from typing import Any, Callable, Collection, Container, Dict, Iterable, List, Mapping, Optional, Protocol, Set, Tuple

from ...capture_context import CaptureContext, context, gradients
from ...control_flow.staging import Staging
from ...heap.heap import Heap
from ...heap.object_shadows import ShadowBase
from ...ir.graph import Value
from ...record.outcome import Event, Outcome
from ...symbolic.values import SymbolicArray, SymbolicVariable
from ...symbolic.writes import ArrayWrites
from ..dynamic_shapes import FreeSizes
from ..value_numbering import ValueNumbering
from .calls import BuiltinCalls, ChainerCalls, Classes, Draws, HostCalls, HostResults, NumberCalls, Placement
from .inputs import AssumedSizes, DecidingContents, Expressions, Functions, Imports, IndexRanges, Inputs, NumberBounds, NumberChecks
from .leaving import Effects, EnteredReporters, Escaping, Materialiser, Operands, Reports, RuleStates
from .variables import GradientState, MadeParameters, ReboundArrays, Unchaining


class StagedCodes(Container[Any], Protocol):
    """The code objects of functions that are converted already."""

    def add(self, code: types.CodeType) -> None:
        """Know the code of a function, and of all functions inside it."""


class Calls(context.Calls, Protocol):
    """The dispatch of one capture.  entry: the function that it is of."""

    apart: Set[Tuple[str, str]]
    entry: Any

    @property
    def capture(self) -> Capture:
        """The capture that the calls are of."""

    @property
    def staged_codes(self) -> StagedCodes:
        """The code of what is converted already."""

    @property
    def builtins(self) -> BuiltinCalls:
        """Builtin functions."""

    @property
    def classes(self) -> Classes:
        """Classes."""

    @property
    def numbers(self) -> NumberCalls:
        """Builtins on numbers."""

    @property
    def draws(self) -> Draws:
        """Draws of random numbers."""

    def host(self, function: Any) -> Callable:
        """Wait for the host."""

    def native(self, function: Any) -> Callable:
        """Run now; arrays that it makes belong to the graph, functions it gets are staged."""

    def function(self, function: types.FunctionType) -> Callable:
        """What to call for a Python function."""

    def method(self, method: types.MethodType) -> Callable:
        """What to call for a bound method."""

    def lowered(self, function: Any) -> Callable[..., Any]:
        """Let the user's lowering give what a call gives."""

    def lowering_of(self, function: Any) -> Optional[Callable[..., Any]]:
        """The lowering that somebody registered for a function, unless it runs: then it calls the function itself."""

    def original(self, function: Any) -> Callable[..., Any]:
        """Call the method of Chainer's that one of ours stands in the place of."""

    def shadow(self, shadow: ShadowBase) -> Callable:
        """What to call for an object of the user's."""


class Gradients(gradients.Gradients, Protocol):
    """Of one `Capture`: the Variables it knows, and gradients between them."""

    variables: Dict[Value, SymbolicVariable]
    stops: Set[Value]

    @property
    def capture(self) -> Capture:
        """The capture that the gradients are of."""

    @property
    def unchaining(self) -> Unchaining:
        """Variables that lose their creators."""

    def grad(self, outputs: Any, inputs: Any, grad_outputs: Any = None, grad_inputs: Any = None, set_grad: Any = False,
             retain_grad: Any = False, enable_double_backprop: Any = False, loss_scale: Any = None) -> List[Any]:
        """`chainer.grad`."""

    def know_again(self, variable: SymbolicVariable) -> None:
        """Know a Variable without creator by what was written into its array."""

    def has(self, array: SymbolicArray) -> bool:
        """Whether a Variable has this very array."""

    def out_of_reach(self, values: Collection[Value]) -> Set[Value]:
        """What is made outside of branches and loops, and no gradient of these values goes through."""

    def check_leaf(self, variable: SymbolicVariable) -> None:
        """Guard that a Variable of the user's has no creator: a gradient would go on there."""

    def check(self, variables: Iterable[Any]) -> None:
        """Stop at what are no Variables, or such of which it is not known what they are."""


class Capture(CaptureContext, Protocol):
    """One symbolic run: see `capture.Capture`.  What is here beside `CaptureContext` is for this room.

    trains, differentiates: what ``chainer.config`` says.  start_config: its entries at the start of the call.
    """

    trains: bool
    differentiates: bool
    drops_gradients: bool
    knows_rows: bool
    leaves_rows: bool
    observed: Mapping[Tuple, Tuple]
    start_config: Dict[str, Any]
    events: List[Event]
    free_sizes: FreeSizes

    def run(self, function: Callable, args: Tuple, kwargs: Mapping[str, Any]) -> Outcome:
        """Call a function on the shadows of these arguments and give what came out."""

    @property
    def heap(self) -> Heap:
        """Shadows and guards."""

    @property
    def inputs(self) -> Inputs:
        """What the caller brings."""

    @property
    def calls(self) -> Calls:
        """What runs when."""

    @property
    def functions(self) -> Functions:
        """Converted functions."""

    @property
    def imports(self) -> Imports:
        """What ``import`` does."""

    @property
    def chainer(self) -> ChainerCalls:
        """Functions of Chainer."""

    @property
    def host(self) -> HostCalls:
        """Calls that wait for the host."""

    @property
    def unknown(self) -> HostResults:
        """What host calls gave."""

    @property
    def placement(self) -> Placement:
        """Where arrays are."""

    @property
    def expressions(self) -> Expressions:
        """Numbers that change."""

    @property
    def number_checks(self) -> NumberChecks:
        """The sizes of numbers."""

    @property
    def number_bounds(self) -> NumberBounds:
        """The bounds of numbers."""

    @property
    def assumed_sizes(self) -> AssumedSizes:
        """Numbers that are taken to be sizes."""

    @property
    def index_ranges(self) -> IndexRanges:
        """What is known of indices."""

    @property
    def deciding(self) -> DecidingContents:
        """Contents of arrays that decide something."""

    @property
    def value_numbering(self) -> ValueNumbering:
        """Calls with the same result."""

    @property
    def effects(self) -> Effects:
        """Writes."""

    @property
    def reports(self) -> Reports:
        """What is reported."""

    @property
    def entered_reporters(self) -> EnteredReporters:
        """Reporters that are entered inside."""

    @property
    def operands(self) -> Operands:
        """What calls get that the program makes."""

    @property
    def materialiser(self) -> Materialiser:
        """How results are made."""

    @property
    def escaping(self) -> Escaping:
        """Variables that leave."""

    @property
    def rule_states(self) -> RuleStates:
        """States of update rules."""

    @property
    def array_writes(self) -> ArrayWrites:
        """Arrays that are written in place."""

    @property
    def staging(self) -> Staging:
        """Decisions and loops."""

    @property
    def gradients(self) -> Gradients:
        """Gradients that the function asks for."""

    @property
    def grad_state(self) -> GradientState:
        """Gradients that Variables keep."""

    @property
    def rebound_arrays(self) -> ReboundArrays:
        """Variables that are given another array."""

    @property
    def made_parameters(self) -> MadeParameters:
        """Parameters that are made inside."""

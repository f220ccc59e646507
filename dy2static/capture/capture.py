"""One symbolic run: user code is called on shadows; what it does to symbolic values becomes a graph."""
from __future__ import annotations

import sys
import traceback
import types
from typing import AbstractSet, Any, Callable, Dict, List, Mapping, NoReturn, Optional, Sequence, Set, Tuple

import chainer
from chainer.backends import intel64

from ..control_flow.path_splitting import Forks, Leaf, Path
from ..control_flow.raising import is_of_user_code
from ..control_flow.staging import Staging
from ..errors import Location
from ..heap.aborts import CaptureAborted
from ..heap.heap import Heap
from ..heap.list_shadows import ShadowList
from ..heap.locations import error_location, user_location
from ..heap.ownership import is_library
from ..heap.settings import ConfigEntries
from ..heap.wording import called_around
from ..ir.building import Builder, building
from ..ir.graph import Value
from ..ir.types import Dynamic, Scalar
from ..record.outcome import End, Event, Outcome
from ..record.paths import Argument, Keyword
from ..symbolic.host_objects import SymbolicObject
from ..symbolic.rollback import Snapshot
from ..symbolic.values import SymbolicArray, SymbolicScalar
from ..symbolic.writes import ArrayWrites
from .assigned_items import AssignedItems
from .assumed_sizes import AssumedSizes
from .calls import Calls
from .chainer_calls import ChainerCalls
from .deciding_contents import DecidingContents
from .dynamic_shapes import FreeSizes, SizeHistory
from .effects import Effects
from .entered_reporters import EnteredReporters
from .escaping import Escaping
from .expressions import Expressions
from .filled_lists import FilledLists
from .grad_state import KeptGradients
from .gradients import Gradients
from .host_calls import HostCalls
from .host_results import HostResults
from .identity import identical
from .imports import Imports
from .index_ranges import IndexRanges
from .inputs import LAYOUTS, Inputs
from .made_parameters import MadeParameters
from .materialise import Materialiser
from .number_bounds import NumberBounds
from .number_checks import NumberChecks
from .numpy_calls import NumPyCalls
from .operands import Operands
from .placement import Placement
from .rebound_arrays import ReboundArrays
from .reports import Reports
from .rule_states import RuleStates
from .staged_functions import StagedFunctions
from .text_expressions import TextExpressions
from .value_enumeration import bound_of, value_of
from .value_numbering import ValueNumbering

_MOST_NODES = 200_000

#: So many operations are captured inside one decision: code that this call does not run may never end.
_MOST_UNDECIDED = 4_000


class Capture:
    """The state of one symbolic run.

    varying: paths of numbers and texts that are inputs, not guards.
    observed: output types of functions that only a real run can tell, by (class, position in the call, input types), and what
        host calls gave, by (code, position, types of arrays and plain values they got).
    free_sizes: which sizes of the caller's arrays are symbols; without it, none.
    fixed: paths of small arrays whose contents, and of numbers whose values, are known, under guards.
    drops_gradients: whether Parameters that the call updates keep no gradient.  is_inner: whether Python goes on with the results,
        in a line of the same function that is not compiled.
    device: the GPU whose arrays the call uses, as "cupy:0"; "" if there are none.
    rolls: whether iterations that take gradients may become a loop of the graph; rolled: whether that was tried.
    knows_rows: whether slices of one row have it also outside of loops; leaves_rows: whether there was one that is left as it is.
    knows_layouts: whether the layout of the caller's arrays is relied on where it decides what is a view; leaves_layouts: whether
        it would have decided that.
    """

    def __init__(self, varying: Set[Tuple], observed: Mapping[Tuple, Tuple], start_config: Mapping[str, Any],
                 name: str = "forward", free_sizes: Optional[FreeSizes] = None, fixed: AbstractSet[Tuple] = frozenset(),
                 device: str = ""):
        self.free_sizes = free_sizes or FreeSizes(SizeHistory(), dynamic=False)
        self.observed, self.start_config = observed, dict(start_config)
        self.trains, self.differentiates = bool(chainer.config.train), bool(chainer.config.enable_backprop)
        self.handling = sys.exc_info()[1]
        self.drops_gradients, self.is_inner, self.rolls, self.rolled = False, False, True, False
        self.knows_rows = self.leaves_rows = self.knows_layouts = self.leaves_layouts = False
        self.builder = self.root = Builder(name)
        self.events: List[Event] = []
        self.failed: Optional[CaptureAborted] = None
        self.forks = self.decided = 0
        self.known: Dict[Value, Any] = {}
        self.placement = Placement(self, device)
        self.builder.device = device
        self.dimensions: Dict[Value, Any] = {}
        self.sizes_of: Dict[Value, Any] = {}
        self.value_numbering = ValueNumbering()
        self.heap = Heap(self, varying, fixed)
        self.entries = ConfigEntries(self.heap)
        self.inputs = Inputs(self)
        self.calls = Calls(self)
        self.functions = StagedFunctions(self)
        self.numpy = NumPyCalls(self)
        self.chainer = ChainerCalls(self)
        self.host = HostCalls(self)
        self.expressions = Expressions(self)
        self.texts = TextExpressions(self)
        self.effects = Effects(self)
        self.escaping, self.made_parameters = Escaping(self), MadeParameters(self)
        self.operands, self.materialiser = Operands(self), Materialiser(self)
        self.gradients, self.grad_state = Gradients(self), KeptGradients(self)
        self.array_writes, self.rebound_arrays = ArrayWrites(self), ReboundArrays(self)
        self.staging = Staging(self)
        self.unknown = HostResults(observed)
        self.reports, self.rule_states = Reports(self), RuleStates(self)
        self.entered_reporters = EnteredReporters(self)
        self.imports = Imports(self)
        self.index_ranges, self.assigned_items, self.filled_lists = IndexRanges(self), AssignedItems(self), FilledLists(self)
        self.deciding = DecidingContents(self, fixed)
        self.number_checks, self.number_bounds, self.assumed_sizes = NumberChecks(self), NumberBounds(self), AssumedSizes(self)

    # --- running ------------------------------------------------------------------------------------------------------

    def run(self, function: Callable, args: Tuple, kwargs: Mapping[str, Any]) -> Outcome:
        """Call ``function`` on the shadows of these arguments and give what came out.

        Raises `CaptureAborted`, or whatever the user's code raises.
        """
        if intel64.is_ideep_available() and chainer.config.use_ideep != "never":
            self.abort(f"chainer.config.use_ideep is {chainer.config.use_ideep!r}, and iDeep computes", hint=LAYOUTS)
        heap, self.calls.entry = self.heap, function
        start = Snapshot(self, ())
        shadows = [heap.shadow(arg, heap.source(Argument, None, i)) for i, arg in enumerate(args)]
        keywords = {name: heap.shadow(arg, heap.source(Keyword, None, name)) for name, arg in kwargs.items()}

        def call(path: Path) -> Leaf:
            if path.sides or self.calls.apart:
                self._start_again(start)
            self.staging.path = path
            return self._leaf(lambda: self.callee(function)(*shadows, **keywords))
        with building(self.builder):
            ends = self.reports.settle(Forks(self, call).ends())
            heap.finish()
            self.reports.guard()
            self.array_writes.check_apart()
        inputs = {item.value for item in self.inputs.all}
        outputs = tuple(dict.fromkeys(v for end in ends for v in end.values() if v not in inputs))
        graph = self.root.build(outputs)
        self.placement.check(graph)
        self.effects.guard_errors(graph)
        return Outcome(graph, tuple(self.inputs.all), tuple(heap.guards), ends, tuple(self.inputs.named),
                       tuple(self.inputs.bound), self.start_config,
                       tuple(self.events if len(ends) == 1 else dict.fromkeys(self.events)), tuple(kwargs),
                       self.trains, self.differentiates, self.array_writes.overwritten.spent, self._intact(ends),
                       self.placement.device, self.placement.current, self.gradients.taken > 0)

    def _intact(self, ends: Sequence[End]) -> Tuple[Value, ...]:
        """`Outcome.intact`."""
        overwritten = self.array_writes.overwritten
        if overwritten.spent is None or len(ends) > 1:
            return ()
        return self.gradients.apart_from(overwritten.read_by_spent, [v.value for v in ends[0].variables if v.connected])

    def _leaf(self, call: Callable[[], Any]) -> Leaf:
        """Call the function once and take down what it leaves behind."""
        path, nodes = self.staging.path, self.root.nodes
        try:
            result = call()
        except BaseException as error:  # user code raised it, for this way alone if there are others
            if not is_of_user_code(error):
                raise
            self.check()
            self._check_kept()
            if not path.sides:
                raise
            self.staging.blocks.raise_at_run(error)
            return Leaf(path, nodes, End((), tuple(self.escaping.variables), (), None))
        self.check()
        self.materialiser.leave()
        writes = self.effects.final_writes()
        built = self.escaping.with_gradients(self.materialiser.build(result))
        self.escaping.check_decided()
        self._check_kept()
        return Leaf(path, nodes, End((), tuple(self.escaping.variables), writes, built))

    def _check_kept(self) -> None:
        """Stop if something was changed that this way through the function, also one that raises, relied on to stay."""
        self.materialiser.check()
        self.operands.check()
        self.imports.check()
        broken = self.staging.replaced.broken(self.materialiser.built, self.operands.handed)
        if broken is not None:
            self.abort("a list, dict or object that a loop on array values replaces is changed after it, or leaves the function "
                       "beside the one before the loop", because=broken)

    def _start_again(self, start: Snapshot) -> None:
        """As before the function was called, but for what has been read: that keeps its shadows and its inputs."""
        for container in self.heap.containers:
            if isinstance(container, ShadowList):
                container.forget_written()
        start.restore()
        self.resume()
        self.heap.stale, self.reports.any_here = None, False
        self.builder, self.root.nodes = self.root, []
        self.operands, self.materialiser, self.staging = Operands(self), Materialiser(self), Staging(self)
        self.escaping, self.grad_state, self.chainer.applied = Escaping(self), KeptGradients(self), 0
        self.unknown.start_again()
        self.array_writes.start_again()
        self.assigned_items.start_again()
        self.rebound_arrays.start_again()

    def set_apart(self, stop: CaptureAborted) -> bool:
        """Capture calls of the update rule in which a decision stopped the capture by themselves; whether that is new.

        Other functions run in parts, which the loop of an optimizer, a library's, does not.
        """
        lines = () if stop.at is None else (*stop.at.callers, stop.at)
        place = next((place for line in lines if (place := (line.file, line.function)) in self.calls.of_rules), None)
        if place is None or place in self.calls.apart:
            return False
        self.calls.apart.add(place)
        self.resume()
        self.forks = 0
        return True

    def mark(self) -> Tuple:
        """How far the capture has come, for `go_back`."""
        return (len(self.events), len(self.escaping.variables), self.grad_state.stored_count(),
                self.array_writes.overwritten.state())

    def go_back(self, mark: Tuple) -> None:
        """Forget what has been captured since, which stopped; `Snapshot` puts back what it did to objects."""
        events, escaping, stored, overwritten = mark
        self.resume()
        del self.events[events:]
        self.escaping.forget_from(escaping)
        self.grad_state.forget_stored(stored)
        self.array_writes.overwritten.go_back(overwritten)

    def resume(self) -> None:
        """Go on where the capture stopped: what was running ends first, its generators as long as they can do nothing."""
        if self.failed is not None:
            traceback.clear_frames(self.failed.__traceback__)
            self.failed = None

    def check(self) -> None:
        """Stop again if user code swallowed that the capture was stopped."""
        if self.failed is not None:
            raise GeneratorExit if isinstance(sys.exc_info()[1], GeneratorExit) else self.failed    # the former ends in silence

    def abort(self, reason: str, hint: Optional[str] = None, because: Any = None, of_host: bool = False,
              at: Optional[Location] = None, **kind: Any) -> NoReturn:
        """Stop the capture; the call runs eagerly, or is captured again with the decision settled that made ``because``.

        of_host: because of a host call, of which more may be known when it has been observed.  at: the line that is to
        blame, if it is not the one that is running.
        """
        if self.failed is None:
            self.unknown.needed = of_host
            called = called_around()
            if called is not None and not kind:
                reason, hint = f"`{called}` is called inside the compiled function", f"call `{called}` outside of it"
            raised = sys.exc_info()[1]
            decision = getattr(because, "__dict__", {}).get("decision")
            at = at or user_location() or (None if raised in (None, self.handling) else error_location(raised)) or \
                (None if decision is None else decision[0].open.get(decision[1]))
            self.failed = CaptureAborted(reason, at, hint, **kind)
            if decision is not None and self.staging.path.is_on(decision[0]):
                self.failed.fork = decision
        raise self.failed

    def abort_decision(self) -> NoReturn:
        """Stop because Python needs to know what an array holds."""
        self.abort("Python needs the contents of an array here (a condition, a conversion or a string)",
                   hint="compute with it, index arrays by it, decide by it in `if` and `while`, or return it")

    def one_of_few(self, number: Any) -> int:
        """A whole number that Python needs: decided, if it can be one of a few only; the capture stops otherwise."""
        self.deciding.needed(number)
        found = value_of(self, number)
        return self.abort_decision() if found is None else found

    def bound_of(self, number: Any) -> Optional[int]:
        """What a whole number that only the run knows is certain to be below, and not negative."""
        return bound_of(self, number)

    def event(self, kind: str, text: str, why: str = "") -> None:
        """Note what became of an operation, with the user's line."""
        at = user_location()
        self.builder.loc = at
        self.events.append(Event(at, kind, text, why))
        if len(self.builder.nodes) > _MOST_NODES:
            self.abort(f"more than {_MOST_NODES} operations in one call", final=True,
                       hint="a long Python loop is unrolled here: compile its body instead of the whole loop")
        if not self.staging.depth:
            self.decided = len(self.events)
        elif len(self.events) - self.decided > _MOST_UNDECIDED:
            self.decided = len(self.events)
            self.abort(f"more than {_MOST_UNDECIDED} operations under a decision on array values", final=True,
                       hint="a Python loop is unrolled here: does it end, and can it stand outside of the decision?")

    def callee(self, function: Any) -> Callable:
        """What to call for ``function``: a staged form, a native call, or a host call."""
        self.check()
        return self.calls.callee(function)

    def decorator(self, function: Any) -> Callable:
        """What to apply for a decorator: those of libraries as they are."""
        is_known = isinstance(function, (types.FunctionType, types.MethodType, type))
        return self.callee(function) if is_known and not is_library(function.__module__ or "") else function

    def decides(self, value: Any) -> bool:
        """Whether the truth of a value is known at run time only."""
        return type(value) is SymbolicArray and value.now() not in self.known or \
            type(value) is SymbolicScalar and value.text is None

    def identical(self, first: Any, second: Any) -> Any:
        """``first is second`` of what they stand for."""
        return identical(self, first, second)

    def wrap(self, value: Value) -> Any:
        """The symbolic value that user code gets for a value of the graph."""
        if isinstance(value.type, Dynamic):
            return SymbolicObject(self, value)
        if not isinstance(value.type, Scalar):
            return SymbolicArray(self, value)
        is_numpy = value.type.kind == "numpy"
        if value in self.known and (not is_numpy or value.type.dtype.kind in "iub"):
            return self.known[value]
        return SymbolicArray(self, value) if is_numpy else SymbolicScalar(self, value.type.kind, value=value)

"""One symbolic run: user code is called on shadows; what it does to symbolic values becomes a graph."""
from __future__ import annotations

import sys
import types
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

import chainer
import numpy as np
from chainer.backends import intel64

from ..ir.building import Builder, building
from ..ir.graph import Value
from ..ir.op import OPS
from ..ir.types import Dynamic, Scalar, Tensor, python_scalar
from ..lowering import host
from ..lowering.numpy_calls import fixed, lower_numpy
from ..staging.forks import Forks, Leaf, Path
from ..staging.staging import Staging
from ..symbolic import stand_ins
from ..symbolic.new_sizes import NewSizes, may_be_empty
from ..symbolic.rollback import Snapshot
from ..symbolic.sizes import infer_sized
from ..symbolic.values import SymbolicArray, SymbolicObject, SymbolicParameter, SymbolicScalar, SymbolicVariable
from ..symbolic.writes import ArrayWrites
from ..world.aborts import CaptureAborted
from ..world.locations import error_location, user_location
from ..world.naming import identifier, readable
from ..world.outcome import End, EscapingVariable, Event, Input, Outcome
from ..world.settings import ConfigEntries
from ..world.shadows import ShadowDict, ShadowList
from ..world.sources import Source
from ..world.wording import called_around, in_users_words
from ..world.world import World
from .applying import Applying
from .attempts import DECIDABLE, Attempt, attempted, raise_first
from .calls import Calls
from .effects import Effects, flat
from .expressions import Expressions
from .few_values import bound_of, value_of
from .free_sizes import FreeSizes, SizeHistory
from .gradients import Gradients
from .host_results import HostResults
from .imports import Imports
from .index_ranges import IndexRanges
from .materialise import Materialiser
from .number_checks import NumberChecks
from .reports import Reports
from .staged_functions import ShadowCell, StagedFunctions
from .text_expressions import TextExpressions
from .twins import Twins

_MOST_NODES = 200_000

_LAYOUTS = "only NumPy arrays in default layout are compiled; others run eagerly"

#: So many operations are captured inside one decision: code that this call does not run may never end.
_MOST_UNDECIDED = 4_000


class Capture(Expressions, TextExpressions, Applying, Effects, StagedFunctions):
    """The state of one symbolic run.

    varying: paths of numbers and texts that are inputs, not guards.
    observed: output types of functions that only a real run can tell, by (class, position in the call, input types), and what
        host calls gave, by (code, position, types of arrays and plain values they got).
    free_sizes: which sizes of the caller's arrays are symbols; without it, none.
    """

    def __init__(self, varying: Set[Tuple], observed: Mapping[Tuple, Tuple], start_config: Mapping[str, Any],
                 name: str = "forward", free_sizes: Optional[FreeSizes] = None):
        self.free_sizes = free_sizes or FreeSizes(SizeHistory(), dynamic=False)
        self.builder = self.root = Builder(name)
        self.world = World(self, varying)
        self.calls = Calls(self)
        self.imports = Imports(self)
        self.materialiser = Materialiser(self)
        self.gradients = Gradients(self)
        self.array_writes = ArrayWrites(self)
        self.staging = Staging(self)
        self.unknown = HostResults(observed)
        self.reports = Reports(self)
        self.observed, self.start_config = observed, dict(start_config)
        self.entries = ConfigEntries(self.world)
        self.inputs: List[Input] = []
        self.index_ranges = IndexRanges(self)
        self.number_checks = NumberChecks(self)
        self.variables: List[EscapingVariable] = []
        self.events: List[Event] = []
        self.bound: List[Tuple[str, Any]] = []
        self.named: List[Tuple[str, Source]] = []
        self.known: Dict[Value, Any] = {}
        self.dimensions: Dict[Value, Any] = {}
        self.sizes_of: Dict[Value, Any] = {}
        self.twins = Twins()
        self.failed: Optional[CaptureAborted] = None
        self.forks = self.decided = 0
        self._altered: Dict[type, bool] = {}
        self.handling = sys.exc_info()[1]
        self.applied = 0
        self.trains, self.differentiates = bool(chainer.config.train), bool(chainer.config.enable_backprop)
        self._cells: Dict[int, "ShadowCell"] = {}
        self._staged: Dict[int, Tuple[types.FunctionType, types.FunctionType]] = {}
        self._globals: Dict[int, ShadowDict] = {}
        self._objects: Dict[Source, Value] = {}
        self._numbers: Dict[str, Value] = {}
        self._escaping: Dict[int, Tuple[SymbolicVariable, EscapingVariable]] = {}
        self._roots: Dict[int, Source] = {}
        self._fixed: Set[Tuple[str, Any]] = set()

    # --- running ------------------------------------------------------------------------------------------------------

    def run(self, function: Callable, args: Tuple, kwargs: Mapping[str, Any]) -> Outcome:
        """Call ``function`` on the shadows of these arguments and give what came out.

        Raises `CaptureAborted`, or whatever the user's code raises.
        """
        if intel64.is_ideep_available() and chainer.config.use_ideep != "never":
            self.abort(f"chainer.config.use_ideep is {chainer.config.use_ideep!r}, and iDeep computes", hint=_LAYOUTS)
        world, self.calls.entry = self.world, function
        start = Snapshot(self, ())
        shadows = [world.shadow(arg, world.source("arg", None, i)) for i, arg in enumerate(args)]
        keywords = {name: world.shadow(arg, world.source("kwarg", None, name)) for name, arg in kwargs.items()}

        def call(path: Path) -> Leaf:
            if path.sides:
                self._start_again(start)
            self.staging.path = path
            return self._leaf(lambda: self.callee(function)(*shadows, **keywords))
        with building(self.builder):
            ends = self.reports.settle(Forks(self, call).ends())
            world.finish()
            self.reports.guard()
            self.array_writes.check_apart()
        inputs = {item.value for item in self.inputs}
        outputs = tuple(dict.fromkeys(v for end in ends for v in end.values() if v not in inputs))
        return Outcome(self.root.build(outputs), tuple(self.inputs), tuple(world.guards), ends, tuple(self.named),
                       tuple(self.bound), self.start_config,
                       tuple(self.events if len(ends) == 1 else dict.fromkeys(self.events)), tuple(kwargs),
                       self.trains, self.differentiates)

    def _leaf(self, call: Callable[[], Any]) -> Leaf:
        """Call the function once and take down what it leaves behind."""
        path, nodes = self.staging.path, self.root.nodes
        try:
            result = call()
        except Exception as error:      # user code raised it, for this way alone if there are others
            self.check()
            if not path.sides:
                raise
            self.staging.raise_at_run(error)
            return Leaf(path, nodes, End((), tuple(self.variables), (), None))
        self.check()
        self.materialiser.leave()
        writes = self._final_writes()
        built = self.materialiser.build(result)
        self._check_decided()
        self.materialiser.check_handed()
        broken = self.staging.replaced.broken(self.materialiser.built, self.materialiser.handed)
        if broken is not None:
            self.abort("a list, dict or object that a loop on array values replaces is changed after it, or leaves the function "
                       "beside the one before the loop", because=broken)
        return Leaf(path, nodes, End((), tuple(self.variables), writes, built))

    def _start_again(self, start: Snapshot) -> None:
        """As before the function was called, but for what has been read: that keeps its shadows and its inputs."""
        for container in self.world.containers:
            if isinstance(container, ShadowList):
                container.forget_written()
        start.restore()
        self.world.stale = self.failed = None
        self.builder, self.root.nodes = self.root, []
        self.materialiser, self.staging = Materialiser(self), Staging(self)
        self.variables, self._escaping, self.applied = [], {}, 0
        self.unknown.start_again()
        self.gradients.start_again()
        self.array_writes.start_again()

    def check(self) -> None:
        """Stop again if user code swallowed that the capture was stopped."""
        if self.failed is not None:
            raise self.failed

    def abort(self, reason: str, hint: Optional[str] = None, because: Any = None, of_host: bool = False, **kind: Any) -> Any:
        """Stop the capture; the call runs eagerly, or is captured again with the decision settled that made ``because``.

        of_host: because of a host call, of which more may be known when it has been observed.
        """
        if self.failed is None:
            self.unknown.needed = of_host
            called = called_around()
            if called is not None and not kind:
                reason, hint = f"`{called}` is called inside the compiled function", f"call `{called}` outside of it"
            raised = sys.exc_info()[1]
            at = user_location() or (None if raised in (None, self.handling) else error_location(raised))
            self.failed = CaptureAborted(reason, at, hint, **kind)
            decision = getattr(because, "__dict__", {}).get("decision")
            if decision is not None and self.staging.path.is_on(decision[0]):
                self.failed.fork = decision
        raise self.failed

    def abort_decision(self) -> Any:
        """Stop because Python needs to know what an array holds."""
        self.abort("Python needs the contents of an array here (a decision, a conversion or a text)",
                   hint="compute with it, decide by it or loop up to it; a size or a key cannot be made of it")

    def one_of_few(self, number: Any) -> int:
        """A whole number that Python needs: decided, if it can be one of a few only; the capture stops otherwise."""
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
            self.abort(f"more than {_MOST_NODES} operations in one call", hint="a long Python loop is unrolled here", final=True)
        if not self.staging.depth:
            self.decided = len(self.events)
        elif len(self.events) - self.decided > _MOST_UNDECIDED:
            self.decided = len(self.events)
            self.abort(f"more than {_MOST_UNDECIDED} operations under a decision on array values",
                       hint="a long Python loop, perhaps one that does not end, is unrolled here", final=True)

    # --- inputs -------------------------------------------------------------------------------------------------------

    def input_variable(self, real: chainer.Variable, source: Source) -> SymbolicVariable:
        """The symbolic form of a Variable or Parameter of the user's."""
        if type(real) not in (chainer.Variable, chainer.Parameter):
            self.abort(f"a Variable of type {type(real).__name__}")
        if real.layout is not None:
            self.abort("a Variable with a memory layout of its own", hint=_LAYOUTS)
        array = real.array
        if array is None:
            self.abort(f"parameter {real.name or source.describe()} is not initialised yet", again=True)
        self._check_array(array)
        shape = self.free_sizes.shape(source, array.shape, type(real) is chainer.Parameter)
        self.world.guard(source, "variable", (type(real), real.requires_grad, shape, array.dtype))
        self.world.rely_on_class(type(real), data=True)
        value = self._input("variable", Tensor(shape, array.dtype), source, real.requires_grad)
        kind = SymbolicParameter if type(real) is chainer.Parameter else SymbolicVariable
        self.index_ranges.entered(value, source, array)
        whole = self.array_writes.entered(SymbolicArray(self, value), self.world.source("attr", source, "array"), array)
        variable = kind(self, whole, real.requires_grad)
        variable.__dict__["source"] = source
        return variable

    def input_array(self, real: np.ndarray, source: Source) -> SymbolicArray:
        """The symbolic form of an array of the user's."""
        self._check_array(real)
        shape = self.free_sizes.shape(source, real.shape)
        self.world.guard(source, "array", (shape, real.dtype))
        array = SymbolicArray(self, self._input("array", Tensor(shape, real.dtype), source))
        self.index_ranges.entered(array.now(), source, real)
        return self.array_writes.entered(array, source, real)

    def input_object(self, real: Any, source: Source) -> SymbolicObject:
        """The symbolic form of an object that only the host can use."""
        return SymbolicObject(self, self.object_value(source), real)

    def object_value(self, source: Source) -> Value:
        """The object at the end of a path as a value of the graph, for host calls."""
        if source not in self._objects:
            self._objects[source] = self._input("object", Dynamic(), source)
        return self._objects[source]

    def number(self, source: Source, real: Any, kind: str) -> SymbolicScalar:
        """The symbolic form of a number that changes from call to call."""
        text = f"n{source.number}"
        self.named.append((text, source))
        return SymbolicScalar(self, kind, text, real)

    def number_input(self, text: str, kind: str, hint: Any) -> Value:
        """An expression over numbers as a value of the graph.  hint: what it is in this call."""
        if text not in self._numbers:
            value = self.root.input(python_scalar(kind), "number")
            self._numbers[text] = value
            self.number_checks.texts[value] = text, hint
            self.inputs.append(Input("number", value, text=text))
        return self._numbers[text]

    def bind(self, value: Any, hint: str) -> str:
        """A name for an object in the generated code."""
        name = f"{hint}_{len(self.bound)}"
        self.bound.append((name, value))
        return name

    def _input(self, kind: str, type_: Any, source: Source, requires_grad: bool = False) -> Value:
        value = self.root.input(type_, readable(source))
        self.inputs.append(Input(kind, value, source, requires_grad=requires_grad))
        return value

    def _check_array(self, array: Any) -> None:
        if type(array) is not np.ndarray:
            self.abort(f"an array of type {type(array).__module__}.{type(array).__name__}",
                       hint=_LAYOUTS)
        if array.dtype.kind not in "fiub" or not array.dtype.isnative:
            self.abort(f"an array of dtype {array.dtype}")

    # --- NumPy, outside Chainer's graph -------------------------------------------------------------------------------

    def numpy_call(self, function: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """A call of NumPy on symbolic arrays; ``("method", name)`` and ``("attribute", name)`` are of the first operand."""
        self.check()
        done = self.array_writes.intercept(function, args, kwargs)
        if done is not NotImplemented:
            return done
        asked = function
        name, function = _callable(function)
        if name in stand_ins.REFUSED:
            self.abort(f"{_shown(asked, name)} is called on an array of the graph")
        if name in ("shape", "ndim", "size") and len(args) == 1 and not kwargs and type(args[0]) is SymbolicArray:
            return getattr(args[0], name)
        if name in stand_ins.OF_TYPES:
            try:
                return stand_ins.of_types(function, args, kwargs)
            except ValueError as error:
                self._abort_typing(_shown(asked, name), error)
        if function in _CONVERSIONS and len(args) == 1 and not kwargs and self._is_plain_number(args[0], function):
            key = function, self.twins.first(args[0].value)
            found = self.twins.number(key, self.builder)
            if found is None:
                self.event("staged", name)
                found, = self.builder.add(OPS[_CONVERSIONS[function]], (args[0].value,), {}, name=name)
                self.twins.note(key, (found,), self.builder)
            return self.wrap(found)
        operands: List[Value] = []
        template = (self.template(tuple(args), operands), self.template(dict(kwargs), operands))
        key = self.twins.key(asked, template, operands)
        twin = None if key is None else self.twins.number(key, self.builder)
        if twin is not None:
            return self.wrap(twin)
        types, wide = self.number_checks.hold(function, name, template, operands)
        if wide is not None:
            function = self.number_checks.widen(function, operands, types, wide)
        sizes = NewSizes(self, name, operands)
        try:
            structure, found, extents = infer_sized(stand_ins.infer, function, template, types, sizes)
        except Exception as error:      # whatever the call raises for contents that are made up, or wrong
            self._abort_typing(_shown(asked, name), error)
        if any(isinstance(t, Dynamic) for t in found):
            self.abort(f"{_shown(asked, name)} gives objects")
        types_ = [v.type for v in operands]
        may_fail = type(function) is not Attempt and (
            bool(extents) or stand_ins.may_raise(function, name, types_) or
            may_be_empty(types_) and not isinstance(function, np.ufunc))
        if may_fail and self.is_protected():
            if function in DECIDABLE:
                raise_first(function, *args)
                may_fail = False
            elif (found := attempted(self, function, args, kwargs)) is not NotImplemented:
                return found
        if may_fail:
            self.store_writes()
        self.event("staged", f"numpy {name}")
        call = host.Call(function, template[0], template[1], flat, name, structure is stand_ins.LEAF)
        op = host.sized_call if extents else host.checked_call if may_fail else host.numpy_call
        attrs = {"call": call, "types": found, **({"extents": extents} if extents else {})}
        lowered = self._lowered_numpy(asked, call, operands, found) if op is host.numpy_call or not operands else None
        outputs = (lowered,) if lowered is not None else self.builder.add(op, tuple(operands), attrs, name=identifier(name))
        self.twins.note(key, outputs, self.builder)
        sizes.note(outputs)
        if all(v in self.known for v in operands):
            # Computed from nothing but what is static: Python may decide on it.
            self.known.update(zip(outputs, call(*[self.known[v] for v in operands])))
        results = [self.wrap(v) for v in outputs]
        self.array_writes.called(function, args, kwargs, results, structure is stand_ins.LEAF)
        return stand_ins.unflatten(structure, results)

    def _abort_typing(self, shown: str, error: Exception) -> Any:
        """Stop because what a call gives cannot be learned from trials on made-up contents."""
        if error.args == (stand_ins.DEPENDS,):
            self.abort(f"{stand_ins.DEPENDS}: {shown}")
        self.abort(f"{shown} is tried on made-up contents first and fails there "
                   f"({type(error).__name__}: {in_users_words(str(error))})")

    def _lowered_numpy(self, function: Any, call: host.Call, operands: List[Value], found: Sequence[Any]) -> Optional[Value]:
        """The result of a call of NumPy as ops, if there are such; what they give is differentiated no further.

        Not under decisions and in loops on array values: an array that is carried may be the caller's, which has identity.
        """
        if not call.single or len(found) != 1 or self.staging.depth or self.staging.in_loop:
            return None
        start = len(self.builder.nodes)
        values = [OPS["stop_gradient"](v) if v in self.gradients.variables else v for v in operands]
        made = lower_numpy(function, host.fill(call.args, values), host.fill(call.kwargs, values), found[0])
        if made is None and not operands:
            made = fixed(call)
        if made is not None and made.type == found[0] and made not in values:
            return made
        del self.builder.nodes[start:]
        return None

    def _is_plain_number(self, item: Any, function: Callable) -> bool:
        """Whether an array is certain to be convertible to a number, which only the run knows."""
        return type(item) is SymbolicArray and item.type.shape == () and item.value not in self.known and \
            (function is not int or item.dtype.kind in "iub")

    def wrap(self, value: Value) -> Any:
        """The symbolic value that user code gets for a value of the graph."""
        if isinstance(value.type, Dynamic):
            return SymbolicObject(self, value)
        if isinstance(value.type, Scalar) and value.type.kind != "numpy":
            return self.known[value] if value in self.known else SymbolicScalar(self, value.type.kind, value=value)
        return SymbolicArray(self, value)

    def template(self, item: Any, operands: List[Value]) -> Any:
        """The item with holes where values of the graph go; these are appended to ``operands``."""
        return self.materialiser.template(item, operands)


#: Python's conversions, and the ops that they are.
_CONVERSIONS = {float: "py_float", bool: "py_bool", int: "py_int"}


def _callable(function: Any) -> Tuple[str, Callable]:
    if isinstance(function, tuple):
        kind, name = function
        return name, stand_ins.Method(name) if kind == "method" else stand_ins.Attribute(name)
    return getattr(function, "__name__", type(function).__name__), function


def _shown(function: Any, name: str) -> str:
    """What the user wrote to call a function of NumPy's."""
    if isinstance(function, tuple):
        return f"`.{name}{'()' if function[0] == 'method' else ''}` of an array"
    if name.startswith("_"):
        return "writing into an array"
    module = getattr(function, "__module__", None) or ("numpy" if isinstance(function, np.ufunc) else "")
    return f"`np.{'linalg.' if module == 'numpy.linalg' else ''}{name}`" if module.startswith("numpy") else f"`{name}`"

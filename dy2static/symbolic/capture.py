"""One symbolic run: user code is called on shadows; what it does to symbolic values becomes a graph."""
from __future__ import annotations

import types
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

import chainer
import numpy as np

from ..ir.building import Builder, building
from ..ir.graph import Value
from ..ir.op import OPS
from ..ir.types import Dynamic, Scalar, Tensor, python_scalar, type_of
from ..lowering import host, opaque
from ..lowering.registry import lowering_of
from ..runtime import dy, hooks
from ..runtime.node import make_variable
from . import stand_ins
from .aborts import CaptureAborted
from .calls import HARMLESS, Calls, writable_cells
from .locations import user_location
from .materialise import Materialiser
from .outcome import Build, EscapingVariable, Event, Input, Outcome, Write
from .protection import is_protected
from .rollback import ABSENT, contents_of
from .shadows import ShadowDict, ShadowList, ShadowSet
from .sources import Source
from .staging import Staging
from .trust import is_library
from .values import BoundHostMethod, SymbolicArray, SymbolicObject, SymbolicParameter, SymbolicScalar, SymbolicVariable
from .world import World, real_class

_MOST_NODES = 200_000

#: Characters of an expression over numbers, which is written out wherever it is used; longer ones are fixed.
_LONGEST_EXPRESSION = 400


class Capture:
    """The state of one symbolic run.

    varying: paths of numbers that are inputs, not guards.
    observed: output types of functions that only a real run can tell, by (class, position in the call, input types).
    """

    def __init__(self, varying: Set[Tuple], observed: Mapping[Tuple, Tuple], start_config: Mapping[str, Any],
                 name: str = "forward"):
        self.builder = self.root = Builder(name)
        self.world = World(self, varying)
        self.calls = Calls(self)
        self.materialiser = Materialiser(self)
        self.staging = Staging(self)
        self.observed, self.start_config = observed, dict(start_config)
        self.inputs: List[Input] = []
        self.variables: List[EscapingVariable] = []
        self.events: List[Event] = []
        self.bound: List[Tuple[str, Any]] = []
        self.named: List[Tuple[str, Source]] = []
        self.known: Dict[Value, Any] = {}
        self.failed: Optional[CaptureAborted] = None
        self.applied = 0
        self._cells: Dict[int, "ShadowCell"] = {}
        self._staged: Dict[int, Tuple[types.FunctionType, types.FunctionType]] = {}
        self._globals: Dict[int, ShadowDict] = {}
        self._objects: Dict[Source, Value] = {}
        self._numbers: Dict[str, Value] = {}
        self._escaping: Dict[int, Tuple[SymbolicVariable, EscapingVariable]] = {}
        self._roots: Dict[int, Source] = {}
        self._fixed: Set[Tuple[str, Any]] = set()

    # --- running ------------------------------------------------------------------------------------------------

    def run(self, function: Callable, args: Tuple, kwargs: Mapping[str, Any]) -> Outcome:
        """Call ``function`` on the shadows of these arguments and give what came out.

        Raises `CaptureAborted`, or whatever the user's code raises.
        """
        world = self.world
        shadows = [world.shadow(arg, world.source("arg", None, i)) for i, arg in enumerate(args)]
        keywords = {name: world.shadow(arg, world.source("kwarg", None, name)) for name, arg in kwargs.items()}
        with building(self.builder):
            result = self.callee(function)(*shadows, **keywords)
            self.check()
            writes = self._final_writes()
            built = self.materialiser.build(result)
            self._check_decided()
            self.materialiser.check_handed()
            world.finish()
        return self._outcome(built, writes, tuple(kwargs))

    def _outcome(self, result: Build, writes: Tuple[Write, ...], keywords: Tuple[str, ...]) -> Outcome:
        outputs = self.materialiser.outputs(result, [w.built for w in writes if w.built is not None], self.variables)
        graph = self.root.build(outputs)
        return Outcome(graph, tuple(self.inputs), tuple(self.world.guards), tuple(self.variables), writes, result,
                       tuple(self.named), tuple(self.bound), self.start_config, tuple(self.events), keywords)

    def check(self) -> None:
        """Stop again if user code swallowed that the capture was stopped."""
        if self.failed is not None:
            raise self.failed

    def abort(self, reason: str, hint: Optional[str] = None, **kind: bool) -> Any:
        """Stop the capture; the call runs eagerly."""
        if self.failed is None:
            self.failed = CaptureAborted(reason, user_location(), hint, **kind)
        raise self.failed

    def abort_decision(self) -> Any:
        """Stop because Python needs to know what an array holds."""
        self.abort("Python needs the contents of an array here (a decision, a conversion or a text)",
                   hint="decisions on array values run eagerly for now")

    def event(self, kind: str, text: str) -> None:
        """Note what became of an operation, with the user's line."""
        at = user_location()
        self.builder.loc = at
        self.events.append(Event(at, kind, text))
        if len(self.builder.nodes) > _MOST_NODES:
            self.abort(f"more than {_MOST_NODES} operations in one call", hint="a long Python loop is unrolled here")

    # --- inputs -------------------------------------------------------------------------------------------------

    def input_variable(self, real: chainer.Variable, source: Source) -> SymbolicVariable:
        """The symbolic form of a Variable or Parameter of the user's."""
        if type(real) not in (chainer.Variable, chainer.Parameter):
            self.abort(f"a Variable of type {type(real).__name__}")
        array = real.array
        if array is None:
            self.abort(f"parameter {real.name or source.describe()} is not initialised yet", again=True)
        self._check_array(array)
        if real.layout is not None:
            self.abort("a Variable with a memory layout of its own")
        self.world.guard(source, "variable", (type(real), real.requires_grad, array.shape, array.dtype))
        value = self._input("variable", type_of(array), source, real.requires_grad)
        kind = SymbolicParameter if type(real) is chainer.Parameter else SymbolicVariable
        variable = kind(self, SymbolicArray(self, value), real.requires_grad)
        variable.__dict__["source"] = source
        return variable

    def input_array(self, real: np.ndarray, source: Source) -> SymbolicArray:
        """The symbolic form of an array of the user's."""
        self._check_array(real)
        self.world.guard(source, "array", (real.shape, real.dtype))
        return SymbolicArray(self, self._input("array", type_of(real), source))

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

    def number_input(self, text: str, kind: str) -> Value:
        """An expression over numbers as a value of the graph."""
        if text not in self._numbers:
            value = self.root.input(python_scalar(kind), "number")
            self._numbers[text] = value
            self.inputs.append(Input("number", value, text=text))
        return self._numbers[text]

    def bind(self, value: Any, hint: str) -> str:
        """A name for an object in the generated code."""
        name = f"{hint}_{len(self.bound)}"
        self.bound.append((name, value))
        return name

    def _input(self, kind: str, type_: Any, source: Source, requires_grad: bool = False) -> Value:
        value = self.root.input(type_, _readable(source))
        self.inputs.append(Input(kind, value, source, requires_grad=requires_grad))
        return value

    def _check_array(self, array: Any) -> None:
        if type(array) is not np.ndarray:
            self.abort(f"an array of type {type(array).__module__}.{type(array).__name__}",
                       hint="only NumPy arrays in default layout are compiled; others run eagerly")
        if array.dtype.kind not in "fiub" or not array.dtype.isnative:
            self.abort(f"an array of dtype {array.dtype}")

    # --- numbers ------------------------------------------------------------------------------------------------

    def guard_expression(self, text: str, value: Any) -> None:
        """Fix the value of an expression over numbers."""
        if (text, value) not in self._fixed:
            self._fixed.add((text, value))
            self.world.guard(None, "expr", (text, value))

    def scalar_operation(self, function: Callable, symbol: str, *operands: Any) -> Any:
        """An operator on numbers at least one of which is symbolic."""
        if not all(type(x) in (bool, int, float, SymbolicScalar) for x in operands):
            if symbol in ("==", "!=") and any(isinstance(x, (type(None), str, bytes, tuple, list, dict)) for x in operands):
                return symbol == "!="
            return function(*[x.fix() if type(x) is SymbolicScalar else x for x in operands])
        if symbol in ("**", "<<", ">>"):
            operands = (operands[0], operands[1].fix() if type(operands[1]) is SymbolicScalar else operands[1])
        if any(type(x) is SymbolicScalar and x.text is None for x in operands):
            return self.numpy_call(function, operands, {})
        result = function(*[x.hint if type(x) is SymbolicScalar else x for x in operands])
        texts = [self._number_text(x) for x in operands]
        if symbol == "abs":
            return self.expression(f"abs({texts[0]})", result)
        return self.expression(f"({f' {symbol} '.join(texts)})" if len(texts) == 2 else f"({symbol}{texts[0]})", result)

    def expression(self, text: str, hint: Any) -> Any:
        """A symbolic number for an expression whose value in this call is ``hint``."""
        kind = {bool: "py_bool", int: "py_int", float: "py_float"}.get(type(hint))
        if kind is None:
            self.abort(f"a number of type {type(hint).__name__}")
        if kind == "py_bool" or len(text) > _LONGEST_EXPRESSION:
            self.guard_expression(text, hint)
            return hint
        return SymbolicScalar(self, kind, text, hint)

    def _number_text(self, operand: Any) -> str:
        if type(operand) is SymbolicScalar:
            return operand.text
        if isinstance(operand, float) and (operand != operand or operand in (float("inf"), -float("inf"))):
            return self.bind(operand, "number")
        return f"({operand!r})" if operand < 0 else repr(operand)

    def function_of_numbers(self, function: Callable, args: Tuple) -> Any:
        """``math.exp(x)`` and its like on symbolic numbers that are expressions."""
        result = function(*[x.hint if type(x) is SymbolicScalar else x for x in args])
        if type(result) not in (bool, int, float):
            return function(*[x.fix() if type(x) is SymbolicScalar else x for x in args])
        name = self.bind(function, getattr(function, "__name__", "function"))
        return self.expression(f"{name}({', '.join(self._number_text(x) for x in args)})", result)

    # --- NumPy, outside Chainer's graph ----------------------------------------------------------------------------

    def numpy_call(self, function: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """A call of NumPy on symbolic arrays; ``("method", name)`` and ``("attribute", name)`` are of the first operand."""
        self.check()
        name, function = _callable(function)
        if name in stand_ins.REFUSED:
            self.abort(f"numpy {name} on an array of the graph")
        if name in stand_ins.OF_TYPES:
            return function(*stand_ins.typed(args), **stand_ins.typed(kwargs))
        if "out" in kwargs:
            self.abort(f"numpy {name} writes into an array (`out=`)")
        operands: List[Value] = []
        template = (self.template(tuple(args), operands), self.template(dict(kwargs), operands))
        try:
            structure, found = stand_ins.infer(function, template, [v.type for v in operands])
        except Exception as error:
            self.abort(f"numpy {name}: {error}")
        if any(isinstance(t, Dynamic) for t in found):
            self.abort(f"numpy {name} gives an object")
        may_fail = stand_ins.may_raise(function, name, [v.type for v in operands])
        if may_fail:
            self.store_writes()
        self.event("staged", f"numpy {name}")
        call = host.Call(function, template[0], template[1], _flat, name, structure is stand_ins.LEAF)
        op = host.checked_call if may_fail else host.numpy_call
        outputs = self.builder.add(op, tuple(operands), {"call": call, "types": found}, name=_identifier(name))
        if all(v in self.known for v in operands):
            # Computed from nothing but what is static: Python may decide on it.
            self.known.update(zip(outputs, call(*[self.known[v] for v in operands])))
        return stand_ins.unflatten(structure, [self.wrap(v) for v in outputs])

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

    # --- Chainer functions ----------------------------------------------------------------------------------------

    def apply(self, node: chainer.FunctionNode, inputs: Sequence[Any]) -> Tuple[SymbolicVariable, ...]:
        """What ``node.apply(inputs)`` does while this capture runs."""
        self.check()
        operands = [self._operand(x) for x in inputs]
        requires = [r for _, r in operands]
        values = [v for v, _ in operands]
        self._check_certain(inputs)
        node._input_layouts = (None,) * len(values)
        if chainer.config.type_check:
            node._check_data_type_forward(tuple([_Typed(v.type) for v in values]))
        if node._n_local_function_hooks:
            self.abort("a function with hooks of its own")
        position, self.applied = self.applied, self.applied + 1
        outputs = self._lower(node, values)
        if outputs is None:
            outputs = self._opaque(node, values, requires, position)
        connected = any(requires) and chainer.config.enable_backprop
        return tuple([self._result(v, values, any(requires), connected) for v in outputs])

    def _check_certain(self, inputs: Sequence[Any]) -> None:
        """Stop where a run would decide whether the result of a function requires a gradient."""
        required = [x for x in inputs if isinstance(x, chainer.Variable) and x.requires_grad]
        if required and all(x.__dict__.get("uncertain") for x in required):
            self.abort("whether a Variable requires a gradient depends on a decision on array values")

    def _operand(self, x: Any) -> Tuple[Value, bool]:
        if isinstance(x, chainer.Variable):
            if isinstance(x, SymbolicVariable):
                if "exposed" in x.__dict__:
                    self.abort(f"a Variable is used after {x.__dict__['exposed']}, which may have changed it")
                return x.value, x.requires_grad
            array, requires_grad = x._data[0], x.requires_grad
        else:
            array, requires_grad = x, False
        if type(array) is SymbolicArray:
            if array.is_scalar:
                self.abort("a NumPy scalar is given to a Chainer function")
            return array.value, requires_grad
        if type(array) is not np.ndarray or requires_grad:
            self.abort(f"a {type(array).__name__} made inside a library function is differentiated")
        return OPS["constant"](value=array), False

    def _lower(self, node: chainer.FunctionNode, values: List[Value]) -> Optional[Tuple[Value, ...]]:
        lowering = lowering_of(node)
        if lowering is None:
            return None
        self.event("staged", type(node).__name__)
        start = len(self.builder.nodes)
        outputs = lowering(node, *values)
        if outputs is None:
            del self.builder.nodes[start:]
            self.events.pop()
            return None
        if any(made.op.may_raise for made in self.builder.nodes[start:]):
            self._store_writes_before(start)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def _store_writes_before(self, start: int) -> None:
        """Nodes from ``start`` may raise: what was written so far must have happened by then."""
        nodes = self.builder.nodes[start:]
        del self.builder.nodes[start:]
        self.store_writes()
        self.builder.nodes.extend(nodes)

    def _opaque(self, node: chainer.FunctionNode, values: List[Value], requires: List[bool],
                position: int) -> Tuple[Value, ...]:
        self.store_writes()
        self.event("opaque", name_of(node))
        operands = list(values)
        pristine = opaque.copy_node(node)
        holder = pristine.function if isinstance(pristine, chainer.function.FunctionAdapter) else pristine
        hidden = {name: self.template(value, operands) for name, value in holder.__dict__.items()
                  if self.materialiser.holds_symbolic(value)}
        # The copy must not hold anything symbolic: the program outlives the capture.
        for name in hidden:
            holder.__dict__[name] = None
        call = opaque.OpaqueCall(pristine, hidden, requires, self.changed_config())
        found = self._opaque_types(node, call, operands, position)
        trap_attributes(node, call.written, self)
        outputs = self.builder.add(opaque.opaque, tuple(operands), {"call": call, "types": found},
                                   name=_identifier(name_of(node)))
        return outputs[:-1]

    def _opaque_types(self, node: chainer.FunctionNode, call: opaque.OpaqueCall, operands: List[Value],
                      position: int) -> Tuple:
        implementation = node.function if isinstance(node, chainer.function.FunctionAdapter) else node
        types_ = tuple(v.type for v in operands)
        if is_library(type(implementation).__module__) and all(isinstance(t, (Tensor, Scalar)) for t in types_):
            with self.calls.preserved_random_state(), self.calls.outside(), np.errstate(all="ignore"):
                try:
                    return call.probe([self._made_up(v) for v in operands])
                except Exception as error:
                    reason = f"{name_of(node)} does not run on made-up arrays: {error}"
            self.abort(reason)
        found = self.observed.get((type(implementation), position, types_[:len(call.requires)]))
        if found is None:
            self.abort(f"the types of the results of {name_of(node)} are learned from this call", again=True, observe=True)
        return found

    def _made_up(self, value: Value) -> Any:
        """Contents for a trial run: what the value holds, where that is static."""
        known = self.known.get(value)
        return stand_ins.stand_in(value.type, 0) if known is None else np.array(known)

    def changed_config(self) -> Dict[str, Any]:
        """Entries of ``chainer.config`` that differ from those at the start of the call."""
        now = chainer.config._local.__dict__
        return {k: v for k, v in now.items() if k not in self.start_config or self.start_config[k] != v}

    def _result(self, value: Value, inputs: List[Value], requires_grad: bool, connected: bool) -> SymbolicVariable:
        if not connected:
            value = OPS["stop_gradient"](value)
        elif value in inputs:
            value = OPS["identity"](value)
        return SymbolicVariable(self, SymbolicArray(self, value), requires_grad, connected)

    def new_variable(self, array: Any, requires_grad: bool) -> SymbolicArray:
        """The array of a Variable that user code makes: a leaf, whatever the array was computed from."""
        return SymbolicArray(self, OPS["stop_gradient"](array.value))

    # --- host calls and writes --------------------------------------------------------------------------------------

    def host_call(self, function: Any, args: Tuple, kwargs: Mapping[str, Any], types_: Optional[Tuple] = None,
                  structure: Any = stand_ins.LEAF, name: str = "") -> Any:
        """Leave a call to the host: it runs at every call of the program, here in the order of effects."""
        self.check()
        trusted = types_ is not None or any(function is harmless for harmless in HARMLESS)
        if not trusted or any(map(self.materialiser.exposes, (*args, *kwargs.values()))):
            self.store_writes(may_fail=not trusted)
        name = name or getattr(function, "__name__", None) or getattr(function, "name", None) or type(function).__name__
        self.event("host", name)
        operands: List[Value] = []
        template = (self.materialiser.hand_over(tuple(args), operands), self.materialiser.hand_over(dict(kwargs), operands))
        target = self.materialiser.hand_over(function, operands)
        if not trusted:
            self._note_changes(function, args, kwargs, name)
        call = host.Call(target, template[0], template[1], _flat if types_ is not None else _one, name)
        attrs = {"call": call, "types": (Dynamic(),) if types_ is None else types_}
        outputs = self.builder.add(host.host_call, tuple(operands), attrs, name=_identifier(name))
        return stand_ins.unflatten(structure, [self.wrap(v) for v in outputs])

    def _note_changes(self, function: Any, args: Tuple, kwargs: Mapping[str, Any], name: str) -> None:
        """A host call of unknown code: what it may change is not read from here on, and it gets no new containers."""
        given = (*args, *kwargs.values())
        owner = function.owner if type(function) is BoundHostMethod else function
        own = type(owner) if type(owner) is not SymbolicObject else type(owner.real)
        code = function if isinstance(function, (types.FunctionType, type)) else own
        is_users = not is_library(getattr(code, "__module__", None) or "") or isinstance(function, types.MethodType)
        if is_users and any(self.materialiser.holds_new_container(item) for item in given):
            self.abort(f"a list or dict that is made here is given to {name}, which may change or keep it")
        if is_users or any(map(self.materialiser.exposes, given)):
            self.world.stale = name
        if isinstance(function, types.FunctionType):
            for cell in writable_cells(function):
                if id(cell) in self._cells:
                    self.abort(f"{name} changes a closure variable that is used here")
        for item in given if is_users else ():
            if isinstance(item, SymbolicVariable):
                item.__dict__["exposed"] = name

    def store_writes(self, may_fail: bool = True) -> None:
        """Put pending writes into the program here, before something that could look, or fail."""
        if may_fail and is_protected(Capture.run.__code__):
            self.abort("something that may fail at run time stands inside a `try` or `with`")
        for container, kind, key, item in self._changes():
            operands = [self.object_value(container)]
            template = self.materialiser.hand_over(item, operands)
            call = host.Call(_STORES[kind], (host.Hole(0), key, template), {}, _none, kind)
            self.builder.add(host.host_call, tuple(operands), {"call": call, "types": ()}, name="write")

    def _final_writes(self) -> Tuple[Write, ...]:
        return tuple([Write(kind, container, key, None if kind == "delete" else self.materialiser.build(item))
                      for container, kind, key, item in list(self._changes())])

    def _changes(self) -> List[Tuple[Source, str, Any, Any]]:
        found = []
        for container in self.world.containers:
            names = {ShadowDict: "", ShadowList: "list ", ShadowSet: "set "}[type(container)]
            for kind, key, item in container.changes():
                if key == "__builtins__":
                    continue
                found.append((container.source, names + kind, key, item))
        for cell in self._cells.values():
            found += cell.changes()
        return found

    def escaping(self, variable: SymbolicVariable) -> EscapingVariable:
        """The record of a Variable made here that the user can get hold of."""
        key = id(variable)
        if key not in self._escaping:
            if self.staging.depth:
                self.abort("a Variable leaves the compiled function from inside a decision on array values")
            record = EscapingVariable(variable.value, variable.requires_grad, variable.connected)
            self._escaping[key] = variable, record
            self.variables.append(record)
        return self._escaping[key][1]

    def _check_decided(self) -> None:
        """Refuse results whose identity with each other depends on a decision."""
        if not chainer.config.enable_backprop and any(record.connected for record in self.variables):
            self.abort("a part of a function without backprop is differentiated")
        seen: Dict[int, SymbolicVariable] = {}
        for variable, _ in list(self._escaping.values()):
            for origin in variable.__dict__.get("origins") or (id(variable),):
                if seen.setdefault(origin, variable) is not variable:
                    self.abort("whether two results are one Variable depends on a decision on array values")

    def early_variable(self, variable: SymbolicVariable) -> Value:
        """The Variable itself as a value of the graph, for a host call that sees it."""
        record = self.escaping(variable)
        if record.early is None:
            call = host.Call(make_variable, (host.Hole(0), record.requires_grad), {}, _one, "make_variable")
            record.early, = self.builder.add(host.host_call, (record.value,), {"call": call, "types": (Dynamic(),)},
                                             name="variable")
        return record.early

    # --- staging functions --------------------------------------------------------------------------------------------

    def callee(self, function: Any) -> Callable:
        """What to call for ``function``: a staged form, a native call, or a host call."""
        self.check()
        return self.calls.callee(function)

    def decides(self, value: Any) -> bool:
        """Whether the truth of a value is known at run time only."""
        return type(value) is SymbolicArray and value.value not in self.known or \
            type(value) is SymbolicScalar and value.text is None

    def shadow_cells(self) -> List["ShadowCell"]:
        """The closure cells that staged functions share with the user's."""
        return list(self._cells.values())

    def identical(self, first: Any, second: Any) -> bool:
        """``first is second`` of what they stand for."""
        for item, other in ((first, second), (second, first)):
            kind = type(item)
            if first is not second and (
                    kind is BoundHostMethod or kind is SymbolicObject and item.real is SymbolicObject.Missing
                    or kind is SymbolicScalar and item.text is None and isinstance(other, (bool, int, float))):
                self.abort("`is` of a value that is known at run time only")
        if type(first) is SymbolicArray and type(second) is SymbolicArray and first is not second:
            self.abort("two arrays are compared by `is`")
        if isinstance(first, SymbolicVariable) and isinstance(second, SymbolicVariable) and first is not second and \
                any("choice" in v.__dict__ or "origins" in v.__dict__ for v in (first, second)):
            self.abort("`is` of Variables that depend on a decision on array values")
        first, second = [x.fix() if type(x) is SymbolicScalar else real_class(x) for x in (first, second)]
        return first is second

    def staged(self, function: types.FunctionType) -> types.FunctionType:
        """The converted form of a Python function, bound to shadows of its globals, cells and defaults."""
        known = self._staged.get(id(function))
        if known is None:
            known = self._staged[id(function)] = (function, self._instantiate(function))
        return known[1]

    def _instantiate(self, function: types.FunctionType) -> types.FunctionType:
        loaded = hooks.convert(function)
        cells = {name: self._cell(cell, name) for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ())}
        made = loaded.instantiate(self._shadow_globals(function.__globals__), cells, dy, function)
        self.calls.staged_codes.add(made.__code__)
        source = self.world.source("const", None, function)
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            defaults = getattr(function, name)
            if not is_library(function.__module__ or ""):
                test = "eq" if type(defaults) is dict else "is"
                self.world.guard(self.world.source("attr", source, name), test, dict(defaults) if test == "eq" else defaults)
            if name == "__code__":
                continue
            if defaults and not all(_is_atom(x) for x in (defaults.values() if isinstance(defaults, dict) else defaults)):
                shadow = self.world.shadow(defaults, self.world.source("attr", source, name))
                setattr(made, name, dict(shadow) if isinstance(shadow, dict) else shadow)
        return made

    def _shadow_globals(self, real: dict) -> ShadowDict:
        known = self._globals.get(id(real))
        if known is None:
            if is_library(real.get("__name__", "")):
                known = real
            else:
                known = ShadowDict(self.world, real, self.world.source("const", None, real))
                for name in ("__builtins__", "__name__"):       # Python reads these past any subclass of dict
                    if name in real:
                        dict.__setitem__(known, name, real[name])
                        known.loaded[name] = known.original[name] = real[name]
                self.world.containers.append(known)
            self._globals[id(real)] = known
        return known

    def _cell(self, cell: Any, name: str) -> Any:
        if id(cell) not in self._cells:
            self._cells[id(cell)] = ShadowCell(self.world, cell, name)
        return self._cells[id(cell)].shadow


class ShadowCell:
    """The shadow of a closure cell."""

    def __init__(self, world: World, real: Any, name: str):
        self.real = real
        self.source = world.source("const", None, real)
        self.shadow = types.CellType()
        contents = world.source("cell", self.source)
        try:
            value = real.cell_contents
        except ValueError:
            world.guard(self.source, "unbound")
        else:
            self.shadow.cell_contents = value if name == "__class__" else world.shadow(value, contents)
        self.before = self.initial = contents_of(self.shadow)

    def changes(self) -> List[Tuple[Source, str, Any, Any]]:
        """The write to the cell since the last call, if any."""
        now = contents_of(self.shadow)
        if now is self.before:
            return []
        self.before = now
        return [(self.source, "cell delete" if now is ABSENT else "cell set", None, now)]


def name_of(node: chainer.FunctionNode) -> str:
    """The class of a function; not its label, which may look at numbers that are symbolic."""
    return type(node.function if isinstance(node, chainer.function.FunctionAdapter) else node).__name__


def trap_attributes(node: chainer.FunctionNode, written: Optional[frozenset], capture: Capture) -> None:
    """Stop the capture when somebody reads what ``forward`` would have left in the node: it has not run.

    written: the attributes that it sets; None where that is not known, and then all of the node's own.
    """
    holder = node.function if isinstance(node, chainer.function.FunctionAdapter) else node
    names = frozenset(holder.__dict__) if written is None else written

    def read(trapped: Any, name: str) -> Any:
        if name in names or (written is None and not name.startswith("_") and not hasattr(type(trapped), name)):
            capture.abort(f"`.{name}` of {type(trapped).__name__} is read after it was applied")
        return object.__getattribute__(trapped, name)
    cls = type(holder)
    holder.__class__ = type(cls.__name__, (cls,), {"__getattribute__": read, "__module__": cls.__module__})


class _Typed:
    """What Chainer's type check looks at in an array."""

    def __init__(self, type_: Any):
        self.shape, self.dtype, self.ndim = type_.shape, type_.dtype, len(type_.shape)
        self.size = int(np.prod(type_.shape, dtype=int))

    @property
    def __class__(self) -> type:
        return np.ndarray                               # it asserts that before it composes its message


def _store_item(container: Any, key: Any, value: Any) -> None:
    container[key] = value


def _delete_item(container: Any, key: Any, value: Any) -> None:
    del container[key]


def _extend(container: Any, key: Any, value: Any) -> None:
    container.extend(value)


def _assign(container: Any, key: Any, value: Any) -> None:
    container[:] = value


def _assign_set(container: Any, key: Any, value: Any) -> None:
    container.clear()
    container.update(value)


def _store_cell(container: Any, key: Any, value: Any) -> None:
    container.cell_contents = value


def _delete_cell(container: Any, key: Any, value: Any) -> None:
    del container.cell_contents


_STORES = {"set": _store_item, "delete": _delete_item, "list extend": _extend, "list assign": _assign,
           "set assign": _assign_set, "cell set": _store_cell, "cell delete": _delete_cell}


def _flat(result: Any) -> List[Any]:
    return stand_ins.flatten(result)[1]


def _one(result: Any) -> List[Any]:
    return [result]


def _none(result: Any) -> List[Any]:
    return []


def _is_atom(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, str, bytes)


def _identifier(name: str) -> str:
    cleaned = "".join(c if c.isalnum() else "_" for c in name).strip("_").lower()
    return cleaned if cleaned and not cleaned[0].isdigit() else "value"


def _readable(source: Source) -> str:
    words: List[str] = []
    step: Optional[Source] = source
    while step is not None and len(words) < 2:
        if step.kind in ("item", "kwarg", "attr", "class"):
            words.append(str(step.key))
        elif step.kind == "arg":
            words.append(f"x{step.key}")
        step = step.parent
    return _identifier("_".join(reversed(words)))


def _callable(function: Any) -> Tuple[str, Callable]:
    if isinstance(function, tuple):
        kind, name = function
        if kind == "method":
            return name, _Method(name)
        return name, _Attribute(name)
    return getattr(function, "__name__", type(function).__name__), function


class _Method:
    def __init__(self, name: str):
        self.method = name

    def __call__(self, owner: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(owner, self.method)(*args, **kwargs)


class _Attribute:
    def __init__(self, name: str):
        self.attribute = name

    def __call__(self, owner: Any) -> Any:
        return getattr(owner, self.attribute)


"""A loaded model that a compiled function calls: its graph becomes part of the graph of that function."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import chainer

from ..errors import InternalError
from ..ir.building import current
from ..ir.dims import Dim, Size, at_least, equal, less
from ..ir.graph import Graph, Value
from ..ir.substitute import with_sizes
from ..ir.types import Tensor
from ..lowering.registry import lowers
from ..symbolic.known_texts import fixed
from ..symbolic.lists import StagedList
from ..symbolic.values import SymbolicArray, SymbolicParameter, SymbolicVariable
from ..world.outcome import Build, Outcome
from ..world.shadows import ShadowDict, ShadowList, ShadowSet
from ..world.sources import Guard, Source


class LoadedModel(chainer.FunctionNode):
    """The graph of a loaded model as one function of Chainer's, for captures: it is never run.

    state: the last operands, arrays that are changed behind it, which no gradient is computed from.
    """

    def __init__(self, graph: Graph, state: Sequence[SymbolicArray]):
        super().__init__()
        self.graph, self.state = graph, list(state)

    def forward(self, inputs: Tuple) -> Any:
        raise InternalError("a part of a graph is run by itself")


@lowers(LoadedModel, state=("state",))
def part(node: LoadedModel, *values: Value) -> Tuple[Value, ...]:
    known = dict(zip(node.graph.inputs, (*values, *[array.now() for array in node.state])))
    for step in node.graph.nodes:
        made = current().add(step.op, tuple([known[v] for v in step.inputs]), step.attrs, step.regions)
        known.update(zip(step.outputs, made))
    return tuple([known[v] for v in node.graph.outputs])


def inlined(capture: Any, outcomes: Sequence[Outcome], args: Tuple, kwargs: Mapping[str, Any]) -> Any:
    """What a call of a loaded model gives inside a capture, which stops where none of its programs can be a part of another."""
    mode = bool(chainer.config.train), bool(chainer.config.enable_backprop)
    for outcome in outcomes:
        if (outcome.train, outcome.enable_backprop) == mode:
            call = _Call(capture, outcome, args, kwargs)
            if call.fits():
                return call.run()
    return capture.abort("no program of a loaded model takes this call")


class _Call:
    """One call, by one of the programs of the model."""

    def __init__(self, capture: Any, outcome: Outcome, args: Tuple, kwargs: Mapping[str, Any]):
        self.capture, self.outcome, self.args, self.kwargs = capture, outcome, args, kwargs
        self.sizes: Dict[str, Size] = {}
        self._found: Dict[Source, Any] = {}

    # --- what it relies on --------------------------------------------------------------------------------------------

    def at(self, source: Source) -> Any:
        """What is at the end of a path, in terms of the capture."""
        if source not in self._found:
            self._found[source] = self._at(source)
        return self._found[source]

    def _at(self, source: Source) -> Any:
        if source.kind in ("arg", "kwarg"):
            return (self.args if source.kind == "arg" else self.kwargs)[source.key]
        parent = self.at(source.parent)
        if source.kind in ("dict", "slots"):
            return parent.__dict__
        if source.kind == "item":
            return parent[source.key]
        if source.kind == "len":
            return len(parent)
        return tuple(parent) if source.kind == "keys" else getattr(parent, "cell_contents" if source.kind == "cell" else source.key)

    def fits(self) -> bool:
        """Whether all guards hold."""
        arguments = {g.source for g in self.outcome.guards if g.source is not None and g.source.kind == "arg"}
        if len(arguments) != len(self.args) or tuple(self.kwargs) != self.outcome.keywords:
            return False
        try:
            return all([_TESTS[guard.test](self, guard) for guard in self.outcome.guards if guard.test not in _ELSEWHERE])
        except (KeyError, IndexError, AttributeError, TypeError):
            return False

    def has_shape(self, found: Sequence[Size], expected: Sequence[Size]) -> bool:
        """Whether sizes are as expected, where symbols stand for any that are not too small."""
        if len(found) != len(expected):
            return False
        for n, wanted in zip(found, expected):
            if isinstance(wanted, Dim) and len(wanted.symbols) == 1 and wanted == Dim(wanted.symbols[0]):
                if wanted.symbols[0] not in self.sizes and less(at_least(wanted.symbols[0]) - 1, n):
                    self.sizes[wanted.symbols[0]] = n
                wanted = self.sizes.get(wanted.symbols[0], 0)
            if equal(n, wanted) is not True:
                return False
        return True

    # --- what it does -------------------------------------------------------------------------------------------------

    def run(self) -> Any:
        """Make its graph a part, do what it writes, and give what it gives."""
        reason = self._impossible()
        if reason:
            self.capture.abort(f"a loaded model is called that {reason}")
        graph = with_sizes(self.outcome.graph, self.sizes) if self.sizes else self.outcome.graph
        inputs = [self.at(item.source) for item in self.outcome.inputs]
        self.results: Dict[Value, Any] = dict(zip(self.outcome.graph.inputs, inputs))
        if self.outcome.graph.outputs:
            written = {id(self.at(write.container)) for end in self.outcome.ends for write in end.writes if write.kind == "array"}
            order = sorted(range(len(inputs)), key=lambda k: id(inputs[k]) in written)
            count = sum(id(item) not in written for item in inputs)
            graph = graph.with_(inputs=tuple([graph.inputs[k] for k in order]))
            given = [inputs[k] for k in order]
            made = LoadedModel(graph, given[count:]).apply(given[:count])
            self.results.update(zip(self.outcome.graph.outputs, made))
        end, = self.outcome.ends
        self._built: Dict[int, Any] = {}
        builds = [None if write.built is None else self.built(write.built) for write in end.writes]
        result = self.built(end.result)                 # type: ignore[arg-type]
        for write, built in zip(end.writes, builds):
            _WRITES[write.kind](self.at(write.container), write.key, built)
        return result

    def _impossible(self) -> str:
        """Why the program cannot be a part of another; "" where it can."""
        outcome = self.outcome
        if chainer.is_debug():
            return "cannot look for NaN in its functions"
        if len(outcome.ends) != 1 or outcome.named or any(item.kind not in ("variable", "array") for item in outcome.inputs):
            return "ends in several ways, or computes with numbers of its state"
        nodes = list(outcome.graph.walk())
        if any(node.op.kind == "opaque" and node.op.name != "numpy_call" or node.attrs.get("extents") or "extent" in node.attrs
               for node in nodes):
            return "calls the host, or has sizes that only the run knows"
        if not all(isinstance(v.type, Tensor) for v in outcome.graph.outputs):
            return "gives numbers that only the run knows"
        requires = {record.requires_grad for record in outcome.variables}
        connected = {record.connected for record in outcome.variables} <= {outcome.enable_backprop}
        if len(requires) > 1 or not connected or any(record.early for record in outcome.variables):
            return "gives Variables of different kinds"
        if requires == {False} and any(getattr(self.at(item.source), "requires_grad", False) for item in outcome.inputs):
            return "gives Variables that it cuts off"
        kinds = {write.kind for end in outcome.ends for write in end.writes}
        if not kinds <= set(_WRITES):
            return "writes into containers that have no such writes here"
        return "" if all(build.kind in _BUILDS for end in outcome.ends for whole in end.builds for build in parts_of(whole)) else \
            "gives back what it has made in ways of its own"

    def built(self, build: Build) -> Any:
        """The object that a build makes; one that stands at two places is one object."""
        if id(build) not in self._built:
            self._built[id(build)] = _BUILDS[build.kind](self, build.parts)
        return self._built[id(build)]

    def all_built(self, builds: Sequence[Build]) -> List[Any]:
        """The objects that builds make."""
        return [self.built(build) for build in builds]

    def array_of(self, value: Value) -> Any:
        """The array that a value of the graph is."""
        found = self.results[value]
        return found.array if isinstance(found, chainer.Variable) else found


def parts_of(build: Build) -> List[Build]:
    """The build and everything in it."""
    found = [build]
    for part in build.parts if build.kind in ("tuple", "list", "dict") else ():
        for item in part if isinstance(part, tuple) else (part,):
            found += parts_of(item) if isinstance(item, Build) else []
    return found


def _variable_fits(call: _Call, guard: Guard) -> bool:
    found = call.at(guard.source)
    kind, requires_grad, shape, dtype = guard.expected
    right = isinstance(found, SymbolicParameter if kind is chainer.Parameter else SymbolicVariable)
    return right and found.requires_grad is requires_grad and found.dtype == dtype and call.has_shape(found.shape, shape)


def _array_fits(call: _Call, guard: Guard) -> bool:
    found = call.at(guard.source)
    return type(found) is SymbolicArray and not found.is_scalar and found.dtype == guard.expected[1] and \
        call.has_shape(found.shape, guard.expected[0])


def _type_fits(call: _Call, guard: Guard) -> bool:
    if guard.source.parent is None and guard.source.key == 0:
        return True                                     # the layer itself
    found = call.at(guard.source)
    kind = _KINDS.get(type(found)) or (found.python_type if hasattr(type(found), "python_type") else type(found))
    return kind is guard.expected


#: What stands for containers while something is captured.
_KINDS = {ShadowList: list, StagedList: list, ShadowDict: dict, ShadowSet: set, SymbolicVariable: chainer.Variable,
          SymbolicParameter: chainer.Parameter}


def _equals(call: _Call, guard: Guard) -> bool:
    found = call.at(guard.source)
    found = fixed(found)
    return type(found) is type(guard.expected) and bool(found == guard.expected)


#: Guards of what the capture itself takes care of: indices that are out of range, arrays that share memory.
_ELSEWHERE = frozenset(("range", "apart"))

_TESTS: Dict[str, Callable[[_Call, Guard], bool]] = {
    "variable": _variable_fits, "array": _array_fits, "type": _type_fits, "eq": _equals,
    "is": lambda call, guard: call.at(guard.source) is guard.expected,
    "len": lambda call, guard: len(call.at(guard.source)) == guard.expected,
    "keys": lambda call, guard: tuple(call.at(guard.source)) == guard.expected,
    "absent": lambda call, guard: guard.expected not in call.at(guard.source),
    "lacks": lambda call, guard: not hasattr(call.at(guard.source), guard.expected),
    "same": lambda call, guard: call.at(guard.source) is call.at(guard.expected),
    "distinct": lambda call, guard: len({id(call.at(source)) for source in guard.expected}) == len(guard.expected),
    "expr": lambda call, guard: False, "unbound": lambda call, guard: False}


def _set(container: Any, key: Any, value: Any) -> None:
    container[key] = value


def _delete(container: Any, key: Any, value: Any) -> None:
    del container[key]


def _assign(container: Any, key: Any, value: Any) -> None:
    container[:] = value


def _write_array(container: Any, key: Any, value: Any) -> None:
    container[...] = value


_WRITES: Dict[str, Callable[[Any, Any, Any], None]] = {
    "set": _set, "delete": _delete, "list set": _set, "list extend": lambda container, key, value: container.extend(value),
    "list assign": _assign, "array": _write_array}

_BUILDS: Dict[str, Callable[[_Call, Tuple], Any]] = {
    "const": lambda call, parts: parts[0],
    "source": lambda call, parts: call.at(parts[0]),
    "value": lambda call, parts: call.array_of(parts[0]),
    "variable": lambda call, parts: call.results[parts[0].value],
    "tuple": lambda call, parts: tuple(call.all_built(parts[1])) if parts[0] is tuple else parts[0]._make(call.all_built(parts[1])),
    "list": lambda call, parts: call.all_built(parts),
    "dict": lambda call, parts: {call.built(key): call.built(value) for key, value in parts}}

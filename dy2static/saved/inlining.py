"""Inlines a loaded model into the graph of a compiled function that calls it."""
from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Sequence, Tuple

import chainer

from ..capture_context import CaptureContext
from ..errors import InternalError
from ..heap.dict_shadows import ShadowDict
from ..heap.list_shadows import ShadowList
from ..heap.set_shadows import ShadowSet
from ..ir.building import current
from ..ir.dims import Size, as_multiple, equal, less
from ..ir.graph import Graph, Value
from ..ir.size_symbols import at_least, at_most
from ..ir.substitute import with_sizes
from ..ir.types import Tensor
from ..lowering.registry import lowers
from ..record.builds import Build
from ..record.guards import ArrayMatch, EqualsMatch, Guard, IndicesInRange, NoOverlap, TypeMatch, VariableMatch
from ..record.inputs import ArrayInput, VariableInput
from ..record.outcome import Outcome
from ..record.paths import Argument, Source
from ..record.variables import EscapingVariable
from ..record.writes import AssignList, DeleteItem, ExtendList, SetItem, SetListItem, WriteArray
from ..symbolic.known_texts import fixed
from ..symbolic.lists import StagedList
from ..symbolic.values import SymbolicArray, SymbolicParameter, SymbolicVariable


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


def inlined(capture: CaptureContext, outcomes: Sequence[Outcome], args: Tuple, kwargs: Mapping[str, Any]) -> Any:
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

    def __init__(self, capture: CaptureContext, outcome: Outcome, args: Tuple, kwargs: Mapping[str, Any]):
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
        if source.parent is None:
            return (self.args if isinstance(source, Argument) else self.kwargs)[source.key]
        return source.read(self.at(source.parent))

    def fits(self) -> bool:
        """Whether all guards hold."""
        arguments = {g.source for g in self.outcome.guards if isinstance(g.source, Argument)}
        if len(arguments) != len(self.args) or tuple(self.kwargs) != self.outcome.keywords:
            return False
        try:
            return all([self._holds(guard) for guard in self.outcome.guards if not isinstance(guard, _ELSEWHERE)])
        except (KeyError, IndexError, AttributeError, TypeError):
            return False

    def _holds(self, guard: Guard) -> bool:
        fits = _FITS.get(type(guard))
        return guard.holds(self.at) if fits is None else fits(self, guard)

    def has_shape(self, found: Sequence[Size], expected: Sequence[Size]) -> bool:
        """Whether sizes are as expected, where symbols stand for any that are not too small."""
        if len(found) != len(expected):
            return False
        for n, wanted in zip(found, expected):
            multiple = as_multiple(wanted)
            if multiple is not None:
                symbol, factor = multiple
                most = at_most(symbol)
                if symbol not in self.sizes and less(at_least(symbol) - 1, n // factor) and (
                        most is None or less(n // factor, most + 1)):
                    self.sizes[symbol] = n // factor
                if symbol not in self.sizes:
                    return False
                wanted = self.sizes[symbol] * factor
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
            writes = [write for end in self.outcome.ends for write in end.writes]
            written = {id(self.at(write.container)) for write in writes if isinstance(write, WriteArray)}
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
            write.perform(self.at(write.container), write.key, built)
        return result

    def _impossible(self) -> str:
        """Why the program cannot be a part of another; "" where it can."""
        outcome = self.outcome
        if chainer.is_debug():
            return "cannot look for NaN in its functions"
        only_arrays = all(isinstance(item, (VariableInput, ArrayInput)) for item in outcome.inputs)
        if len(outcome.ends) != 1 or outcome.named or not only_arrays:
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
        if not all(isinstance(write, _POSSIBLE) for end in outcome.ends for write in end.writes):
            return "writes into containers that have no such writes here"
        return "" if all(part.is_placed for end in outcome.ends for part in end.parts()) else \
            "gives back what it has made in ways of its own"

    def built(self, build: Build) -> Any:
        """The object that a build makes; one that stands at two places is one object."""
        if id(build) not in self._built:
            self._built[id(build)] = build.evaluate(self)
        return self._built[id(build)]

    def part(self, build: Build, key: Any) -> Any:
        """The object of a part."""
        return self.built(build)

    def array(self, value: Value) -> Any:
        """The array that a value of the graph is."""
        found = self.results[value]
        return found.array if isinstance(found, chainer.Variable) else found

    def variable(self, record: EscapingVariable) -> Any:
        """A Variable that it gives."""
        return self.results[record.value]


def _variable_fits(call: _Call, guard: VariableMatch) -> bool:
    found = call.at(guard.source)
    right = isinstance(found, SymbolicParameter if guard.cls is chainer.Parameter else SymbolicVariable)
    return right and found.requires_grad is guard.requires_grad and found.dtype == guard.dtype and \
        call.has_shape(found.shape, guard.shape)


def _array_fits(call: _Call, guard: ArrayMatch) -> bool:
    found = call.at(guard.source)
    return type(found) is SymbolicArray and not found.is_scalar and found.dtype == guard.dtype and \
        call.has_shape(found.shape, guard.shape)


def _type_fits(call: _Call, guard: TypeMatch) -> bool:
    if guard.source.parent is None and guard.source.key == 0:
        return True                                     # the layer itself
    found = call.at(guard.source)
    kind = _KINDS.get(type(found)) or (found.python_type if hasattr(type(found), "python_type") else type(found))
    return kind is guard.expected


#: What stands for containers while something is captured.
_KINDS = {ShadowList: list, StagedList: list, ShadowDict: dict, ShadowSet: set, SymbolicVariable: chainer.Variable,
          SymbolicParameter: chainer.Parameter}


def _equals(call: _Call, guard: EqualsMatch) -> bool:
    return guard.holds(lambda source: fixed(call.at(source)))


#: Guards of what the capture itself takes care of: indices that are out of range, arrays that share memory.
_ELSEWHERE = (IndicesInRange, NoOverlap)

#: Guards that hold of symbolic values in other ways than of real ones.
_FITS: Dict[type, Callable[[_Call, Any], bool]] = {
    VariableMatch: _variable_fits, ArrayMatch: _array_fits, TypeMatch: _type_fits, EqualsMatch: _equals}

#: Writes that the containers of a capture have.
_POSSIBLE = (SetItem, DeleteItem, SetListItem, ExtendList, AssignList, WriteArray)

"""From a function or Link and what its arguments are like to an `ExportedProgram`."""
from __future__ import annotations

import itertools
import os
import re
import warnings
from dataclasses import replace
from typing import Any, Dict, Iterator, List, NoReturn, Optional, Sequence, Set, Tuple, Union

import chainer
import numpy as np

from .. import passes
from ..call_specs import normal
from ..errors import ExportError, ExportWarning, Location, SaveError, SignatureError
from ..heap.locations import caller_depth
from ..input_spec import InputSpec
from ..ir.dims import Dim
from ..ir.graph import Graph, Node, Value
from ..ir.size_symbols import at_least
from ..ir.types import Tensor
from ..lowering.numpy.legalize import legalize_numpy_calls
from ..lowering.numpy.selections import with_selections
from ..ops.onnx_forms.contents import has_form
from ..record.builds import Build, Const, FromSource, Number
from ..record.inputs import ArrayInput, Input, NumberInput, VariableInput
from ..record.outcome import Outcome
from ..record.paths import Source, follow
from ..record.places import Place, place_of
from ..runtime.host_calls import Call, Report, StateCall
from ..saved.paths import name_of_path
from ..saved.stores import with_writes_last
from ..saved.subject import Subject
from .alternatives import Alternatives, Apart
from .draws import with_draws
from .gradients import with_gradients
from .known_calls import with_known_calls
from .loaded import fitting
from .naming import uniquely_named
from .ordered_calls import with_ordered_calls
from .program import Argument, ExportedProgram, Parameter, Result, free_sizes, unique
from .raising import with_raises
from .small_sizes import OfSmall, served
from .state import State

#: What calls do that only shows somewhere else than in results: left out, with a warning.
_SHOWING = (print, warnings.warn, chainer.report)

#: Graphs of exported programs: calls of NumPy become ops.
EXPORT = passes.Pipeline("export", "the graph of a program that leaves Python", (
    *passes.CLEAN.passes, passes.Pass(with_selections), passes.Pass(legalize_numpy_calls, is_verified=False),
    passes.Pass(with_ordered_calls, is_verified=False), passes.Pass(with_known_calls, is_verified=False),
    passes.Pass(uniquely_named), *passes.CLEAN.passes))


def exported(target: Any, args_or_input_spec: Sequence[Any], *, training: bool = False, state: bool = False,
             gradients: Union[bool, Sequence[str]] = False) -> ExportedProgram:
    """The program of one kind of call.

    target: a function, a method or a Link, compiled or not, or a model that was loaded.
    args_or_input_spec: for each positional argument an `InputSpec`, or an array or a Variable; None in a shape stands for any size.
        Other values stand for themselves.
    training: the value of ``chainer.config.train``.
    state: whether attributes and arrays that calls read and change become arguments ``state/lstm/h`` and results ``next/lstm/h``.
    gradients: also of the first result, the loss: True for those of all parameters that require one, or names of parameters and of
        arguments of floats.

    Raises `ExportError`, with the user's line, for what needs Python: code that runs on the host, functions of Chainer's that stay
    whole, state that calls change, results whose structure depends on what arrays hold.
    Raises `SignatureError` for a target that has no function, and for an ``args_or_input_spec`` that does not fit it.
    """
    if isinstance(args_or_input_spec, (str, os.PathLike)):
        raise SignatureError(f"args_or_input_spec is a list with an entry for each argument, not {str(args_or_input_spec)!r}",
                             hint="the path comes after it: export.onnx(model, [x], path)")
    if not isinstance(args_or_input_spec, (tuple, list)):
        args_or_input_spec = (args_or_input_spec,)
    try:
        subject = _Exported(target, training, bool(gradients))
        outcomes, missing = subject.outcomes(None if subject.saved is not None else args_or_input_spec)
    except SaveError as error:
        raise ExportError(error.args[0], error.at, error.hint) from error
    mode = training, bool(gradients)
    outcomes = [with_writes_last(found) for found in outcomes if (found.train, found.enable_backprop) == mode]
    if not outcomes:
        raise ExportError(f"{subject.name} has no program for train={training} {'with' if gradients else 'without'} gradients",
                          hint="; ".join(map(str, missing)) or None)
    specs = [normal(spec) for spec in args_or_input_spec]
    wanted = () if isinstance(gradients, bool) else (gradients,) if isinstance(gradients, str) else tuple(gradients)
    if subject.saved is not None:
        outcomes = fitting(outcomes, specs)
    closings = [_Closing(subject, outcome, specs, state) for outcome in outcomes]
    general = [closing for closing in closings if closing.is_general()]
    if not general:
        raise ExportError(f"{subject.name} has no program for free sizes", hint="export it for the sizes that it was saved for")
    closing = max(general, key=lambda found: found.state.read_again) if state else general[0]
    chosen, made = closing.outcome, closing.program()
    left_out = dict.fromkeys([f"{node.attrs['call']}" + (f" ({node.loc})" if node.loc is not None else "")
                              for node in closing.showing(chosen.graph)])
    if left_out:
        warnings.warn(f"{made.name} is exported without {', '.join(left_out)}", ExportWarning, stacklevel=caller_depth())
    made = _with_least(made, [other.of_small() for other in closings if other is not closing and other.is_alike(made)])
    if not gradients:
        return made
    closing.check_gradients()
    return with_gradients(made, wanted or closing.trained(made))


class _Exported(Subject):
    """Captured in one mode, and with the arrays given in the first way in which that can be."""

    action, is_in_one_form, small = "exported", True, (1, 0)

    def __init__(self, target: Any, training: bool, with_backprop: bool):
        super().__init__(target)
        self.modes = ((training, with_backprop),)


def _with_least(program: ExportedProgram, others: Sequence[OfSmall]) -> ExportedProgram:
    """The program, also for sizes of one and zero where what was captured for them computes the same."""
    least = {symbol: at_least(symbol) for symbol in program.sizes}
    for number in (1, 0):
        found = served(program, others, number)
        least = {symbol: number if symbol in found and n == number + 1 else n for symbol, n in least.items()}
    sizes = free_sizes(program.arguments, least.__getitem__)
    high = [f"{size.name} of {size.in_words}" for size in sizes.values() if size.least > 1 or size.most is not None]
    if high:
        warnings.warn(f"{program.name} is exported for {', '.join(high)}: for other ones the function does something else, or "
                      "cannot be captured", ExportWarning, stacklevel=caller_depth())
    return replace(program, sizes=sizes)


class _Closing:
    """One captured call as a closed program."""

    def __init__(self, subject: Subject, outcome: Outcome, specs: Sequence[Any], with_state: bool):
        self.subject, self.outcome, self.specs = subject, outcome, specs
        self.state = State(outcome)
        self._before = self.state.before if with_state else {}
        self._keeps_state = with_state
        self._alternatives = Alternatives(self._value)
        self.graph = outcome.graph
        self._sources: Dict[Source, Value] = {item.source: item.value for item in outcome.inputs if item.source is not None}
        links = [subject.instance] if isinstance(subject.instance, chainer.Link) else []
        self._parameter_names = {id(param): name.lstrip("/") for link in links for name, param in link.namedparams()}

    def is_general(self) -> bool:
        """Whether its sizes are free where those of the specs are: it was not captured for small arrays."""
        given = {self._caller_place(item.source): item.value for item in self.outcome.inputs
                 if isinstance(item, (ArrayInput, VariableInput))}
        given = {place._replace(number=0): value for place, value in given.items() if place is not None}
        return all(n is not None or isinstance(m, Dim) for place, spec in self._specified() if place in given
                   for n, m in zip(spec.shape, given[place].shape))

    def is_alike(self, general: ExportedProgram) -> bool:
        """Whether it takes the same arguments: a call in another state of the model has others."""
        return [argument.name for argument in general.arguments] == [name for name, _ in self._arguments()]

    def of_small(self) -> OfSmall:
        """The program, for arrays of which some free sizes are small, if there is one.  It is only run here: it may need Python."""
        try:
            program = self.program(needs_python=True)
        except ExportError:
            program = None
        return OfSmall([value for _, value in self._arguments()], program)

    def program(self, needs_python: bool = False) -> ExportedProgram:
        """The program; needs_python: whether it may.  Raises `ExportError`."""
        outcome = self.outcome
        if len(outcome.ends) != 1 and (self._keeps_state or any(end.writes for end in outcome.ends)):
            raise ExportError(f"the contents of arrays decide which state {self.subject.name} changes", self._place(),
                              "take the state as an argument, and give it back")
        if outcome.ends[0].writes and not self._keeps_state:
            raise ExportError(f"{self.subject.name} changes state between calls: {self.state.places}", self._place(),
                              "`state=True` makes arguments and results of it")
        given_sizes = itertools.chain([spec.size_names for _, spec in self._specified()], itertools.repeat(()))
        arguments = tuple([Argument(value, name, names) for (name, value), names in zip(self._arguments(), given_sizes)])
        given = {argument.value for argument in arguments}
        values, fixed = self._results()
        for name, build in self.state.after(self._place()):
            self._add(name, build, values, fixed)
        graph = outcome.graph.with_(outputs=tuple([value for _, value in values]),
                                    nodes=(*outcome.graph.nodes, *self._alternatives.nodes))
        graph = with_known_calls(with_draws(with_raises(_without(graph, self.showing(graph)))))
        read = _read_in(graph)
        parameters = tuple([self._parameter(item) for item in outcome.inputs
                            if item.value not in given and (item.value in read or isinstance(item, (ArrayInput, VariableInput)))])
        names = {part.name for part in (*arguments, *parameters)}
        graph = graph.with_(inputs=tuple([part.value for part in (*arguments, *parameters)]))
        graph = passes.run(EXPORT, uniquely_named(graph))
        for node in () if needs_python else graph.walk():
            self._check(node)
        results = tuple(map(Result, graph.outputs, unique([name for name, _ in values], names)))
        read = _read_in(graph)
        used = tuple([parameter for parameter in parameters if parameter.value in read])
        graph = graph.with_(inputs=tuple([part.value for part in (*arguments, *used)]), name=identifier(self.subject.name))
        used = tuple([Parameter(p.value, name, p.array) for p, name in zip(used, unique([p.name for p in used]))])
        return ExportedProgram(graph.name, graph, arguments, used, results, free_sizes(arguments, at_least), fixed)

    # Inputs

    def _arguments(self) -> List[Tuple[str, Value]]:
        """The arrays of the caller's in the order of its arguments, also those that nothing reads."""
        found: Dict[Place, Tuple[str, Value]] = {}
        for item in self.outcome.inputs:
            place = self._caller_place(item.source)
            if place is not None and isinstance(item, (ArrayInput, VariableInput)):
                found[place._replace(number=0)] = self._name(place), item.value
        order = []
        for place, spec in self._specified():
            order.append(place)
            if place not in found:                      # nothing reads it
                shape = tuple([Dim(f"unread_{len(found)}_{axis}") if n is None else n for axis, n in enumerate(spec.shape)])
                found[place] = self._name(place), Value(Tensor(shape, spec.dtype), self._name(place))
        pairs = [found[place] for place in order] + [pair for place, pair in found.items() if place not in order]
        pairs += sorted([(name, value) for value, name in self._before.items()], key=lambda pair: pair[0])
        return list(zip(unique([name for name, _ in pairs]), [value for _, value in pairs]))

    def _caller_place(self, source: Optional[Source]) -> Optional[Place]:
        place = None if source is None else place_of(source)
        is_instance = place is not None and self.subject.instance is not None and place.argument == 0
        return None if is_instance else place

    def _specified(self) -> Iterator[Tuple[Place, InputSpec]]:
        """Where the arrays of the spec are."""
        def within(spec: Any, argument: int, keys: Tuple) -> Iterator[Tuple[Place, InputSpec]]:
            if isinstance(spec, InputSpec):
                yield Place(argument, keys, 0), spec
            elif isinstance(spec, (tuple, list, dict)):
                for key, part in spec.items() if isinstance(spec, dict) else enumerate(spec):
                    yield from within(part, argument, (*keys, key))
        for number, spec in enumerate(self.specs, int(self.subject.instance is not None)):
            yield from within(spec, number, ())

    def _name(self, place: Place) -> str:
        index, names = place.argument, self.subject.arguments
        if isinstance(index, int):
            index -= self.subject.instance is not None
            spec = self.specs[index] if index < len(self.specs) else None
            for key in place.keys:
                spec = spec[key] if isinstance(spec, (tuple, list, dict)) else None
            named = getattr(spec, "name", None)
            if named:
                return str(named)
            index = names[index] if index < len(names) else f"argument_{index}"
        return "_".join(map(str, (index, *place.keys)))

    def _parameter(self, item: Input) -> Parameter:
        if isinstance(item, NumberInput):
            raise ExportError(f"the number {item.expression} is state of {self.subject.name}, which calls change", self._place(),
                              "take it as an argument, as an array of no axes")
        if not isinstance(item, (ArrayInput, VariableInput)):
            self._refuse(item.describe(), None)
        found = follow(item.source, lambda root: self.subject.instance)
        array = found.array if isinstance(found, chainer.Variable) else found
        name = self._parameter_names.get(id(found)) or name_of_path(item.source).replace(".", "/") or item.value.name
        return Parameter(item.value, name, np.ascontiguousarray(array).reshape(array.shape))

    # Results

    def _results(self) -> Tuple[List[Tuple[str, Value]], Dict[str, Any]]:
        """The arrays that come back, with their names, and what is fixed."""
        arrays: List[Tuple[str, Value]] = []
        fixed: Dict[str, Any] = {}
        if all(end.result is None for end in self.outcome.ends):
            raise ExportError(f"{self.subject.name} always raises", self._place())
        try:
            parts = self._alternatives.of_ends(self.outcome.ends)
        except Apart as what:
            raise ExportError(f"the contents of arrays decide {what} of what {self.subject.name} gives back", self._place(),
                              "give back the same lists, tuples and dicts, of arrays of the same types, in each case") from what
        for path, part in parts.items():
            name = "_".join(path) if path and not path[0].isdigit() else "_".join(("output", *path))
            self._add(name, part, arrays, fixed)
        if not arrays:
            raise ExportError(f"{self.subject.name} gives back no array", self._place())
        return arrays, fixed

    def _add(self, name: str, part: Union[Value, Build], arrays: List[Tuple[str, Value]], fixed: Dict[str, Any]) -> None:
        value = part if isinstance(part, Value) else self._value(part)
        known = self._known(part)
        if value is not None:
            arrays.append((name, value))
        elif known is not None:
            fixed[name] = known.value
        else:
            raise ExportError(f"{self.subject.name} gives back, or keeps, {part.describe()}, which is no array", self._place(),
                              "give back arrays, Variables, and lists, tuples and dicts of them")

    def _value(self, build: Build) -> Optional[Value]:
        value = build.graph_value(self._sources)
        if value is None and isinstance(build, FromSource):
            place = self._caller_place(build.source)
            value = None if place is None else dict(self._arguments()).get(self._name(place))
        return value if not isinstance(build, Number) else None

    def _known(self, part: Union[Value, Build]) -> Optional[Const]:
        """A part of the result that is the same in all calls: also a text, number or tuple that the model keeps."""
        if isinstance(part, Const):
            return part
        if not isinstance(part, FromSource) or self._caller_place(part.source) is not None:
            return None
        value = follow(part.source, lambda root: self.subject.instance)
        return Const(value) if _is_plain(value) else None

    # Gradients

    def trained(self, program: ExportedProgram) -> List[str]:
        """The names of the parameters that require a gradient."""
        wanted = {item.value for item in self.outcome.inputs if item.requires_grad}
        return [parameter.name for parameter in program.parameters if parameter.value in wanted]

    def check_gradients(self) -> None:
        """Raise `ExportError` where gradients end at a Variable that the function makes and gives back."""
        if self.outcome.spent is not None:
            raise ExportError(f"{self.subject.name} changes arrays in place that its gradients read", self.outcome.spent)
        if any(not record.connected and record.requires_grad for record in self.outcome.variables):
            raise ExportError(f"{self.subject.name} gives back a Variable that it makes of an array: its gradients end there",
                              self._place(), "give back what was computed, not `Variable(y.array)`")

    # Nodes

    @staticmethod
    def showing(graph: Graph) -> List[Node]:
        """The nodes that print and report."""
        calls = [(node, node.attrs.get("call")) for node in graph.walk()]
        return [node for node, call in calls
                if isinstance(call, Call) and (isinstance(call, Report) or call.function in _SHOWING)]

    def _check(self, node: Node) -> None:
        """Raise `ExportError` for a node that needs Python."""
        call = node.attrs.get("call")
        if node.op.kind == "opaque" and (node.op.onnx is None or not has_form(call)):
            self._refuse(str(call if call is not None else node.op.name), node.loc)

    def _refuse(self, what: str, at: Optional[Location]) -> NoReturn:
        raise ExportError(f"{what} runs in Python, so {self.subject.name} cannot be exported", at or self._place(),
                          "leave it out, compute it with chainer.functions, or let `register_lowering` say what it computes")

    def _place(self) -> Optional[Location]:
        """The line of the function."""
        code = getattr(getattr(self.subject, "function", None), "__code__", None)
        return None if code is None else Location(code.co_filename, code.co_firstlineno, 0, self.subject.name)


def _is_plain(value: Any) -> bool:
    """Whether a value cannot change and is no array."""
    return all(map(_is_plain, value)) if type(value) is tuple else type(value) in (str, bytes, bool, int, float, type(None))


def _read_in(graph: Graph) -> Set[Value]:
    """What the graph reads or gives, at all levels."""
    return {v for node in graph.walk() for v in node.inputs}.union(graph.outputs)


def _without(graph: Graph, nodes: Sequence[Node]) -> Graph:
    """The graph without these nodes, at all levels, whose results nothing reads, and without the Variables made for them."""
    if not nodes:
        return graph
    kept: List[Node] = []
    read = set(graph.outputs)
    for node in reversed(graph.nodes):
        is_made_for = isinstance(node.attrs.get("call"), StateCall) and node.outputs and not read.intersection(node.outputs)
        if node not in nodes and not is_made_for:
            regions = tuple([_without(region, nodes) for region in node.regions])
            kept.append(replace(node, regions=regions) if regions else node)
            read.update(node.inputs)
    return graph.with_(nodes=tuple(reversed(kept)))


def identifier(name: str) -> str:
    """The name as an identifier of C and ONNX."""
    found = re.sub(r"\W", "_", name.rpartition(".")[2], flags=re.ASCII)
    return found if re.match(r"[A-Za-z_]", found) else f"f_{found}"

"""Inference models in folders: programs in one mode, with named inputs and results."""
from __future__ import annotations

import os
import warnings
from dataclasses import replace
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from .. import passes
from ..call_specs import Sharing, leaves
from ..errors import ExportError, LoadError, SaveError, SaveWarning, SignatureError
from ..export.captured import exported
from ..export.program import ExportedProgram
from ..heap.locations import caller_depth
from ..input_spec import InputSpec
from ..ir.sizes_read import symbols_read
from ..record.outcome import Outcome
from ..saved.layer import Missing, TranslatedLayer
from ..saved.loading import load
from ..saved.saving import save_subject
from ..saved.subject import Subject
from ..static_function import BoundStaticFunction
from .interface import Interface
from .named_program import NamedProgram, Target
from .restriction import restricted


class Part(Subject):
    """What is saved of a traced layer: one mode, some inputs, some results.

    specs: what all arguments of the method are like.  feed, fetch: numbers of arguments and of the program's targets, or None.
    A layer that was loaded has the programs that it was saved with.
    """

    specs: Optional[Sequence[Any]] = None

    def __init__(self, method: BoundStaticFunction, program: NamedProgram, specs: Sequence[Any], feed: Optional[Sequence[int]],
                 fetch: Optional[Sequence[int]]):
        super().__init__(method.instance if isinstance(method.instance, TranslatedLayer) else method)
        if self.saved is None:
            self.specs = method.dispatcher.options.input_spec or [_any_batch(spec) for spec in specs]
        self.fixed_specs = specs
        self.modes = (bool(program.train), False), (bool(program.train), True)
        names = [*program.parameters, *[f"argument {k}" for k in range(len(program.parameters), len(specs))]][:len(specs)]
        feeds = {name: fed_as for fed_as, name in program.feeds.items()}
        fed = _chosen(feed, [k for k, name in enumerate(names) if name in feeds], range(len(names)), "input")
        self._names = {k + 1: feeds.get(name, name) for k, name in enumerate(names)}
        self._fed = [k + 1 for k in fed]
        targets = program.fetch_targets
        self._fetched = None if fetch is None else [targets[k].path for k in _chosen(fetch, [], range(len(targets)), "result")]

    def sharings(self, specs: Sequence[Any]) -> List[Sharing]:
        """The first choice treats sizes as one if they were equal in the traced call."""
        shapes = [spec.shape for spec in leaves(list(self.fixed_specs))]
        free = [(k, axis) for k, spec in enumerate(leaves(list(specs))) for axis, n in enumerate(spec.shape) if n is None]
        others = super().sharings(specs)
        if any(k >= len(shapes) or axis >= len(shapes[k]) for k, axis in free):
            return others
        groups: Dict[Any, int] = {}
        return [{(k, axis): groups.setdefault(shapes[k][axis], len(groups)) for k, axis in free}, *others]

    def outcomes(self, input_spec: Optional[Sequence[Any]]) -> Tuple[List[Outcome], List[Missing]]:
        """As `Subject.outcomes`; without the rest."""
        found, missing = super().outcomes(input_spec)
        found = [outcome for outcome in found if (outcome.train, outcome.enable_backprop) in self.modes]
        self.arguments, self.feeds = tuple([self._names[k] for k in self._fed]), {}
        kept: List[Outcome] = []
        for outcome in found:
            small = self.of_small.get(outcome)
            try:
                kept.append(restricted(outcome, self._names, self._fed, self._fetched))
            except SignatureError as error:
                if small is None:
                    raise
                missing.append(Missing(outcome.train, outcome.enable_backprop, str(error.args[0]), small))
                continue
            if small is not None:
                self.of_small[kept[-1]] = small
        return kept, missing


def save_part(part: Part, path: Union[str, os.PathLike], input_spec: Optional[Sequence[Any]] = None) -> None:
    """Save it; for arrays of the sizes that were traced, with a `SaveWarning`, where the first axes cannot be free."""
    try:
        return save_subject(part, path, input_spec or part.specs)
    except SaveError as error:
        if input_spec is not None or part.specs is None:
            raise
        why = error.args[0]
    save_subject(part, path, part.fixed_specs)
    warnings.warn(f"{part.name} is saved for arrays of these sizes only: {why}", SaveWarning, stacklevel=caller_depth())


def exported_part(method: BoundStaticFunction, program: NamedProgram, specs: Sequence[Any], feed: Optional[Sequence[int]],
                  fetch: Optional[Sequence[int]]) -> ExportedProgram:
    """What is exported of a traced layer; the first axes of any size if that can be.

    Raises `SignatureError` where a result that is fetched needs an input that is not fed, or its sizes, and `ExportError`.
    """
    target = method.instance if isinstance(method.instance, TranslatedLayer) else method
    try:
        whole = exported(target, [_any_batch(spec) for spec in specs], training=bool(program.train))
    except ExportError:
        whole = exported(target, specs, training=bool(program.train))
    arguments = [whole.arguments[k] for k in _chosen(feed, list(range(len(whole.arguments))), range(len(whole.arguments)), "input")]
    results = [whole.results[k] for k in _chosen(fetch, list(range(len(whole.results))), range(len(whole.results)), "result")]
    graph = passes.run(passes.CLEAN, whole.graph.with_(outputs=tuple([result.value for result in results])))
    read = {v for node in graph.walk() for v in node.inputs}.union(graph.outputs)
    for argument in whole.arguments:
        if argument not in arguments and argument.value in read:
            raise SignatureError(f"a result needs the input {argument.name}, which is not fed")
    sizes = whole.sizes_of(arguments)
    for symbol in sorted(symbols_read(graph)):
        if symbol in whole.sizes and symbol not in sizes:
            name = whole.arguments[whole.sizes[symbol].argument].name
            raise SignatureError(f"a result needs the sizes of the input {name}, which is not fed")
    graph = graph.with_(inputs=tuple([part.value for part in (*arguments, *whole.parameters)]))
    results = [replace(result, value=value) for result, value in zip(results, graph.outputs)]
    return replace(whole, graph=graph, arguments=tuple(arguments), results=tuple(results), sizes=sizes)


def load_inference_model(path: Union[str, os.PathLike], executor: Any = None) -> Tuple[NamedProgram, List[str], List[Target]]:
    """Load a folder that `save_inference_model` or `save` wrote.  Returns (program, names of its inputs, its results).

    executor: optional; every `Executor` can run the program.

    Raises what `load` raises (FileNotFoundError, `LoadError`, `SignatureError`);
    also `LoadError` for a model without a program for inference.
    """
    layer = load(path)
    outcomes = layer.function.outcomes
    train = all(outcome.train for outcome in outcomes)
    outcome = next((found for found in outcomes if found.train is train and not found.enable_backprop), None)
    if outcome is None:
        raise LoadError(f"{path} has no program without gradients")
    program = Interface(outcome, ("self", *layer.function.feeds)).program(layer, 1, train=train, program=layer)
    return program, program.feed_names, program.fetch_targets


def _any_batch(spec: Any) -> Any:
    """A spec in which the first axes may have any size."""
    if isinstance(spec, InputSpec):
        return InputSpec((None, *spec.shape[1:]) if spec.shape else (), spec.dtype, spec.name, spec.stop_gradient)
    if isinstance(spec, (list, tuple)):
        return type(spec)([_any_batch(part) for part in spec])
    return {key: _any_batch(part) for key, part in spec.items()} if isinstance(spec, dict) else spec


def _chosen(numbers: Optional[Sequence[int]], otherwise: List[int], there: range, what: str) -> List[int]:
    if numbers is None:
        return otherwise
    for number in numbers:
        if number not in there:
            raise SignatureError(f"there is no {what} {number!r}", hint=f"there are {len(there)}, from 0 on")
    return list(numbers)

"""What one call was captured as, for a file: its graph, what it relies on, and what it gives back and writes."""
from __future__ import annotations

import collections
from typing import Any, Dict, List, NoReturn, Optional, Sequence

import chainer
import numpy as np

from .. import passes
from ..errors import SaveError
from ..ir.dims import Size
from ..ir.graph import Graph, Value
from ..record.builds import Build
from ..record.guards import Guard, SameObject
from ..record.outcome import End, Outcome
from ..record.paths import InstanceDict, Source
from ..record.variables import EscapingVariable
from .expressions import parsed
from .functions import name_of
from .graphs import Places, graph_out
from .notation import ArraysOut, dtype_out, size_out, value_out
from .paths import ARGUMENTS, NOTHING, PathsOut
from .state import is_atom, type_name


class ProgramsOut:
    """Writes programs; equal graphs are written once."""

    def __init__(self, paths: PathsOut, arrays: ArraysOut):
        self.paths, self.arrays, self.places = paths, arrays, Places()
        self.graphs: List[Any] = []

    def program(self, outcome: Outcome) -> Dict[str, Any]:
        """One program as JSON.  Raises `SaveError`, with the user's line, for what has no form in a file."""
        if outcome.spent is not None:
            raise SaveError("the function takes its own gradients, and then changes the arrays that they read: a training step is "
                            "not saved", outcome.spent, "save the function that computes the results, without the update")
        return _ProgramOut(self, outcome).said()

    def graph(self, graph: Graph) -> int:
        """The number of a graph."""
        said = graph_out(graph, self.arrays, self.places)
        if said not in self.graphs:
            self.graphs.append(said)
        return self.graphs.index(said)


class _ProgramOut:
    """Writes one program: a `record.builds.BuildsOut`, and a `record.guards.base.GuardsOut`."""

    is_atom, expression = staticmethod(is_atom), staticmethod(parsed)

    def __init__(self, out: ProgramsOut, outcome: Outcome):
        self.out, self.arrays, self.outcome, paths = out, out.arrays, outcome, out.paths
        self.path, self.found, self.is_given, self.is_unchanging = paths.row, paths.found, paths.is_given, paths.is_unchanging
        self.variables = list(outcome.variables)
        self.builds_said: List[Any] = []
        self._numbers: Dict[int, int] = {}

    def said(self) -> Dict[str, Any]:
        """The program as JSON."""
        outcome = self.outcome
        graph = cleaned(outcome.graph)
        self.names = {v: v.name for v in graph.inputs}
        self.names.update({v: now.name for v, now in zip(outcome.graph.outputs, graph.outputs)})
        return {
            "train": outcome.train, "enable_backprop": outcome.enable_backprop, "graph": self.out.graph(graph),
            "inputs": [item.said(self) for item in outcome.inputs],
            "guards": [said for said in [guard.said(self) for guard in outcome.guards] if said is not None],
            "numbers": [[name, self.path(source)] for name, source in outcome.named],
            "functions": [[name, self._bound(found)] for name, found in outcome.bound],
            "variables": [self._variable(record) for record in self.variables],
            "ends": [self._end(end) for end in outcome.ends], "builds": self.builds_said, "keywords": list(outcome.keywords)}

    def _bound(self, found: Any) -> Any:
        if type(found) is float:
            return value_out(found, self.arrays)
        name = name_of(found)
        if name is None:
            raise SaveError(f"a number is computed by {getattr(found, '__name__', found)!r}, which cannot be saved")
        return {"function": name}

    def graph_value(self, value: Value) -> str:
        """The name of a value of the graph."""
        return self.names[value]

    def _variable(self, record: EscapingVariable) -> Dict[str, Any]:
        return {"value": self.graph_value(record.value), "requires_grad": record.requires_grad, "connected": record.connected,
                "early": [self.graph_value(v) for v in record.early]}

    # --- guards -----------------------------------------------------------------------------------------------------

    def identity(self, source: Source) -> Optional[int]:
        """The path of an object whose identity counts: an argument, a Variable, an array or a container."""
        if self.is_given(source):
            return self.path(source)
        real = self.found(source)
        if real is None or real is NOTHING:             # in another state it is an object
            return self.path(source)
        counts = isinstance(real, (chainer.Variable, np.ndarray)) or type(real) in (list, dict, set, collections.deque)
        return self.path(source) if counts and not isinstance(source, InstanceDict) else None

    def value(self, value: Any) -> Any:
        """A value as JSON."""
        return value_out(value, self.arrays)

    def type_name(self, cls: type, source: Source) -> str:
        """The name of the type of an argument, or of a Variable."""
        name = type_name(cls)
        return self.refuse(source, f"is of type {cls.__name__}") if name is None else name

    def array_type(self, shape: Sequence[Size], dtype: np.dtype) -> List[Any]:
        """A shape and a dtype as JSON."""
        return [[size_out(n) for n in shape], dtype_out(dtype)]

    def refuse(self, source: Source, what: str) -> NoReturn:
        """Raise `SaveError` because no argument may be what this one is."""
        raise SaveError(f"{source.describe()} {what}: {ARGUMENTS}")

    def check(self, guard: Guard) -> None:
        """Raise `Outdated` if a guard does not hold now that the file does not have."""
        gone = not isinstance(guard, SameObject) and guard.source is not None and self.found(guard.source) is NOTHING
        if gone or not guard.holds(self.found):
            raise Outdated(f"{guard.describe()}, and is not any more")

    # --- ends -------------------------------------------------------------------------------------------------------

    def _end(self, end: End) -> Dict[str, Any]:
        return {"decisions": [[self.graph_value(v), side] for v, side in end.decisions],
                "variables": [self.variables.index(record) for record in end.variables],
                "writes": [write.said(self) for write in end.writes],
                "result": None if end.result is None else self.build(end.result)}

    def build(self, build: Build) -> int:
        """The number of a build; one that stands at two places has one."""
        if id(build) not in self._numbers:
            said = build.said(self)
            self._numbers[id(build)] = len(self.builds_said)
            self.builds_said.append([build.word, said])
        return self._numbers[id(build)]

    def builds(self, builds: Sequence[Build]) -> List[int]:
        """The numbers of builds."""
        return [self.build(part) for part in builds]

    def marker(self, marker: object) -> int:
        """The number of an object that contains itself."""
        return self._numbers.setdefault(id(marker), -1 - len(self._numbers))

    def variable(self, record: EscapingVariable) -> int:
        """The number of a Variable."""
        return self.variables.index(record)


class Outdated(SaveError):
    """A program is for a state that the model has left."""


def cleaned(graph: Graph) -> Graph:
    """The graph without dead nodes, as long as each output is still a value of its own."""
    shorter = passes.run(passes.CLEAN, graph)
    outputs = set(shorter.outputs)
    return shorter if len(outputs) == len(shorter.outputs) and outputs.isdisjoint(shorter.inputs) else graph

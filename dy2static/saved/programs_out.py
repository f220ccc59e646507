"""What one call was captured as, for a file: its graph, what it relies on, and what it gives back and writes."""
from __future__ import annotations

import collections
import functools
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import chainer
import numpy as np

from .. import passes
from ..capture import materialise
from ..errors import SaveError
from ..ir.graph import Graph, Value
from ..world.outcome import Build, End, EscapingVariable, Input, Outcome, Write
from ..world.sources import Guard, Source
from .expressions import parsed
from .functions import name_of
from .graphs import Places, graph_out
from .notation import ArraysOut, dtype_out, size_out, value_out
from .paths import ARGUMENTS, NOTHING, PathsOut
from .state import is_atom, type_name

#: Guards of objects of the model that are facts of how it is built again; they must hold when it is saved.
_FACTS = frozenset(("type", "is", "len", "keys", "lacks"))

class ProgramsOut:
    """Writes programs; equal graphs are written once."""

    def __init__(self, paths: PathsOut, arrays: ArraysOut):
        self.paths, self.arrays, self.places = paths, arrays, Places()
        self.graphs: List[Any] = []

    def program(self, outcome: Outcome) -> Dict[str, Any]:
        """One program as JSON.  Raises `SaveError`, with the user's line, for what has no form in a file."""
        return _ProgramOut(self, outcome).said()

    def graph(self, graph: Graph) -> int:
        """The number of a graph."""
        said = graph_out(graph, self.arrays, self.places)
        if said not in self.graphs:
            self.graphs.append(said)
        return self.graphs.index(said)


class _ProgramOut:
    def __init__(self, out: ProgramsOut, outcome: Outcome):
        self.out, self.paths, self.arrays, self.outcome = out, out.paths, out.arrays, outcome
        self.variables = list(outcome.variables)
        self.builds: List[Any] = []
        self._numbers: Dict[int, int] = {}

    def said(self) -> Dict[str, Any]:
        """The program as JSON."""
        outcome = self.outcome
        graph = cleaned(outcome.graph)
        self.names = {v: v.name for v in graph.inputs}
        self.names.update({v: now.name for v, now in zip(outcome.graph.outputs, graph.outputs)})
        return {
            "train": outcome.train, "enable_backprop": outcome.enable_backprop, "graph": self.out.graph(graph),
            "inputs": [self._input(item) for item in outcome.inputs],
            "guards": [said for said in map(self._guard, outcome.guards) if said is not None],
            "numbers": [[name, self.paths.row(source)] for name, source in outcome.named],
            "functions": [[name, self._bound(found)] for name, found in outcome.bound],
            "variables": [self._variable(record) for record in self.variables],
            "ends": [self._end(end) for end in outcome.ends], "builds": self.builds, "keywords": list(outcome.keywords)}

    def _input(self, item: Input) -> Dict[str, Any]:
        said: Dict[str, Any] = {"kind": item.kind}
        if item.kind == "number":
            return {**said, "number": parsed(item.text)}
        said["path"] = self.paths.row(item.source)
        return {**said, "requires_grad": True} if item.requires_grad else said

    def _bound(self, found: Any) -> Any:
        if type(found) is float:
            return value_out(found, self.arrays)
        name = name_of(found)
        if name is None:
            raise SaveError(f"a number is computed by {getattr(found, '__name__', found)!r}, which cannot be saved")
        return {"function": name}

    def _value(self, value: Value) -> str:
        return self.names[value]

    def _variable(self, record: EscapingVariable) -> Dict[str, Any]:
        return {"value": self._value(record.value), "requires_grad": record.requires_grad, "connected": record.connected,
                "early": [self._value(v) for v in record.early]}

    # --- guards -----------------------------------------------------------------------------------------------------

    def _guard(self, guard: Guard) -> Optional[List[Any]]:
        """One guard as JSON; None where it is a fact of the model, which must hold now."""
        test, source, expected = guard.test, guard.source, guard.expected
        if test == "expr":
            return [test, None, [parsed(expected[0]), value_out(expected[1], self.arrays)]]
        if test == "distinct":
            rows = [row for row in map(self._identity, expected) if row is not None]
            return [test, None, rows] if len(rows) > 1 else None
        if test == "definitions":
            return self._fact(guard, not expected.changed())
        if test == "reports":                           # loaded, a report is a call like any other on the host
            return None
        if test == "apart":
            return [test, None, [[self.paths.row(s) for s in sources] for sources in expected]]
        if self.paths.is_given(source):
            return [test, self.paths.row(source), self._expected(guard)]
        real = self.paths.found(source)
        if test == "same":
            if not self.paths.is_given(expected) and not is_atom(real):
                return self._fact(guard, real is self.paths.found(expected))
        elif test in _FACTS and not (test == "is" and _is_constant(expected) or test == "type" and is_atom(real)):
            return self._fact(guard, _holds(guard, real))
        elif test == "eq" and not is_atom(expected):
            return self._fact(guard, _holds(guard, real))
        elif test in ("eq", "is") and self.paths.is_fact(source) or test == "absent" and not _is_key(expected):
            return self._fact(guard, _holds(guard, real))
        return [test, self.paths.row(source), self._expected(guard)]

    def _fact(self, guard: Guard, holds: bool) -> None:
        if not holds:
            raise Outdated(f"{guard.describe()}, and is not any more")

    def _identity(self, source: Source) -> Optional[int]:
        """The path of an object whose identity counts: an argument, a Variable, an array or a container."""
        if self.paths.is_given(source):
            return self.paths.row(source)
        real = self.paths.found(source)
        if real is None or real is NOTHING:             # in another state it is an object
            return self.paths.row(source)
        counts = isinstance(real, (chainer.Variable, np.ndarray)) or type(real) in (list, dict, set, collections.deque)
        return self.paths.row(source) if counts and source.kind != "dict" else None

    def _expected(self, guard: Guard) -> Any:
        test, expected = guard.test, guard.expected
        if test == "type":
            return _type_out(expected, guard.source)
        if test == "same":
            return self.paths.row(expected)
        if test == "variable":
            kind, requires_grad, shape, dtype = expected
            return [_type_out(kind, guard.source), requires_grad, [size_out(n) for n in shape], dtype_out(dtype)]
        if test == "array":
            return [[size_out(n) for n in expected[0]], dtype_out(expected[1])]
        if test == "is" and not _is_constant(expected):
            raise SaveError(f"{guard.source.describe()} is {getattr(expected, '__name__', expected)!r}: {ARGUMENTS}")
        return value_out(expected, self.arrays)

    # --- ends -------------------------------------------------------------------------------------------------------

    def _end(self, end: End) -> Dict[str, Any]:
        return {"decisions": [[self._value(v), side] for v, side in end.decisions],
                "variables": [self.variables.index(record) for record in end.variables],
                "writes": [self._write(write) for write in end.writes],
                "result": None if end.result is None else self._build(end.result)}

    def _write(self, write: Write) -> Dict[str, Any]:
        return {"kind": write.kind, "to": self.paths.row(write.container), "key": value_out(write.key, self.arrays),
                "build": None if write.built is None else self._build(write.built)}

    def _build(self, build: Build) -> int:
        """The number of a build; one that stands at two places has one."""
        if id(build) not in self._numbers:
            parts = _BUILDS_OUT[build.kind](self, build.parts) if build.kind in _BUILDS_OUT else _refuse(build)
            self._numbers[id(build)] = len(self.builds)
            self.builds.append([build.kind, parts])
        return self._numbers[id(build)]

    def _marker(self, marker: Any) -> int:
        return self._numbers.setdefault(id(marker), -1 - len(self._numbers))

    def _all(self, builds: Sequence[Build]) -> List[int]:
        return [self._build(part) for part in builds]

    def _const(self, parts: Tuple) -> Any:
        try:
            return value_out(parts[0], self.arrays)
        except SaveError as error:
            raise SaveError(f"{error.args[0]}: it is given back or stored") from None

    def _named_tuple(self, parts: Tuple) -> Any:
        kind, items = parts
        said = None if kind is tuple else [kind.__name__, list(kind._fields)]
        return [said, self._all(items)]

    def _call(self, parts: Tuple) -> Any:
        function, arguments = parts
        if isinstance(function, functools.partial) and function.func is collections.deque and not function.args:
            return ["deque", function.keywords.get("maxlen"), self._all(arguments)]
        name = next((name for name, known in MAKERS.items() if known is function), None)
        if name is None:
            raise SaveError("an object of a class of its own is given back or stored, which cannot be saved")
        return [name, None, self._all(arguments)]


class Outdated(SaveError):
    """A program of a state that the model is not in any more."""


def cleaned(graph: Graph) -> Graph:
    """The graph without what is not needed, as long as each output is still a value of its own."""
    shorter = passes.run(passes.CLEAN, graph)
    outputs = set(shorter.outputs)
    return shorter if len(outputs) == len(shorter.outputs) and outputs.isdisjoint(shorter.inputs) else graph


def _is_constant(expected: Any) -> bool:
    return expected is None or expected is True or expected is False or expected is Ellipsis


def _is_key(expected: Any) -> bool:
    return isinstance(expected, (str, int, float, bool))


def _holds(guard: Guard, real: Any) -> bool:
    """Whether a guard of an object holds."""
    test, expected = guard.test, guard.expected
    if real is NOTHING:
        return False
    return {"type": lambda: type(real) is expected, "is": lambda: real is expected,
            "eq": lambda: type(real) is type(expected) and bool(real == expected), "len": lambda: len(real) == expected,
            "keys": lambda: tuple(real) == expected, "lacks": lambda: not hasattr(real, expected),
            "absent": lambda: expected not in real}[test]()


def _type_out(cls: type, source: Source) -> str:
    name = type_name(cls)
    if name is None:
        raise SaveError(f"{source.describe()} is of type {cls.__name__}: {ARGUMENTS}")
    return name


def _refuse(build: Build) -> Any:
    what = {"object": lambda: f"an object of type {build.parts[0].__name__}", "method": lambda: "a method"}.get(
        build.kind, lambda: f"a {build.kind}")()
    raise SaveError(f"{what} is given back or stored, which cannot be saved", hint="give back arrays, Variables, numbers, texts, "
                    "and lists, tuples and dicts of them")


#: The functions that builds may call, by the names that files have for them.
MAKERS: Dict[str, Callable[..., Any]] = {"array of": materialise.array_of, "OrderedDict": collections.OrderedDict,
                                          "Counter": collections.Counter}

#: The parts of each kind of build, as JSON.
_BUILDS_OUT: Dict[str, Callable[[_ProgramOut, Tuple], Any]] = {
    "const": _ProgramOut._const,
    "source": lambda out, parts: out.paths.row(parts[0]),
    "value": lambda out, parts: out._value(parts[0]),
    "variable": lambda out, parts: out.variables.index(parts[0]),
    "number": lambda out, parts: parsed(parts[0]),
    "tuple": _ProgramOut._named_tuple,
    "list": lambda out, parts: out._all(parts),
    "set": lambda out, parts: out._all(parts),
    "dict": lambda out, parts: [out._all(pair) for pair in parts],
    "choice": lambda out, parts: [out._build(parts[0]), [[k, out._build(part)] for k, part in parts[1]]],
    "call": _ProgramOut._call,
    "cycle": lambda out, parts: [out._marker(parts[0]), out._build(parts[1])],
    "again": lambda out, parts: out._marker(parts[0]),
}

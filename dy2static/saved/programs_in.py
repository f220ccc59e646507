"""What one call was captured as, read from a file and made again."""
from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from ..errors import LoadError
from ..ir.dims import Size, as_multiple
from ..ir.graph import Value
from ..ir.types import Dynamic, Scalar, Tensor
from ..record.builds import SAVED_BUILDS, Build
from ..record.documents import entry, need, pair_of
from ..record.guards import SAVED_GUARDS, ArrayMatch, Guard, VariableMatch
from ..record.inputs import ArrayInput, Input, ObjectInput, VariableInput, input_of
from ..record.outcome import End, Outcome
from ..record.paths import Source
from ..record.variables import EscapingVariable
from ..record.writes import write_of
from .expressions import size_of, text_of
from .functions import function_of
from .graphs import GraphsIn
from .notation import dtype_in, value_in
from .paths import path_at
from .state import TYPES

#: What captures call what expressions use: no name that generated code has for something else.
_BOUND = re.compile(r"[A-Za-z_][A-Za-z0-9_]*_[0-9]+")

#: Where the functions are that they call.
_OF_NUMBERS = ("math.", "builtins.", "operator.", "dy2static.")


class ProgramIn:
    """Reads one program: a `record.builds.BuildsIn`.  Raises `LoadError` for what `ProgramsOut` cannot have written."""

    def __init__(self, said: Any, graphs: GraphsIn, paths: Sequence[Source], arrays: Mapping[str, np.ndarray]):
        self.said, self.paths, self.arrays = said, paths, arrays
        self.graph = graphs.graph(entry(said, "graph", int, "a program"))
        self.values = {v.name: v for v in (*self.graph.inputs, *self.graph.outputs)}

    def outcome(self, of_layer: Guard) -> Outcome:
        """The record of the program.  of_layer: the guards that come first."""
        said = self.said
        self.named = tuple([(_number_name(pair), self.path(pair[1])) for pair in self._list("numbers")])
        self.bound = tuple([self._bound(pair) for pair in self._list("functions")])
        self.numbers, self.functions = {name for name, _ in self.named}, dict(self.bound)
        self.numbers |= {name for name, found in self.bound if type(found) is float}
        inputs = tuple([input_of(item, value, self) for item, value in zip(self._list("inputs"), self.graph.inputs)])
        if len(inputs) != len(self._list("inputs")) or len(inputs) != len(self.graph.inputs):
            raise LoadError("a program has other inputs than its graph")
        guards = tuple([self._guard(item) for item in self._list("guards")])
        _check_inputs(inputs, guards)
        self.variables = [self._variable(item) for item in self._list("variables")]
        self.made: List[Build] = []
        self._markers: Dict[int, object] = {}
        for item in self._list("builds"):
            self.made.append(self._build(item))
        ends = tuple([self._end(item) for item in self._list("ends")])
        if not ends:
            raise LoadError("a program does not end")
        keywords = tuple([need(key, str, "a keyword") for key in self._list("keywords")])
        return Outcome(self.graph, inputs, (of_layer, *guards), ends, self.named, self.bound, {}, (), keywords,
                       entry(said, "train", bool, "a program"), entry(said, "enable_backprop", bool, "a program"))

    def _list(self, name: str) -> List[Any]:
        return entry(self.said, name, list, "a program")

    def graph_value(self, name: Any) -> Value:
        """The value of the graph of this name."""
        if type(name) is not str or name not in self.values:
            raise LoadError(f"a program uses the value {str(name)[:60]!r}, which its graph does not give")
        return self.values[name]

    def _bound(self, pair: Any) -> Tuple[str, Any]:
        name, said = pair_of(pair)
        if type(name) is not str or not _BOUND.fullmatch(name):
            raise LoadError(f"{str(name)[:60]!r} is no name of a function")
        if type(said) is dict and "function" in said:
            if type(said["function"]) is not str or not said["function"].startswith(_OF_NUMBERS):
                raise LoadError(f"numbers are not computed by {str(said['function'])[:60]}")
            return name, function_of(said["function"])
        found = self.value(said)
        if type(found) is not float:
            raise LoadError(f"{name} is not a number")
        return name, found

    def _variable(self, said: Any) -> EscapingVariable:
        seen = need(said, dict, "a Variable").get("early") or []
        early = tuple([self.graph_value(v) for v in ([seen] if type(seen) is str else need(seen, list, "early"))])
        value, requires_grad, connected = [entry(said, *part, "a Variable") for part in
                                           (("value", str), ("requires_grad", bool), ("connected", bool))]
        return EscapingVariable(self.graph_value(value), requires_grad, connected, early)

    def _guard(self, said: Any) -> Guard:
        if type(said) is not list or len(said) != 3:
            raise LoadError(f"{str(said)[:80]} is not a guard")
        word, path, expected = said
        if type(word) is not str or word not in SAVED_GUARDS:
            raise LoadError(f"there are no guards {str(word)[:60]!r}")
        return SAVED_GUARDS[word].loaded(path, expected, self)

    def path(self, said: Any) -> Source:
        """The path of this number."""
        return path_at(said, self.paths)

    def value(self, said: Any) -> Any:
        """A value."""
        return value_in(said, self.arrays)

    def expression(self, said: Any) -> str:
        """An expression over numbers, as text."""
        return text_of(said, self.numbers, self.functions)

    def type_name(self, said: Any) -> type:
        """The type of this name."""
        if type(said) is not str or said not in TYPES:
            raise LoadError(f"there is no type {str(said)[:60]!r} here")
        return TYPES[said]

    def array_type(self, said: Any) -> Tuple[Tuple[Size, ...], np.dtype]:
        """The shape and the dtype of an argument."""
        sizes, dtype = pair_of(said)
        shape = tuple([size_of(n) for n in need(sizes, list, "a shape")])
        if not all(n >= 0 if isinstance(n, int) else as_multiple(n) for n in shape):
            raise LoadError(f"{shape} is not the shape of an argument")
        return shape, dtype_in(dtype)

    # --- ends -------------------------------------------------------------------------------------------------------

    def _end(self, said: Any) -> End:
        decisions = []
        for pair in entry(said, "decisions", list, "an end"):
            name, side = pair_of(pair)
            decisions.append((self.graph_value(name), need(side, bool, "a decision")))
        variables = tuple([self.variable(k) for k in entry(said, "variables", list, "an end")])
        writes = tuple([write_of(item, self) for item in entry(said, "writes", list, "an end")])
        result = said.get("result")
        return End(tuple(decisions), variables, writes, None if result is None else self.build(result))

    def _build(self, said: Any) -> Build:
        word, parts = pair_of(said)
        if type(word) is not str or word not in SAVED_BUILDS:
            raise LoadError(f"there are no builds {str(word)[:60]!r}")
        return SAVED_BUILDS[word].loaded(parts, self)

    def _at(self, number: Any, items: Sequence[Any]) -> Any:
        if type(number) is not int or not 0 <= number < len(items):
            raise LoadError(f"the file has {str(number)[:60]} where one of {len(items)} should be")
        return items[number]

    def build(self, said: Any) -> Build:
        """The build of this number."""
        return self._at(said, self.made)

    def builds(self, said: Any) -> Tuple[Build, ...]:
        """The builds of these numbers."""
        return tuple([self.build(k) for k in need(said, list, "parts")])

    def variable(self, said: Any) -> EscapingVariable:
        """The Variable of this number."""
        return self._at(said, self.variables)

    def marker(self, said: Any) -> object:
        """What stands for the object of this number, which contains itself."""
        return self._markers.setdefault(need(said, int, "a name"), object())


def _check_inputs(inputs: Sequence[Input], guards: Sequence[Guard]) -> None:
    """Raise `LoadError` where a graph takes an array for more than guards say about it: native code looks at no array again."""
    known = {(guard.source, type(guard)): (guard.shape, guard.dtype) for guard in guards
             if isinstance(guard, (ArrayMatch, VariableMatch))}
    for item in inputs:
        type_ = item.value.type
        if isinstance(item, (ArrayInput, VariableInput)):
            match = ArrayMatch if isinstance(item, ArrayInput) else VariableMatch
            fits = isinstance(type_, Tensor) and known.get((item.source, match)) == (type_.shape, type_.dtype)
        else:
            fits = isinstance(type_, Dynamic) if isinstance(item, ObjectInput) else \
                isinstance(type_, Scalar) and type_.kind != "numpy"
        if not fits:
            raise LoadError(f"nothing says that {item.value} is of the type {type_}")


def _number_name(pair: Any) -> str:
    name, _ = pair_of(pair)
    if type(name) is not str or not (name[:1] == "n" and name[1:].isdecimal() and name.isascii()):
        raise LoadError(f"{str(name)[:60]!r} is no name of a number")
    return name

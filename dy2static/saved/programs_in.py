"""What one call was captured as, read from a file and made again."""
from __future__ import annotations

import collections
import functools
import re
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import chainer
import numpy as np

from ..errors import LoadError
from ..ir.graph import Value
from ..ir.types import Dynamic, Scalar, Tensor
from ..world.outcome import Build, End, EscapingVariable, Input, Outcome, Write
from ..world.sources import Guard, Source
from .expressions import SYMBOL, size_of, text_of
from .functions import function_of
from .graphs import GraphsIn
from .notation import dtype_in, entry, need, pair_of, value_in
from .paths import path_at
from .programs_out import MAKERS
from .state import TYPES

#: What captures call what expressions use: no name that generated code has for something else.
_BOUND = re.compile(r"[A-Za-z_][A-Za-z0-9_]*_[0-9]+")

#: Where the functions are that they call.
_OF_NUMBERS = ("math.", "builtins.", "operator.", "dy2static.")

_WRITES = frozenset(("set", "delete", "list set", "list extend", "list assign", "deque extend", "deque assign", "set assign",
                     "cell set", "cell delete", "array", "gradient"))


class ProgramIn:
    """Reads one program.  Raises `LoadError` for what `ProgramsOut` cannot have written."""

    def __init__(self, said: Any, graphs: GraphsIn, paths: Sequence[Source], arrays: Mapping[str, np.ndarray]):
        self.said, self.paths, self.arrays = said, paths, arrays
        self.graph = graphs.graph(entry(said, "graph", int, "a program"))
        self.values = {v.name: v for v in (*self.graph.inputs, *self.graph.outputs)}

    def outcome(self, of_layer: Guard) -> Outcome:
        """The program, made again.  of_layer: what it relies on first."""
        said = self.said
        self.named = tuple([(_number_name(pair), path_at(pair[1], self.paths)) for pair in self._list("numbers")])
        self.bound = tuple([self._bound(pair) for pair in self._list("functions")])
        self.numbers, self.functions = {name for name, _ in self.named}, dict(self.bound)
        self.numbers |= {name for name, found in self.bound if type(found) is float}
        inputs = tuple([self._input(item, value) for item, value in zip(self._list("inputs"), self.graph.inputs)])
        if len(inputs) != len(self._list("inputs")) or len(inputs) != len(self.graph.inputs):
            raise LoadError("a program has other inputs than its graph")
        guards = tuple([self._guard(item) for item in self._list("guards")])
        _check_inputs(inputs, guards)
        self.variables = [self._variable(item) for item in self._list("variables")]
        self.builds: List[Build] = []
        self.markers: Dict[int, Any] = {}
        for item in self._list("builds"):
            self.builds.append(self._build(item))
        ends = tuple([self._end(item) for item in self._list("ends")])
        if not ends:
            raise LoadError("a program does not end")
        keywords = tuple([need(key, str, "a keyword") for key in self._list("keywords")])
        return Outcome(self.graph, inputs, (of_layer, *guards), ends, self.named, self.bound, {}, (), keywords,
                       entry(said, "train", bool, "a program"), entry(said, "enable_backprop", bool, "a program"))

    def _list(self, name: str) -> List[Any]:
        return entry(self.said, name, list, "a program")

    def _value(self, name: Any) -> Value:
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
        found = value_in(said, self.arrays)
        if type(found) is not float:
            raise LoadError(f"{name} is not a number")
        return name, found

    def _input(self, said: Any, value: Value) -> Input:
        kind = entry(said, "kind", str, "an input")
        if kind == "number":
            return Input(kind, value, text=text_of(said.get("number"), self.numbers, self.functions))
        if kind not in ("variable", "array", "object"):
            raise LoadError(f"there are no inputs of the kind {kind[:60]!r}")
        requires_grad = need(said.get("requires_grad", False), bool, "requires_grad")
        return Input(kind, value, path_at(said.get("path"), self.paths), requires_grad=requires_grad)

    def _variable(self, said: Any) -> EscapingVariable:
        seen = need(said, dict, "a Variable").get("early") or []
        early = tuple([self._value(v) for v in ([seen] if type(seen) is str else need(seen, list, "early"))])
        value, requires_grad, connected = [entry(said, *part, "a Variable") for part in
                                           (("value", str), ("requires_grad", bool), ("connected", bool))]
        return EscapingVariable(self._value(value), requires_grad, connected, early)

    def _guard(self, said: Any) -> Guard:
        if type(said) is not list or len(said) != 3:
            raise LoadError(f"{str(said)[:80]} is not a guard")
        test, path, expected = said
        if test == "expr":
            text, value = pair_of(expected)
            return Guard(None, test, (text_of(text, self.numbers, self.functions), value_in(value, self.arrays)))
        if test == "distinct":
            return Guard(None, test, self._paths(expected))
        if test == "apart":
            written, others = pair_of(expected)
            return Guard(None, test, (self._paths(written), self._paths(others)))
        if type(test) is not str or test not in _TESTS:
            raise LoadError(f"there are no guards {str(test)[:60]!r}")
        return Guard(path_at(path, self.paths), test, _TESTS[test](self, expected))

    def _paths(self, said: Any) -> Tuple[Source, ...]:
        return tuple([path_at(item, self.paths) for item in need(said, list, "a list of paths")])

    def _shape(self, said: Any) -> Tuple[Any, ...]:
        shape = tuple([size_of(n) for n in need(said, list, "a shape")])
        if not all(n >= 0 if isinstance(n, int) else SYMBOL.fullmatch(str(n)) for n in shape):
            raise LoadError(f"{shape} is not the shape of an argument")
        return shape

    def _plain(self, said: Any) -> Any:
        return value_in(said, self.arrays)

    # --- ends -------------------------------------------------------------------------------------------------------

    def _end(self, said: Any) -> End:
        decisions = []
        for pair in entry(said, "decisions", list, "an end"):
            name, side = pair_of(pair)
            decisions.append((self._value(name), need(side, bool, "a decision")))
        variables = tuple([self._at(k, self.variables) for k in entry(said, "variables", list, "an end")])
        writes = tuple([self._write(item) for item in entry(said, "writes", list, "an end")])
        result = said.get("result")
        return End(tuple(decisions), variables, writes, None if result is None else self._at(result, self.builds))

    def _write(self, said: Any) -> Write:
        kind = entry(said, "kind", str, "a write")
        if kind not in _WRITES:
            raise LoadError(f"there are no writes {kind[:60]!r}")
        built = said.get("build")
        return Write(kind, path_at(said.get("to"), self.paths), self._plain(said.get("key")),
                     None if built is None else self._at(built, self.builds))

    def _build(self, said: Any) -> Build:
        kind, parts = pair_of(said)
        if type(kind) is not str or kind not in _BUILDS_IN:
            raise LoadError(f"there are no builds {str(kind)[:60]!r}")
        return Build(kind, _BUILDS_IN[kind](self, parts))

    def _at(self, number: Any, items: Sequence[Any]) -> Any:
        if type(number) is not int or not 0 <= number < len(items):
            raise LoadError(f"the file has {str(number)[:60]} where one of {len(items)} should be")
        return items[number]

    def _all(self, numbers: Any) -> Tuple[Build, ...]:
        return tuple([self._at(k, self.builds) for k in need(numbers, list, "parts")])

    def _named_tuple(self, said: Any) -> Tuple:
        kind, parts = pair_of(said)
        if kind is None:
            return tuple, self._all(parts)
        name, fields = pair_of(kind)
        if not all(type(word) is str for word in (name, *need(fields, list, "the fields of a tuple"))):
            raise LoadError("a named tuple has no names")
        try:
            return collections.namedtuple(name, fields), self._all(parts)
        except ValueError as error:
            raise LoadError(f"a named tuple cannot be: {error}") from None

    def _call(self, said: Any) -> Tuple:
        if type(said) is not list or len(said) != 3:
            raise LoadError(f"{str(said)[:80]} makes nothing")
        name, maxlen, parts = said
        if name == "deque":
            return functools.partial(collections.deque, maxlen=maxlen if maxlen is None else need(maxlen, int, "a length")), \
                self._all(parts)
        if type(name) is not str or name not in MAKERS:
            raise LoadError(f"there is no way to make {str(name)[:60]!r}")
        return MAKERS[name], self._all(parts)

    def _choice(self, said: Any) -> Tuple:
        number, pairs = pair_of(said)
        found = [pair_of(pair) for pair in need(pairs, list, "a choice")]
        return self._at(number, self.builds), tuple([(need(k, int, "a choice"), self._at(part, self.builds)) for k, part in found])

    def _marker(self, said: Any) -> Any:
        return self.markers.setdefault(need(said, int, "a name"), object())


def _check_inputs(inputs: Sequence[Input], guards: Sequence[Guard]) -> None:
    """Raise `LoadError` where a graph takes an array for more than guards say about it: native code looks at no array again."""
    known = {(guard.source, guard.test): guard.expected[-2:] for guard in guards if guard.test in ("array", "variable")}
    for item in inputs:
        type_ = item.value.type
        if item.kind in ("array", "variable"):
            fits = isinstance(type_, Tensor) and known.get((item.source, item.kind)) == (type_.shape, type_.dtype)
        else:
            fits = isinstance(type_, Dynamic) if item.kind == "object" else \
                isinstance(type_, Scalar) and type_.kind != "numpy"
        if not fits:
            raise LoadError(f"nothing says that {item.value} is of the type {type_}")


def _number_name(pair: Any) -> str:
    name, _ = pair_of(pair)
    if type(name) is not str or not (name[:1] == "n" and name[1:].isdecimal() and name.isascii()):
        raise LoadError(f"{str(name)[:60]!r} is no name of a number")
    return name


def _type_in(said: Any) -> type:
    if type(said) is not str or said not in TYPES:
        raise LoadError(f"there is no type {str(said)[:60]!r} here")
    return TYPES[said]


def _variable_in(program: ProgramIn, said: Any) -> Tuple:
    if type(said) is not list or len(said) != 4:
        raise LoadError(f"{str(said)[:80]} is not what a Variable is")
    kind = _type_in(said[0])
    if kind not in (chainer.Variable, chainer.Parameter):
        raise LoadError(f"{said[0]} is no kind of Variable")
    return kind, need(said[1], bool, "requires_grad"), program._shape(said[2]), dtype_in(said[3])


def _array_in(program: ProgramIn, said: Any) -> Tuple:
    shape, dtype = pair_of(said)
    return program._shape(shape), dtype_in(dtype)


def _range_in(program: ProgramIn, said: Any) -> Tuple:
    low, high = pair_of(said)
    return need(low, int, "an index"), need(high, int, "an index")


#: What each guard expects, read.
_TESTS: Dict[str, Callable[[ProgramIn, Any], Any]] = {
    "type": lambda program, said: _type_in(said), "is": ProgramIn._plain, "eq": ProgramIn._plain,
    "len": lambda program, said: need(said, int, "a length"), "keys": ProgramIn._plain, "absent": ProgramIn._plain,
    "lacks": lambda program, said: need(said, str, "an attribute"), "array": _array_in, "variable": _variable_in,
    "same": lambda program, said: path_at(said, program.paths), "unbound": ProgramIn._plain, "range": _range_in}

#: The parts of each kind of build, read.
_BUILDS_IN: Dict[str, Callable[[ProgramIn, Any], Tuple]] = {
    "const": lambda program, said: (program._plain(said),),
    "source": lambda program, said: (path_at(said, program.paths),),
    "value": lambda program, said: (program._value(said),),
    "variable": lambda program, said: (program._at(said, program.variables),),
    "number": lambda program, said: (text_of(said, program.numbers, program.functions),),
    "tuple": ProgramIn._named_tuple,
    "list": ProgramIn._all,
    "set": ProgramIn._all,
    "dict": lambda program, said: tuple([program._all(pair) for pair in need(said, list, "a dict")]),
    "choice": ProgramIn._choice,
    "call": ProgramIn._call,
    "cycle": lambda program, said: (program._marker(pair_of(said)[0]), program._at(pair_of(said)[1], program.builds)),
    "again": lambda program, said: (program._marker(said),),
}

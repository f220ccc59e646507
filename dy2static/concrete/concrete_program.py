"""The programs of a compiled function in Paddle's terms: inputs, outputs, parameters."""
from __future__ import annotations

from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import chainer

from ..dispatch import Dispatcher, positional
from ..errors import CaptureError
from ..input_spec import InputSpec
from ..ir.graph import Value
from ..runtime.program import Program
from ..world.outcome import Build, Outcome
from ..world.sources import Source
from .named_program import NamedProgram, Target


class ConcreteProgram:
    """One program of a function: what goes in, what comes out, and which parameters it reads.

    function: what is called with the inputs.  program: the `Program`.  instance: the object whose method it is, if that is known.
    """

    def __init__(self, dispatcher: Dispatcher, program: Program, function: Callable, instance: Any = None):
        self.function, self.program, self.instance = function, program, instance
        self._names = positional(dispatcher.function)
        self._code = dispatcher.function.__code__
        self._specs = (None,) * (self._names[:1] == ("self",)) + dispatcher.options.input_spec

    @property
    def inputs(self) -> List[InputSpec]:
        """An `InputSpec` for each array among the arguments, in order; ``xs[0]`` is the name of one in a list."""
        return [spec for _, spec in self._places()]

    @property
    def outputs(self) -> List[Target]:
        """The arrays of the results, in order: of lists, tuples and dicts as deep as they go."""
        return _targets(self.program.outcome)

    @property
    def parameters(self) -> List[chainer.Variable]:
        """The Parameters that it reads, of its instance and of what the function knows besides its arguments."""
        given = {} if self.instance is None else {0: self.instance}
        found = [_follow(item.source, given) for item in self.program.outcome.inputs if item.kind == "variable"]
        return [value for value in found if isinstance(value, chainer.Parameter)]

    @property
    def main_program(self) -> NamedProgram:
        """The program as an `Executor` runs it."""
        feeds = {}
        for place, spec in self._places():
            argument = self._argument(place)
            feeds.setdefault(spec.name if not place.keys else argument, argument)
        by_name = self._code.co_varnames[self._code.co_argcount:][:self._code.co_kwonlyargcount]
        more = [name for name in feeds.values() if name not in self._names and name not in by_name]
        parameters = [*self._names, *[name for name in more if name.endswith("]")]]
        keywords = [*by_name, *[name for name in more if not name.endswith("]")]]
        return NamedProgram(self.function, parameters[int(self.instance is not None):], keywords, feeds, self.inputs, self.outputs,
                            program=self.program)

    @property
    def startup_program(self) -> NamedProgram:
        """A program that does nothing: Chainer's parameters have their values already."""
        return NamedProgram(lambda: None, ())

    def _places(self) -> List[Tuple["_Place", InputSpec]]:
        """Where each array is, in the order of the arguments, and what it is like."""
        found = []
        for item in self.program.outcome.inputs:
            place = _place(item.source) if item.kind in ("variable", "array") else None
            if place is not None:
                found.append((place, InputSpec(_shape(item.value), item.value.dtype, self._name(place),
                                               stop_gradient=not item.requires_grad)))
        return sorted(found, key=lambda pair: (self._index(pair[0]), pair[0].number))

    def _index(self, place: "_Place") -> int:
        """The number of the argument."""
        if isinstance(place.argument, int):
            return place.argument
        return self._names.index(place.argument) if place.argument in self._names else len(self._code.co_varnames)

    def _argument(self, place: "_Place") -> str:
        """What the argument is called: ``rest[0]`` the first in ``*rest``."""
        if isinstance(place.argument, str):
            return place.argument
        after = place.argument - len(self._names)
        rest = self._code.co_varnames[self._code.co_argcount + self._code.co_kwonlyargcount:]
        return self._names[place.argument] if after < 0 else f"{rest[0]}[{after}]"

    def _name(self, place: "_Place") -> str:
        index = self._index(place)
        spec = self._specs[index] if index < len(self._specs) else None
        for key in place.keys:
            spec = spec[key] if isinstance(spec, (tuple, list, dict)) else None
        return getattr(spec, "name", None) or self._argument(place) + "".join([f"[{key!r}]" for key in place.keys])

    def __repr__(self) -> str:
        return f"<concrete {self.main_program!r}>"


class ProgramCache:
    """The programs that a function has now; `StaticFunction.program_cache`."""

    def __init__(self, owner: "ConcretePrograms"):
        self._owner = owner

    def concrete_programs(self) -> List[ConcreteProgram]:
        """All of them, in the order in which calls try them."""
        return [concrete_program(self._owner, program) for program in self._owner.dispatcher.programs]

    def last(self) -> ConcreteProgram:
        """The one used last.  Raises `CaptureError` if there is none."""
        return self._owner.concrete_program

    def __len__(self) -> int:
        return len(self._owner.dispatcher.programs)

    def __iter__(self) -> Iterator[ConcreteProgram]:
        return iter(self.concrete_programs())

    def __repr__(self) -> str:
        return f"<{len(self)} programs>"


class ConcretePrograms:
    """What a static function tells of its programs under Paddle's names.  Those of a method know its instance."""

    __slots__ = ()

    python_function: Callable[..., Any]
    dispatcher: Dispatcher

    @property
    def concrete_program(self) -> ConcreteProgram:
        """The program used last.  Raises `CaptureError` if there is none."""
        program = self.dispatcher.cache.current
        if program is None:
            raise CaptureError(f"{self.dispatcher.function.__qualname__} has no program yet",
                               hint="there is one after a call that does not run eagerly")
        return concrete_program(self, program)

    @property
    def program_cache(self) -> ProgramCache:
        """All programs: ``len()``, ``last()``, ``concrete_programs()``."""
        return ProgramCache(self)

    def get_traced_count(self) -> int:
        """How many programs there are."""
        return len(self.program_cache)

    @property
    def inputs(self) -> List[InputSpec]:
        """Those of the program used last."""
        return self.concrete_program.inputs

    @property
    def outputs(self) -> List[Target]:
        """Those of the program used last."""
        return self.concrete_program.outputs

    @property
    def main_program(self) -> NamedProgram:
        """The program used last, as an `Executor` runs it."""
        return self.concrete_program.main_program

    @property
    def dygraph_function(self) -> Callable:
        """The function as it was written."""
        return self.python_function


def concrete_program(static: Any, program: Program) -> ConcreteProgram:
    """A program of a static function as Paddle has it."""
    return ConcreteProgram(static.dispatcher, program, static, getattr(static, "__self__", None))


class _Place(NamedTuple):
    """Where an array is among the arguments: in which of them, by number or name, and at which keys of lists and dicts."""

    argument: Any
    keys: Tuple[Any, ...]
    number: int


def _place(source: Source) -> Optional[_Place]:
    """None for what is not in the arguments but behind attributes of theirs, or elsewhere."""
    keys: List[Any] = []
    number = source.number
    while source.kind == "item" and source.parent is not None:
        keys.insert(0, source.key)
        source = source.parent
    return _Place(source.key, tuple(keys), number) if source.kind in ("arg", "kwarg") else None


def _shape(value: Value) -> Tuple[Optional[int], ...]:
    return tuple([n if isinstance(n, int) else None for n in value.shape])


def _targets(outcome: Outcome) -> List[Target]:
    inputs = {item.source: item.value for item in outcome.inputs if item.source is not None}
    result = next((end.result for end in outcome.ends if end.result is not None), None)
    found: List[Target] = []
    names = set()
    for path, value in () if result is None else _leaves(result, (), inputs):
        keys = [str(key) for key in path if isinstance(key, str)]
        name = ".".join(keys) or value.name
        name = name if name not in names else next(f"{name}_{k}" for k in range(1, len(names) + 2) if f"{name}_{k}" not in names)
        names.add(name)
        found.append(Target(name, _shape(value), value.dtype, path))
    return found


def _leaves(build: Build, path: Tuple, inputs: Any) -> Iterator[Tuple[Tuple, Value]]:
    """The values in a result, and where they are."""
    kind, parts = build.kind, build.parts
    value = parts[0].value if kind == "variable" else parts[0] if kind == "value" else \
        inputs.get(parts[0]) if kind == "source" else None
    if value is not None and hasattr(value.type, "shape"):
        yield path, value
    inner: Sequence[Tuple[Any, Build]] = ()
    if kind in ("tuple", "list"):
        inner = list(enumerate(parts[1] if kind == "tuple" else parts))
    elif kind == "dict":
        inner = [(key.parts[0], part) for key, part in parts if key.kind == "const"]
    for key, part in inner:
        yield from _leaves(part, (*path, key), inputs)


def _follow(source: Optional[Source], given: Any) -> Any:
    """What is at a source now; None where that cannot be found."""
    if source is None:
        return None
    if source.kind == "arg":
        return given.get(source.key)
    if source.kind == "const":
        return source.key
    parent = _follow(source.parent, given)
    try:
        if source.kind == "dict":
            return vars(parent)
        if source.kind == "item":
            return parent[source.key]
        if source.kind == "cell":
            return parent.cell_contents
        return getattr(type(parent) if source.kind == "class" else parent, source.key) if source.kind in ("class", "attr") else None
    except (LookupError, AttributeError, TypeError, ValueError):
        return None

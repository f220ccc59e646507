"""The programs of a compiled function in Paddle's terms: inputs, outputs, parameters."""
from __future__ import annotations

from typing import Any, Callable, Iterator, List, Mapping, Optional, Sequence

import chainer

from ..dispatch import Dispatcher, positional
from ..errors import CaptureError, SignatureError
from ..input_spec import InputSpec
from ..runtime.program import Program
from ..world.sources import Source
from .interface import Interface
from .made_up import program_for
from .named_program import NamedProgram, Target


class ConcreteProgram:
    """One program of a function: what goes in, what comes out, and which parameters it reads.

    function: what is called with the inputs.  program: the `Program`.  instance: the object whose method it is, if that is known.
    """

    def __init__(self, dispatcher: Dispatcher, program: Program, function: Callable, instance: Any = None):
        self.function, self.program, self.instance = function, program, instance
        code, names = dispatcher.function.__code__, positional(dispatcher.function)
        names = names or ("self", *getattr(function, "arguments", ()))      # those of a loaded model have no code
        by_name = code.co_varnames[code.co_argcount:][:code.co_kwonlyargcount]
        rest = "".join(code.co_varnames[code.co_argcount + code.co_kwonlyargcount:][:1])
        specs = (None,) * (names[:1] == ("self",)) + dispatcher.options.input_spec
        self._interface = Interface(program.outcome, names, specs, rest, by_name)

    @property
    def inputs(self) -> List[InputSpec]:
        """An `InputSpec` for each array among the arguments, in order; ``xs[0]`` is the name of one in a list."""
        return self._interface.inputs

    @property
    def outputs(self) -> List[Target]:
        """The arrays of the results, in order: of lists, tuples and dicts as deep as they go."""
        return self._interface.outputs

    @property
    def parameters(self) -> List[chainer.Variable]:
        """The Parameters that it reads, of its instance and of what the function knows besides its arguments."""
        given = {} if self.instance is None else {0: self.instance}
        found = [_follow(item.source, given) for item in self.program.outcome.inputs if item.kind == "variable"]
        return [value for value in found if isinstance(value, chainer.Parameter)]

    @property
    def main_program(self) -> NamedProgram:
        """The program as an `Executor` runs it."""
        return self._interface.program(self.function, int(self.instance is not None), program=self.program)

    @property
    def startup_program(self) -> NamedProgram:
        """A program that does nothing: Chainer's parameters have their values already."""
        return NamedProgram(lambda: None, ())

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
    program: Callable[..., Program]

    @property
    def concrete_program(self) -> ConcreteProgram:
        """The program used last; before the first call, that of `concrete_program_specify_input_spec`.

        Raises `CaptureError` if there is none.
        """
        program = self.dispatcher.cache.current
        return self.concrete_program_specify_input_spec() if program is None else concrete_program(self, program)

    def concrete_program_specify_input_spec(self, input_spec: Optional[Sequence[Any]] = None) -> ConcreteProgram:
        """The program for arrays as the ``input_spec`` of `to_static` has them, compiled if need be, not run.

        input_spec: may be given again.  Raises `CaptureError` if there is none, or such a call runs eagerly.
        """
        specs, name = self.dispatcher.options.input_spec, self.dispatcher.function.__qualname__
        if input_spec is not None and tuple(input_spec) != specs:
            raise SignatureError(f"{name} has another input_spec", hint="it is an argument of to_static")
        if not specs:
            raise CaptureError(f"{name} has no program yet",
                               hint="there is one after a call that does not run eagerly; with an input_spec, before")
        return concrete_program(self, program_for(specs, self.program))

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


def _follow(source: Optional[Source], given: Mapping[int, Any]) -> Any:
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

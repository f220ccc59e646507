"""The programs of a compiled function in Paddle's terms: inputs, outputs, parameters."""
from __future__ import annotations

from typing import Any, Callable, Iterator, List, Mapping

import chainer

from ..dispatch.dispatcher import Dispatcher, positional
from ..input_spec import InputSpec
from ..record.inputs import VariableInput
from ..record.paths import Argument, Source, follow
from ..runtime.program import Program
from .interface import Interface
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
        self._interface = Interface(program.recipe.outcome, names, specs, rest, by_name)

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
        found = [_follow(item.source, given) for item in self.program.recipe.outcome.inputs if isinstance(item, VariableInput)]
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

    def __init__(self, owner: Any):
        self._owner = owner

    def concrete_programs(self) -> List[ConcreteProgram]:
        """All of them, in the order in which calls try them."""
        return [concrete_program(self._owner, program) for program in self._owner.dispatcher.programs]

    def last(self) -> ConcreteProgram:
        """The one used last.  Raises `CaptureError` if there is none."""
        found: ConcreteProgram = self._owner.concrete_program
        return found

    def __len__(self) -> int:
        return len(self._owner.dispatcher.programs)

    def __iter__(self) -> Iterator[ConcreteProgram]:
        return iter(self.concrete_programs())

    def __repr__(self) -> str:
        return f"<{len(self)} programs>"


def concrete_program(static: Any, program: Program) -> ConcreteProgram:
    """A program of a static function as Paddle has it."""
    return ConcreteProgram(static.dispatcher, program, static, getattr(static, "__self__", None))


def _follow(source: Source, given: Mapping[int, Any]) -> Any:
    """What is at the end of a path now; None where that cannot be found."""
    try:
        return follow(source, lambda root: given.get(root.key) if isinstance(root, Argument) else None)
    except (LookupError, AttributeError, TypeError, ValueError):
        return None

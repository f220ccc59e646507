"""Paddle's names on compiled functions: they are put on `StaticFunction` and its methods when the package is imported."""
from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence

from ..dispatch.dispatcher import Dispatcher
from ..errors import CaptureError, SignatureError
from ..input_spec import InputSpec
from ..runtime.program import Program
from ..static_function import BoundStaticFunction, StaticFunction
from .concrete_program import ConcreteProgram, ProgramCache, concrete_program
from .example_arguments import program_for
from .named_program import NamedProgram, Target
from .placement import put_back


class PaddleNames:
    """What a static function has under Paddle's names.  Of a method, programs know the instance."""

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
        """The program for arrays of the ``input_spec`` of `to_static`.  It is compiled if necessary, and not run.

        input_spec: may be given again.

        Raises `CaptureError` if there is none, or such a call runs eagerly, and `SignatureError` for another one than
        `to_static` got.
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
        """The number of programs."""
        return len(self.program_cache)

    @property
    def inputs(self) -> List[InputSpec]:
        """The inputs of the program used last, each an `InputSpec`."""
        return self.concrete_program.inputs

    @property
    def outputs(self) -> List[Target]:
        """The outputs of the program used last."""
        return self.concrete_program.outputs

    @property
    def main_program(self) -> NamedProgram:
        """The program used last, as an `Executor` runs it."""
        return self.concrete_program.main_program

    @property
    def dygraph_function(self) -> Callable:
        """The function as it was written."""
        return self.python_function

    def rollback(self) -> Callable:
        """Return the original function, and put it back in place of the compiled one, in its class and in its module.

        Other modules that have imported the compiled function keep it.  For a method of a class, all objects of the class get the
        original method.  If a Link was compiled as an object, or a compiled method was assigned to one object, only that object
        gets it.
        """
        return put_back(getattr(self, "__func__", self), getattr(self, "__self__", None))


def install() -> None:
    """Put the names on compiled functions and on their methods."""
    for name, meaning in vars(PaddleNames).items():
        if not name.startswith("__"):
            setattr(StaticFunction, name, meaning)
            setattr(BoundStaticFunction, name, meaning)

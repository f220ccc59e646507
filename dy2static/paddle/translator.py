"""Paddle's switch, and its questions about functions that are not decorated: `ProgramTranslator`."""
from __future__ import annotations

import types
from typing import Any, Callable, List, Optional, Tuple

import chainer

from .. import api, config
from ..input_spec import InputSpec
from ..runtime.cache import Recent
from ..runtime.staticness import StaticCallable
from ..static_function import entry_point
from .concrete_program import concrete_program
from .named_program import NamedProgram, Target


class ProgramTranslator:
    """Paddle's `ProgramTranslator`: switches compilation, and compiles functions without decorating them.

    There is one instance.  It keeps the programs of the functions that its methods get.
    """

    _instance: Optional["ProgramTranslator"] = None
    _compiled: Recent

    def __new__(cls) -> "ProgramTranslator":
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance._compiled = Recent()
        return cls._instance

    @classmethod
    def get_instance(cls) -> "ProgramTranslator":
        """The only instance."""
        return cls()

    @property
    def enable_to_static(self) -> bool:
        """Whether compilation is turned on."""
        return bool(config.ENABLED.value)

    def enable(self, enable_to_static: bool) -> None:
        """Turn compilation on or off, as `dy2static.enable_to_static` does."""
        api.enable_to_static(enable_to_static)

    def get_func(self, dygraph_func: Callable) -> Any:
        """Return the compiled function.  Calling it gives results, not a program.

        Raises `SignatureError` for a target that `to_static` does not accept.
        """
        if isinstance(dygraph_func, StaticCallable):
            return dygraph_func
        if isinstance(dygraph_func, chainer.Link):
            return self.get_func(getattr(dygraph_func, entry_point(type(dygraph_func))))
        if isinstance(dygraph_func, types.MethodType):
            compiled = self.get_func(dygraph_func.__func__)
            return compiled.__get__(dygraph_func.__self__, type(dygraph_func.__self__))
        if dygraph_func not in self._compiled:
            self._compiled[dygraph_func] = api.to_static(dygraph_func)
        return self._compiled[dygraph_func]

    def get_output(self, dygraph_func: Callable, *args: Any, **kwargs: Any) -> Any:
        """Compile the function, call it and return its result."""
        return self.get_func(dygraph_func)(*args, **kwargs)

    def get_program(self, dygraph_func: Callable, *args: Any, **kwargs: Any) -> Tuple[
            NamedProgram, NamedProgram, List[InputSpec], List[Target]]:
        """Compile a call with these arguments for an `Executor`, without running it.

        Returns (program, startup program, inputs, outputs).  The startup program does nothing.

        Raises `CaptureError` if such a call runs eagerly.
        """
        compiled = self.get_func(dygraph_func)
        found = concrete_program(compiled, compiled.program(*args, **kwargs))
        return found.main_program, found.startup_program, found.inputs, found.outputs

    def get_code(self, dygraph_func: Callable) -> str:
        """The transformed Python source."""
        return self.get_func(dygraph_func).code

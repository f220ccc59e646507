"""Calls of a program that becomes native code when it has been called often enough, while the C compiler runs beside them."""
from __future__ import annotations

from typing import Any, Callable, Generator, Mapping, Optional, Tuple, TypeVar

from .program import MISS, Program

T = TypeVar("T")

#: Work in steps.  What is given on the way is None, or has a method ``ready()`` that tells whether going on need not wait.
Steps = Generator[Any, None, T]


def finished(steps: Steps[T]) -> T:
    """What the work gives in the end, waiting where that must be."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


class Becoming:
    """Another program for the calls of one, made in steps between these calls: ``becoming(program, wait)``.

    steps: makes it out of the program that there is.
    """

    def __init__(self, steps: Callable[[Program], Steps[Program]]):
        self._make = steps
        self._steps: Optional[Steps[Program]] = None
        self._pending: Any = None

    def __call__(self, program: Program, wait: bool) -> Optional[Program]:
        """The new program, or None where it is still on its way; does one step."""
        if self._steps is None:
            self._steps = self._make(program)
        if self._steps.gi_running:                      # a handler of a signal has interrupted a step, and calls the function
            return None
        if wait:
            return finished(self._steps)
        try:
            while self._pending is None or self._pending.ready():
                self._pending = next(self._steps)
                if self._pending is None:
                    break                               # enough work for one call
        except StopIteration as end:
            made: Program = end.value
            return made
        return None


class WarmingCall:
    """Called in place of a program; after ``left`` calls, each asks ``hot(self)`` to put another one in its place."""

    __slots__ = ("program", "left", "hot")

    def __init__(self, program: Program, left: int, hot: Callable[["WarmingCall"], None]):
        self.program, self.left, self.hot = program, left, hot

    def __call__(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        if self.left <= 0:
            self.hot(self)
        result = self.program.call(args, kwargs)
        if result is not MISS:
            self.left -= 1
        return result

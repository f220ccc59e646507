"""Calls of a program that becomes native code when it has been called often enough."""
from __future__ import annotations

from typing import Any, Callable, Mapping, Tuple

from .program import MISS, Program


class WarmingCall:
    """Called in place of a program; after ``left`` calls, ``hot(self)`` is to put another one in its place."""

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

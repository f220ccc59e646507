"""A part of a divided function, and what compiled functions are for those who divide."""
from __future__ import annotations

import types
from typing import Any, NamedTuple, Optional, Protocol

from .division import Run


class Compiled(Protocol):
    """A compiled part, or a compiled function that is called between parts."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    @property
    def is_divided(self) -> bool:
        """Whether it runs in parts itself."""

    def is_worth_it(self) -> Optional[bool]:
        """Whether its programs do enough to pay for its calls; None while that is not known."""

    @property
    def is_settled(self) -> bool:
        """Whether that stays so."""

    def begin_again(self) -> None:
        """Let that not be known."""


class Part(NamedTuple):
    """A run of statements as a compiled function.  owner: the user's function that they are in."""

    function: types.FunctionType
    run: Run
    owner: types.FunctionType
    compiled: Compiled

    @property
    def title(self) -> str:
        """The user's function and the lines of the part in it."""
        first, last = self.run.key.first.line, self.run.key.last.end_line
        return f"{self.owner.__qualname__}, {f'line {first}' if first == last else f'lines {first} to {last}'}"

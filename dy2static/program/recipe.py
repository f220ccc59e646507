"""What a program is made of: enough to make it again for another backend, or with clocks in it."""
from __future__ import annotations

from dataclasses import dataclass, replace

from ..backends.base import Compilation
from ..backends.host.backend import NUMPY
from ..record.outcome import Outcome
from . import hotpath
from .backward import Target
from .nodes import Differentiation


@dataclass(frozen=True, eq=False)
class Recipe:
    """A record of a call, its differentiated graph, and what the program is for."""

    outcome: Outcome
    parts: Differentiation
    target: Target

    def made_for(self, target: Target) -> "Recipe":
        """The recipe of the same program for another backend or profile."""
        return replace(self, target=target)

    def start(self) -> Compilation:
        """Begin to compile its forward."""
        graph, target = self.parts.graph, self.target
        if target.backend.has_native_calls:
            hotpath.prepare()
        return target.backend.start(graph, name="forward", escaping=set(graph.outputs), saved=self.parts.saved,
                                    clock=target.clock("forward"))

    def readable(self) -> str:
        """The text of its forward in calls of NumPy."""
        return self.made_for(Target(NUMPY)).start().finish().source

"""What a program is made of: enough to make it again for another backend, or with clocks in it."""
from __future__ import annotations

import functools
from dataclasses import dataclass, replace

from ..backends.base import Compilation
from ..backends.host.backend import NUMPY
from ..record.outcome import Outcome
from . import hotpath
from .backward import Target
from .in_place import InPlace, in_place
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

    @functools.cached_property
    def in_place(self) -> InPlace:
        """What its forward computes, and what is then changed in place; a profile shows all of it as one function."""
        if self.target.backend.has_updates and self.target.profile is None:
            return in_place(self.outcome, self.parts)
        return InPlace(self.parts.graph, self.parts.saved)

    def start(self) -> Compilation:
        """Begin to compile its forward, and its updates."""
        graph, target, parts = self.in_place.graph, self.target, self.in_place
        more = {"updates": tuple([update for update, _ in parts.updates])} if parts.updates else {}
        if target.backend.has_native_calls:
            hotpath.prepare()
        return target.backend.start(graph, name="forward", escaping=set(graph.outputs), saved=parts.saved,
                                    clock=target.clock("forward"), **more)

    def readable(self) -> str:
        """The text of its forward in calls of NumPy."""
        return self.made_for(Target(NUMPY)).start().finish().source

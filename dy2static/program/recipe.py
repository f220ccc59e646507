"""What a program is made of: enough to make it again for another backend, or with clocks in it."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Optional

from .. import passes
from ..backends.base import Compilation, Executable
from ..backends.host.backend import NUMPY
from ..ir.graph import Graph
from ..options import Recompute
from ..record.outcome import Outcome
from ..threads.locks import cached_property, lock
from . import hotpath, keeping
from .backward import Target
from .in_place import InPlace, in_place
from .keeping import KeptForward
from .nodes import Differentiation, differentiate
from .wiring import Wiring, wiring_of


class Parts:
    """The differentiated graph of a record: made when it is first asked for, because what is kept on disk does without it."""

    def __init__(self, outcome: Outcome, rng: str, recompute: Recompute):
        self.outcome, self.rng, self.recompute = outcome, rng, recompute
        self._made: Optional[Differentiation] = None
        self._lock = lock()

    @property
    def made(self) -> Differentiation:
        """The graph: one FunctionNode, or a few where there are cuts."""
        with self._lock:
            if self._made is None:
                graph = passes.run(passes.OPTIMIZE, self.outcome.graph, passes.Setting(rng=self.rng))
                self._made = differentiate(self.outcome, graph, self.recompute)
            return self._made


@dataclass(frozen=True, eq=False)
class Recipe:
    """A record of a call, its differentiated graph, and what the program is for."""

    outcome: Outcome
    differentiated: Parts
    target: Target

    def made_for(self, target: Target) -> "Recipe":
        """The recipe of the same program for another backend or profile."""
        return replace(self, target=target)

    @property
    def parts(self) -> Differentiation:
        """Its differentiated graph."""
        return self.differentiated.made

    @property
    def graph(self) -> Graph:
        """The graph of its forward."""
        return self.parts.graph

    @cached_property
    def key(self) -> str:
        """Where it is kept on disk; "" if it is not to be kept."""
        if self.target.profile is not None:
            return ""
        return keeping.key_of(self.outcome, self.target.backend, self.differentiated.rng, self.differentiated.recompute)

    @cached_property
    def in_place(self) -> InPlace:
        """What its forward computes, and what is then changed in place; a profile shows all of it as one function."""
        if self.target.backend.has_updates and self.target.profile is None:
            return in_place(self.outcome, self.parts, self.target.backend.writes_parts)
        return InPlace(self.parts.graph, self.parts.saved)

    @cached_property
    def wiring(self) -> Wiring:
        """How its nodes are wired; known before its graph where a former process has kept it."""
        return wiring_of(self.outcome, self.parts, self.in_place)

    def start(self) -> Compilation:
        """Begin to compile its forward, and its updates."""
        if self.target.backend.has_native_calls:
            hotpath.prepare()
        kept = keeping.found(self.key, KeptForward)
        if kept is None:
            self.target.backend.foresee(self.outcome.graph)
            return _Keeping(self, self._start())
        vars(self)["wiring"] = kept.wiring
        return kept.text.start(self.made_for(Target(NUMPY))._start)     # type: ignore[no-any-return]

    def _start(self) -> Compilation:
        graph, target, parts = self.in_place.graph, self.target, self.in_place
        more = {"updates": tuple([update for update, _ in parts.updates])} if parts.updates else {}
        return target.backend.start(graph, name="forward", escaping=set(graph.outputs), saved=parts.saved,
                                    clock=target.clock("forward"), **more)

    def readable(self) -> str:
        """The text of its forward in calls of NumPy."""
        return self.made_for(Target(NUMPY)).start().finish().source


class _Keeping:
    """A compilation whose text is kept on disk when it is finished."""

    def __init__(self, recipe: Recipe, compilation: Compilation):
        self._recipe, self._compilation, self.text = recipe, compilation, None

    def ready(self) -> bool:
        """As `Compilation.ready`."""
        return self._compilation.ready()

    def finish(self) -> Executable:
        """As `Compilation.finish`."""
        made = self._compilation.finish()
        keeping.keep(self._recipe.key, KeptForward(self._compilation.text, self._recipe.wiring))
        return made

"""A generated Python function of NumPy calls, and the pieces it is made of."""
from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Optional, Sequence, Tuple

import numpy as np

from ... import config
from ...errors import Location
from ...native import kept
from ...pyast.loader import Places, compile_text
from ...runtime.workspace import SizedArena, SizedWorkspace, Workspace, give
from ..compiled_calls import CompiledCall
from ..text import Line, function_text, lines_of_one_file
from .buffers import BufferPlan
from .library import NUMPY_CALLS, Library

_serial = itertools.count()


@dataclass(frozen=True)
class NumpyFunction:
    """A generated function ``name(arena, *inputs) -> (outputs..., saved...)`` and the pieces it is made of.

    params: the names of the inputs.
    arena: the lines that give the arrays of the arena their names; ``plan`` tells which these are.
    work: those for the arrays that it has only while it runs, where that may be much memory; see ``work_plan``.
    head: lines in front of these, which find out sizes.
    lines: the rest of the body without ``return``, each line with the user's line.
    results: the expressions returned: outputs, then saved values.
    constants: what the namespace of the code must hold.  compiled: the calls of compiled code, which are there, too, once they
        have been compiled.
    library: whose arrays it computes with.
    """

    name: str
    params: Tuple[str, ...]
    arena: Tuple[str, ...]
    head: Tuple[Line, ...]
    lines: Tuple[Line, ...]
    results: Tuple[str, ...]
    constants: Mapping[str, Any]
    plan: BufferPlan
    work: Tuple[str, ...] = ()
    work_plan: Optional[BufferPlan] = None
    library: Library = NUMPY_CALLS
    compiled: Mapping[str, CompiledCall] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The text of the whole function."""
        end: Tuple[Line, ...] = (("give_work(work)", None),) if self.work else ()
        return function_text(self.name, ("arena", *self.params), self._begin + self.lines + end, tuple_text(self.results))

    @property
    def _begin(self) -> Tuple[Line, ...]:
        take = ("work, parts = take_work()",) if self.work else ()
        return (*self.head, *[(line, None) for line in (*self.arena, *take, *self.work)])

    @property
    def origins(self) -> Mapping[int, Location]:
        """The user's line for each line number of `source`, as far as known: for tracebacks."""
        first = 2 + len(self._begin)
        return {number: loc for number, (_, loc) in enumerate(self.lines, start=first) if loc is not None}

    @property
    def slots(self) -> Tuple[Tuple[Tuple[int, ...], np.dtype], ...]:
        """Shape and dtype of every array of the arena."""
        return tuple((slot.shape, slot.dtype) for slot in self.plan.slots)

    @property
    def make_arena(self) -> Callable[[], Any]:
        """Makes new working memory for one call: its arrays, or where sizes are free, what they will be made in."""
        return SizedArena if self.plan.symbols else functools.partial(self.plan.make_arena, self.library)

    def bind(self) -> Callable[..., Tuple[Any, ...]]:
        """The compiled function."""
        filename = f"<dy2static {self.name} {next(_serial)}>"
        constants = {**self.constants, **{name: found.call for name, found in self.compiled.items()}}
        if self.work_plan is not None:
            workspace = SizedWorkspace() if self.work_plan.symbols else Workspace(
                functools.partial(self.work_plan.make_arena, self.library), self.work_plan.block_bytes)
            constants.update(take_work=workspace.take, give_work=give)
        return compile_text(self.source, filename, constants, self._places(), kept.code_of)[self.name]

    def _places(self) -> Optional[Places]:
        """The user's lines, if they are in one file, or called from lines of one file; None where generated code shall be seen."""
        if config.FULL_TRACEBACK.value or not self.library.warns:
            return None
        origins = self.origins
        file, found = lines_of_one_file(origins)
        if not found:
            return None
        line, lines = next(iter(found.values())), []
        for number in range(1, 3 + len(self._begin) + len(self.lines) + bool(self.work)):
            line = found.get(number, line)
            lines.append(line)
        return Places(file, lines)


def tuple_text(names: Sequence[str]) -> str:
    """A tuple of these names, as Python text."""
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names) if names else "()"

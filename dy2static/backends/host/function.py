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
from ...runtime.workspace import Workspace, give
from ..compiled_calls import CompiledCall
from ..text import Line, function_text, lines_of_one_file
from .buffers import BufferPlan
from .library import NUMPY_CALLS, Library

_serial = itertools.count()


@dataclass(frozen=True)
class NumpyFunction:
    """A generated function ``name(arena, *inputs) -> (outputs..., saved...)`` and the pieces it is made of.

    params: the names of the inputs.
    arena: the names of the arrays of the arena, in the order of ``plan.slots``.
    work: those of the arrays that it has only while it runs, where that is much memory, in the order of ``work_plan``.
    lines: the body without the unpacking of the arena and without ``return``, each line with the user's line.
    results: the expressions returned: outputs, then saved values.
    constants: what the namespace of the code must hold.  compiled: the calls of compiled code, which are there, too, once they
        have been compiled.
    library: whose arrays it computes with.
    """

    name: str
    params: Tuple[str, ...]
    arena: Tuple[str, ...]
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
        unpack: Tuple[Line, ...] = ((f"{tuple_text(self.arena)} = arena", None),) if self.arena else ()
        end: Tuple[Line, ...] = ()
        if self.work:
            unpack += ((f"work, ({tuple_text(self.work)}) = take_work()", None),)
            end = (("give_work(work)", None),)
        return function_text(self.name, ("arena", *self.params), unpack + self.lines + end, tuple_text(self.results))

    @property
    def origins(self) -> Mapping[int, Location]:
        """The user's line for each line number of `source`, as far as known: for tracebacks."""
        first = 2 + bool(self.arena) + bool(self.work)
        return {number: loc for number, (_, loc) in enumerate(self.lines, start=first) if loc is not None}

    @property
    def slots(self) -> Tuple[Tuple[Tuple[int, ...], np.dtype], ...]:
        """Shape and dtype of every array of the arena."""
        return tuple((slot.shape, slot.dtype) for slot in self.plan.slots)

    def make_arena(self) -> Tuple[Any, ...]:
        """New working memory for one call."""
        return self.plan.make_arena(self.library)

    def bind(self) -> Callable[..., Tuple[Any, ...]]:
        """The compiled function."""
        filename = f"<dy2static {self.name} {next(_serial)}>"
        constants = {**self.constants, **{name: found.call for name, found in self.compiled.items()}}
        if self.work_plan is not None:
            workspace = Workspace(functools.partial(self.work_plan.make_arena, self.library), self.work_plan.block_bytes)
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
        for number in range(1, 3 + bool(self.arena) + 2 * bool(self.work) + len(self.lines)):
            line = found.get(number, line)
            lines.append(line)
        return Places(file, lines)


def tuple_text(names: Sequence[str]) -> str:
    """A tuple of these names, as Python text."""
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names) if names else "()"

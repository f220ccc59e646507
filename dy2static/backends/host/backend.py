"""The backend of NumPy calls, which is always there and takes every graph."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, ClassVar, Collection, Optional, Sequence, Tuple

from ...ir.graph import Graph, Node, Value
from ...passes import TOGETHER, Pipeline, Setting, run
from ...passes.in_place import Update
from ...runtime.clocks import Clock
from ...runtime.segment import Footprint
from ..base import Backend, Compilation, Done, Executable, results_of
from ..updates import UpdateCall
from .emit import TEXT, emit
from .function import NumpyFunction
from .library import NUMPY_CALLS, Library
from .updates import UpdateText, update_texts


class NumpyBackend(Backend):
    """Generated Python functions of NumPy calls.

    library: what they call.
    """

    name = "numpy"
    passes = Pipeline("numpy", "a graph that is about to be run on NumPy", TOGETHER)
    inner: ClassVar[Tuple[Pipeline, ...]] = (TEXT,)
    has_updates = writes_parts = keeps = True
    library: ClassVar[Library] = NUMPY_CALLS

    def supports(self, node: Node) -> bool:
        """Whether there is a way to write a node: there is one for all that captures make."""
        return (self.library.form(node.op) is not None or bool(node.regions)
                or node.op.name in ("constant", "py_constant", "nothing", "raise_"))

    def start(self, graph: Graph, *, name: str, escaping: Collection[Value], saved: Tuple[Value, ...] = (),
              recomputes: bool = False, clock: Optional[Clock] = None, updates: Sequence[Update] = ()) -> Compilation:
        """As `Backend.start`; there is nothing to wait for."""
        graph = run(self.passes, graph, Setting(recomputes=recomputes, saved=saved))
        function = emit(graph, name=name, escaping=escaping, saved=saved, clock=clock, library=self.library.placed(graph))
        text = numpy_text(function, graph, update_texts(updates, range(len(updates)), self.library))
        return Done(text.executable(function.library.called(function.bind(), graph)), text)


@dataclass(frozen=True, eq=False)
class NumpyText:
    """A graph as a function of NumPy calls, and functions of the updates that belong to it.

    results: the bytes of the results that leave it in memory of their own.
    """

    function: NumpyFunction
    results: int
    updates: Tuple[UpdateText, ...] = ()

    def start(self, on_numpy: Callable[[], Compilation]) -> Done:
        """As `Text.start`."""
        return Done(self.executable(self.function.bind()), self)

    def executable(self, call: Callable[..., Any], native_text: Callable[[], str] = str, native_nodes: int = 0,
                   native_updates: Tuple[UpdateCall, ...] = ()) -> Executable:
        """The function, compiled by Python.  native_text, native_nodes: of the regions that it calls."""
        function = self.function
        working = 0 if function.work_plan is None else function.work_plan.nbytes
        footprint = Footprint(function.plan.nbytes, working, self.results)
        made = Executable(call, function.source, function.results, function.origins,
                          function.make_arena if function.slots else None, function.library.place, footprint, native_text,
                          native_nodes)
        return _with_updates(made, (*native_updates, *[text.call() for text in self.updates]))


def numpy_text(function: NumpyFunction, graph: Graph, updates: Tuple[UpdateText, ...] = ()) -> NumpyText:
    """What is to be known of a generated function of a graph."""
    return NumpyText(function, results_of(graph, function.plan.places), updates)


def _with_updates(executable: Executable, calls: Tuple[UpdateCall, ...]) -> Executable:
    """The same with functions for the updates, and what they need."""
    if not calls:
        return executable
    arena, working, results = executable.footprint
    working = max([working, *[call.footprint.working for call in calls]])
    footprint = Footprint(arena + sum([call.footprint.arena for call in calls]), working, results)
    source = "\n".join([executable.source, *[call.source for call in calls if call.source]])
    return replace(executable, source=source, footprint=footprint, updates=calls)


#: The one there is.
NUMPY = NumpyBackend()

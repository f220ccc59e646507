"""The backend that makes C functions of the parts of a graph that it supports, and NumPy calls of the rest."""
from __future__ import annotations

from typing import Any, Callable, Collection, Optional, Sequence, Tuple

from ...errors import BackendError
from ...ir.graph import Graph, Node, Value
from ...lowering.numpy.selections import with_selections
from ...native import compiler, library
from ...native.announce import announce
from ...passes import TOGETHER, Pass, Pipeline, Setting, pretranspose, run
from ...passes.in_place import Update
from ...runtime.clocks import Clock, NativeClock
from ..base import Backend, Compilation, Executable
from ..compiled_calls import with_calls
from ..host.backend import NUMPY, executable, with_updates
from ..host.emit import emit
from ..host.function import NumpyFunction
from ..host.updates import update_calls
from .emit import REGION
from .executor import Bundle
from .partition import partition, supported
from .updates import takes


class CBackend(Backend):
    """Native code; where there is no C compiler, NumPy calls."""

    name = "c"
    is_compiled = has_native_calls = has_updates = True
    passes = Pipeline("c", "a graph that is about to be run, in parts as native code", (
        *TOGETHER, Pass(pretranspose), Pass(with_selections),
        Pass(partition, reads=("saved",), is_verified=False)))     # regions read sizes that no node gives
    inner = (REGION,)

    def supports(self, node: Node) -> bool:
        """Whether C computes a node, with all that is in its regions."""
        return supported(node)

    def start(self, graph: Graph, *, name: str, escaping: Collection[Value], saved: Tuple[Value, ...] = (),
              recomputes: bool = False, clock: Optional[Clock] = None, updates: Sequence[Update] = ()) -> Compilation:
        """As `Backend.start`: begins to compile the native parts."""
        if not native_possible():
            return NUMPY.start(graph, name=name, escaping=escaping, saved=saved, recomputes=recomputes, clock=clock,
                               updates=updates)
        divided = run(self.passes, graph, Setting(recomputes=recomputes, saved=saved))
        return _Compilation(graph, divided, clock, updates, name=name, escaping=escaping, saved=saved, recomputes=recomputes)


class _Compilation:
    """The regions of a divided graph while the C compiler works on them.

    graph: as it was before; that is what runs where they cannot be built.  options: those of `Backend.start`.
    """

    def __init__(self, graph: Graph, divided: Graph, clock: Optional[Clock], updates: Sequence[Update], **options: Any):
        self._graph, self._clock, self._updates, self._options = graph, clock, updates, options
        self._bundle = Bundle(None if clock is None else NativeClock())
        self._divided = with_calls(divided, lambda region: self._bundle.add(region, fallback_of))
        self._bundle.add_updates(updates, [k for k, update in enumerate(updates) if takes(update)])
        self._guarded(self._bundle.start)

    def ready(self) -> bool:
        """As `Compilation.ready`."""
        return self._bundle.is_empty or self._bundle.ready()

    def finish(self) -> Executable:
        """As `Compilation.finish`; a function of NumPy calls only where the native regions cannot be built."""
        self._guarded(self._bundle.build)
        bundle, clock = self._bundle, self._clock
        if bundle.is_empty:
            return NUMPY.compile(self._graph, clock=clock, updates=self._updates, **self._options)
        if clock is not None:
            clock.inside = bundle.clock
        options = {name: option for name, option in self._options.items() if name != "recomputes"}
        made = executable(emit(self._divided, clock=clock, **options), self._divided, bundle.readable,
                          sum(len(list(region.graph.walk())) for region in bundle.regions)
                          + sum(len(region.graph.nodes) * len(region.members) for region in bundle.updates))
        others = set(range(len(self._updates))).difference(*[call.members for call in bundle.update_calls])
        return with_updates(made, (*bundle.update_calls, *update_calls(self._updates, sorted(others))))

    def _guarded(self, step: Callable[[], None]) -> None:
        """Do a step of building; where it fails, there are no regions."""
        try:
            if not self._bundle.is_empty:
                step()
        except BackendError as reason:
            if compiler.Refused.stands(reason):
                raise
            announce("build", f"programs run on NumPy: {reason}")
            self._bundle.clear()


def native_possible() -> bool:
    """Whether native code can be made and called here; where not, that is announced once."""
    if not compiler.available():
        return False
    try:
        library.require_support()
    except library.NotSupported as reason:
        announce("support", f"programs run on NumPy: {reason}")
        return False
    return True


def fallback_of(graph: Graph) -> Tuple[Callable[..., Any], Any]:
    """The function of NumPy calls that computes the same as a region, and the user's lines in it."""
    function = emit(graph, name="fallback", escaping=set(graph.outputs))
    bound, origins = function.bind(), function.origins
    if not function.slots:
        return bound, origins
    return _WithArena(bound, function), origins


class _WithArena:
    """A fallback that gets new working memory for every call."""

    def __init__(self, bound: Callable[..., Any], function: NumpyFunction):
        self.bound, self.make_arena, self.__code__ = bound, function.make_arena, bound.__code__

    def __call__(self, arena: None, *inputs: Any) -> Tuple[Any, ...]:
        return self.bound(self.make_arena(), *inputs)


#: The one there is.
C = CBackend()

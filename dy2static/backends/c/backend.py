"""The backend that makes C functions of the parts of a graph that it supports, and NumPy calls of the rest."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Collection, Optional, Sequence, Tuple

from ...errors import BackendError
from ...ir.graph import Graph, Node, Value
from ...lowering.numpy.selections import with_selections
from ...native import compiler, library, products, shipped
from ...native.announce import announce
from ...native.failures import Refused
from ...passes import TOGETHER, Pass, Pipeline, Setting, pretranspose, run
from ...passes.in_place import Update
from ...passes.interleaved_joins import interleave_joins
from ...passes.order_of_memory import operate_in_order_of_memory
from ...passes.whole_windows import products_of_whole_windows
from ...runtime.clocks import Clock, NativeClock
from ..base import Backend, Compilation, Done, Executable
from ..compiled_calls import with_calls
from ..host.backend import NUMPY, NumpyText, numpy_text
from ..host.emit import emit
from ..host.function import NumpyFunction
from ..host.updates import update_texts
from .emit import REGION
from .executor import Bundle, Region, Shared
from .kernels_products import suffix
from .partition import partition
from .supported import supported
from .updates import takes
from .view_copies import CopyOrView


class CBackend(Backend):
    """Native code; where there is no C compiler, NumPy calls."""

    name = "c"
    is_compiled = has_native_calls = has_updates = writes_parts = keeps = True
    passes = Pipeline("c", "a graph that is about to be run, in parts as native code", (
        Pass(products_of_whole_windows), Pass(interleave_joins, reads=("saved",)), *TOGETHER, Pass(pretranspose),
        Pass(operate_in_order_of_memory, reads=("saved",)), Pass(with_selections),
        Pass(partition, reads=("saved",), is_verified=False)))                           # regions read sizes that no node gives
    inner = (REGION,)

    def supports(self, node: Node) -> bool:
        """Whether C computes a node, with all that is in its regions."""
        return supported(node)

    def foresee(self, graph: Graph) -> None:
        """As `Backend.foresee`: the library of products is what takes the C compiler longest."""
        if native_possible() and not shipped.are_wanted():
            for name in {suffix(node.outputs[0]) for node in graph.walk() if node.op.name == "matmul" and supported(node)}:
                products.start(name)

    def start(self, graph: Graph, *, name: str, escaping: Collection[Value], saved: Tuple[Value, ...] = (),
              recomputes: bool = False, clock: Optional[Clock] = None, updates: Sequence[Update] = (),
              shared: Optional[Shared] = None) -> Compilation:
        """As `Backend.start`: begins to compile the native parts, unless others are still to come into a shared text."""
        def on_numpy() -> Compilation:
            return NUMPY.start(graph, name=name, escaping=escaping, saved=saved, recomputes=recomputes, clock=clock,
                               updates=updates)

        if not native_possible():
            return Done(on_numpy().finish())
        divided = run(self.passes, graph, Setting(recomputes=recomputes, saved=saved))
        bundle = Bundle(None if clock is None else NativeClock(), shared)

        def added(region: Graph) -> Region:
            return bundle.add(region, fallback_of)
        divided = with_calls(divided, added, lambda region: CopyOrView(added(region)))
        bundle.add_updates(updates, [k for k, update in enumerate(updates) if takes(update)])
        if bundle.is_empty:
            return on_numpy()

        def around() -> NumpyText:
            others = set(range(len(updates))).difference(*[region.members for region in bundle.updates])
            function = emit(divided, name=name, escaping=escaping, saved=saved, clock=clock)
            return numpy_text(function, divided, update_texts(updates, sorted(others)))
        return _Compilation(bundle, around, on_numpy, clock, is_whole=shared is None)

    def shared(self) -> Optional[Shared]:
        """As `Backend.shared`; libraries of a saved model are those of single functions."""
        return None if shipped.are_wanted() else Shared()


@dataclass(frozen=True, eq=False)
class CText:
    """The native regions of a graph, and the function that calls them."""

    bundle: Bundle
    around: NumpyText

    def start(self, on_numpy: Callable[[], Compilation]) -> Compilation:
        """As `Text.start`."""
        return _Compilation(self.bundle, lambda: self.around, on_numpy) if native_possible() else Done(on_numpy().finish())


class _Compilation:
    """The regions of a divided graph while the C compiler works on them.

    around: makes the function that calls them.  on_numpy: as of `Text.start`; that is what runs where they cannot be built.
    is_whole: whether all is there that belongs to their text; else that is so when the compilation is finished.
    """

    def __init__(self, bundle: Bundle, around: Callable[[], NumpyText], on_numpy: Callable[[], Compilation],
                 clock: Optional[Clock] = None, is_whole: bool = True):
        self._bundle, self._around, self._on_numpy, self._clock = bundle, around, on_numpy, clock
        self.text: Optional[CText] = None
        if is_whole:
            self._guarded(bundle.start)

    def ready(self) -> bool:
        """As `Compilation.ready`."""
        return self._bundle.is_empty or self._bundle.ready()

    def finish(self) -> Executable:
        """As `Compilation.finish`; a function of NumPy calls only where the native regions cannot be built."""
        self._guarded(self._bundle.build)
        bundle = self._bundle
        if bundle.is_empty:
            return self._on_numpy().finish()
        if self._clock is not None:
            self._clock.inside = bundle.clock
        self.text = CText(bundle, self._around())
        around = self.text.around
        return around.executable(around.function.bind(), lambda: bundle.readable, bundle.nodes, bundle.update_calls)

    def _guarded(self, step: Callable[[], None]) -> None:
        """Do a step of building; where it fails, there are no regions."""
        try:
            if not self._bundle.is_empty:
                step()
        except BackendError as reason:
            if Refused.stands(reason):
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

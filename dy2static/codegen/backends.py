"""A graph as a function: the parts that C takes as native code, NumPy calls for the rest."""
from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, Callable, Collection, Optional, Tuple

import numpy as np

from .. import passes
from ..errors import BackendError
from ..ir.graph import Graph, Node, Value
from ..ir.types import Tensor
from ..native import compiler, library
from ..native.announce import announce
from ..runtime.clocks import Clock, NativeClock
from .c.orders import with_selections
from .c.partition import is_native, partition
from .c.regions import Bundle
from .numpy import emit as emit_numpy
from .numpy_function import NumpyFunction


def emit(graph: Graph, *, name: str, escaping: Collection[Value], saved: Tuple[Value, ...] = (),
         reserved: Collection[str] = (), native: bool = False, clock: Optional[Clock] = None) -> NumpyFunction:
    """A function for a graph, as `numpy.emit` makes it; with native code, if that is wanted and can be made here."""
    return Emission(graph, native=native, saved=saved, clock=clock, name=name, escaping=escaping, reserved=reserved).finish()


class Emission:
    """`emit` in two steps: the C compiler runs in between, beside this process.

    batch: whether products may be put together, which takes memory for what they read.
    """

    def __init__(self, graph: Graph, *, native: bool, saved: Tuple[Value, ...] = (), clock: Optional[Clock] = None,
                 batch: bool = True, **options: Any):
        native = native and native_possible()
        together = (functools.partial(passes.batch_products, kept=saved), passes.accumulate_behind) if batch else ()
        graph = passes.run((*together, *((passes.turn_matrices,) if native else ())), graph)
        self._bundle, self._graph, self._divided = Bundle(None if clock is None else NativeClock()), graph, graph
        self._saved, self._clock, self._options = saved, clock, options
        if native:
            self._divided = _in_bundle(partition(with_selections(graph), saved), self._bundle)
            self._guarded(self._bundle.start)

    def ready(self) -> bool:
        """Whether `finish` has nothing to wait for."""
        return not self._bundle.regions or self._bundle.ready()

    def finish(self) -> NumpyFunction:
        """The function; of NumPy calls only where the native regions cannot be built."""
        bundle, clock = self._bundle, self._clock
        self._guarded(bundle.build)
        function = emit_numpy(self._divided, saved=self._saved, clock=clock, **self._options)
        if clock is not None and bundle.regions:
            clock.inside = bundle.clock
        return replace(function, native_code=bundle.source if bundle.regions else "",
                       native_nodes=sum(len(list(region.graph.walk())) for region in bundle.regions))

    def _guarded(self, step: Callable[[], None]) -> None:
        """Do a step of building; where it fails, there are no regions."""
        try:
            if self._bundle.regions:
                step()
        except BackendError as reason:
            announce("build", f"programs run on NumPy: {reason}")
            self._bundle.regions.clear()
            self._divided = self._graph


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


def _in_bundle(graph: Graph, bundle: Bundle) -> Graph:
    return graph.with_(nodes=tuple(
        _called(node, bundle) if is_native(node) else
        replace(node, regions=tuple(_in_bundle(region, bundle) for region in node.regions)) if node.regions else node
        for node in graph.nodes))


def _called(node: Node, bundle: Bundle) -> Node:
    region = bundle.add(node.attrs["region"], _twin)
    scratch = Value(Tensor((region.function.scratch,), np.dtype(np.uint8)), "scratch")
    outputs = node.outputs + ((scratch,) if region.function.scratch else ())
    return replace(node, outputs=outputs, attrs={**node.attrs, "call": region})


def _twin(graph: Graph) -> Tuple[Callable[..., Any], Any]:
    """The function of NumPy calls that computes the same, and the user's lines in it."""
    function = emit_numpy(graph, name="twin", escaping=set(graph.outputs))
    bound, origins = function.bind(), function.origins
    if not function.slots:
        return bound, origins
    return _WithArena(bound, function), origins


class _WithArena:
    """A twin that gets new working memory for every call."""

    def __init__(self, bound: Callable[..., Any], function: NumpyFunction):
        self.bound, self.make_arena, self.__code__ = bound, function.make_arena, bound.__code__

    def __call__(self, arena: None, *inputs: Any) -> Tuple[Any, ...]:
        return self.bound(self.make_arena(), *inputs)

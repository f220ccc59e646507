"""A graph as a function: the parts that C takes as native code, NumPy calls for the rest."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Collection, List, Tuple

import numpy as np

from ..errors import BackendError
from ..ir.graph import Graph, Node, Value
from ..ir.types import Tensor
from ..native import compiler, library
from ..native.announce import announce
from .c.partition import NATIVE, partition
from .c.regions import Region
from .numpy import NumpyFunction
from .numpy import emit as emit_numpy


def emit(graph: Graph, *, name: str, escaping: Collection[Value], saved: Tuple[Value, ...] = (),
         reserved: Collection[str] = (), native: bool = False) -> NumpyFunction:
    """A function for a graph, as `numpy.emit` makes it; with native code, if that is wanted and can be made here."""
    if native and native_possible():
        graph = with_native(graph, saved)
    function = emit_numpy(graph, name=name, escaping=escaping, saved=saved, reserved=reserved)
    regions = [node.attrs["call"] for node in graph.walk() if node.op is NATIVE]
    return replace(function, native_code="\n".join(region.source for region in regions),
                   native_nodes=sum(len(list(region.graph.walk())) for region in regions))


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


def with_native(graph: Graph, saved: Tuple[Value, ...] = ()) -> Graph:
    """The graph with native regions that can be called; those that cannot be built stay as they are."""
    return _built(partition(graph, saved))


def _built(graph: Graph) -> Graph:
    nodes: List[Node] = []
    for node in graph.nodes:
        if node.op is NATIVE:
            nodes += _build(node)
        elif node.regions:
            nodes.append(replace(node, regions=tuple(map(_built, node.regions))))
        else:
            nodes.append(node)
    return graph.with_(nodes=tuple(nodes))


def _build(node: Node) -> List[Node]:
    graph: Graph = node.attrs["region"]
    region = Region(graph, _twin)
    try:
        region.build()
    except BackendError as reason:
        announce("build", f"programs run on NumPy: {reason}")
        return list(graph.nodes)
    scratch = Value(Tensor((region.function.scratch,), np.dtype(np.uint8)), "scratch")
    outputs = node.outputs + ((scratch,) if region.function.scratch else ())
    return [replace(node, outputs=outputs, attrs={**node.attrs, "call": region})]


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

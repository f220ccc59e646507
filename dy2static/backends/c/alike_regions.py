"""Regions that compute the same: one C function for all of them, as for equal steps of a loop that is unrolled."""
from __future__ import annotations

from typing import Any, Callable, Dict, Generic, Hashable, Tuple, TypeVar

from ...ir.digest import Forms, NoForm, digest
from ...ir.graph import Graph, Value

Region = TypeVar("Region")


class AlikeRegions(Generic[Region]):
    """The regions of one C text, by their graphs.

    Exact forms of graphs take time, so they are made only of graphs with the same operations.
    """

    def __init__(self) -> None:
        self._first: Dict[Hashable, Tuple[Graph, Region]] = {}
        self._by_form: Dict[Hashable, Dict[str, Region]] = {}

    def of(self, graph: Graph, make: Callable[[], Region]) -> Region:
        """The region of an equal graph, with the same lines of the user's; a new one if there is none.

        make: makes the region of this graph.
        """
        operations = tuple([node.op.name for node in graph.nodes]), len(graph.inputs), len(graph.outputs)
        if operations not in self._first:
            made = make()
            self._first[operations] = graph, made
            return made
        known = self._by_form.get(operations)
        if known is None:
            first, region = self._first[operations]
            known = self._by_form[operations] = {_form(first): region}
        form = _form(graph)
        if not form:
            return make()
        if form not in known:
            known[form] = make()
        return known[form]


class _Unnamed(Forms):
    """Forms in which values have no names: in C, names depend on their order only."""

    def _made(self, value: Value) -> Any:
        return self.number(value), self._type(value.type)


def _form(graph: Graph) -> str:
    """The hash of what a region is made from; "" for a graph that is equal to no other."""
    try:
        return digest(_Unnamed().graph(graph))
    except (NoForm, RecursionError, ValueError):        # marshal raises a ValueError for what is nested too deeply
        return ""

"""Sizes that only the run knows, in C functions: which of them have their numbers when."""
from __future__ import annotations

from dataclasses import replace
from typing import Collection, List, Set

from ...ir.dims import Dim
from ...ir.graph import Graph, Value
from ...ir.sizes_read import dims_of
from ...ir.types import Extent, Tensor, dims_in


def is_grown(value: Value, made: Collection[str]) -> bool:
    """Whether an array has a size with one of these symbols: those that native code itself finds out."""
    return isinstance(value.type, Tensor) and any(symbol in made for dim in dims_in(value.type) for symbol in dim.symbols)


class Sizes:
    """Which sizes of a graph have their numbers by now; those of arrays without elements are left to NumPy.

    made: the symbols that the function itself finds out.  unchecked: sizes that have to be above zero, and places, such as that of
    the last row, which may be zero; numbers that are computed from sizes, such as ``len(x) % 2``, may be any.
    """

    def __init__(self, graph: Graph):
        self.known = {value.type.symbol for value in graph.inputs if isinstance(value.type, Extent)}
        sizes = {node: tuple(dims_of(node)) for node in graph.walk()}
        nodes = [node for node, dims in sizes.items() if dims and node.op.name != "dimension"]
        self.unchecked = {dim for node in nodes for dim in sizes[node]}
        self._places = {dim for node in nodes for dim in dims_in(node.attrs.get("index"))} - {
            dim for node in nodes for dim in dims_of(replace(node, attrs={**node.attrs, "index": None}))}
        self.made = sorted({symbol for dims in sizes.values() for dim in dims for symbol in dim.symbols} - self.known)

    def known_by(self, *symbols: str) -> List[str]:
        """Tests for sizes that are too small, of those that get their numbers when these symbols have theirs."""
        self.known.update(symbols)
        found = self.found
        self.unchecked -= found
        return sorted([f"{dim} {'<' if dim in self._places else '<='} 0" for dim in found])

    @property
    def found(self) -> Set[Dim]:
        """The sizes that have their numbers by now and have not been given by `known_by`."""
        return {dim for dim in self.unchecked if self.known.issuperset(dim.symbols)}

"""Sizes that only the run knows: their symbols are names in the text of a function."""
from __future__ import annotations

from typing import Dict, List, Set, Tuple

from ..ir.dims import Dim, as_multiple
from ..ir.graph import Graph, Value
from ..ir.sizes_read import made_symbols
from ..ir.types import Extent, Tensor


def extents_of(graph: Graph) -> Dict[str, Value]:
    """A value for each symbol in the sizes of a graph, regions included: what hands it on to another program."""
    symbols: Set[str] = set()
    for value in [*graph.inputs, *(v for node in graph.walk() for v in node.outputs)]:
        symbols.update(symbols_of(value))
    return {symbol: Value(Extent(symbol), symbol) for symbol in sorted(symbols)}


def symbols_of(value: Value) -> List[str]:
    """The symbols in the shape of a value."""
    shape = value.shape if isinstance(value.type, Tensor) else ()
    return [symbol for size in shape if isinstance(size, Dim) for symbol in size.symbols]


def made_in_regions(graph: Graph) -> Tuple[str, ...]:
    """The symbols that get their number inside a branch, in a run that takes it."""
    return tuple(dict.fromkeys(symbol for node in graph.nodes for region in node.regions for inner in region.walk()
                               for symbol, _, _ in made_symbols(inner)))


def several_numbers(graph: Graph) -> Set[str]:
    """The symbols that have other numbers in regions than around them: a loop that goes backwards takes those of each turn."""
    inner = [value for node in graph.walk() for region in node.regions
             for value in (*region.inputs, *(v for step in region.nodes for v in step.outputs))]
    return {value.type.symbol for value in inner if isinstance(value.type, Extent)}.union(made_in_regions(graph))


def symbols_in(graph: Graph) -> Tuple[str, ...]:
    """Every symbol that the text of a function for this graph has as a name."""
    found = {symbol for value in graph.inputs for symbol in symbols_of(value)}
    found.update(value.type.symbol for value in graph.inputs if isinstance(value.type, Extent))
    found.update(symbol for node in graph.walk() for symbol, _, _ in made_symbols(node))
    found.update(v.type.symbol for node in graph.walk() for v in node.outputs if isinstance(v.type, Extent))
    return tuple(sorted(found))


def symbol_sources(graph: Graph) -> List[Tuple[str, Value, int, int]]:
    """For each symbol that an input shows, (symbol, input, axis, factor): the size of the axis is so many times the symbol.

    The axis is -1 for an input that is the number.
    """
    found: Dict[str, Tuple[str, Value, int, int]] = {}
    for value in graph.inputs:
        if isinstance(value.type, Extent):
            found[value.type.symbol] = value.type.symbol, value, -1, 1
    for value in graph.inputs:
        for axis, size in enumerate(value.shape if isinstance(value.type, Tensor) else ()):
            multiple = as_multiple(size)
            if multiple is not None:
                found.setdefault(multiple[0], (multiple[0], value, axis, multiple[1]))
    return list(found.values())

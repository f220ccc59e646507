"""How large arrays may become, as products of free sizes: those that have to stay within the integers of C."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List

from ...ir.dims import Dim
from ...ir.graph import Graph
from ...ir.types import Tensor

#: The power that each symbol has in a product.
Powers = Dict[str, int]


def largest_products(graph: Graph) -> List[Powers]:
    """The products of free sizes of which the array with most elements may have so many; none that is part of another."""
    shapes = {value.shape for node in graph.walk() for value in (*node.inputs, *node.outputs) if isinstance(value.type, Tensor)}
    found = {tuple(sorted(_elements(shape).items())) for shape in shapes}
    kept: List[Powers] = []
    for powers in map(dict, sorted(found, key=lambda powers: -sum(n for _, n in powers))):
        if not any(all(other.get(symbol, 0) >= n for symbol, n in powers.items()) for other in kept):
            kept.append(powers)
    return kept


def _elements(shape: Any) -> Powers:
    total: Counter[str] = Counter()
    for size in shape:
        total.update(_powers(size))
    return total


def _powers(size: Any) -> Powers:
    """The largest power of each symbol in one of the terms of a size."""
    most: Counter[str] = Counter()
    for monomial, _ in size._terms if isinstance(size, Dim) else ():
        term: Counter[str] = Counter()
        for atom in monomial:
            for part in atom.args:
                term.update({part: 1} if atom.kind == "symbol" else _powers(part))
        most |= term
    return most

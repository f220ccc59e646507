"""Sizes that only the run knows, in the text of C: an ``int64_t`` for each symbol, expressions of these elsewhere."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Collection, Dict, List, Set

from ...ir.dims import Dim
from ...ir.graph import Graph, Node, Value
from ...ir.sizes_read import dims_of
from ...ir.types import Extent, Stack, Tensor, dims_in
from ...ir.types import List as ListType


class RunSize(Dim):
    """A size whose text is an expression of C.  It is above zero: where one is not, native code declines."""

    __slots__ = ()

    def __str__(self) -> str:
        text = " + ".join(" * ".join([str(factor)] * (factor != 1 or not atoms) + list(map(_atom, atoms)))
                          for atoms, factor in self._terms)
        return text if text.isidentifier() else f"({text})"

    def __format__(self, spec: str) -> str:
        return str(self)

    def __bool__(self) -> bool:
        return True

    __hash__ = Dim.__hash__


def _kept(name: str) -> Any:
    function = getattr(Dim, name)

    def result(self: RunSize, other: Any) -> Any:
        return in_c(function(self, other))
    return result


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "rfloordiv"):
    setattr(RunSize, f"__{_name}__", _kept(f"__{_name}__"))


def name_of(symbol: str) -> str:
    """The C variable of a symbol."""
    return f"dim_{symbol}"


def _atom(atom: Any) -> str:
    if atom.kind == "symbol":
        return name_of(atom.args[0])
    texts = [str(in_c(arg)) for arg in atom.args]
    function = "dy_larger" if atom.kind == "max" else "dy_floor_divide"
    result = texts[0]
    for text in texts[1:]:
        result = f"{function}({result}, {text})"
    return result


def in_c(item: Any) -> Any:
    """The size with C for its text; types, tuples, lists, dicts and slices with such sizes."""
    kind = type(item)
    if kind is Dim or isinstance(item, Dim) and kind is not RunSize:
        made = RunSize.__new__(RunSize)
        made._set(item._terms)
        return made
    if kind is Tensor:
        return Tensor(in_c(item.shape), item.dtype)
    if kind in (Stack, ListType):
        return kind(in_c(item.elem))
    if kind in (tuple, list):
        return kind([in_c(part) for part in item])
    if kind is dict:
        return {key: in_c(part) for key, part in item.items()}
    return slice(*map(in_c, (item.start, item.stop, item.step))) if kind is slice else item


# Graphs -------------------------------------------------------------------------------------------------------------


def symbols_of(node: Node) -> Set[str]:
    """The symbols in a node and in its regions."""
    return {symbol for inner in node.walk() for dim in dims_of(inner) for symbol in dim.symbols}


def is_grown(value: Value, made: Collection[str]) -> bool:
    """Whether an array has a size with one of these symbols: those that native code itself finds out."""
    return isinstance(value.type, Tensor) and any(symbol in made for dim in dims_in(value.type) for symbol in dim.symbols)


def with_run_sizes(graph: Graph) -> Graph:
    """The graph with `RunSize` for all sizes that are not known, if there are any."""
    if not any(True for node in graph.walk() for _ in dims_of(node)):
        return graph
    return _converted(graph, {})


def _converted(graph: Graph, known: Dict[Value, Value]) -> Graph:
    def of(value: Value) -> Value:
        if value not in known:
            known[value] = Value(in_c(value.type), value.name)
        return known[value]

    inputs = tuple(map(of, graph.inputs))
    nodes: List[Node] = []
    for node in graph.nodes:
        regions = tuple(_converted(region, known) for region in node.regions)
        nodes.append(replace(node, inputs=tuple(map(of, node.inputs)), outputs=tuple(map(of, node.outputs)),
                             attrs={key: in_c(attr) for key, attr in node.attrs.items()}, regions=regions))
    return graph.with_(inputs=inputs, outputs=tuple(map(of, graph.outputs)), nodes=tuple(nodes))


class Sizes:
    """Which sizes of a graph have their numbers by now; those of arrays without elements are left to NumPy.

    made: the symbols that the function itself finds out.
    """

    def __init__(self, graph: Graph):
        self.known = {value.type.symbol for value in graph.inputs if isinstance(value.type, Extent)}
        self.unchecked = {dim for node in graph.walk() for dim in dims_of(node)}
        self.made = sorted({symbol for dim in self.unchecked for symbol in dim.symbols} - self.known)

    def known_by(self, *symbols: str) -> List[str]:
        """The sizes that have their numbers when these symbols have theirs, and had none before."""
        self.known.update(symbols)
        found = {dim for dim in self.unchecked if self.known.issuperset(dim.symbols)}
        self.unchecked -= found
        return sorted(map(str, found))

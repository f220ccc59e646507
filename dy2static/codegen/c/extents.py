"""Sizes that only the run knows, in the text of C: an ``int64_t`` for each symbol, expressions of these elsewhere."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Collection, Dict, Iterator, List, Set

from ...ir.dims import Dim, Size, less
from ...ir.graph import Graph, Node, Value
from ...ir.types import Extent, Stack, Tensor
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
    if kind is Stack:
        return Stack(in_c(item.elem))
    if kind in (tuple, list):
        return kind([in_c(part) for part in item])
    if kind is dict:
        return {key: in_c(part) for key, part in item.items()}
    return slice(*map(in_c, (item.start, item.stop, item.step))) if kind is slice else item


def is_known(size: Size) -> bool:
    """Whether a size is a number."""
    return isinstance(size, int)


def may_exceed(size: Size, limit: int) -> bool:
    """Whether a size is above a limit, as far as is known."""
    return not isinstance(size, int) or size > limit


def not_below(a: Size, b: Size) -> bool:
    """Whether ``a >= b`` for sure."""
    return less(a, b) is False


def at_least_one(size: Size) -> Size:
    """The size, or one in place of zero."""
    return max(size, 1) if isinstance(size, int) else size


# Graphs -------------------------------------------------------------------------------------------------------------


def dims_in(item: Any) -> Iterator[Dim]:
    """The sizes in types, attributes and what these are made of that only the run knows."""
    kind = type(item)
    if isinstance(item, Dim):
        yield item
    elif kind is Tensor:
        yield from dims_in(item.shape)
    elif kind in (Stack, ListType):
        yield from dims_in(item.elem)
    elif kind in (tuple, list):
        for part in item:
            yield from dims_in(part)
    elif kind is slice:
        yield from dims_in((item.start, item.stop, item.step))


def dims_of(node: Node) -> Iterator[Dim]:
    """The same for a node, without its regions."""
    for value in (*node.inputs, *node.outputs):
        if type(value.type) is not Extent:
            yield from dims_in(value.type)
    for attr in node.attrs.values():
        yield from dims_in(attr)


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

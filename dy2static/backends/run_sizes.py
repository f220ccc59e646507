"""Sizes that only the run knows, in the text of compiled code: integer variables for symbols, expressions of these elsewhere."""
from __future__ import annotations

import contextlib
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Callable, Dict, Iterable, Iterator, List, Set

from ..ir.dims import Dim, less
from ..ir.graph import Graph, Node, Value
from ..ir.sizes_read import dims_of
from ..ir.types import List as ListType
from ..ir.types import Stack, Tensor


class RunSize(Dim):
    """A size whose text is an expression of C.  It is above zero: compiled code is not used where one is not."""

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
    """The variable of a symbol, in C and in CUDA."""
    return f"dim_{symbol}"


#: The variables of quotients and maxima, in the function that is being written.
_VARIABLES: ContextVar[Dict[Any, str]] = ContextVar("variables of sizes")


@contextlib.contextmanager
def size_variables() -> Iterator[None]:
    """Quotients and maxima that `new_variables` gives names have these inside."""
    before = _VARIABLES.set({})
    try:
        yield
    finally:
        _VARIABLES.reset(before)


def new_variables(sizes: Iterable[Dim], fresh: Callable[[], str]) -> Iterator[str]:
    """Lines that compute the quotients and maxima in sizes once, so that no loop computes them; fresh: gives a new name."""
    variables = _VARIABLES.get()
    for atom in [atom for size in sorted(sizes, key=str) for monomial, _ in size._terms for atom in monomial]:
        if atom.kind != "symbol" and atom not in variables:
            yield from new_variables([arg for arg in atom.args if isinstance(arg, Dim)], fresh)
            text = _atom(atom)
            variables[atom] = fresh()
            yield f"const int64_t {variables[atom]} = {text};"


def _atom(atom: Any) -> str:
    if atom.kind == "symbol":
        return name_of(atom.args[0])
    variable = _VARIABLES.get({}).get(atom)
    if variable is not None:
        return variable
    texts = [str(in_c(arg)) for arg in atom.args]
    if atom.kind == "//" and less(atom.args[0], 0) is False and less(0, atom.args[1]):
        return f"({texts[0]} / {texts[1]})"
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

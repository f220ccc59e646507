"""A closed graph as one C function that no Python stands behind: the door to this backend for what is exported as C."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Iterator, List, Mapping, Tuple

from ...errors import ExportError
from ...ir.c_forms import c_type
from ...ir.dims import Size, evaluate
from ...ir.graph import Graph, Node, Value
from ...ir.op import OPS
from ...ir.size_texts import described
from ...ir.sizes_read import dims_of, made_symbols
from ...ir.types import Extent, Scalar, Tensor, Type, dims_in
from ...lowering.numpy.legalize import legalize_numpy_calls
from ...lowering.numpy.selections import with_selections
from ...passes import TOGETHER, Pass, Pipeline, pretranspose, run
from ...passes.cleanup.dce import eliminate_dead
from ...passes.interleaved_joins import interleave_joins
from ...passes.legalize.decompose import decompose
from ...passes.whole_windows import products_of_whole_windows
from ..extents import symbols_of
from ..memory_planner import ALIGNMENT, aligned
from ..run_sizes import in_c, with_run_sizes
from .draws import graph_draws
from .emit import CFunction, write
from .extents import is_grown
from .headers import headers
from .kernels_blocks import BLOCKS
from .new_memory import without_copies
from .outline import Parts
from .scalars import enters_as_array, scalar_type
from .standalone import Failure, Standalone
from .supported import supported

#: What a room takes of the arena besides its size: the head of a piece, and what its address is rounded by.
ROOM = 2 * ALIGNMENT

#: What a graph goes through before C takes all of it.
PREPARED = Pipeline("c export", "a graph that is about to be written as C that no Python stands behind", (
    Pass(products_of_whole_windows), Pass(interleave_joins), *TOGETHER, Pass(pretranspose), Pass(with_selections),
    Pass(legalize_numpy_calls, is_verified=False)))
_WRITTEN = Pipeline("c export, written", "the same, taken apart", (
    Pass(decompose, is_verified=False), Pass(with_run_sizes, is_verified=False), Pass(without_copies, is_verified=False),
    Pass(eliminate_dead, is_verified=False)))


@dataclass(frozen=True)
class ClosedFunction:
    """``static int run(char **p, int64_t *n, double *d)``, what it calls, and what its numbers mean.

    parts: the functions in front of it.  symbols: of the sizes that the caller gives, in the order in which the function takes
    them.  made: those that it finds out.  graph: as it is written.
    """

    name: str
    function: CFunction
    parts: Tuple[str, ...]
    symbols: Tuple[str, ...]
    made: Tuple[str, ...]
    graph: Graph

    def arena_bytes(self, sizes: Mapping[str, int]) -> int:
        """How large an arena has to be, without what lists and loops need; sizes: by their symbols."""
        sized = evaluate(self.function.sized, sizes)
        return 3 * ALIGNMENT + aligned(self.function.scratch) + (ROOM + aligned(sized) if sized else 0)

    @property
    def draws(self) -> bool:
        """Whether it takes the state of a generator of random numbers."""
        return graph_draws(self.graph)

    @property
    def is_grown(self) -> Tuple[bool, ...]:
        """For each output whether it is an array in memory of its own, because the function finds out its size."""
        return tuple([is_grown(value, self.made) for value in self.graph.outputs])

    @property
    def text(self) -> str:
        """All functions."""
        return "\n".join((*self.parts, self.function.text))


class ClosedText:
    """What the functions of one text have in common: their parts, and the numbers of failures."""

    def __init__(self) -> None:
        self.parts, self.standalone = Parts(), Standalone()

    @property
    def failures(self) -> Tuple[Failure, ...]:
        """Number k + 1 is what a function gives for the k-th."""
        return tuple(self.standalone.failures)


def closed_function(graph: Graph, name: str, text: ClosedText) -> ClosedFunction:
    """The C function of a graph, as part of a text.

    Raises `ExportError`, with the user's line, for what C does not compute.
    """
    graph = _with_zeros(run(PREPARED, graph))
    for value in (*graph.inputs, *graph.outputs):
        if not (enters_as_array(value.type) or isinstance(value.type, Scalar)):
            raise ExportError(f"{value.name} is {value.type}; what is exported as C takes and gives arrays and numbers")
    refused = list(_refused(graph))
    if refused:
        raise ExportError(f"{describe(refused[0])} has no form in C", refused[0].loc,
                          "compute it otherwise, or leave it to the program that calls the model")
    made = {symbol for node in graph.walk() for symbol, _, _ in made_symbols(node)}
    found = {symbol for value in graph.inputs for symbol in symbols_of(value)}
    found |= {symbol for node in graph.walk() for dim in dims_of(node) for symbol in dim.symbols}
    symbols = tuple(sorted(found - made))
    extents = tuple([Value(Extent(symbol), symbol) for symbol in symbols])
    found_in_run = tuple([Value(Extent(symbol), symbol) for symbol in sorted(made)])
    graph = run(_WRITTEN, graph.with_(inputs=(*graph.inputs, *extents), outputs=(*graph.outputs, *found_in_run)))
    there = len(text.parts.texts)
    function = write(graph, name, text.parts, standalone=text.standalone)
    return ClosedFunction(name, function, tuple(text.parts.texts[there:]), symbols, tuple(sorted(made)), graph)


_ZEROS = {"py_bool": False, "py_int": 0, "py_float": 0.0}


def _with_zeros(graph: Graph) -> Graph:
    """The graph with zeros for what a branch gives in place of arrays and numbers that only the other one has."""
    def filled(node: Node) -> Node:
        type_ = node.attrs["type"] if node.op.name == "nothing" else None
        if isinstance(type_, Tensor):
            return Node(OPS["full"], (), node.outputs, {"shape": type_.shape, "value": 0, "dtype": type_.dtype}, loc=node.loc)
        if isinstance(type_, Scalar) and type_.kind in _ZEROS:
            return Node(OPS["py_constant"], (), node.outputs, {"value": _ZEROS[type_.kind]}, loc=node.loc)
        return replace(node, regions=tuple(map(_with_zeros, node.regions))) if node.regions else node
    return graph.with_(nodes=tuple(map(filled, graph.nodes)))


def _refused(graph: Graph) -> Iterator[Node]:
    """The nodes that C does not compute, innermost first."""
    for node in graph.nodes:
        if node.op.name in BLOCKS or not supported(node, standalone=True):
            inner = [found for region in node.regions for found in _refused(region)]
            yield from inner or _joined_lists(node) or [node]


def _joined_lists(node: Node) -> List[Node]:
    """The lists that become arrays within a branch or loop: memory for these is taken outside of them only."""
    return [inner for region in node.regions for inner in region.walk() if inner.op.name in ("list_stack", "list_array")]


def describe(node: Node) -> str:
    """A node, and what it is given."""
    if node.op.name in ("list_stack", "list_array"):
        return "a list that becomes an array in a branch or loop on array values"
    call = node.attrs.get("call")
    name = str(call) if call is not None else node.attrs.get("function", node.op.name)
    return f"{name} of {', '.join([_shown(v.type) for v in node.inputs]) or 'nothing'}"


def _shown(type: Type) -> str:
    """A type in words for users, who do not know the names of sizes."""
    return f"{type.dtype} {described(type.shape)}" if any(True for _ in dims_in(type)) and isinstance(type, Tensor) else str(type)


def is_array(value: Value) -> bool:
    """Whether the function has a pointer for a value."""
    return enters_as_array(value.type)


def element_type(value: Value) -> str:
    """The C type of an element of an array, or of a number."""
    return c_type(value.dtype) if enters_as_array(value.type) else scalar_type(value.type)


def size_text(size: Size) -> str:
    """A size as an expression of C."""
    return str(in_c(size))


def headers_of(text: str) -> str:
    """The lines of C in front of such functions."""
    return "#define DY_STANDALONE\n#include \"dy2static_portable.h\"\n" + headers(text, standalone=True)

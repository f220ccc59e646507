"""Whether a program for free sizes, which are two or more, computes the right thing where one of them is one, or zero."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .. import passes
from ..call_specs import MOST_ALONE_SMALL
from ..errors import Dy2StaticError
from ..ir.dims import Dim, as_multiple
from ..ir.graph import Graph, Node, Value
from ..ir.interpret import interpret
from ..ir.shapes import evaluate_shape
from ..ir.substitute import with_sizes
from ..ir.types import Tensor
from ..threads.quiet import quiet
from .program import ExportedProgram

#: How close results are of programs that sum up in another order.
_RTOL = {np.dtype(np.float16): 1e-2, np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-9}


class OfSmall(NamedTuple):
    """What was captured for arrays of which some free sizes are small.

    arguments: the inputs of its graph that are arguments.  program: None for what cannot be exported.
    """

    arguments: Sequence[Value]
    program: Optional[ExportedProgram]


def served(general: ExportedProgram, others: Sequence[OfSmall], number: int) -> FrozenSet[str]:
    """The symbols that may be this number, also together: what was captured for such arrays computes what the general program does.

    Graphs that are not the same are compared by what they give for random arrays.
    """
    right = set()
    for other in others:
        small = _small(general, other)
        if set(small.values()) == {number} and other.program is not None and _agree(general, other.program, small):
            right.add(frozenset(small))
    found: List[FrozenSet[str]] = [frozenset()]
    for symbols in _alone(general):
        together = [other | symbols for other in found]
        found += together if right.issuperset(together) else []
    return found[-1]


def _alone(general: ExportedProgram) -> Iterator[FrozenSet[str]]:
    """The symbols that are small without others in some capture, as `sizes_of` takes them."""
    if len(general.sizes) <= MOST_ALONE_SMALL:
        yield from (frozenset([symbol]) for symbol in general.sizes)
        return
    for axis in sorted({size.axis for size in general.sizes.values()})[:MOST_ALONE_SMALL]:
        yield frozenset([symbol for symbol, size in general.sizes.items() if size.axis == axis])


def _small(general: ExportedProgram, other: OfSmall) -> Dict[str, int]:
    """The symbols that are small in a capture, and their numbers; none if its sizes are no multiples as those of the program."""
    small: Dict[str, int] = {}
    for argument, value in zip(general.arguments, other.arguments):
        for m, n in zip(argument.value.shape, value.shape):
            symbol, factor = as_multiple(m) or ("", 1)
            if symbol and not isinstance(n, Dim) and n < 2:
                if factor > 1:
                    return {}
                small[symbol] = n
    return small


def _agree(general: ExportedProgram, other: ExportedProgram, small: Dict[str, int]) -> bool:
    try:
        reduced = passes.run(passes.CLEAN, with_sizes(general.graph, small))
    except (ValueError, TypeError, IndexError):         # an op does not take the size
        return False
    makers = {value: node for node in reduced.nodes for value in node.outputs}
    known = {result.name: _number(makers.get(value)) for result, value in zip(general.results, reduced.outputs)
             if result.name in other.fixed}
    if any(type(number) is not int or number != other.fixed[name] for name, number in known.items()) or \
            [result.name for result in general.results if result.name not in known] != [result.name for result in other.results]:
        return False
    reduced = reduced.with_(outputs=tuple([value for result, value in zip(general.results, reduced.outputs)
                                           if result.name not in known]))
    if [v.type for v in reduced.outputs] != [v.type for v in other.graph.outputs] and not _are_alike(reduced, other.graph):
        return False
    # a rule of types may take an empty array of which the run has no maximum
    is_same = 0 not in small.values() and _form(reduced) == _form(other.graph)
    return is_same or _compute_the_same(general, reduced, other)


def _number(node: Optional[Node]) -> Any:
    """The size that a node gives as a number, if it is known."""
    return node.attrs["size"] if node is not None and node.op.name == "dimension" else None


def _are_alike(a: Graph, b: Graph) -> bool:
    """Whether the outputs differ in sizes only of which the run decides."""
    return len(a.outputs) == len(b.outputs) and all(
        x.type == y.type or isinstance(x.type, Tensor) and isinstance(y.type, Tensor) and x.dtype == y.dtype and
        x.ndim == y.ndim and all(m == n or isinstance(m, Dim) for m, n in zip(x.shape, y.shape))
        for x, y in zip(a.outputs, b.outputs))


def _form(graph: Graph) -> Tuple:
    """What is equal for graphs that differ in names only."""
    numbers: Dict[Value, int] = {}

    def of(graph: Graph) -> Tuple:
        for value in graph.inputs:
            numbers[value] = len(numbers)
        nodes: List[Tuple] = []
        for node in graph.nodes:
            regions = tuple([of(region) for region in node.regions])
            attrs = tuple([(name, _attribute(value)) for name, value in sorted(node.attrs.items())])
            nodes.append((node.op.name, tuple([numbers[v] for v in node.inputs]), attrs, regions))
            for value in node.outputs:
                numbers[value] = len(numbers)
        return tuple([str(v.type) for v in graph.inputs]), tuple(nodes), tuple([numbers[v] for v in graph.outputs])
    return of(graph)


def _attribute(value: Any) -> Any:
    return (value.dtype.str, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else repr(value)


def _compute_the_same(general: ExportedProgram, reduced: Graph, other: ExportedProgram) -> bool:
    arrays = {parameter.name: parameter.array for parameter in (*general.parameters, *other.parameters)}
    runs = [(reduced, [arrays[p.name] for p in general.parameters]), (other.graph, [arrays[p.name] for p in other.parameters])]
    for ints in (2, 1):                                 # where all ints are indices of one row, they are zero
        given = _examples(general, reduced, ints)
        try:
            a, b = [_interpreted(graph, *given, *own) for graph, own in runs]
        except LookupError:
            continue
        except (Dy2StaticError, ArithmeticError, ValueError, TypeError):    # nothing is known of sizes that raise here
            return False
        return all(np.shape(x) == np.shape(y) and _near(np.asarray(x), np.asarray(y)) for x, y in zip(a, b))
    return False


def _examples(general: ExportedProgram, reduced: Graph, ints: int) -> List[np.ndarray]:
    """Arrays for the arguments.  ints: those in them are below it."""
    draw = np.random.RandomState(0)
    sizes: Dict[str, int] = {}
    found = []
    for _, value in zip(general.arguments, reduced.inputs):
        for symbol in sorted({s for n in value.shape if isinstance(n, Dim) for s in n.symbols}):
            sizes.setdefault(symbol, 3 + len(sizes))
        shape = evaluate_shape(value.shape, sizes)
        found.append(draw.uniform(-1, 1, shape).astype(value.dtype) if value.dtype.kind == "f" else
                     draw.randint(0, ints, shape).astype(value.dtype))
    return found


def _interpreted(graph: Graph, *arrays: np.ndarray) -> Sequence[Any]:
    """What a graph gives; its draws are the same in each run, and leave the generator as it was."""
    state = np.random.get_state()
    np.random.seed(0)
    try:
        with np.errstate(all="ignore"), quiet():
            return interpret(graph, *arrays)            # type: ignore[no-any-return]
    finally:
        np.random.set_state(state)


def _near(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype != b.dtype:
        return False
    rtol = _RTOL.get(a.dtype)
    return bool(np.array_equal(a, b)) if rtol is None else bool(np.allclose(a, b, rtol=rtol, atol=rtol, equal_nan=True))

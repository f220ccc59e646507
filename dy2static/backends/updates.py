"""Updates (`passes.in_place`) as functions: which of them can be one function, and how that is called."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Hashable, List, Sequence, Tuple

from ..ir.dims import Dim
from ..ir.graph import Graph, Node, Value
from ..ir.types import Scalar, Tensor, place_of
from ..passes.cleanup.cse import frozen
from ..passes.in_place import Update
from ..runtime.segment import Footprint

#: What the size of all arrays is called where an update takes arrays of any size.
SIZE = "size"


@dataclass(frozen=True, eq=False)
class UpdateCall:
    """One function for some updates.

    call: takes the operands of the first of them, then those of the second, and so on.  members: which updates these are.
    source: its text as calls of NumPy; "" where that is made later.  footprint: its working memory.
    """

    call: Callable[..., None]
    members: Tuple[int, ...]
    source: str = ""
    footprint: Footprint = Footprint()


def alike(updates: Sequence[Update], key: Callable[[Update], Hashable]) -> List[Tuple[int, ...]]:
    """The numbers of the updates that have equal keys, together."""
    found: Dict[Hashable, List[int]] = {}
    for number, update in enumerate(updates):
        found.setdefault(key(update), []).append(number)
    return [tuple(numbers) for numbers in found.values()]


def form(update: Update) -> Hashable:
    """What an update computes, whatever the shape of its arrays: updates of one form differ in nothing but that."""
    numbers = {value: k for k, value in enumerate(update.graph.inputs)}
    rows: List[Hashable] = []
    for node in update.graph.nodes:
        attrs = () if node.op.name == "broadcast_to" else tuple([(name, frozen(node.attrs[name])) for name in sorted(node.attrs)])
        rows.append((node.op.name, attrs, tuple([numbers[v] for v in node.inputs]), _element(node.outputs[0])))
        numbers[node.outputs[0]] = len(numbers)
    outputs = tuple([numbers[v] for v in update.graph.outputs])
    return tuple(map(_element, update.graph.inputs)), tuple(rows), update.targets, outputs


def form_and_shape(update: Update) -> Hashable:
    """A key: updates with equal keys have the same form and arrays of the same shape."""
    return form(update), update.graph.outputs[0].shape


def _element(value: Value) -> Hashable:
    if isinstance(value.type, Scalar):
        return value.type.kind, value.dtype
    return value.ndim > 0, value.dtype, place_of(value.type)


def flat(graph: Graph) -> Graph:
    """The graph of an update for arrays with one axis, of any size."""
    size = Dim(SIZE)
    made: Dict[Value, Value] = {}

    def of_any_size(value: Value) -> Value:
        if value not in made:
            is_array = isinstance(value.type, Tensor) and value.ndim > 0
            made[value] = Value(Tensor((size,), value.dtype), value.name) if is_array else value
        return made[value]

    def changed(node: Node) -> Node:
        attrs = {**node.attrs, "shape": (size,)} if node.op.name == "broadcast_to" else node.attrs
        inputs, outputs = (tuple(map(of_any_size, values)) for values in (node.inputs, node.outputs))
        return replace(node, inputs=inputs, outputs=outputs, attrs=attrs)
    return graph.with_(inputs=tuple(map(of_any_size, graph.inputs)), nodes=tuple(map(changed, graph.nodes)),
                       outputs=tuple(map(of_any_size, graph.outputs)))


def each(function: Callable[..., Any], count: int) -> Callable[..., None]:
    """A function of the operands of many updates, of which each has so many."""
    def call(*operands: Any) -> None:
        for first in range(0, len(operands), count):
            function(*operands[first:first + count])
    return call

"""Gradients on their way back: their values, and whether they are there."""
from __future__ import annotations

from typing import Callable, Dict, List, Mapping, NamedTuple, Sequence, Set, Tuple, Union

from ...errors import CaptureError
from ...ir.building import Builder, building, current
from ...ir.graph import Graph, Node, Value
from ...ir.op import BY_ITEM, LAST, OPS
from ...ir.sizes_read import symbols_read
from ...ir.types import Extent, Stack, Tensor, Type
from ...ir.types import List as ListType

#: Whether a gradient is there: known now, or a bool of the graph; of a list, True (each item has one), `LAST` or `BY_ITEM`.
Activity = Union[bool, Value, str]


class Cotangent(NamedTuple):
    """The gradient of a value, zeros where it is not ``present``."""

    value: Value
    present: Activity


def is_list(value: Value) -> bool:
    """Whether a value is a list, whose gradient says by itself which items have one."""
    return isinstance(value.type, ListType)


def cotangent(value: Value, present: Activity) -> Cotangent:
    """A gradient; of a list that may have none, which then has no items, `BY_ITEM`."""
    return Cotangent(value, BY_ITEM if is_list(value) and present is not True and present is not LAST else present)


def without_last(present: Activity) -> Activity:
    """The activity for a rule, which does not know what becomes of the last item."""
    return BY_ITEM if present is LAST else present


def either(a: Activity, b: Activity) -> Activity:
    """Whether one of two gradients is there."""
    if isinstance(a, bool):
        return a or b
    if isinstance(b, bool):
        return b or a
    return a if a is b else OPS["py_or"](a, b)


def both(a: Activity, b: Activity) -> Activity:
    """Whether two things hold that a gradient needs to be there: its node has one, and what the node's rule tells."""
    if a is BY_ITEM or b is BY_ITEM or b is LAST:
        return b
    if isinstance(a, bool) or isinstance(b, bool):
        return (b if a else a) if isinstance(a, bool) else (a if b else b)
    return OPS["py_not"](OPS["py_or"](OPS["py_not"](a), OPS["py_not"](b)))


def added(a: Cotangent, b: Cotangent) -> Cotangent:
    """The sum of two gradients; one that is not there is not added, so that nothing is connected through it."""
    if is_list(a.value):
        known = [present for present in (True, LAST) if a.present is present or b.present is present]
        return cotangent(OPS["list_add"](a.value, b.value), known[0] if known else BY_ITEM)
    return Cotangent(_sum(a, b), either(a.present, b.present))


def _sum(a: Cotangent, b: Cotangent) -> Value:
    if b.present is True:
        a, b = b, a
    if b.present is True:
        return OPS["stack_add" if isinstance(a.value.type, Stack) else "add"](a.value, b.value)
    flag, other = as_value(b.present), a.present
    if other is True:
        return _choose(flag, (a.value, b.value), lambda x, y: _sum(Cotangent(x, True), Cotangent(y, True)))
    return _choose(flag, (a.value, b.value, as_value(other)), lambda x, y, there: _sum(Cotangent(x, there),
                                                                                 Cotangent(y, True)))


def _choose(flag: Value, values: Sequence[Value], then: Callable[..., Value]) -> Value:
    """``then(*values)`` where the flag holds, else the first of the values."""
    regions = []
    for name, build in (("then", then), ("orelse", lambda *inputs: inputs[0])):
        builder = Builder(name)
        inputs = [builder.input(v.type, v.name) for v in values]
        with building(builder):
            regions.append(builder.build((build(*inputs),)))
    return current().add(OPS["if_"], (flag, *values), {}, tuple(regions), name="g")[0]


def as_value(activity: Activity) -> Value:
    """The activity as a value of the graph being built."""
    return OPS["py_constant"](value=activity) if isinstance(activity, bool) else activity


def zeros(type: Type) -> Value:
    """A gradient of this type that adds nothing; of a stack, one without items: only for a side that has no other."""
    if isinstance(type, Stack):
        return OPS["new_stack"](elem=type.elem)
    if isinstance(type, ListType):
        return OPS["list_zeros"](elem=type.elem)
    if not isinstance(type, Tensor):
        raise CaptureError(f"a gradient of {type} cannot be computed yet")
    return OPS["full"](shape=type.shape, value=0, dtype=type.dtype)


def continue_graph(graph: Graph) -> Builder:
    """A builder that already holds the inputs and nodes of a graph."""
    builder = Builder(graph.name)
    builder.inputs.extend(graph.inputs)
    builder.nodes.extend(graph.nodes)
    for value in graph.values():
        builder.fresh(value.name)
    return builder


def region_of(graph: Graph, inputs: Sequence[Value], outside: Mapping[Value, Value], name: str) -> Graph:
    """A copy of a graph, with values of its own, as a region that takes ``inputs``.

    outside: which of ``inputs`` stands for an input of the graph, where it is not that input itself.
    """
    builder = Builder(name)
    made = {value: builder.input(value.type, value.name) for value in inputs}
    known = {value: made[outside.get(value, value)] for value in graph.inputs}
    for node in graph.nodes:
        outputs = tuple(Value(v.type, builder.fresh(v.name)) for v in node.outputs)
        builder.nodes.append(Node(node.op, tuple(known[v] for v in node.inputs), outputs, node.attrs, node.regions,
                                  node.loc))
        known.update(zip(node.outputs, outputs))
    return builder.build(tuple(known[v] for v in graph.outputs))


def missing_values(joint: Graph, forward: Graph, available: Set[Value]) -> List[Value]:
    """The forward values that gradient nodes read and that are neither available nor views or constants made again."""
    own, producers = set(forward.nodes), forward.producers()
    known = set(forward.inputs).union(producers)
    missing: Dict[Value, None] = {}
    waiting = [v for node in _live(joint) if node not in own for v in node.inputs]
    waiting = [v for v in [*waiting, *joint.outputs] if v in known]
    seen: Set[Value] = set()
    for value in waiting:                               # which grows
        if value in available or value in seen:
            continue
        seen.add(value)
        node = producers.get(value)
        if node is not None and (node.op.view or node.op.name in ("constant", "py_constant", "nothing")):
            waiting.extend(node.inputs)
        else:
            missing[value] = None
    return list(missing)


def sizes_in(region: Graph) -> Dict[str, Value]:
    """The numbers that symbols stand for in a region, as far as it has them as values."""
    values = (*region.inputs, *[v for node in region.nodes for v in node.outputs])
    return {v.type.symbol: v for v in values if isinstance(v.type, Extent)}


def missing_sizes(joint: Graph, forward: Graph, available: Set[Value]) -> List[Value]:
    """The sizes of a region that gradient nodes, or views that are made again for them, have and that are not available."""
    sizes = sizes_in(forward)
    if not sizes:
        return []
    own = set(forward.nodes)
    read = symbols_read(joint.with_(nodes=tuple([node for node in _live(joint) if node not in own or node.op.view])))
    return [value for symbol, value in sizes.items() if symbol in read and value not in available]


def _live(graph: Graph) -> Tuple[Node, ...]:
    live, nodes = set(graph.outputs), []
    for node in reversed(graph.nodes):
        if not live.isdisjoint(node.outputs):
            live.update(node.inputs)
            nodes.append(node)
    return tuple(reversed(nodes))


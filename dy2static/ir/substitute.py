"""A graph for other sizes: symbols replaced, and all types and attributes that follow from them."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Mapping, Tuple

from .building import infer
from .dims import Dim, Size
from .graph import Graph, Node, Value
from .size_bounds import maximum
from .types import Extent, List, Stack, Tensor, Type, Union


def with_sizes(graph: Graph, sizes: Mapping[str, Size]) -> Graph:
    """The graph with these sizes in the place of symbols.  Raises what the rule of an op raises for sizes that it does not take."""
    values: Dict[Value, Value] = {}
    inputs = tuple([_value(v, type_with(v.type, sizes), values) for v in graph.inputs])
    nodes = tuple([_node(node, sizes, values) for node in graph.nodes])
    return graph.with_(inputs=inputs, nodes=nodes, outputs=tuple([values[v] for v in graph.outputs]))


def _node(node: Node, sizes: Mapping[str, Size], values: Dict[Value, Value]) -> Node:
    inputs = tuple([values[v] for v in node.inputs])
    regions = tuple([with_sizes(region, sizes) for region in node.regions])
    attrs = {name: _attribute(value, sizes) for name, value in node.attrs.items()}
    attrs, types = infer(node.op, tuple([v.type for v in inputs]), attrs, regions)
    outputs = tuple([_value(v, type_, values) for v, type_ in zip(node.outputs, types)])
    return replace(node, inputs=inputs, outputs=outputs, attrs=attrs, regions=regions)


def _value(old: Value, type_: Type, values: Dict[Value, Value]) -> Value:
    values[old] = Value(type_, old.name)
    return values[old]


def size_with(size: Size, sizes: Mapping[str, Size]) -> Size:
    """A size with these in the place of its symbols."""
    if not isinstance(size, Dim):
        return size
    total: Any = 0
    for monomial, factor in size._terms:
        part: Any = factor
        for atom in monomial:
            if atom.kind == "symbol":
                part = part * sizes.get(atom.args[0], Dim(atom.args[0]))
            else:
                args = [size_with(arg, sizes) for arg in atom.args]
                part = part * (maximum(*args) if atom.kind == "max" else args[0] // args[1])
        total = total + part
    return total


def type_with(type_: Type, sizes: Mapping[str, Size]) -> Type:
    """A type with these sizes in the place of symbols."""
    if isinstance(type_, Tensor):
        return replace(type_, shape=tuple([size_with(n, sizes) for n in type_.shape]))
    if isinstance(type_, (List, Stack)):
        return replace(type_, elem=type_with(type_.elem, sizes))
    if isinstance(type_, Union):
        return Union(tuple([type_with(part, sizes) for part in type_.alternatives]))
    return type_


def _attribute(value: Any, sizes: Mapping[str, Size]) -> Any:
    if isinstance(value, Dim):
        return size_with(value, sizes)
    if isinstance(value, (Tensor, List, Stack, Union, Extent)):
        return type_with(value, sizes)
    if type(value) is slice:
        parts: Tuple[Any, ...] = (value.start, value.stop, value.step)
        return slice(*[_attribute(part, sizes) for part in parts])
    return tuple([_attribute(part, sizes) for part in value]) if type(value) is tuple else value

"""Calls of NumPy whose operands are known, such as a mask that a function makes, as constants."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Mapping, Optional

import numpy as np

from ..ir.building import Builder
from ..ir.graph import Graph, Node, Value
from ..ir.op import OPS
from ..ir.types import Tensor
from ..lowering.numpy.legalize import CALLS
from ..lowering.numpy.table import fixed_array

#: Larger arrays stay calls.
_MOST_BYTES = 1 << 20


def with_known_calls(graph: Graph, known: Optional[Mapping[Value, Any]] = None) -> Graph:
    """The graph with constants for what calls of NumPy give that depend on no input, in regions too.

    known: what inputs of a region hold.
    """
    values: Dict[Value, Any] = dict(known or {})
    nodes: List[Node] = []
    for node in graph.nodes:
        made = _value(node, values)
        if made is not None:
            values[node.outputs[0]] = made
            nodes.append(_constant(node, made) if node.op.name in CALLS else node)
        elif node.op.name in ("if_", "while_"):
            nodes.append(replace(node, regions=tuple([_region(node, region, values) for region in node.regions])))
        else:
            nodes.append(node)
    return graph.with_(nodes=tuple(nodes))


def _region(node: Node, region: Graph, values: Mapping[Value, Any]) -> Graph:
    """A region, which knows what the node is given but for what a loop carries."""
    skipped = 1 if node.op.name == "if_" else 0
    carried = node.attrs.get("carried", 0)
    pairs = list(zip(region.inputs, node.inputs[skipped:]))[carried:]
    return with_known_calls(region, {inner: values[outer] for inner, outer in pairs if outer in values})


def _value(node: Node, values: Mapping[Value, Any]) -> Any:
    """The array that a node gives, if that is known."""
    if node.op.name == "constant":
        return node.attrs["value"]
    type_ = node.outputs[0].type if len(node.outputs) == 1 else None
    if not isinstance(type_, Tensor) or not all(isinstance(n, int) for n in type_.shape) or node.outputs[0].nbytes > _MOST_BYTES:
        return None
    if node.op.name == "full":
        return np.full(type_.shape, node.attrs["value"], type_.dtype)
    if node.op.name not in CALLS or not all(v in values for v in node.inputs):
        return None
    if not node.inputs:
        return fixed_array(node.attrs["call"])
    try:
        made = node.attrs["call"](*[np.array(values[v]) for v in node.inputs])
    except (ArithmeticError, LookupError, TypeError, ValueError):       # so does each run
        return None
    return made[0] if len(made) == 1 and type(made[0]) is np.ndarray and made[0].shape == type_.shape else None


def _constant(node: Node, value: np.ndarray) -> Node:
    builder = Builder("known")
    builder.loc = node.loc
    builder.add(OPS["constant"], (), {"value": value})
    made, = builder.nodes
    return replace(made, outputs=node.outputs)

"""Composite ops in terms of simpler ones, for which C has loops."""
from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Callable, Dict, List, Tuple

from ...ir.building import Builder, building
from ...ir.graph import Graph, Node, Value
from ...ops.broadcasting import broadcast_to
from ...ops.elementwise import exp, log
from ...ops.movement import reshape
from ...ops.reduction import max_, sum_
from ...ops.rules import sum_axes
from ...ops.scalar import dimension, scalar_to_tensor
from .calls import call_as_ops
from .layers import LAYERS
from .sums import einsum

#: Calls of NumPy.
CALLS = ("numpy_call", "checked_call")


def expand(graph: Graph) -> Graph:
    """The graph with the ops of `EXPANSIONS` taken apart, in regions too.  Values keep their identity."""
    nodes: List[Node] = []
    for node in graph.nodes:
        if node.regions:
            nodes.append(replace(node, regions=tuple(map(expand, node.regions))))
        elif node.op.name in CALLS:
            nodes += expand(Graph((), (), tuple(call_as_ops(node) or ()))).nodes
        elif node.op.name in EXPANSIONS:
            nodes += _expanded(node)
        else:
            nodes.append(node)
    return graph.with_(nodes=tuple(nodes))


def _expanded(node: Node) -> List[Node]:
    builder = Builder("expanded")
    builder.loc = node.loc
    with building(builder):
        results = EXPANSIONS[node.op.name](*node.inputs, **node.attrs)
    results = results if isinstance(results, tuple) else (results,)
    names = dict(zip(results, node.outputs))
    return [replace(new, inputs=tuple(names.get(v, v) for v in new.inputs), outputs=tuple(names.get(v, v) for v in new.outputs),
                    again=node.again)
            for new in builder.nodes]


def _along(value: Value, axis: Any) -> Tuple[int, ...]:
    return axis if isinstance(axis, tuple) else (axis,)


def _mean(x: Value, *, axis: Tuple[int, ...], keepdims: bool) -> Value:
    count = math.prod(x.shape[a] for a in axis)
    number = float(count) if isinstance(count, int) else scalar_to_tensor(dimension(size=count), dtype=x.dtype)
    return sum_(x, axis=axis, keepdims=keepdims) / number


def _sum_to(x: Value, *, shape: Tuple[int, ...]) -> Value:
    return reshape(sum_(x, axis=sum_axes(x.shape, shape)), shape=shape)


def _softmax(x: Value, *, axis: int) -> Value:
    raised = exp(x - max_(x, axis=axis, keepdims=True))
    return raised / sum_(raised, axis=axis, keepdims=True)


def _log_softmax(x: Value, *, axis: int) -> Value:
    largest = max_(x, axis=axis, keepdims=True)
    total = sum_(exp(x - largest), axis=axis, keepdims=True)
    return x - (log(total) + largest)


def _logsumexp(x: Value, *, axis: Tuple[int, ...], keepdims: bool) -> Value:
    largest = max_(x, axis=axis, keepdims=True)
    total = log(sum_(exp(x - broadcast_to(largest, shape=x.shape)), axis=axis, keepdims=True)) + largest
    return total if keepdims else reshape(total, shape=tuple(n for a, n in enumerate(x.shape) if a not in axis))


#: Ops by name, and what they are.
EXPANSIONS: Dict[str, Callable[..., Any]] = {
    "mean": _mean, "sum_to": _sum_to, "softmax": _softmax, "log_softmax": _log_softmax,
    "log_softmax_again": _log_softmax, "logsumexp": _logsumexp, "einsum": einsum,
    **LAYERS}

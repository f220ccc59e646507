"""Draws from NumPy's global generator that the function makes itself, as ops: a capture has calls of Python there."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from .. import ops
from ..ir.building import Builder, building
from ..ir.graph import Graph, Node, Value
from ..ir.types import Scalar, Tensor


def with_draws(graph: Graph) -> Graph:
    """The graph with ops for ``np.random.rand``, ``random``, ``uniform``, ``randn``, ``standard_normal`` and ``normal``.

    A draw stays a call if only the run knows its bounds.  So does one whose size is a number of the run, not a size of an argument.
    """
    nodes: List[Node] = []
    for node in graph.nodes:
        instead = _as_ops(node) if node.op.name == "host_call" else None
        if instead is not None:
            nodes += instead
        else:
            nodes.append(replace(node, regions=tuple(map(with_draws, node.regions))) if node.regions else node)
    return graph.with_(nodes=tuple(nodes))


def _as_ops(node: Node) -> Optional[List[Node]]:
    call = node.attrs["call"]
    rule = next((rule for name, rule in _RULES.items() if call.function == getattr(np.random, name)), None)
    if rule is None or node.attrs.get("extents") or len(node.outputs) != 1:
        return None
    value, = node.outputs
    if not isinstance(value.type, (Tensor, Scalar)):
        return None
    shape = value.type.shape
    builder = Builder("draw")
    builder.loc = node.loc
    with building(builder):
        try:
            made = rule(shape, *call.args, **call.kwargs)
        except TypeError:                                   # arguments that the rule does not know, arrays as bounds
            return None
        if isinstance(value.type, Scalar):
            made = ops.item(made)
    if made.type != value.type:
        return None
    return [replace(new, outputs=tuple([value if v is made else v for v in new.outputs])) for new in builder.nodes]


def _uniform(shape: Any, *size: Any) -> Value:
    return ops.random_uniform(shape=shape)


def _between(shape: Any, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Value:
    return ops.random_between(low=_number(low), high=_number(high), shape=shape)


def _standard(shape: Any, *size: Any) -> Value:
    return ops.random_normal(shape=shape)


def _normal(shape: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Value:
    return ops.random_normal(shape=shape) * _number(scale) + _number(loc)


def _number(bound: Any) -> float:
    """The bound.  Raises TypeError for arrays."""
    if np.ndim(bound) or not isinstance(bound, (int, float, np.generic)):
        raise TypeError(f"{bound!r} is no number")
    return float(bound)


#: By the names of NumPy's functions; each takes the shape of the result, then the arguments of the call.
_RULES: Dict[str, Callable[..., Value]] = {
    "rand": _uniform, "random": _uniform, "random_sample": _uniform, "uniform": _between, "randn": _standard,
    "standard_normal": _standard, "normal": _normal}

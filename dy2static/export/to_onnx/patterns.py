"""Steps of a graph that are one operator of ONNX, or are written as onnxruntime recognizes them.

A pattern looks at the match of its steps, and gives None where the operator would not compute the same: for other axes, shapes,
numbers or dtypes.  The nodes are then written as they are.
"""
from __future__ import annotations

from typing import Callable, Dict, Iterator, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from ...ir.graph import Graph, Node, Value
from ...ir.onnx_forms import Name
from .matching import Match, Reading, Steps


class Instead(NamedTuple):
    """What is written for the last node of a match: ``write(o, *names of operands)``."""

    operands: Tuple[Value, ...]
    write: Callable[..., Name]


def _is_single(*values: Value) -> bool:
    """Whether the values have single precision, in which onnxruntime has all operators."""
    return all(getattr(v.type, "dtype", None) == np.float32 for v in values)


# Layer normalization --------------------------------------------------------------------------------------------

_APART: Steps = ("sub", "x", ("mean", "x"))
_DEVIATION: Steps = ("sqrt", ("add", ("mean", [("square", _APART), ("mul", _APART, _APART)]), "eps"))
_LAYER_NORMALIZATION: Steps = (
    "add", ("mul", [("mul", _APART, ("div", 1.0, _DEVIATION)), ("div", _APART, _DEVIATION)], "gamma"), "beta")


def _layer_normalization(g: Reading, match: Match, y: Value) -> Optional[Instead]:
    """Normalized along the last axis, which is not empty."""
    x, gamma, beta = (match.values[name] for name in ("x", "gamma", "beta"))
    eps = g.number(match.values["eps"])
    if eps is None or x.shape != y.shape or not _is_single(x, gamma, beta, y):
        return None
    n = x.shape[-1]
    if type(n) is not int or n == 0 or gamma.shape != (n,) or beta.shape != (n,):
        return None
    if any(node.attrs["axis"] != (x.ndim - 1,) or not node.attrs["keepdims"] for node in match.of("mean")):
        return None
    return Instead((x, gamma, beta), lambda o, *names: o.node("LayerNormalization", *names, axis=-1, epsilon=eps))


#: Patterns: the steps, and what is written instead.
_PATTERNS: Sequence[Tuple[Steps, Callable[[Reading, Match, Value], Optional[Instead]]]] = (
    (_LAYER_NORMALIZATION, _layer_normalization),
)


def recognized(graph: Graph) -> Tuple[Dict[Node, Instead], Set[Node]]:
    """What is written instead of nodes of a graph, and the nodes that nothing reads then.  Linear in nodes."""
    g = Reading(graph)
    instead: Dict[Node, Instead] = {}
    left_out: Set[Node] = set()
    for node in reversed(graph.nodes):
        if node in left_out:
            continue
        for match, found in _found(g, node):
            instead[node] = found
            left_out.update(inner for inner in match.nodes if inner is not node)
            break
    return instead, left_out


def _found(g: Reading, node: Node) -> Iterator[Tuple[Match, Instead]]:
    for steps, pattern in _PATTERNS:
        if node.op.name == steps[0]:                                # type: ignore[index]
            match = g.match(steps, node)
            found = None if match is None else pattern(g, match, node.outputs[0])
            if match is not None and found is not None:
                yield match, found

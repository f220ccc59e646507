"""Steps of a graph that are one operator of ONNX, or are written as onnxruntime recognizes them.

A pattern looks at the match of its steps, and gives None where the operator would not compute the same: for other axes, shapes,
numbers or dtypes.  The nodes are then written as they are.
"""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from ...ir.graph import Graph, Node, Value
from ...ir.onnx_forms import Name, OnnxWriter
from ...ops.onnx_forms import reductions, windows
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


# Hard swish and hard sigmoid ------------------------------------------------------------------------------------

_SIXTH: Steps = [("mul", "x", 1 / 6), ("div", "x", 6.0)]
_HARD_SWISH: Steps = ("mul", "x", [("clip", ("add", _SIXTH, 0.5)), ("mul", ("clipped_relu", ("add", "x", 3.0)), 1 / 6),
                                   ("div", ("clipped_relu", ("add", "x", 3.0)), 6.0)])
_HARD_SIGMOID: Steps = ("clip", ("add", [("mul", "x", "slope"), ("div", "x", "divisor")], "start"))


def _is_clipped(match: Match) -> bool:
    """Whether what is clipped ends at 0 and 1, or 0 and 6 before the division."""
    return all((node.attrs["x_min"], node.attrs["x_max"]) == (0, 1) for node in match.of("clip")) and all(
        node.attrs["cap"] == 6 for node in match.of("clipped_relu"))


def _hard_swish(g: Reading, match: Match, y: Value) -> Optional[Instead]:
    """``x * clip(x / 6 + 0.5, 0, 1)``, in one of the ways to write it that do not overflow."""
    x = match.values["x"]
    if x.shape != y.shape or not _is_single(x, y) or not _is_clipped(match):
        return None
    return Instead((x,), lambda o, x: o.node("HardSwish", x))


def _hard_sigmoid(g: Reading, match: Match, y: Value) -> Optional[Instead]:
    """``clip(x * slope + start, 0, 1)``."""
    x = match.values["x"]
    slope, divisor = (g.number(match.values[name]) if name in match.values else None for name in ("slope", "divisor"))
    start = g.number(match.values["start"])
    if divisor and slope is None:
        slope = 1 / divisor
    if not slope or start is None or not np.isfinite(np.float32([slope, start])).all():
        return None
    if x.shape != y.shape or not _is_single(x, y) or not _is_clipped(match):
        return None
    return Instead((x,), lambda o, x: o.node("HardSigmoid", x, alpha=slope, beta=start))


# Upsampling -----------------------------------------------------------------------------------------------------

_REPEATED: Steps = ("reshape", ("reshape", "x"))


def _factors(sizes: Sequence[Any], apart: Sequence[Any], repeated: Sequence[Any]) -> Optional[List[int]]:
    """How often the elements of each axis are repeated, by the shapes before and after an axis of one behind it is repeated."""
    factors, k = [], 0
    for n in sizes:
        if k >= len(apart) or apart[k] != n or repeated[k] != n:
            return None
        k += 1
        factors.append(1)
        if k < len(apart) and apart[k] == 1 and type(repeated[k]) is int and repeated[k] > 1:
            factors[-1] = repeated[k]
            k += 1
    return factors if k == len(apart) else None


def _upsampling(g: Reading, match: Match, y: Value) -> Optional[Instead]:
    """Each pixel of images becomes a block."""
    x, wide = match.values["x"], match.of("broadcast_to")
    if len(wide) != 1 or not 3 <= x.ndim <= 5 or y.ndim != x.ndim or not _is_single(x, y):
        return None
    factors = _factors(x.shape, wide[0].inputs[0].shape, wide[0].outputs[0].shape)
    if factors is None or factors[:2] != [1, 1] or max(factors) == 1:
        return None
    if any(size != n * factor for size, n, factor in zip(y.shape, x.shape, factors)):
        return None
    return Instead((x,), lambda o, x: o.node(
        "Resize", x, "", o.constant(factors, np.float32), mode="nearest", coordinate_transformation_mode="asymmetric",
        nearest_mode="floor"))


# Gelu -----------------------------------------------------------------------------------------------------------

_GELU: Steps = ("mul", ("mul", "x", 0.5), ("add", ("special", ("mul", "x", math.sqrt(0.5))), 1.0))


def _gelu(g: Reading, match: Match, y: Value) -> Optional[Instead]:
    """``x / 2 * (1 + erf(x / sqrt(2)))``: onnxruntime recognizes the division, not the product with the inverse."""
    x = match.values["x"]
    if x.shape != y.shape or not _is_single(x, y) or match.of("special")[0].attrs["function"] != "erf":
        return None

    def write(o: OnnxWriter, x: Name) -> Name:
        erf = o.node("Erf", o.node("Div", x, o.like(math.sqrt(2), x)))
        return o.node("Mul", o.node("Mul", x, o.like(0.5, x)), o.node("Add", erf, o.like(1, x)))
    return Instead((x,), write)


# Biases ---------------------------------------------------------------------------------------------------------

_BIASED_PRODUCT: Steps = ("add", ("matmul", "x", "W"), "b")
_BIASED_CONVOLUTION: Steps = ("add", ("conv", "x", "W"), ("reshape", "b"))


def _biased_product(g: Reading, match: Match, y: Value) -> Optional[Instead]:
    """The product of two matrices, and a number for each column."""
    product, b = match.of("matmul")[0], match.values["b"]
    operands = x, W, _ = *product.inputs, b
    if not (x.ndim == W.ndim == y.ndim == 2) or product.outputs[0].shape != y.shape or b.shape != y.shape[1:]:
        return None
    turns = {f"trans{which}": int(product.attrs[f"trans{which.lower()}"]) for which in "AB"}
    if not _is_single(*operands, y):
        return None
    return Instead(operands, lambda o, *names: o.node("Gemm", *names, **turns))


def _biased_convolution(g: Reading, match: Match, y: Value) -> Optional[Instead]:
    """The correlation with filters, and a number for each channel."""
    node, column, b = match.of("conv")[0], match.of("reshape")[0].outputs[0], match.values["b"]
    operands = *node.inputs, b
    if node.outputs[0].shape != y.shape or b.shape != y.shape[1:2] or not _is_single(*operands, y):
        return None
    if column.shape[-y.ndim + 1:] != (*b.shape, *[1] * (y.ndim - 2)):
        return None
    types, results = [v.type for v in operands], [y.type]
    return Instead(operands, lambda o, *names: windows.conv(o, types, results, *names, **node.attrs))


# Maxima ---------------------------------------------------------------------------------------------------------

_MAXIMUM: Steps = ("max", "x")
#: Ops whose results are not below zero, or NaN.
_NOT_BELOW_ZERO = ("relu", "sigmoid", "exp", "square", "abs", "softmax")


def _maximum(g: Reading, match: Match, y: Value) -> Optional[Instead]:
    """The maximum of what is not below zero."""
    x, node = match.values["x"], match.nodes[0]
    made = g.made_by(x)
    if made is None or made.op.name not in _NOT_BELOW_ZERO or not _is_single(x, y) or node.inputs[0].shape != x.shape:
        return None
    write, types, results = reductions.extremum("ReduceMax", is_sign_known=True), [x.type], [y.type]
    return Instead((x,), lambda o, x: write(o, types, results, x, **node.attrs))


#: Patterns: the steps, and what is written instead.  The first one that fits counts.
_PATTERNS: Sequence[Tuple[Steps, Callable[[Reading, Match, Value], Optional[Instead]]]] = (
    (_LAYER_NORMALIZATION, _layer_normalization),
    (_HARD_SWISH, _hard_swish),
    (_HARD_SIGMOID, _hard_sigmoid),
    (_REPEATED, _upsampling),
    (_GELU, _gelu),
    (_MAXIMUM, _maximum),
    (_BIASED_PRODUCT, _biased_product),
    (_BIASED_CONVOLUTION, _biased_convolution),
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

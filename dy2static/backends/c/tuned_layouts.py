"""Whether the images of a region are in blocks of channels, found by trying (``DY2STATIC_TUNE=1``)."""
from __future__ import annotations

import hashlib
import math
from typing import Callable, List, NoReturn

import numpy as np

from ...ir.dims import is_known
from ...ir.graph import Graph, Node, Value
from ...ir.types import Tensor
from ...lowering.numpy.legalize import legalize_numpy_calls
from ...native import channel_blocks, convolutions, tuning
from ...passes.blocked_parts import CHAIN
from ...passes.channel_blocks import layouts
from .draws import graph_draws

_CHOICE = tuning.declare("layout", "the layout of the images of a region",
                         lambda: channel_blocks.everything() + convolutions.text("f32"))


def tuned_layout(graph: Graph, make: Callable[[str], tuning.Call]) -> str:
    """The name of the layout for a region, or nothing: the estimate chooses.

    make: compiles the region in one layout, and gives a call of it.
    """
    if not tuning.is_on() or not _can_be_tried(graph):
        return ""
    winner = tuning.choose(_CHOICE, _subject(graph), sum(map(_bytes, graph.inputs)),
                           lambda: list(layouts(legalize_numpy_calls(graph))), lambda names: {name: make(name) for name in names})
    return winner or ""


def _can_be_tried(graph: Graph) -> bool:
    """Whether a region has several convolutions, and arrays of numbers will do: all sizes are known, and nothing is drawn."""
    values = (*graph.inputs, *graph.outputs)
    return len(_convolutions(graph)) >= CHAIN and not graph_draws(graph) and all(
        isinstance(v.type, Tensor) and all(map(is_known, v.shape)) for v in values)


def _convolutions(graph: Graph) -> List[Node]:
    return [node for node in graph.nodes if node.op.name == "conv"]


def _subject(graph: Graph) -> str:
    found = _convolutions(graph)
    first = "x".join(map(str, found[0].inputs[0].shape))
    name = hashlib.sha256(str(graph).encode()).hexdigest()[:12]
    return f"{len(found)} convolutions, the first of {first}, {name}"


def _bytes(value: Value) -> int:
    return math.prod(value.shape) * value.dtype.itemsize


def operands(graph: Graph) -> List[np.ndarray]:
    """Arrays to try a region with: floats are positive, and sums of products with them stay near one; others are zero."""
    return [_operand(value) for value in graph.inputs]


def _operand(value: Value) -> np.ndarray:
    if value.dtype.kind != "f":
        return np.zeros(value.shape, value.dtype)
    return np.ascontiguousarray((np.abs(tuning.numbers(*value.shape)) + 0.5) / math.prod(value.shape[1:]), value.dtype)


class Declined(Exception):
    """A region was not computed by native code."""


def declined(graph: Graph) -> NoReturn:
    """In place of a fallback: raises `Declined`."""
    raise Declined(graph.name)

"""Draws with ``rng="fast"`` in kernels: a key that is drawn from CuPy's generator, and numbers that follow from it.

A program draws one key where it begins to draw.  The body of a loop or branch draws one of its own each time it runs.
"""
from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Iterator, List

import numpy as np

from ...ir.building import Builder, building, constant
from ...ir.graph import Graph, Node, Value
from ...ir.types import Tensor
from ...ops.comparison import greater_equal
from ...ops.fast_random import fast_uniform, philox
from ...passes.rewriting import with_regions
from .emit import supported

_DOUBLE = np.dtype("float64")

#: Draws that become numbers of kernels.
_DRAWS = ("fast_uniform", "fast_between", "fast_normal", "fast_typed", "fast_kept")


def draws_in_kernels(graph: Graph) -> Graph:
    """The graph with numbers that follow from a key in place of draws.  Values keep their identity.  Linear in the nodes."""
    if not any(node.op.name in _DRAWS for node in graph.walk()):
        return graph
    return _replaced(graph, itertools.count())


def _replaced(graph: Graph, numbers: Iterator[int]) -> Graph:
    """The same for a graph or a region.  numbers: of draws, which differ though keys may be equal."""
    draws = {node: None for node in graph.nodes if node.op.name in _DRAWS}
    first = next(iter(draws), None)
    nodes: List[Node] = []
    key = None
    for node in graph.nodes:
        if first is not None and key is None and (node.op.name == "fast_begin" or node in draws):
            key = Value(Tensor((2,), _DOUBLE, first.outputs[0].type.device), "key")     # type: ignore[union-attr]
            nodes.append(Node(fast_uniform, (), (key,), {"shape": (2,)}, (), first.loc))
        if node in draws:
            assert key is not None
            steps = _steps(node, key, next(numbers))
            nodes += steps if all(map(supported, steps)) else [node]
        elif node.op.name != "fast_begin":
            nodes.append(with_regions(node, lambda region: _replaced(region, numbers)))
    return graph.with_(nodes=tuple(nodes))


def _steps(node: Node, key: Value, number: int) -> List[Node]:
    """What computes a draw from a key."""
    builder, attrs = Builder("draw"), node.attrs
    builder.loc = node.loc
    function = "standard_normal" if node.op.name == "fast_normal" else attrs.get("function", "random_sample")
    dtype = np.dtype("float32") if node.op.name == "fast_kept" else node.outputs[0].dtype
    with building(builder):
        found = philox(key, function=function, shape=attrs["shape"], dtype=dtype, number=number)
        if node.op.name == "fast_kept":
            found = greater_equal(found, constant(attrs["ratio"], dtype))
        elif node.op.name == "fast_between":
            found = found * (attrs["high"] - attrs["low"]) + attrs["low"]
    names = {found: node.outputs[0]}
    return [replace(new, inputs=tuple([names.get(v, v) for v in new.inputs]), outputs=tuple([names.get(v, v) for v in new.outputs]))
            for new in builder.nodes]

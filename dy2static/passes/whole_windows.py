"""Convolutions whose one window is the whole image are matrix products, or sums of products; so are their derivatives."""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Tuple

from ..ir.building import Builder
from ..ir.graph import Graph, Node, Value
from ..ops.broadcasting import broadcast_to
from ..ops.contraction import matmul
from ..ops.elementwise import mul
from ..ops.movement import reshape
from ..ops.reduction import sum_
from .rewriting import steps_of, with_regions


def products_of_whole_windows(graph: Graph) -> Graph:
    """Write each convolution with one window, which is the whole image, as a product of two matrices.

    With a filter for each channel, it is a sum of products over the image.  The last layer of many classifiers and
    discriminators is such a convolution (4×4 filters on images of 4×4), so is the first transposed convolution of many
    generators, and so are those of squeeze and excitation, on images of one place.  For native code, in regions too.  Linear in
    nodes.
    """
    builder = Builder(graph.name)
    nodes: List[Node] = []
    for value in graph.values():
        builder.fresh(value.name)
    for node in graph.nodes:
        rules = _RULES.get(node.op.name)
        if rules is not None and _is_whole(node):
            nodes += steps_of(node, rules[node.attrs["groups"] > 1], builder)
        else:
            nodes.append(with_regions(node, products_of_whole_windows))
    if len(nodes) == len(graph.nodes) and all(a is b for a, b in zip(nodes, graph.nodes)):
        return graph
    return graph.with_(nodes=tuple(nodes))


def _is_whole(node: Node) -> bool:
    attrs = node.attrs
    size, groups, (read, other), (made,) = tuple(attrs["size"]), attrs["groups"], node.inputs, node.outputs
    image, filters, spots = {
        "conv": (read.shape[2:], other.shape, size),
        "conv_transpose": (size, other.shape, read.shape[2:]),
        "conv_grad_weight": (read.shape[2:], made.shape, other.shape[2:]),
    }[node.op.name]
    kernel = filters[2:]
    return (groups in (1, filters[0]) and (groups == 1 or filters[1] == 1) and not any(attrs["pad"])
            and all(n == k and p == 1 for n, k, p in zip(image, kernel, spots))
            and all(d == 1 or k == 1 for d, k in zip(attrs["dilate"], kernel)))


def _rows(x: Value) -> Value:
    """An array as a matrix: all but its first axis in one."""
    return reshape(x, shape=(x.shape[0], math.prod(x.shape[1:])))


def _conv(x: Value, W: Value, *, size: Tuple[int, ...], **_: Any) -> Value:
    return reshape(matmul(_rows(x), _rows(W), transb=True), shape=(x.shape[0], W.shape[0], *size))


def _conv_transpose(y: Value, W: Value, *, size: Tuple[int, ...], **_: Any) -> Value:
    return reshape(matmul(_rows(y), _rows(W)), shape=(y.shape[0], W.shape[1], *size))


def _conv_grad_weight(x: Value, g: Value, *, size: Tuple[int, ...], **_: Any) -> Value:
    return reshape(matmul(_rows(g), _rows(x), transa=True), shape=(g.shape[1], x.shape[1], *size))


def _filters(W: Value, batch: Any) -> Value:
    """The one filter of each channel, for each image."""
    channels, _, *kernel = W.shape
    return broadcast_to(reshape(W, shape=(channels, *kernel)), shape=(batch, channels, *kernel))


def _conv_of_each(x: Value, W: Value, **_: Any) -> Value:
    return sum_(mul(x, _filters(W, x.shape[0])), axis=tuple(range(2, len(x.shape))), keepdims=True)


def _conv_transpose_of_each(y: Value, W: Value, *, size: Tuple[int, ...], **_: Any) -> Value:
    return mul(broadcast_to(y, shape=(*y.shape[:2], *size)), _filters(W, y.shape[0]))


def _conv_grad_weight_of_each(x: Value, g: Value, *, size: Tuple[int, ...], **_: Any) -> Value:
    return reshape(sum_(mul(x, broadcast_to(g, shape=x.shape)), axis=0), shape=(x.shape[1], 1, *size))


#: By op: with filters over all channels, and with one filter for each channel.
_RULES: Dict[str, Tuple[Callable[..., Value], Callable[..., Value]]] = {
    "conv": (_conv, _conv_of_each), "conv_transpose": (_conv_transpose, _conv_transpose_of_each),
    "conv_grad_weight": (_conv_grad_weight, _conv_grad_weight_of_each)}

"""A product and the group of nodes that follows it as one step: a bias for each column, and ReLU.

Only for float32: its products are rounded as eager mode rounds them, before the bias is added.  GELU is not one of these: that of
cublasLt is not documented to be the function that eager mode computes.
"""
from __future__ import annotations

from typing import Dict, Mapping, NamedTuple, Optional, Set

import numpy as np

from ....ir.graph import Node, Value
from ...loops.fuse import Run
from ...loops.groups import Group, nodes_of
from ...loops.layout import Place, Places
from ..nests.render import render
from ..program.products import words_of
from ..program.steps import Finished, Launch, Product
from ..text.function import FunctionText
from .alone import ALONE


class Finish(NamedTuple):
    """A product, and the group that finishes it: the vector that it adds, and whether ReLU follows."""

    node: Node
    group: Group
    bias: Place
    relu: bool


def read_by_nodes(fused: Run, places: Places) -> Mapping[Value, Set[Node]]:
    """The nodes of parts that read each value with memory of its own, or views of it."""
    found: Dict[Value, Set[Node]] = {}
    for part in fused.parts:
        for node in nodes_of(part):
            for value in node.inputs:
                found.setdefault(places.of(value).base, set()).add(node)
    return found


def finish_of(function: FunctionText, fused: Run, readers: Mapping[Value, Set[Node]], part: object,
              following: object) -> Optional[Finish]:
    """How a part that is a product can be finished by the one that follows it; None where it cannot.

    readers: as `read_by_nodes`.
    """
    if not isinstance(part, Node) or part.op.name != "matmul" or not isinstance(following, Group) or not following.nodes:
        return None
    (value,), nodes = part.outputs, following.nodes
    if value.dtype != np.float32 or [node.op.name for node in nodes] not in (["add"], ["add", "relu"]) or value in fused.kept:
        return None
    places = [function.places.of(v) for v in nodes[0].inputs]
    others = [place for place in places if place.base is not value]
    is_whole = all(place.whole for place in places if place.base is value)
    if len(others) != 1 or not is_whole or readers.get(value) != {nodes[0]}:
        return None
    (total,) = nodes[0].outputs
    if not function.target(nodes[-1].outputs[0]).compact:
        return None
    if len(nodes) == 2 and (readers.get(total) != {nodes[1]} or total in fused.needed):
        return None
    return Finish(part, following, others[0], len(nodes) == 2) if _is_bias(others[0], value.shape[-1]) else None


def _is_bias(place: Place, columns: int) -> bool:
    """Whether something is a number for each column, side by side in memory."""
    rows = [stride for n, stride in zip(place.shape[:-1], place.strides) if n != 1]
    return place.base.ndim > 0 and columns != 1 and place.shape[-1:] == (columns,) and place.strides[-1] == 1 and not any(rows)


def _is_one(product: Product) -> bool:
    """Whether a product is of one matrix for cuBLAS."""
    shape = product.out.shape
    if not all(isinstance(n, int) for n in (*product.left.shape, *shape)):          # a stack may turn out to be one
        return len(shape) == 2
    words = words_of(product)
    return words is not None and words[-1] == 1


def write_finished(function: FunctionText, found: Finish) -> None:
    """Add the step, or a product and a kernel if a product is not of one matrix."""
    (value,), (result,) = found.node.outputs, found.group.nodes[-1].outputs
    function.put_at(value, function.pointer(result))                # the kernel would work in place
    function.nodes = (found.node,)
    ALONE["matmul"](function, found.node)
    first, function.nodes = len(function.steps), tuple(found.group.nodes)
    render(found.group, function)
    product, kernels = function.steps[first - 1], function.steps[first:]
    if not isinstance(product, Product) or not _is_one(product) or len(kernels) != 1 or not isinstance(kernels[0], Launch):
        return
    begin = found.bias.offset * found.bias.base.dtype.itemsize
    function.merge(first - 1, Finished(product, function.pointer(found.bias.base), begin, found.relu, kernels[0]),
                   (found.node, *found.group.nodes))

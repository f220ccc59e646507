"""Reverse-mode differentiation of straight-line graphs; the result is a graph again, so every order is free."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterable, Optional, Sequence, Set, Tuple

from ..errors import CaptureError, InternalError
from ..ir.building import Builder, building
from ..ir.graph import Graph, Node, Value
from ..ir.op import OPS
from ..ir.types import Never, Scalar, Tensor, Token, Type


@dataclass(frozen=True)
class Gradients:
    """A graph with its gradients.

    graph: the *joint* graph.  Inputs: the inputs of the forward graph, then one output gradient per given output.
        Nodes: the nodes of the forward graph (the same objects), then the gradient nodes.  Outputs: the gradients of
        the connected targets, in the order of the targets.
    connected: per target, whether it has a gradient.  Where it is False, eager gives None.
    """

    graph: Graph
    connected: Tuple[bool, ...]


def autodiff(graph: Graph, targets: Sequence[int], given: Sequence[int]) -> Gradients:
    """The gradients of some inputs, from gradients given for some outputs.

    targets: indexes of ``graph.inputs`` whose gradients are wanted.
    given: indexes of ``graph.outputs`` whose gradients will be there at run time.

    Linear in nodes + edges.  A gradient node carries the location of the node it differentiates.  Integer, bool and
    dynamic values have no gradient, and a ``vjp`` of None, or one that gives None, ends a path.
    """
    builder = continue_graph(graph)
    active = active_values(graph, (graph.inputs[i] for i in targets))
    cotangents: Dict[Value, Value] = {}

    def accumulate(value: Value, gradient: Value) -> None:
        present = cotangents.get(value)
        cotangents[value] = gradient if present is None else OPS["add"](present, gradient)

    with building(builder):
        for index in given:
            output = graph.outputs[index]
            gradient = builder.input(output.type, f"g{output.name}")
            if output in active:
                accumulate(output, gradient)
        for node in reversed(graph.nodes):
            if active.isdisjoint(node.outputs) or not any(v in cotangents for v in node.outputs):
                continue
            builder.loc = node.loc
            for value, part in zip(node.inputs, _pull_back(node, cotangents)):
                if part is not None and value in active:
                    accumulate(value, part)
    wanted = [graph.inputs[i] for i in targets]
    gradients = tuple(cotangents[v] for v in wanted if v in cotangents)
    joint = builder.build(gradients).with_(name=f"{graph.name}_backward")
    return Gradients(joint, tuple(v in cotangents for v in wanted))


def active_values(graph: Graph, sources: Iterable[Value]) -> Set[Value]:
    """The values that depend on a source through differentiable ops: those that eager marks ``requires_grad``.

    Raises `CaptureError` for control flow that has no derivative yet: its gradient must not get lost in silence.
    """
    active = {v for v in sources if has_gradient(v.type)}
    for node in graph.nodes:
        if active.isdisjoint(node.inputs):
            continue
        if node.op.vjp is not None:
            active.update(v for v in node.outputs if has_gradient(v.type))
        elif node.op.kind == "control" and not all(isinstance(v.type, (Never, Scalar, Token)) for v in node.outputs):
            raise CaptureError(f"a gradient through {node.op.name} cannot be computed yet", node.loc)
    return active


def has_gradient(type: Type) -> bool:
    """Whether values of this type can have a gradient: floating-point tensors."""
    return isinstance(type, Tensor) and type.dtype.kind in "fc"


def continue_graph(graph: Graph) -> Builder:
    """A builder that already holds the inputs and nodes of a graph."""
    builder = Builder(graph.name)
    builder.inputs.extend(graph.inputs)
    builder.nodes.extend(graph.nodes)
    for value in graph.values():
        builder.fresh(value.name)
    return builder


def _pull_back(node: Node, cotangents: Dict[Value, Value]) -> Tuple[Optional[Value], ...]:
    """The gradients of a node's inputs from those of its outputs."""
    assert node.op.vjp is not None
    attrs = dict(node.attrs, regions=node.regions) if node.regions else node.attrs
    if len(node.outputs) == 1:
        (y,) = node.outputs
        gradients = node.op.vjp(cotangents[y], y, *node.inputs, **attrs)
    else:
        given = tuple(cotangents.get(y) for y in node.outputs)
        gradients = node.op.vjp(given, node.outputs, *node.inputs, **attrs)
    if len(gradients) != len(node.inputs):
        raise InternalError(f"vjp of {node.op.name}: {len(gradients)} gradients, {len(node.inputs)} operands", node.loc)
    return gradients

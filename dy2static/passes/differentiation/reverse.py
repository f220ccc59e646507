"""The reverse sweep: from output gradients to input gradients, through branches and loops."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Collection, Dict, List, Optional, Sequence, Tuple

from ...errors import InternalError
from ...ir.building import building, current
from ...ir.graph import Graph, Node, Value
from ...ir.types import place_of, python_scalar
from .activity import active_values
from .branches import pull_back_branch
from .cotangents import Activity, Cotangent, added, both, continue_graph, cotangent, either, is_list, without_last
from .loops import pull_back_loop


@dataclass(frozen=True)
class Reversed:
    """What `reverse` gives.

    graph: inputs of the forward graph, then the given gradients, then a bool for each that may be absent.  Nodes of
        the forward graph, then gradient nodes.  Outputs: gradients of the targets that are connected, then the bools
        that are in ``connected``.
    connected: per target, whether it has a gradient.  gradients: the gradient, or None.
    given, flags: the inputs for the given gradients, and the bools by position.
    """

    graph: Graph
    connected: Tuple[Activity, ...]
    gradients: Tuple[Optional[Value], ...]
    given: Tuple[Value, ...]
    flags: Dict[int, Value]


def reverse(graph: Graph, targets: Sequence[int], given: Sequence[int], maybe: Collection[int] = ()) -> Reversed:
    """The gradients of some inputs of a graph whose control flow already gives what its backward reads.

    targets: indexes of inputs.  given: indexes of outputs.  maybe: positions in ``given`` of gradients of which a
        further input says whether they are there; they are zeros where they are not.  Lists say it for each item.
    """
    builder = continue_graph(graph)
    wanted = [graph.inputs[i] for i in targets]
    active = active_values(graph, wanted)
    cotangents: Dict[Value, Cotangent] = {}
    with building(builder):
        outputs = [graph.outputs[index] for index in given]
        arriving = [builder.input(output.type, f"g{output.name}") for output in outputs]
        flags = {k: builder.input(python_scalar("py_bool"), f"has_{outputs[k].name}")
                 for k in sorted(maybe) if not is_list(outputs[k])}
        for k, (output, gradient) in enumerate(zip(outputs, arriving)):
            if output in active:
                accumulate(cotangents, output, cotangent(gradient, flags.get(k, k not in maybe)))
        sweep(graph.nodes, active, cotangents)
    ends = [cotangents.get(v) for v in wanted]
    connected = tuple(False if end is None else end.present for end in ends)
    gradients = tuple(None if end is None else end.value for end in ends)
    bools = tuple(dict.fromkeys(c for c in connected if isinstance(c, Value)))
    joint = builder.build(tuple(g for g in gradients if g is not None) + bools).with_(name=f"{graph.name}_backward")
    return Reversed(joint, connected, gradients, tuple(arriving), flags)


def accumulate(cotangents: Dict[Value, Cotangent], value: Value, part: Cotangent) -> None:
    """Add a part to the gradient of a value."""
    before = cotangents.get(value)
    cotangents[value] = part if before is None else added(before, part)


def sweep(nodes: Sequence[Node], active: Collection[Value], cotangents: Dict[Value, Cotangent],
          stops: Collection[Value] = (), ends: Collection[Value] = ()) -> None:
    """Add to ``cotangents`` the gradients of the active operands of nodes, the last node first.

    The nodes that compute them go to the current builder.  No gradient goes on at the values in ``stops``, and only
    those that are ``ends``, too, get one.
    """
    builder = current()
    before = builder.device
    for node in reversed(nodes):
        found = tuple(None if v in stops else cotangents.get(v) for v in node.outputs)
        if not any(found) or not any(v in active for v in node.inputs):
            continue
        builder.loc, builder.device = node.loc, place_of(node.outputs[0].type)      # its constants are where the node computes
        rule = _CONTROL.get(node.op.name)
        parts = _pull_back(node, found) if rule is None else rule(node, found, active, reverse)
        for value, part in zip(node.inputs, parts):
            if part is not None and value in active and (value not in stops or value in ends):
                accumulate(cotangents, value, part)
    builder.device = before


def _pull_back(node: Node, found: Tuple[Optional[Cotangent], ...]) -> List[Optional[Cotangent]]:
    """The gradients of a node's inputs from those of its outputs."""
    assert node.op.vjp is not None
    values = tuple(None if part is None else part.value for part in found)
    present: Activity = False
    for part in found:
        present = present if part is None else either(present, without_last(part.present))
    attrs = dict(node.attrs)
    if node.op.asks_present:
        attrs["present"] = tuple(part is not None and without_last(part.present) for part in found)
    if len(node.outputs) == 1:
        gradients = node.op.vjp(values[0], node.outputs[0], *node.inputs, **attrs)
    else:
        gradients = node.op.vjp(values, node.outputs, *node.inputs, **attrs)
    if len(gradients) != len(node.inputs):
        raise InternalError(f"vjp of {node.op.name}: {len(gradients)} gradients, {len(node.inputs)} operands", node.loc)
    return [None if gradient is None else cotangent(gradient, present) if isinstance(gradient, Value) else
            cotangent(gradient[0], both(present, gradient[1])) for gradient in gradients]


_CONTROL: Dict[str, Callable] = {"if_": pull_back_branch, "while_": pull_back_loop, "scan": pull_back_loop}

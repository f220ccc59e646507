"""Which values have gradients: those that eager marks ``requires_grad``."""
from __future__ import annotations

from typing import Callable, Dict, Iterable, List, Set

from ...errors import CaptureError
from ...ir.graph import Graph, Node, Value
from ...ir.types import List as ListType
from ...ir.types import Never, Scalar, Stack, Tensor, Token, Type
from ...ops.control import loop_of, returns


def has_gradient(type: Type) -> bool:
    """Whether values of this type can have a gradient: floating-point tensors, stacks and lists of them."""
    if isinstance(type, Tensor):
        return type.dtype.kind in "fc"
    return isinstance(type, (Stack, ListType)) and has_gradient(type.elem)


def active_values(graph: Graph, sources: Iterable[Value]) -> Set[Value]:
    """The values that depend on a source through differentiable ops, on some way through branches and loops.

    Raises `CaptureError` for containers, which have no derivative: a gradient must not get lost in silence.
    """
    active = {v for v in sources if has_gradient(v.type)}
    for node in graph.nodes:
        if not active.isdisjoint(node.inputs):
            active.update(active_results(node, active))
    return active


def active_results(node: Node, active: Set[Value]) -> List[Value]:
    """The results of a node with an active operand that depend on one.  Raises what `active_values` raises."""
    rule = _RULES.get(node.op.name)
    if rule is not None:
        return rule(node, active)
    if node.op.vjp is not None:
        return [v for v in node.outputs if has_gradient(v.type)]
    if node.op.kind == "control" and not all(isinstance(v.type, (Never, Scalar, Token)) for v in node.outputs):
        raise _refusal(node, node.op.name)
    return []


def active_in_body(node: Node, active: Set[Value]) -> List[int]:
    """Indexes of the inputs of a loop's body that are active in some iteration, when these operands are."""
    loop = loop_of(node)
    operands = loop.state + loop.stacks + loop.invariants
    inside = {i for i, v in enumerate(operands) if v in active}
    while True:
        found = active_values(loop.body, [loop.body.inputs[i] for i in inside])
        more = {j for j, v in enumerate(loop.next) if v in found} - inside if returns(loop.body) else set()
        if not more:
            return sorted(i for i in inside if has_gradient(loop.body.inputs[i].type))
        inside |= more


def _branch(node: Node, active: Set[Value]) -> List[Value]:
    found: Set[Value] = set()
    for region in node.regions:
        inside = active_values(region, [v for v, x in zip(region.inputs, node.inputs[1:]) if x in active])
        if returns(region):
            found.update(y for y, v in zip(node.outputs, region.outputs) if v in inside)
    if not all(has_gradient(v.type) for v in found):
        raise _refusal(node, "a result that has several types")
    return list(found)


def _loop(node: Node, active: Set[Value]) -> List[Value]:
    loop = loop_of(node)
    inside = active_in_body(node, active)
    found = [y for j, y in enumerate(loop.last) if j in inside]
    if returns(loop.body):
        known = active_values(loop.body, [loop.body.inputs[i] for i in inside])
        found += [y for y, v in zip(loop.pushed, loop.items) if v in known]
    return found


def _refusal(node: Node, what: str) -> CaptureError:
    return CaptureError(f"a gradient through {what} cannot be computed yet", node.loc)


_RULES: Dict[str, Callable[[Node, Set[Value]], List[Value]]] = {"if_": _branch, "while_": _loop, "scan": _loop}

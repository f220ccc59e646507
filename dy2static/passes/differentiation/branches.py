"""The gradient of ``if_``: an ``if_`` on the same predicate, each side the backward of that side."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set

from ...ir.building import building, current
from ...ir.graph import Graph, Node, Value
from ...ir.op import OPS
from ...ops.control import returns
from ..extract import extract
from .cotangents import Activity, Cotangent, as_value, continue_graph, cotangent, is_list, region_of, zeros


class _Side(NamedTuple):
    """The backward of one branch: its graph, and the value outside for each value it may take."""

    graph: Graph
    outside: Dict[Value, Value]


def pull_back_branch(node: Node, found: Sequence[Optional[Cotangent]], active: Set[Value],
                     reverse: Callable) -> List[Optional[Cotangent]]:
    """The gradients of the operands of an ``if_`` from those of its outputs.

    A branch gives what its backward reads as further outputs of the node.  An operand that only one branch has a
    gradient for has one only if that branch ran.
    """
    captured = node.inputs[1:]
    targets = [j for j, v in enumerate(captured) if v in active]
    given = [k for k, part in enumerate(found) if part is not None]
    maybe = [p for p, k in enumerate(given) if found[k].present is not True]      # type: ignore[union-attr]
    backs = [reverse(region, targets, given, maybe) if returns(region) else None for region in node.regions]
    sides = [(False,) * len(targets) if back is None else back.connected for back in backs]
    connected = [t for t in range(len(targets)) if any(side[t] is not False for side in sides)]
    if not connected:
        return [None] * len(node.inputs)
    present = {t: _joined(node.inputs[0], *(None if back is None else back.connected[t] for back in backs))
               for t in connected}
    asked = [t for t in connected if present[t] is None and not is_list(captured[targets[t]])]
    carved = [_side(node, region, back, found, given, [(t, captured[targets[t]]) for t in connected], asked)
              for region, back in zip(node.regions, backs)]
    operands = dict.fromkeys(side.outside[v] for side in carved for v in side.graph.inputs)
    regions = [region_of(side.graph, tuple(operands), side.outside, name)
               for side, name in zip(carved, ("then", "orelse"))]
    results = current().add(OPS["if_"], (node.inputs[0], *operands), {}, tuple(regions), name="g")
    flags = dict(zip(asked, results[len(connected):]))
    gradients: List[Optional[Cotangent]] = [None] * len(node.inputs)
    for t, gradient in zip(connected, results):
        activity = flags[t] if t in flags else present[t]
        gradients[1 + targets[t]] = cotangent(gradient, activity)      # type: ignore[arg-type]
    return gradients


def _joined(pred: Value, then: Optional[Activity], orelse: Optional[Activity]) -> Optional[Activity]:
    """The activity after a branch from those of its sides (None: the side raises); None if only the sides know it."""
    then, orelse = (orelse if then is None else then), (then if orelse is None else orelse)
    if isinstance(then, bool) and isinstance(orelse, bool):
        if then is orelse:
            return then
        ran = OPS["py_bool"](pred)
        return ran if then else OPS["py_not"](ran)
    return None


def _side(node: Node, region: Graph, back: Optional[Any], found: Sequence[Optional[Cotangent]], given: Sequence[int],
          connected: Sequence[Any], asked: Sequence[int]) -> _Side:
    outside = dict(zip(region.inputs, node.inputs[1:]))
    outside.update({v: y for v, y in zip(region.outputs, node.outputs) if v not in outside})
    if back is not None:
        for position, k in enumerate(given):
            cotangent = found[k]
            outside[back.given[position]] = cotangent.value      # type: ignore[union-attr]
            if position in back.flags:
                outside[back.flags[position]] = cotangent.present      # type: ignore[union-attr, assignment]
    builder = continue_graph(region if back is None else back.graph)
    builder.loc = node.loc
    with building(builder):
        gradients = [None if back is None else back.gradients[t] for t, _ in connected]
        results = [zeros(x.type) if gradient is None else gradient for gradient, (_, x) in zip(gradients, connected)]
        results += [as_value(False if back is None else back.connected[t]) for t in asked]
    return _Side(extract(builder.build(tuple(results)), tuple(outside)), outside)


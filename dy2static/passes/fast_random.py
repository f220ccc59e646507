"""``rng="fast"``: the draws of Chainer's functions come from a counter-based generator."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Mapping, Optional

from ..ir.graph import Graph, Node, Value
from ..ir.op import OPS
from .rewriting import with_regions

_FAST = {"random_uniform": "fast_uniform", "random_between": "fast_between", "random_normal": "fast_normal",
         "random_typed": "fast_typed"}


def fast_random(graph: Graph) -> Graph:
    """The graph with other draws: of the same distributions, not of the same numbers.

    A comparison of uniform numbers with a number that is known needs fewer bits.  Linear in the nodes.
    """
    if not any(node.op.name in _FAST for node in graph.walk()):
        return graph
    begin = Node(OPS["fast_begin"], (), (), {}, (), None)
    changed = _replaced(graph, {})
    return changed.with_(nodes=(begin, *changed.nodes))


def _replaced(graph: Graph, outside: Mapping[Value, Node]) -> Graph:
    producers = {**outside, **graph.producers()}
    uses: Dict[Value, int] = {}
    for value in [*graph.outputs, *(v for node in graph.walk() for v in node.inputs)]:
        uses[value] = uses.get(value, 0) + 1
    nodes, merged = [], set()
    for node in graph.nodes:
        draw, ratio = _compared(node, producers)
        if draw is not None and ratio is not None and draw in graph.nodes and uses[draw.outputs[0]] == 1:
            merged.add(draw)
            node = replace(node, op=OPS["fast_kept"], inputs=(), attrs={"ratio": ratio, "shape": draw.attrs["shape"]})
        elif node.op.name in _FAST:
            node = replace(node, op=OPS[_FAST[node.op.name]])
        nodes.append((node, with_regions(node, lambda region: _replaced(region, producers))))
    return graph.with_(nodes=tuple([new for old, new in nodes if not _is_draw_of(old, merged)]))


def _is_draw_of(node: Node, merged: Any) -> bool:
    return node.op is OPS["fast_uniform"] and any(node.outputs == draw.outputs for draw in merged)


def _compared(node: Node, producers: Mapping[Value, Node]) -> Any:
    """The draw and the number that a ``greater_equal`` compares; None where it compares anything else."""
    if node.op.name != "greater_equal":
        return None, None
    draw, other = [producers.get(v) for v in node.inputs]
    if other is not None and other.op.name == "broadcast_to":
        other = producers.get(other.inputs[0])
    if draw is None or other is None or draw.op.name != "random_uniform" or other.op.name != "constant":
        return None, None
    value = other.attrs["value"]
    ratio: Optional[float] = float(value) if value.ndim == 0 else None
    return draw, ratio

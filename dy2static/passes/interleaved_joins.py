"""Arrays that are joined and then shuffled are joined in the order that is wanted: each element is copied once."""
from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Dict, Mapping, Optional, Sequence, Set, Tuple

from ..ir.building import Builder
from ..ir.graph import Graph, Node, Value
from ..ops.movement import concat, reshape, transpose
from .rewriting import steps_of, with_regions


def interleave_joins(graph: Graph, saved: Sequence[Value] = ()) -> Graph:
    """Join transposed parts in place of transposing what equal parts are joined to.

    ``transpose(reshape(concat(parts)))``, where the reshape tells the parts apart again, is how channels are shuffled
    (ShuffleNet); the reshape behind it copies all of them once more.  The last axis has to stay the last one, so that copies are of
    neighbors.  Nothing changes where one of these arrays is read otherwise, or leaves the graph.  saved: values that are read
    afterwards.  For native code, in regions too.  Linear in nodes + edges.
    """
    uses = Counter(value for node in graph.nodes for value in node.inputs)
    uses.update((*graph.outputs, *saved))
    kept = {*graph.outputs, *saved}
    made = {node.outputs[0]: node for node in graph.nodes if node.op.name in ("concat", "reshape")}
    copied = {node.inputs[0] for node in graph.nodes if node.op.name == "reshape"}
    joins: Dict[Node, Node] = {}                            # by the transpose
    gone: Set[Node] = set()
    for node in graph.nodes:
        if node.op.name == "transpose" and node.outputs[0] in copied and uses[node.outputs[0]] == 1 and node.outputs[0] not in kept:
            split = made.get(node.inputs[0])
            join = _join(split, made, uses, node.attrs["axes"]) if split is not None else None
            if split is not None and join is not None:
                joins[node] = join
                gone.update((split, join))
    builder, nodes = Builder(graph.name), []
    for value in graph.values():
        builder.fresh(value.name)
    for node in graph.nodes:
        if node in joins:
            nodes += steps_of(replace(node, inputs=joins[node].inputs, attrs={**node.attrs, "axis": joins[node].attrs["axis"]}),
                              _interleaved, builder)
        elif node not in gone:
            nodes.append(with_regions(node, interleave_joins))
    return graph if all(a is b for a, b in zip(nodes, graph.nodes)) and not joins else graph.with_(nodes=tuple(nodes))


def _join(split: Node, made: Mapping[Value, Node], uses: Mapping[Value, int], axes: Tuple[int, ...]) -> Optional[Node]:
    """The node that joins equal parts which a reshape tells apart again; None where there is none, or it is read otherwise."""
    join = made.get(split.inputs[0])
    if split.op.name != "reshape" or join is None or join.op.name != "concat" or axes[-1] != len(axes) - 1:
        return None
    first, axis = join.inputs[0].shape, join.attrs["axis"]
    apart = (*first[:axis], len(join.inputs), *first[axis:])
    is_alone = uses[split.outputs[0]] == uses[join.outputs[0]] == 1
    return join if is_alone and split.outputs[0].shape == apart and all(part.shape == first for part in join.inputs) else None


def _interleaved(*parts: Value, axes: Tuple[int, ...], axis: int) -> Value:
    shape = (*parts[0].shape[:axis], 1, *parts[0].shape[axis:])
    return concat(*[transpose(reshape(part, shape=shape), axes=axes) for part in parts], axis=axes.index(axis))

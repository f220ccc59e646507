"""What follows the last sweep over short rows and takes long, such as ``exp`` of their sums, is a loop nest of its own.

There is one number for each row.  In the nest of the rows these numbers come one by one, with some elements of a row between them,
so that no vector of the processor holds several of them.
"""
from __future__ import annotations

import math
from typing import List

from ...ir.dims import is_known
from ...ir.graph import Node
from .grouping import Grouping
from .groups import REDUCTIONS, Group

#: Ops of which a vector takes about as long as one number.
_DEAR = frozenset("exp exp2 expm1 log log1p log2 log10 tanh sigmoid sin cos tan softplus power cbrt special".split())

#: Rows of more elements take much longer than what follows; for fewer rows there is nothing to gain.
_LONG_ROW, _FEW_ROWS = 1024, 64


def detach(grouping: Grouping) -> None:
    """Make groups of what follows the last sweep over short rows, where that takes long."""
    order: List[object] = []
    for part in grouping.order:
        order.append(part)
        tail = _tail(part) if isinstance(part, Group) else []
        if isinstance(part, Group) and tail:
            after = Group(tail[0].outputs[0].shape)
            if all([grouping.join(after, node, after.shape) for node in tail]):
                order[-1:] = part.part([node for node in part.nodes if node not in tail]), after
    if len(order) > len(grouping.order):
        grouping.arrange(order)


def _tail(group: Group) -> List[Node]:
    """The nodes behind the last sweep, if one of them takes long; none where it makes no difference."""
    if group.split is None or not all(map(is_known, group.shape)):
        return []
    if math.prod(group.shape[group.split:]) > _LONG_ROW or math.prod(group.row_shape) < _FEW_ROWS:
        return []
    last = group.sweeps
    nodes = [node for node in group.nodes if node.op.name not in REDUCTIONS
             and all([value in group.rows and group.sweep[value] == last for value in node.outputs])]
    if not any([node.op.name in _DEAR for node in nodes]) or len({node.outputs[0].shape for node in nodes}) > 1:
        return []
    return nodes

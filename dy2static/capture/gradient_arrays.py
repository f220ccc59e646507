"""Which arrays of gradients may be written in place: those that no other Variable's gradient shares memory with."""
from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ..ir.graph import Node, Value
from ..ir.interpret import Run, interpret_node
from ..ir.types import Tensor
from ..symbolic.values import SymbolicArray

#: The kinds of ops whose results are new arrays, in eager mode, too.
_NEW = ("elementwise", "reduction", "contraction", "movement")

#: Views that are not writeable, or that read an element more than once.
_REPEATING = ("broadcast_to", "diagonal")


#: A node that gives a view of its first operand, and the number of the output that counts.
_View = Tuple[Node, int]


class _Owner(NamedTuple):
    """An array that is a gradient, and the views that lead to it from the memory in which it lies."""

    array: SymbolicArray
    views: Tuple[_View, ...]


def separate_arrays(arrays: Sequence[SymbolicArray], made_by: Mapping[Value, Node]) -> List[SymbolicArray]:
    """Those of these arrays that lie in new memory, apart from all others.

    arrays: of all Variables that a backward gave gradients; one that several have is there for each.
    made_by: the nodes of that backward, by what they give.
    """
    owners: Dict[Value, List[_Owner]] = {}
    for array in arrays:
        root, views = _origin(array.now(), made_by)
        owners.setdefault(root, []).append(_Owner(array, views))
    found = []
    for root, sharing in owners.items():
        node = made_by.get(root)
        if node is None or node.op.kind not in _NEW or node.op.view or not isinstance(root.type, Tensor):
            continue
        if len(sharing) == 1 and not sharing[0].views or _lie_apart(root.type, sharing):
            found += [owner.array for owner in sharing]
    return found


def _origin(value: Value, made_by: Mapping[Value, Node]) -> Tuple[Value, Tuple[_View, ...]]:
    """The value in whose memory another one lies, as far as ops that give views say, and these, the first one first."""
    views: List[_View] = []
    node = made_by.get(value)
    while node is not None and node.op.view:
        views.insert(0, (node, node.outputs.index(value)))
        value = node.inputs[0]
        node = made_by.get(value)
    return value, tuple(views)


def _lie_apart(root: Tensor, owners: Sequence[_Owner]) -> bool:
    """Whether no element of the memory belongs to two of the arrays, or to one of them twice."""
    if not all(type(n) is int for n in root.shape):
        return False
    places = np.arange(int(np.prod(root.shape)), dtype=np.int64).reshape(root.shape)
    taken = np.zeros(places.size, bool)
    for owner in owners:
        own = _followed(places, owner.views)
        if own is None or taken[own].any() or np.unique(own).size != own.size:
            return False
        taken[own] = True
    return True


def _followed(places: np.ndarray, views: Sequence[_View]) -> Optional[np.ndarray]:
    """Which elements of the memory a view shows; None where an op needs more than its first operand, or repeats elements."""
    for node, output in views:
        if len(node.inputs) != 1 or node.op.name in _REPEATING:
            return None
        places = interpret_node(node, (places,), Run({}))[output]
    return places

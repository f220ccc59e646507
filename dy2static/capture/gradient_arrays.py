"""Which arrays of gradients may be written in place: those that no other Variable's gradient shares memory with.

And which are views of the gradients that a backward began with."""
from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ..ir.graph import Node, Value
from ..ir.interpret import Run, interpret_node
from ..ir.types import Tensor
from ..ops.control import loop_of
from ..symbolic.values import SymbolicArray

#: The kinds of ops whose results are new arrays, in eager mode, too.
_NEW = ("elementwise", "reduction", "contraction", "movement")

#: Views that are not writeable, or that read an element more than once.
_REPEATING = ("broadcast_to", "diagonal")


#: A node that gives a view of its first operand, and the number of the output that counts.
_View = Tuple[Node, int]
#: Gives the node that gives a value, if there is one.
_MadeBy = Callable[[Value], Optional[Node]]


class _Owner(NamedTuple):
    """An array that is a gradient, and the views that lead to it from the memory in which it lies."""

    array: SymbolicArray
    views: Tuple[_View, ...]


def separate_arrays(arrays: Sequence[SymbolicArray], made_by: _MadeBy) -> List[SymbolicArray]:
    """Those of these arrays that lie in new memory, apart from all others.

    arrays: of all Variables that a backward gave gradients; one that several have is there for each.
    made_by: gives the node of that backward that gives a value, if there is one.
    """
    owners: Dict[Value, List[_Owner]] = {}
    for array in arrays:
        root, views = _origin(array.now(), made_by)
        owners.setdefault(root, []).append(_Owner(array, views))
    found = []
    for root, sharing in owners.items():
        node = made_by(root)
        if node is None or not isinstance(root.type, Tensor) or not (_makes_new(node) or _sums_up_new(node, root)):
            continue
        if len(sharing) == 1 and not sharing[0].views or _lie_apart(root.type, sharing):
            found += [owner.array for owner in sharing]
    return found


def views_of(given: Sequence[SymbolicArray], arrays: Sequence[SymbolicArray], made_by: _MadeBy
             ) -> List[Tuple[SymbolicArray, SymbolicArray]]:
    """The arrays of gradients that are views of those that a backward was given, each with that one."""
    roots = {_origin(array.now(), made_by)[0]: array for array in given}
    found = []
    for array in arrays:
        root, views = _origin(array.now(), made_by)
        if views and root in roots and array is not roots[root]:
            found.append((array, roots[root]))
    return found


def _makes_new(node: Node) -> bool:
    """Whether a node gives arrays in new memory, as in eager mode."""
    return node.op.kind in _NEW and not node.op.view


def _sums_up_new(node: Node, value: Value) -> bool:
    """Whether a result of a loop is the sum of what its iterations make, in new memory that nothing else of the loop shares.

    In eager mode, the sum over a single iteration is the summand itself.
    """
    if node.op.name != "scan":
        return False
    loop = loop_of(node)
    made_by = {v: inner for inner in loop.body.nodes for v in inner.outputs}.get
    summands = [_summand(made_by(after), before) for before, after in zip(loop.body.inputs, loop.next)]
    own = summands[loop.last.index(value)] if value in loop.last else None
    if own is None:
        return False
    leaving = [after if summand is None else summand for summand, after in zip(summands, loop.next)]
    root = _origin(own, made_by)[0]
    maker = made_by(root)
    return maker is not None and _makes_new(maker) and [_origin(v, made_by)[0] for v in (*leaving, *loop.items)].count(root) == 1


def _summand(node: Optional[Node], total: Value) -> Optional[Value]:
    """What a node adds to a total; None if it does something else."""
    if node is None or node.op.name != "add" or node.inputs.count(total) != 1:
        return None
    return next(v for v in node.inputs if v is not total)


def _origin(value: Value, made_by: _MadeBy) -> Tuple[Value, Tuple[_View, ...]]:
    """The value in whose memory another one lies, as far as ops that give views say, and these, the first one first."""
    views: List[_View] = []
    node = made_by(value)
    while node is not None and node.op.view:
        views.insert(0, (node, node.outputs.index(value)))
        value = node.inputs[0]
        node = made_by(value)
    return value, tuple(views)


def _lie_apart(root: Tensor, owners: Sequence[_Owner]) -> bool:
    """Whether no element of the memory belongs to two of the arrays, or to one of them twice.

    Linear in the elements of the memory if several arrays share it.
    """
    if not all(map(_shows_each_once, owners)):
        return False
    if len(owners) == 1:
        return True
    if not all(type(n) is int for n in root.shape):
        return False
    places = np.arange(int(np.prod(root.shape)), dtype=np.int64).reshape(root.shape)
    taken = np.zeros(places.size, bool)
    for owner in owners:
        own = _followed(places, owner.views)
        if taken[own].any():
            return False
        taken[own] = True
    return True


def _shows_each_once(owner: _Owner) -> bool:
    """Whether views of the memory show no element twice, and need nothing but their first operand."""
    return all(len(node.inputs) == 1 and node.op.name not in _REPEATING for node, _ in owner.views)


def _followed(places: np.ndarray, views: Sequence[_View]) -> np.ndarray:
    """Which elements of the memory a view shows."""
    for node, output in views:
        places = interpret_node(node, (places,), Run({}))[output]
    return places

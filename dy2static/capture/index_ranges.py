"""Indices that come from arrays of the caller: guarded to be in range, they cannot fail behind effects.

Where something may fail, what the function has written so far must have happened before.  For indices into a table, such as
words into their embeddings, a guard on the whole array of the caller's says that they do not; a call with others is another
program.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Sequence, Tuple

import numpy as np

from ..ir.dims import less
from ..ir.graph import Node, Value
from ..ir.template import AT
from ..record.guards import IndicesInRange
from ..runtime.guard_tests import outside
from .value_enumeration import producer

if TYPE_CHECKING:
    from .capture import Capture

#: Nodes whose elements are those of their first operand, or zero.
_FROM_FIRST = frozenset(("getitem", "reshape", "transpose", "identity", "stop_gradient", "broadcast_to", "unstack", "split",
                         "mask", "copy"))

#: Larger arrays of indices are not looked at in every call.
_MOST = 1 << 14


class IndexRanges:
    """What is known of the arrays of indices among the inputs of one capture.

    places: of numbers that count the iterations of a loop, and what is added to them, what they are below.
    """

    def __init__(self, capture: Capture):
        self.capture = capture
        self.arrays: Dict[Value, Tuple[Any, np.ndarray]] = {}
        self.guarded: Dict[Tuple[Any, int, int], bool] = {}
        self.places: Dict[Value, Any] = {}

    def may_raise(self, node: Node) -> bool:
        """Whether a node may fail on what its operands hold."""
        if node.op.name != "getitem_at" or len(node.inputs) != 2 or node.inputs[1] not in self.places:
            return node.op.may_raise
        x, place = node.inputs
        index = [entry for entry in node.attrs["index"] if entry is not None]
        return less(x.shape[index.index(AT)], self.places[place]) is not False

    def entered(self, value: Value, source: Any, array: np.ndarray) -> None:
        """An input of the graph."""
        if array.dtype.kind in "iu" and 0 < array.size <= _MOST:
            self.arrays[value] = source, array

    def cover(self, nodes: Sequence[Node]) -> bool:
        """Whether none of these nodes can fail, if the guards hold that this adds."""
        return bool(self.arrays) and all(self._is_in_range(node) for node in nodes if node.op.may_raise)

    def _is_in_range(self, node: Node) -> bool:
        if node.op.name not in ("take", "take_along"):
            return False
        x, indices = node.inputs
        size, found = x.shape[node.attrs["axis"]], self._origin(indices)
        if found is None or not isinstance(size, int):
            return False
        source, array = found
        key = source, -size, size
        if key not in self.guarded:
            self.guarded[key] = not outside(array, -size, size)
            if self.guarded[key]:
                self.capture.heap.guard(IndicesInRange(source, -size, size))
        return self.guarded[key]

    def _origin(self, value: Value) -> Any:
        """The array of the caller's that all elements are from; None if there is none."""
        while value not in self.arrays:
            node = producer(self.capture.builder, value)
            if node is None or node.op.name not in _FROM_FIRST:
                return None
            value = node.inputs[0]
        return self.arrays[value]

"""Whole numbers that are certain to be places along an axis: rows that a network chooses and looks up again cannot be out of range.

They come from `argmax`, from arrays of the caller's that guards look at, or from decisions and loops over such.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import numpy as np

from ..ir.graph import Node, Value
from ..runtime.guard_tests import outside
from ..runtime.host_calls import Hole
from ..symbolic.values import SymbolicArray, SymbolicScalar, SymbolicVariable
from .value_enumeration import computes

#: Nodes and calls whose elements are those of their first operand, as another type or in another shape, or zero.
_OF_FIRST = frozenset(("getitem", "reshape", "transpose", "squeeze", "identity", "stop_gradient", "broadcast_to", "unstack",
                       "split", "mask", "copy", "take", "getitem_at", "cast", "astype", "py_int", "int", "index", "item",
                       "tensor_to_scalar", "scalar_to_tensor", "within"))

#: Those whose elements are those of all of their operands.
_OF_ALL = frozenset(("concat", "stack", "concatenate", "hstack", "vstack"))

#: How far back a number is followed.
_DEEPEST = 16


class TablePlaces:
    """What is known of whole numbers in one capture, besides what single nodes tell.

    is_place: whether a value is one by itself, or by a guard that is added then.  producer: the node that made a value, if known.
    """

    def __init__(self, is_place: Callable[[Value, int], bool], producer: Callable[[Value], Optional[Node]]):
        self._is_place, self._producer = is_place, producer
        self._inside: Dict[Value, Node] = {}            # by the results of nodes in branches
        self._given: Dict[Value, Value] = {}            # what branches get
        self._carried: Dict[Value, Value] = {}          # by what iterations begin with, what is there before the loop
        self._asked: Dict[Value, Set[int]] = {}         # the sizes of axes that this must be a place of
        self._denied: Set[Tuple[Any, Value]] = set()

    def are(self, value: Value, size: int, depth: int = _DEEPEST) -> bool:
        """Whether all elements are places along an axis of this size, wherever the guards of the program hold."""
        if not _is_whole(value):
            return False
        if self._is_place(value, size):
            return True
        node = self.made(value)
        if node is not None and node.op.name == "constant":
            numbers = np.asarray(node.attrs["value"])
            return not numbers.size or not outside(numbers, -size, size)
        if value in self._carried:
            is_first = self.are(self._carried[value], size, depth)
            if is_first:
                self._asked.setdefault(value, set()).add(size)
            return is_first
        parts = self._parts(value) if depth else None
        if parts is None or value.type.dtype.kind == "u" and any([part.type.dtype.kind == "i" for part in parts]):
            return False                                # places from the end would be large numbers without a sign
        return all([self.are(part, size, depth - 1) for part in parts])

    def made(self, value: Value) -> Optional[Node]:
        """The node that made a value, in branches that are over, too."""
        return self._inside.get(value) or self._producer(value)

    def carry(self, place: Any, inside: Value, initial: Any) -> None:
        """A loop carries a number or an array, in some place: inside at the start of an iteration, initial before the loop."""
        first = _value_of(initial)
        if first is not None and _is_whole(inside) and (place, first) not in self._denied:
            self._carried[inside] = first

    def broken(self, carried: Sequence[Tuple[Any, Value, Any]]) -> List[Any]:
        """The places of which an iteration does not leave what was relied on at its start: that is not done again.

        carried: the places, with what is there at the start of an iteration, and after it.
        """
        found: List[Any] = []
        known = None
        while not found and known != self._asked:       # what is left in one place may be what another one began with
            known = {value: set(sizes) for value, sizes in self._asked.items()}
            found = [place for place, inside, after in carried if not self._stays(inside, after)]
        self._denied.update([(place, self._carried[inside]) for place, inside, _ in carried if place in found])
        return found

    def _stays(self, inside: Value, after: Any) -> bool:
        sizes, last = self._asked.get(inside, ()), _value_of(after)
        return all([last is not None and self.are(last, size) for size in sizes])

    def _parts(self, value: Value) -> Optional[Sequence[Value]]:
        """The values whose elements these are; None where that is not known, or they are not all whole numbers."""
        found = self._operands(value)
        return found if found is not None and all(map(_is_whole, found)) else None

    def _operands(self, value: Value) -> Optional[Sequence[Value]]:
        if value in self._given:
            return (self._given[value],)
        node = self.made(value)
        if node is None:
            return None
        if node.op.name == "if_":
            return self._of_branches(node, value)
        call = node.attrs.get("call")
        name = computes(node)
        if name == "where" and len(node.inputs) == 3:
            return node.inputs[1:]
        if name in _OF_ALL or name == "array" and _is_of_values(call.args[0]):
            return node.inputs
        is_of_first = call is None or bool(call.args) and type(call.args[0]) is Hole and call.args[0].index == 0
        return node.inputs[:1] if name in _OF_FIRST and is_of_first else None

    def _of_branches(self, node: Node, value: Value) -> Sequence[Value]:
        for region in node.regions:
            self._given.update(zip(region.inputs, node.inputs[1:]))
            self._inside.update({made: each for each in region.nodes for made in each.outputs})
        return [region.outputs[node.outputs.index(value)] for region in node.regions]


def _is_whole(value: Value) -> bool:
    dtype = getattr(value.type, "dtype", None)
    return dtype is not None and dtype.kind in "iu"


def _is_of_values(items: Any) -> bool:
    """Whether an array is made only of numbers that the graph computes."""
    return type(items) in (list, tuple) and all([type(item) is Hole for item in items])


def _value_of(item: Any) -> Optional[Value]:
    """The value of the graph for a Variable, for an array that nothing writes, or for a number that the graph computes."""
    array = item._data[0] if isinstance(item, SymbolicVariable) else item
    if type(array) is SymbolicArray:
        return array.now() if array.memory is None else None
    return array.truth if type(array) is SymbolicScalar and array.text is None else None

"""Indices that come from arrays of the caller: guarded to be in range, they cannot fail behind effects.

Where something may fail, what the function has written so far must have happened before.  For indices into a table, such as
words into their embeddings, a guard on the whole array of the caller's says that they do not; a call with others is another
program.
"""
from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Container, Dict, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from ..ir.devices import is_gpu
from ..ir.dims import Dim
from ..ir.graph import Node, Value
from ..ir.size_bounds import limits_in, maximum, not_below
from ..ir.template import AT, is_window
from ..ir.types import Tensor
from ..record.guards import IndicesInRange
from ..runtime.guard_tests import outside
from ..runtime.host_calls import Hole
from ..symbolic.least_numbers import Least
from ..symbolic.sizes import sizes
from ..symbolic.values import SymbolicScalar
from .table_places import TablePlaces
from .value_enumeration import computes, producer

if TYPE_CHECKING:
    from .protocols import Capture

#: Nodes whose elements are those of their first operand, or zero.
_FROM_FIRST = frozenset(("getitem", "reshape", "transpose", "identity", "stop_gradient", "broadcast_to", "unstack", "split",
                         "mask", "copy", "take", "getitem_at"))

#: The calls of NumPy of which that is so, where they are nodes of their own.
_CALLS_FROM_FIRST = frozenset(("getitem", "reshape", "transpose", "copy", "take"))

#: Nodes that take indices from arrays.  On a GPU, indices out of range wrap around, as in CuPy: that is no error.
_BY_INDICES = frozenset(("take", "take_along", "pick", "add_at", "put", "weighted_take"))

#: Nodes that give the number that they get, as another type.
_SAME_NUMBER = frozenset(("py_int", "item", "tensor_to_scalar", "scalar_to_tensor", "within", "needed"))

#: Larger arrays of indices are not looked at in every call; in a loop, each trip uses a part of them.
_MOST, _MOST_IN_LOOP = 1 << 14, 1 << 22


class Multiple(NamedTuple):
    """A number is ``place * scale + more``."""

    place: Value
    scale: int
    more: int

    def computed(self, symbol: str, other: int) -> Optional[Multiple]:
        """What an operator makes of it."""
        if symbol == "*":
            return Multiple(self.place, self.scale * other, self.more * other)
        return self._replace(more=self.more + (other if symbol == "+" else -other)) if symbol in "+-" else None


class IndexRanges:
    """What is known of the arrays of indices among the inputs of one capture.

    places: of numbers that count the iterations of a loop, and what is added to them, what they are below.  least: of numbers
    that a loop counts up, what they are not below.  multiples: of numbers that are computed from a place, how.
    mirrored: of numbers ``length - 1 - place``, both.  below: of arrays of whole numbers that are drawn, what they are below; they
    are not negative.  reaching: items of lists at the place of a
    loop, which is that of the last one if the loop goes on to its end.  tables: places of rows that decisions and loops choose.
    """

    def __init__(self, capture: Capture):
        self.capture = capture
        self.arrays: Dict[Value, Tuple[Any, np.ndarray]] = {}
        self.guarded: Dict[Tuple[Any, int, int], bool] = {}
        self.places: Dict[Value, Any] = {}
        self.least: Dict[Value, Least] = {}
        self.multiples: Dict[Value, Multiple] = {}
        self.mirrored: Dict[Value, Tuple[Value, Any]] = {}
        self.below: Dict[Value, int] = {}
        self.reaching: Set[Value] = set()
        self.tables = TablePlaces(self._is_place_of, lambda value: producer(capture.builder, value))

    def may_raise(self, node: Node) -> bool:
        """Whether a node may fail on what its operands hold."""
        if node.op.name in _BY_INDICES and all(isinstance(v.type, Tensor) and is_gpu(v.type.device) for v in node.inputs[1:]):
            return 0 in node.inputs[0].shape
        if node.op.name not in ("getitem_at", "scatter_at"):
            return node.op.may_raise
        shape = node.inputs[0].shape if node.op.name == "getitem_at" else node.attrs["shape"]
        axes = zip([entry for entry in node.attrs["index"] if entry is not None], shape)
        counted = [(entry, size) for entry, size in axes if entry == AT or is_window(entry)]
        return not all(is_window(entry) or self.is_in_axis(place, size) for place, (entry, size) in zip(node.inputs[1:], counted))

    def is_in_axis(self, place: Value, size: Any) -> bool:
        """Whether a number, or each in an array, is certain to be that of an element along an axis of this size."""
        if getattr(place.type, "dtype", None) == np.bool_:
            return False                                # a mask
        count, bounds = self._below(place), self.capture.number_bounds.of_whole(place)
        count = self._choices(place) if count is None else count
        if count is not None and not_below(size, count) or \
                bounds is not None and not_below(size, bounds[1] + 1) and not_below(size, -bounds[0]):
            return True
        if isinstance(count, Dim) and type(size) is int:
            self.capture.free_sizes.near.update(limits_in([maximum(count, size)]))
        return False

    def _choices(self, number: Value) -> Any:
        """The number of elements among which these are places of largest or least ones, or of all in an order; None for others."""
        node = self.tables.made(number)
        while node is not None and node.op.name in _SAME_NUMBER:
            node = self.tables.made(node.inputs[0])
        name = computes(node)
        if node is None or name not in ("argmax", "argmin", "argsort"):
            return None
        call = node.attrs.get("call")
        given = node.attrs if call is None else {**dict(zip(("x", "axis"), call.args)), **call.kwargs}
        axis = given.get("axis", -1 if name == "argsort" else None)
        shape = node.inputs[0].shape
        return math.prod(shape) if axis is None else shape[axis] if type(axis) is int else None

    def is_place(self, value: Value, below: Any) -> None:
        """A number counts the iterations of a loop."""
        self.places[value], self.multiples[value] = below, Multiple(value, 1, 0)

    def drawn(self, value: Value, least: Any, below: Any) -> None:
        """An array of whole numbers is drawn from these bounds, if they are known."""
        if type(least) is int and least >= 0 and (type(below) is int or isinstance(below, Dim)):
            self.below[value] = below

    def _below(self, value: Value) -> Any:
        """What a number, or all elements of an array, are below, and not negative; None where that is not known."""
        if value in self.places:
            return self.places[value]
        found = self._source(value, self.below)
        return None if found is None else self.below[found]

    def is_inside(self, function: Any, args: Sequence[Any], operands: Sequence[Value]) -> bool:
        """Whether a call takes a part of an array by numbers that are certain to be in range."""
        if function is not operator.getitem or type(args[0]) is not Hole:
            return False
        shape, axis = operands[args[0].index].shape, 0
        for entry in args[1] if type(args[1]) is tuple else args[1:]:
            if type(entry) is Hole:
                if axis == len(shape) or not self.is_in_axis(operands[entry.index], shape[axis]):
                    return False
            elif entry is not None and type(entry) not in (int, slice) or \
                    type(entry) is slice and not self._has_known_ends(entry, operands):
                return False
            axis += entry is not None
        return True

    def _has_known_ends(self, span: slice, operands: Sequence[Value]) -> bool:
        """Whether a slice is one by ints and sizes of arrays."""
        return all(type(end) is not Hole or operands[end.index] in self.capture.dimensions for end in (span.start, span.stop)) and \
            type(span.step) is not Hole

    def inside(self, items: Sequence[Any], sizes: Sequence[Any]) -> Any:
        """The first of two numbers, which counts with a loop and is never above a size, or the other one; None for others."""
        if len(items) != 2:
            return None
        for number, size in ((items[0], sizes[1]), (items[1], sizes[0])):
            multiple = self.multiples.get(number.value) if type(number) is SymbolicScalar and number.text is None else None
            if multiple is not None and size is not None and not_below(size, self._highest(multiple)):
                return number
        return None

    def _highest(self, multiple: Multiple) -> Any:
        """What a number that counts with a loop is never above; it does not count down."""
        return max(multiple.scale, 0) * (self.places[multiple.place] - 1) + multiple.more

    def count_between(self, start: Value, stop: Value, size: Any) -> Optional[int]:
        """How many places are from one number to another, if both count with a loop, and stay in an axis of this size."""
        first, last = self.multiples.get(start), self.multiples.get(stop)
        if first is None or last is None or first.place is not last.place or first.scale != last.scale or first.scale < 0:
            return None
        count = last.more - first.more
        return count if count > 0 and first.more >= 0 and not_below(size, self._highest(last)) else None

    def rows_at(self, array: Any, key: Any) -> Any:
        """``array[i:i + n]`` in a loop over every n-th ``i``; NotImplemented for everything else."""
        if type(key) is not slice or key.step not in (None, 1) or not all(type(x) is SymbolicScalar for x in (key.start, key.stop)):
            return NotImplemented
        start, stop = [None if x.text is not None else self.multiples.get(x.truth) for x in (key.start, key.stop)]
        if start is None or stop is None or start.place is not stop.place or \
                not start.scale == stop.scale == stop.more - start.more:
            return NotImplemented
        count, size, end = self.places[start.place], start.scale, start.scale * self.places[start.place] + start.more
        shape = array.type.shape
        if not shape or size <= 0 or start.more < 0 or not (not_below(end, start.more) and not_below(shape[0], end)):
            return NotImplemented
        count, end, *others = sizes(self.capture, (count, end, *shape[1:]))
        rows = array[start.more:end].reshape(count, size, *others)
        return rows[SymbolicScalar(self.capture, "py_int", value=start.place)]

    def entered(self, value: Value, source: Any, array: np.ndarray) -> None:
        """An input of the graph."""
        if array.dtype.kind in "iu" and 0 < array.size <= _MOST_IN_LOOP:
            self.arrays[value] = source, array

    def cover(self, nodes: Sequence[Node]) -> bool:
        """Whether none of these nodes can fail, if the guards hold that this adds."""
        return bool(self.arrays) and all(self._is_in_range(node) for node in nodes if node.op.may_raise)

    def _is_in_range(self, node: Node) -> bool:
        if node.op.name not in ("take", "take_along"):
            return False
        x, indices = node.inputs
        size = x.shape[node.attrs["axis"]]
        return isinstance(size, int) and self.tables.are(indices, size)

    def _is_place_of(self, value: Value, size: int) -> bool:
        """Whether a value is a place along an axis by itself, or by a guard of the array of the caller's that it is from."""
        return self.is_in_axis(value, size) or self._is_guarded(value, size)

    def _is_guarded(self, value: Value, size: int) -> bool:
        found = self._origin(value)
        if found is None:
            return False
        source, array = found
        if array.size > _MOST and not self.capture.staging.in_loop:
            return False
        key = source, -size, size
        if key not in self.guarded:
            self.guarded[key] = not outside(array, -size, size)
            if self.guarded[key]:
                self.capture.heap.guard(IndicesInRange(source, -size, size))
        return self.guarded[key]

    def _origin(self, value: Value) -> Any:
        """The array of the caller's that all elements are from; None if there is none."""
        found = self._source(value, self.arrays)
        return None if found is None else self.arrays[found]

    def _source(self, value: Value, among: Container[Value]) -> Optional[Value]:
        """The one of these that all elements are from; None if there is none."""
        while value not in among:
            node = self.tables.made(value)
            if node is None or node.op.name not in _FROM_FIRST and not _is_call_from_first(node):
                return None
            value = node.inputs[0]
        return value


def _is_call_from_first(node: Node) -> bool:
    call = node.attrs.get("call")
    return node.op.name in ("numpy_call", "checked_call") and call.name in _CALLS_FROM_FIRST and \
        type(call.args[0]) is Hole and call.args[0].index == 0

"""Items of lists that are assigned at places that only the run knows: ``rows[k] = h``.

What is assigned waits until the list is next read.  Then all items are rows of one array: those that were there and those that were
assigned, taken in an order that the places give.
"""
from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, List, Optional, Tuple

import numpy as np

from ..control_flow.items import item as item_at
from ..control_flow.items import unknown_number
from ..ir.building import building
from ..ir.graph import Value
from ..ir.op import OPS
from ..ir.types import Tensor
from ..runtime import dy
from ..symbolic.assigned import Assigned
from ..symbolic.kinds import number_kind
from ..symbolic.list_kinds import kind_of
from ..symbolic.lists import Contents, StagedList, describe_item, refuse_mixed
from ..symbolic.values import SymbolicArray, SymbolicVariable
from .value_enumeration import computes, producer

if TYPE_CHECKING:
    from .protocols import Capture

#: Longer lists are left to Python; those of numbers, where each item is a decision, too.
_MOST, _MOST_NUMBERS = 64, 16


class AssignedItems:
    """The lists of one capture that wait."""

    def __init__(self, capture: Capture):
        self.capture = capture
        self.start_again()

    def start_again(self) -> None:
        """No list waits."""
        self._waiting: List[weakref.ref] = []

    def get(self, items: StagedList, index: Any) -> Any:
        """The item at a place, as in ``items[k] += 1``; NotImplemented where the place is known, or that is left to Python."""
        return item_at(self.capture, items, index)

    def put(self, items: StagedList, index: Any, item: Any) -> bool:
        """Assign an item; False where the place is known, or where this cannot wait: that is left to Python."""
        number = unknown_number(self.capture, index)
        if number is None or self.capture.staging.depth or items.assigned is None and items.symbolic is not None:
            return False
        if number_kind(item) is not None:
            return items.assigned is None and self._put_number(items, number, item)
        if not isinstance(item, SymbolicVariable) and (type(item) is not SymbolicArray or item.is_scalar):
            return False
        size, place = len(items), self._place(number.now() if type(number) is SymbolicArray else number.value)
        is_element = place is not None and place[0].type.shape == (size,)
        before = items.assigned or Assigned(self, tuple(list.copy(items)), ())
        if size > _MOST or not (is_element or before.is_full(item)) or not self._are_new(item, () if is_element else before.base):
            return False
        if not is_element:
            self._check(number, size)
            before = items.assigned or Assigned(self, tuple(list.copy(items)), ())
        items.hold(before.followed_by(number, place if is_element else None, item))
        self._waiting.append(weakref.ref(items))
        return True

    def settle_all(self) -> None:
        """Before a decision: what is in the lists is read there."""
        waiting, self._waiting = self._waiting, []
        for reference in waiting:
            items = reference()
            if items is not None:
                items.settle()

    def settled(self, assigned: Assigned) -> List[Any]:
        """The items of a list."""
        size, order = len(assigned.base), self._permutation(assigned)
        if order is None and not assigned.is_full(assigned.items[0]):
            self.capture.abort("items of a list are assigned at places that are known at run time only, and perhaps not all of "
                               "them are", hint="begin with a list of Variables, or assign by the result of `argsort`")
        there = order[0] if order is not None else [*assigned.base, *assigned.items]
        parts = [describe_item(self.capture, item) for item in there]
        like = kind_of(self.capture, (Contents(there),))
        for part in parts:
            if (part.kind, part.elem) != (like.kind, like.elem):
                refuse_mixed(self.capture, like, part)
        which = self._which(assigned) if order is None else self.capture.numpy.call(np.argsort, (order[1],), {})
        with building(self.capture.builder):
            rows = OPS["take"](OPS["stack"](*[part.value for part in parts], axis=0), which.now(), axis=0)
            found = [like.wrapped(OPS["getitem"](rows, index=(place,))) for place in range(size)]
        if like.kind == "variable" and len(set(map(id, there))) == len(there):
            for item in found:
                item.__dict__["apart"] = assigned
        if like.kind == "variable" and not all(self.capture.array_writes.views.is_alone(item._data[0]) for item in there):
            for item in found:
                item.__dict__["copied"] = assigned.at
        return found

    def _are_new(self, item: Any, others: Tuple) -> bool:
        """Whether none of these is a Variable that was there before the call, or may be: it would have to stay that object.

        Nor may arrays be views of others.  others: all Variables, or all arrays, as the item is; or none.
        """
        if type(item) is SymbolicArray:
            return all(self.capture.array_writes.views.is_alone(part) for part in (item, *others))
        return all(describe_item(self.capture, part).is_new for part in (item, *others))

    def _permutation(self, assigned: Assigned) -> Optional[Tuple[List[Any], SymbolicArray]]:
        """The items in the order of the permutation that gives the places, and that; None where it is not certain to be one."""
        places, last = assigned.places, {place[1]: item for place, item in zip(assigned.places, assigned.items) if place}
        if None in places or any(place[0] is not places[0][0] for place in places) or len(last) < len(assigned.base):
            return None
        return [last[number] for number in range(len(last))], SymbolicArray(self.capture, places[0][0])

    def _which(self, assigned: Assigned) -> SymbolicArray:
        """For each place the number of the item that was assigned last: behind those that were there."""
        call, size = self.capture.numpy.call, len(assigned.base)
        places = call(np.arange, (size,), {})
        which = places
        for count, number in enumerate(assigned.numbers):
            is_there = call(np.equal, (places, number), {})
            if assigned.places[count] is None:          # a negative number counts from the end
                is_there = call(np.logical_or, (is_there, call(np.equal, (call(np.subtract, (places, size), {}), number), {})), {})
            which = call(np.where, (is_there, size + count, which), {})
        return which

    def _put_number(self, items: StagedList, number: Any, item: Any) -> bool:
        size, kind = len(items), number_kind(item)
        if size > _MOST_NUMBERS or any(number_kind(other) != kind for other in items):
            return False
        self._check(number, size)
        for place, other in enumerate(list.copy(items)):
            is_it = dy.any_of(number == place, lambda place=place: number == place - size)
            list.__setitem__(items, place, dy.if_exp(is_it, lambda: item, lambda other=other: other))
        return True

    def _check(self, number: Any, size: int) -> None:
        """Let a run raise IndexError where there is no such place."""
        bound = self.capture.bound_of(number)
        if bound is not None and bound <= size:
            return

        def fail() -> Any:
            raise IndexError("list assignment index out of range")
        fits = dy.all_of(number >= -size, lambda: number < size)
        if not self.capture.effects.is_protected():
            dy.cond(fits, tuple, fail, ())
        elif not fits:                                  # the error is raised now, on one way through the function
            fail()

    def _place(self, value: Value) -> Optional[Tuple[Value, int]]:
        """The permutation that a number is an element of, and where it is in that; None for other numbers."""
        node = producer(self.capture.builder, value)
        while node is not None and node.op.name == "py_int":
            node = producer(self.capture.builder, node.inputs[0])
        call = None if node is None else node.attrs.get("call")
        if call is None or computes(node) != "getitem" or len(node.inputs) != 1 or type(call.args[1]) is not int:
            return None
        order, = node.inputs
        return (order, call.args[1] % order.type.shape[0]) if self._is_permutation(order) else None

    def _is_permutation(self, value: Value) -> bool:
        """Whether an array is what ``argsort`` gives for an array of one dimension, or this from its end to its beginning."""
        if not isinstance(value.type, Tensor) or len(value.type.shape) != 1 or type(value.type.shape[0]) is not int:
            return False
        node = producer(self.capture.builder, value)
        if node is not None and node.op.name == "getitem" and node.inputs[0].type == value.type:
            return node.attrs["index"] == ((value.type.shape[0] - 1, None, -1),) and self._is_permutation(node.inputs[0])
        return node is not None and computes(node) == "argsort" and len(node.inputs) == 1

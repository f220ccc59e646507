"""What a list holds while items wait that were assigned at places which only the run knows."""
from __future__ import annotations

from typing import Any, Tuple

from ..heap.locations import user_location
from .values import SymbolicArray, SymbolicVariable


class Assigned:
    """What a list holds after items were assigned at places that only the run knows, until it is read.

    owner: makes the items.  base: those that were there.  numbers, places, items: what was assigned, in order; a place is the
    permutation that the number is an element of and where it is in that, or None.  at: the line that assigned last.
    """

    def __init__(self, owner: Any, base: Tuple, numbers: Tuple = (), places: Tuple = (), items: Tuple = ()):
        self.owner, self.base, self.numbers, self.places, self.items = owner, base, numbers, places, items
        self.at = user_location()

    def followed_by(self, number: Any, place: Any, item: Any) -> "Assigned":
        """The same with one more."""
        return Assigned(self.owner, self.base, (*self.numbers, number), (*self.places, place), (*self.items, item))

    def is_full(self, item: Any) -> bool:
        """Whether all items are Variables, or all arrays, of the shape and dtype of this one."""
        is_variable = isinstance(item, SymbolicVariable)
        return all((isinstance(other, SymbolicVariable) if is_variable else type(other) is SymbolicArray)
                   and other.shape == item.shape and other.dtype == item.dtype for other in (*self.base, *self.items))

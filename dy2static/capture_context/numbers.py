"""What is known of numbers, texts, indices and contents of arrays that change from call to call."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Protocol, Sequence, Set, Tuple

from ..ir.graph import Value


class Expressions(Protocol):
    """Numbers that change from call to call."""

    def guard(self, text: str, value: Any) -> None:
        """Fix the value of an expression."""

    def operation(self, function: Callable, symbol: str, *operands: Any) -> Any:
        """What an operator gives for numbers."""

    def function_of_numbers(self, function: Callable, args: Tuple) -> Any:
        """What a function gives for numbers."""

    def function_of_list(self, function: Callable, items: Sequence[Any], first: Any) -> Any:
        """What ``sum`` gives for numbers."""

    def size_of(self, number: Any) -> Any:
        """The number as an int or a size; None if it is neither."""


class Texts(Protocol):
    """Texts that change from call to call."""

    def call(self, function: Callable, args: Tuple, kwargs: Mapping[str, Any] = ..., pattern: Optional[str] = None) -> Any:
        """What a function that only computes gives for texts and numbers."""

    def joined(self, *parts: Any) -> Any:
        """Texts, some of which only the run knows, one behind the other."""

    def part(self, text: Any, index: slice) -> Any:
        """A slice of a text that only the run knows."""


class TablePlaces(Protocol):
    """Whole numbers that are certain to be places along an axis."""

    def carry(self, place: Any, inside: Value, initial: Any) -> None:
        """A loop carries a number or an array, in some place: inside at the start of an iteration, initial before the loop."""

    def broken(self, carried: Sequence[Tuple[Any, Value, Any]]) -> List[Any]:
        """The places of which an iteration does not leave what was relied on at its start."""


class IndexRanges(Protocol):
    """What is known of indices."""

    places: Dict[Value, Any]
    least: Dict[Value, Any]
    mirrored: Dict[Value, Any]
    reaching: Set[Value]

    @property
    def tables(self) -> TablePlaces:
        """Of rows that decisions and loops choose."""

    def is_place(self, value: Value, below: Any) -> None:
        """A number counts the iterations of a loop."""

    def is_in_axis(self, place: Value, size: Any) -> bool:
        """Whether a number, or each in an array, is certain to be that of an element along an axis of this size."""


class AssignedItems(Protocol):
    """Items of lists that are assigned at places that only the run knows."""

    def get(self, items: Any, index: Any) -> Any:
        """An item; NotImplemented where that is left to Python."""

    def put(self, items: Any, index: Any, item: Any) -> bool:
        """Assign an item; False where that is left to Python."""

    def settle_all(self) -> None:
        """What is in the lists is read."""


class FilledLists(Protocol):
    """Lists as long as an axis of unknown size, which loops fill in order."""

    def repeated(self, items: list, size: Any) -> Any:
        """A list, repeated as often as the size says."""


class DecidingContents(Protocol):
    """What decides something.  exposures: how many calls of unknown code there were, which may write into arrays."""

    exposures: int

    def needed(self, number: Any) -> None:
        """Python needs this number, or this array."""

    def sizes(self, *numbers: Any) -> None:
        """These values decide a size."""

    def decides(self, number: Any) -> None:
        """This value decides what is done."""


class ValueNumbering(Protocol):
    """Calls that give what an earlier call gave."""

    def first(self, value: Value) -> Value:
        """The first value that is the same as this one."""

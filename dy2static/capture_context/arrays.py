"""Arrays that are written in place."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Protocol, Tuple

from ..errors import Location
from ..ir.graph import Value
from ..record.paths import Source
from .values import SymbolicArray


class Layouts(Protocol):
    """How arrays lie in memory."""

    def example(self, array: SymbolicArray) -> Any:
        """An array of NumPy's that lies in memory as this one."""

    def flags(self, array: SymbolicArray) -> Any:
        """``array.flags``."""

    def base(self, array: SymbolicArray) -> Any:
        """``array.base``."""

    def are_given(self, *arrays: SymbolicArray) -> bool:
        """Whether all of these are arrays of the caller's."""

    def is_one(self, first: SymbolicArray, second: SymbolicArray) -> bool:
        """Whether two arrays of the caller's are one."""


class Overwritten(Protocol):
    """Results whose backward would read arrays that have been written since."""

    def state(self) -> Tuple:
        """How far it has come, for `go_back`."""

    def go_back(self, state: Tuple) -> None:
        """As it was then."""


class ArrayWrites(Protocol):
    """Writes into arrays.

    serial: the number of the newest array.  memories: what arrays share that are written.  views: which arrays are views of others.
    written: the arrays of the user's that have been written.
    """

    serial: int
    written: Dict[Source, Optional[Location]]
    memories: List[Any]
    views: Any

    @property
    def layouts(self) -> Layouts:
        """How arrays lie in memory."""

    @property
    def overwritten(self) -> Overwritten:
        """What backwards would read that has been written since."""

    def read(self, array: SymbolicArray) -> Value:
        """What an array holds now."""

    def write(self, array: SymbolicArray, function: Callable[..., Any], args: Tuple, kwargs: Dict[str, Any]) -> None:
        """``function(array, *args, **kwargs)``, which writes into the array."""

    def is_written(self, array: Any) -> bool:
        """Whether an array of the user's, or one that shares its memory, was written."""

    def is_own(self, array: SymbolicArray) -> bool:
        """Whether an array is made here, may be written in place, and shares its memory with no other."""

    def by_reference(self, array: Any) -> None:
        """Let the graph hold an array of the user's itself, with what was written, before something keeps it."""

    def filled(self, array: SymbolicArray) -> None:
        """Know a new array, which has no other views."""

    def chose(self, array: SymbolicArray, sides: Tuple[SymbolicArray, ...], decision: Any) -> None:
        """Know an array that is one of these, by a decision."""

    def carried(self, memory: Any) -> None:
        """Iterations of a loop write into this memory."""

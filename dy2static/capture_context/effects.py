"""What a call does besides giving a result, and the decisions that it does this under."""
from __future__ import annotations

from typing import Any, ContextManager, Dict, List, Protocol, Sequence, Tuple

from ..ir.graph import Node, Value
from .values import SymbolicVariable


class Choices(Protocol):
    """Which objects Variables are, where decisions choose between them.  has_run: see `symbolic.variable_identity`."""

    has_run: bool

    def of(self, variable: SymbolicVariable, depth: int) -> Any:
        """Which object a Variable is, for a decision at this depth."""

    def origins(self, variables: Sequence[SymbolicVariable], depth: int) -> Dict[int, SymbolicVariable]:
        """The Variables made in the function, one of which a Variable is that is one of these."""


class Decisions(Protocol):
    """Decisions on symbolic values, as far as values know of them."""

    depth: int
    in_loop: int
    truths: Dict[Value, Any]
    path: Any

    @property
    def choices(self) -> Choices:
        """Which Variables decisions choose between."""

    def settled(self, predicate: Value) -> bool:
        """The truth of a value, for Python itself."""

    def is_inexact(self, value: Any) -> bool:
        """Whether only the truth of a value is known."""

    def need_exact(self, item: Any) -> None:
        """Stop where more is needed than the truth of what ``and`` or ``or`` gave."""

    def either(self, test: Any, first: Any, second: Any) -> Any:
        """One of two arrays that are there already."""

    def region(self) -> ContextManager[List[Node]]:
        """Nodes made inside go into a region."""


class Effects(Protocol):
    """Writes, in the order of effects."""

    def is_protected(self) -> bool:
        """Whether code of the user's would notice a failure here."""

    def check_caught(self, error: BaseException) -> None:
        """Stop where Python itself may catch what a decision raises here."""

    def store_writes(self, may_fail: bool = True) -> None:
        """Put pending writes into the program here."""

    def enter_decision(self) -> None:
        """The outermost decision starts here."""


class Reports(Protocol):
    """What is reported with ``chainer.report``.  made: all reports, in order."""

    made: List[Any]

    def in_iteration(self, begin: Sequence[Any]) -> ContextManager[List[Any]]:
        """The reports that an iteration of a loop makes, like those of the iteration before."""

    def values_of(self, reports: Sequence[Any]) -> Tuple:
        """What some reports store."""

    def repeat(self, reports: Sequence[Any], values: Sequence[Any]) -> None:
        """Report what a loop leaves."""


class Operands(Protocol):
    """What calls get that the program makes."""

    def ending(self) -> ContextManager[None]:
        """The function ends inside with an exception."""

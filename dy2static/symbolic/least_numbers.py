"""What numbers that loops count are certain not to be below, and what that and sizes say of comparisons."""
from __future__ import annotations

from typing import Any, NamedTuple, Optional

from ..ir.dims import equal, less
from ..ir.graph import Value
from .values import SymbolicScalar


class Least(NamedTuple):
    """A number is ``more`` above ``base``, which is not below ``start``: a whole number, or an expression over the caller's."""

    start: Any
    base: Value
    more: int

    def moved(self, by: int) -> Least:
        """Of the number with this added."""
        return self._replace(more=self.more + by)

    def is_at_least(self, bound: int) -> bool:
        """Whether the number is at least ``bound``; adds a guard if that depends on numbers of the caller's."""
        least = bound - self.more
        if type(self.start) is not SymbolicScalar:
            return bool(self.start >= least)
        holds = bool(self.start.hint >= least)
        if holds:
            self.start.capture.expressions.guard(f"{self.start.text} >= {least}", True)
        return holds


def compared(least: Least, symbol: str, bound: int) -> Optional[bool]:
    """``number symbol bound``, where that is certain."""
    if symbol in ("==", "!=", "<=", ">"):
        return (symbol in ("!=", ">")) if least.is_at_least(bound + 1) else None
    return (symbol == ">=") if symbol in (">=", "<") and least.is_at_least(bound) else None


#: What holds of two operands in the other order.
SWAPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compared_sizes(a: Any, symbol: str, b: Any) -> Optional[bool]:
    """``a symbol b`` for two sizes or ints, where that is certain for all values of the symbols."""
    found = equal(a, b) if symbol in ("==", "!=") else less(a, b) if symbol in ("<", ">=") else less(b, a)
    return found if found is None or symbol in ("==", "<", ">") else not found

"""Between which bounds numbers lie that only the run knows: what is computed of them cannot fail then."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Sequence, Tuple

from ..ir.graph import Value
from ..runtime.host_calls import Hole

if TYPE_CHECKING:
    from .capture import Capture

#: The least and the greatest number that there may be; neither is NaN.
Bounds = Tuple[float, float]


def _power(base: Bounds, exponent: Bounds) -> Optional[Bounds]:
    # a fixed base up to one: nothing overflows, and the results fall
    if not base[0] == base[1] or not 0 < base[0] <= 1 or exponent[0] < 0:
        return None
    return 0.0, base[0] if exponent[0] >= 1 else 1.0


def _root(x: Bounds) -> Optional[Bounds]:
    return (math.sqrt(x[0]), math.sqrt(x[1])) if x[0] >= 0 else None


def _product(x: Bounds, y: Bounds) -> Optional[Bounds]:
    if not all(map(math.isfinite, (*x, *y))):
        return None
    found = [a * b for a in x for b in y]
    return min(found), max(found)


def _quotient(x: Bounds, y: Bounds) -> Optional[Bounds]:
    return _product(x, (1 / y[1], 1 / y[0])) if y[0] > 0 else None


#: The bounds of what functions give that may fail, and of those that they are applied to; None where nothing is known.
_RULES: Dict[str, Callable[..., Optional[Bounds]]] = {
    "pow": _power,
    "sqrt": _root,
    "mul": _product,
    "truediv": _quotient,
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "sub": lambda x, y: (x[0] - y[1], x[1] - y[0]),
}


class NumberBounds:
    """The bounds of numbers of one capture."""

    def __init__(self, capture: Capture):
        self.capture = capture
        self._known: Dict[Value, Bounds] = {}

    def of_call(self, name: str, args: Sequence[Any], operands: Sequence[Value]) -> Optional[Bounds]:
        """The bounds of what a function of numbers gives, which cannot fail then; None where they are not known."""
        if name not in _RULES or not self.capture.staging.in_loop:
            return None
        given = [self._of(operands[x.index] if type(x) is Hole else x) for x in args]
        found = None if None in given or not given else _RULES[name](*given)
        return found if found is not None and all(x == x for x in found) else None

    def note(self, value: Value, bounds: Optional[Bounds]) -> None:
        """A number of the graph lies between these."""
        if bounds is not None:
            self._known[value] = bounds

    def _of(self, item: Any) -> Optional[Bounds]:
        if type(item) in (int, float):
            return (item, item) if math.isfinite(item) else None
        if not isinstance(item, Value):
            return None
        least = self.capture.index_ranges.least.get(item)
        if item in self._known or least is None:
            return self._known.get(item)
        return next(((bound, math.inf) for bound in (1, 0) if least.is_at_least(bound)), None)

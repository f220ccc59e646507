"""Between which bounds numbers lie that only the run knows: what is computed of them cannot fail then."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Sequence, Tuple

import numpy as np

from ..ir.graph import Node, Value
from ..ir.size_bounds import bounds_of
from ..runtime.host_calls import Hole
from .value_enumeration import computes, producer

if TYPE_CHECKING:
    from .protocols import Capture

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


def _clip(x: Bounds, low: Bounds, high: Bounds) -> Optional[Bounds]:
    return min(max(x[0], low[0]), high[0]), min(max(x[1], low[1]), high[1])


def _remainder(x: Bounds, y: Bounds) -> Optional[Bounds]:
    return (0, y[1] - 1) if y[0] == y[1] > 0 else None


def _floor_quotient(x: Bounds, y: Bounds) -> Optional[Bounds]:
    return (x[0] // y[0], x[1] // y[0]) if y[0] == y[1] > 0 else None


#: The same for functions of whole numbers, by the names of Python's and NumPy's.
_WHOLE: Dict[str, Callable[..., Optional[Bounds]]] = {
    "add": _RULES["add"],
    "sub": _RULES["sub"],
    "mul": _product,
    "mod": _remainder,
    "floordiv": _floor_quotient,
    "neg": lambda x: (-x[1], -x[0]),
    "max": lambda *given: tuple(map(max, zip(*given))),
    "min": lambda *given: tuple(map(min, zip(*given))),
    "maximum": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    "minimum": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    "clip": _clip,
}

#: What gives its first operand, or one element of it, as another type.
_SAME = frozenset(("py_int", "int", "within", "item", "getitem", "astype", "cast", "index", "int64", "int32"))

_DEEPEST = 16

#: No array has so many elements.
_LARGEST = 1 << 62


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

    def of_whole(self, item: Any, counted: bool = True, depth: int = _DEEPEST) -> Optional[Bounds]:
        """The bounds of a whole number, or of the elements of an array of such; None where they are not known.

        counted: also of numbers that follow from those that count the iterations of a loop.
        """
        if type(item) is int:
            return item, item
        if isinstance(item, Value) and getattr(item.type, "dtype", None) == np.bool_:
            return 0, 1
        if not isinstance(item, Value) or getattr(item.type, "dtype", None) is None or item.type.dtype.kind not in "iu":
            return None
        found = self._known.get(item) or self._of_size(item)
        if found is None and counted and item in self.capture.index_ranges.places:
            below = self.capture.index_ranges.places[item]
            found = (0, below - 1) if type(below) is int else None
        if found is None and depth:
            found = self._of_node(producer(self.capture.builder, item), counted, depth - 1)
        if found is None or not all(type(bound) is int and _fits(bound, item.type.dtype) for bound in found):
            return None                                 # beyond its dtype, a number would be another one
        return found

    def _of_size(self, item: Value) -> Optional[Bounds]:
        low, high = bounds_of(self.capture.dimensions[item]) if item in self.capture.dimensions else (None, None)
        return None if low is None or high is None else (low, high)

    def _of_node(self, node: Optional[Node], counted: bool, depth: int) -> Optional[Bounds]:
        if node is None or not node.inputs:
            return None
        call, name = node.attrs.get("call"), computes(node)
        if name in _SAME:
            return self.of_whole(node.inputs[0], counted, depth)
        if call is None or call.kwargs or name not in _WHOLE:
            return None
        given = [self.of_whole(node.inputs[part.index] if type(part) is Hole else part, counted, depth) for part in call.args]
        return _WHOLE[name](*given) if given and None not in given else None

    def _of(self, item: Any) -> Optional[Bounds]:
        if type(item) in (int, float):
            return (item, item) if math.isfinite(item) else None
        if not isinstance(item, Value):
            return None
        low, high = bounds_of(self.capture.dimensions[item]) if item in self.capture.dimensions else (None, None)
        if low is not None:
            return low, _LARGEST if high is None else high
        least = self.capture.index_ranges.least.get(item)
        if item in self._known or least is None:
            return self._known.get(item)
        return next(((bound, math.inf) for bound in (1, 0) if least.is_at_least(bound)), None)


def _fits(number: int, dtype: np.dtype) -> bool:
    return bool(np.iinfo(dtype).min <= number <= np.iinfo(dtype).max)

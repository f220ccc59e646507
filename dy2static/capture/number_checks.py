"""Numbers whose size decides what NumPy gives: guarded where a call of the program brings them, checked where it computes them."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Tuple

from ..heap.locations import user_location
from ..ir.dims import Dim
from ..ir.graph import Value
from ..ir.types import Scalar, Tensor
from ..library_facts.by_name import known_as
from ..library_facts.python import symbols
from ..lowering.checked_range import within
from ..runtime.array_writes import write_by_numpy
from ..runtime.checked_range import SEEN
from ..symbolic.number_ranges import Interval, NumberLike, examine, interval_of, kind_of

if TYPE_CHECKING:
    from .protocols import Capture

#: So often a number that only the run knows may turn out to be of another size before calls run eagerly.
_MOST_SURPRISES = 2

#: What gives numbers of NumPy's for such: a size, which is tried as an int, would not show that.
_OPERATORS, _OF_NUMBERS = symbols("binary", "comparison", "unary"), known_as("numbers")

_HINT = "compute with an array of the dtype that is wanted, or convert the result with astype"


class NumberChecks:
    """Of a `Capture`: the sizes of the numbers that NumPy meets.

    texts: the expressions that numbers among the inputs stand for, and what they are in this call.
    """

    def __init__(self, capture: Capture):
        self.capture = capture
        self.texts: Dict[Value, Tuple[str, Any]] = {}

    def hold(self, function: Callable[..., Any], name: str, template: Tuple[Any, Any], operands: List[Value]) \
            -> Tuple[List[Any], Any]:
        """The types of the operands for a trial, and the dtype in which NumPy computes if nothing else shows that.

        Numbers on whose sizes the types of the results depend are guarded, or replaced by checked ones.
        """
        sizes, is_computing = self.capture.dimensions, function in _OPERATORS or name in _OF_NUMBERS
        types = [v.type if is_computing and _is_of_numpy(v) else sizes.get(v, v.type) for v in operands]
        if not any(kind_of(v.type) for v in operands):
            return types, None
        likes = [self._like(v, name, i, operands) if kind_of(v.type) and not isinstance(t, Dim) else v.type
                 for i, (v, t) in enumerate(zip(operands, types))]
        found = examine(function, template, likes)
        if found is None:
            return types, None
        for i, (value, interval) in enumerate(zip(list(operands), found.intervals)):
            if isinstance(likes[i], NumberLike):
                types[i] = likes[i]
            if interval is None or value in self.capture.known:
                continue
            if value in self.texts:
                self.capture.expressions.guard(interval.condition(self.texts[value][0]), True)
            elif not _is_size_within(types[i], interval):
                operands[i] = self._checked(value, interval, self._place(name, i, operands))
        return types, found.wide

    def hold_all(self, operands: List[Value]) -> None:
        """Guard that numbers among the inputs, which go into code that is not known, are about as large as in this call."""
        for value in operands:
            kind = kind_of(value.type)
            if kind is not None and value in self.texts:
                text, number = self.texts[value]
                self.capture.expressions.guard(interval_of(kind, number).condition(text), True)

    def like(self, value: Value) -> Any:
        """The type of an operand; of a number among the inputs, with what it is like."""
        return NumberLike(value.type, self.texts[value][1]) if value in self.texts else value.type

    def widen(self, function: Callable[..., Any], operands: List[Value], types: List[Any], dtype: Any) -> Callable[..., Any]:
        """Let the arrays that are compared have the dtype in which NumPy compares them; the function to be called.

        What is written into an array keeps its dtype: such a write is left to NumPy.
        """
        if dtype.kind == "O":
            self.capture.abort("a number is too large for the integers of NumPy")
        if hasattr(function, "in_place"):
            return write_by_numpy
        for i, value in enumerate(operands):
            if isinstance(value.type, Tensor) and value.ndim and value.dtype != dtype:
                array = self.capture.numpy.call(("method", "astype"), (self.capture.wrap(value), dtype), {})
                operands[i], types[i] = array.value, array.value.type
        return function

    def _like(self, value: Value, name: str, index: int, operands: List[Value]) -> Any:
        """The type of an operand, with what the number is like where that is known."""
        if value in self.texts:
            return NumberLike(value.type, self.texts[value][1])
        if value in self.capture.known:
            return NumberLike(value.type, self.capture.known[value])
        earlier = SEEN.get(f"{self._place(name, index, operands)}#0") if SEEN else None
        return value.type if earlier is None else NumberLike(value.type, earlier)

    def _place(self, name: str, index: int, operands: List[Value]) -> str:
        types = ", ".join([str(v.type) for v in operands])
        return f"{user_location()} (numpy {name} of {types}: {index})"

    def _checked(self, value: Value, interval: Interval, place: str) -> Value:
        count = sum(f"{place}#{i}" in SEEN for i in range(_MOST_SURPRISES))
        if count == _MOST_SURPRISES or count and value in self.capture.dimensions or interval.low is None or interval.high is None:
            self.capture.abort("the dtype of what NumPy gives depends on how large a number is that only the run knows", _HINT)
        checked, = self.capture.builder.add(within, (value,), {
            "least": interval.low, "greatest": interval.high, "finite": interval.finite, "place": f"{place}#{count}"},
            name=value.name)
        if value in self.capture.dimensions:
            self.capture.dimensions[checked] = self.capture.dimensions[value]
        return checked


def _is_of_numpy(value: Value) -> bool:
    return isinstance(value.type, Scalar) and value.type.kind == "numpy"


def _is_size_within(type_: Any, interval: Interval) -> bool:
    """Whether this is the size of an array, which is less than memory, and any such number will do."""
    return isinstance(type_, Dim) and (interval.low is None or interval.low <= 0) and \
        (interval.high is None or interval.high >= 2 ** 63 - 1)

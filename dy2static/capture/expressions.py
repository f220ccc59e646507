"""Numbers that change from call to call: expressions over them, fixed under a guard where Python needs the value."""
from __future__ import annotations

import contextlib
import operator
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, Set, Tuple

import numpy as np

from ..ir.dims import Dim
from ..record.guards import ExpressionMatch
from ..record.paths import place_of_expression
from ..runtime.functions import negative_power, real_power
from ..symbolic.known_texts import SymbolicText
from ..symbolic.least_numbers import SWAPPED, Least, compared, compared_sizes
from ..symbolic.size_trials import without_sizes
from ..symbolic.sizes import Size
from ..symbolic.values import SymbolicScalar, is_symbolic

if TYPE_CHECKING:
    from .protocols import Capture

#: Characters of an expression over numbers, which is written out wherever it is used.  What is computed of longer ones is part
#: of the graph, and where there is no such part, fixed.
LONGEST_EXPRESSION = 400


def _of_hints(function: Callable, operands: Tuple) -> Any:
    """What a function gives for the numbers of this call.  Where it raises, the program is for these very numbers."""
    with contextlib.suppress(Exception):
        return function(*[x.hint if type(x) is SymbolicScalar else x for x in operands])
    # the user's error comes again, under guards of the operands
    return function(*[x.fix() if type(x) is SymbolicScalar else x for x in operands])


class Expressions:
    """What operators on symbolic numbers make in one capture."""

    def __init__(self, capture: Capture):
        self.capture = capture
        self._fixed: Set[Tuple[str, Any]] = set()

    def guard(self, text: str, value: Any) -> None:
        """Fix the value of an expression over numbers."""
        if (text, value) not in self._fixed:
            self._fixed.add((text, value))
            if self.capture.heap.refused:
                what = f"a {'string' if isinstance(value, (str, bytes)) else 'number'} that must be known here"
                self.capture.heap.check_refused(ExpressionMatch, place_of_expression(text, self.capture.inputs.named), what)
            self.capture.heap.guard(ExpressionMatch(text, value))

    def operation(self, function: Callable, symbol: str, *operands: Any) -> Any:
        """An operator on numbers at least one of which is symbolic."""
        operands = tuple(map(without_sizes, operands))
        if not all(type(x) in (bool, int, float, SymbolicScalar) for x in operands):
            if any(type(x) is SymbolicText for x in operands):
                return NotImplemented                   # which knows how
            of_run = any(type(x) is SymbolicScalar and x.text is None for x in operands)
            if of_run and any(isinstance(x, np.number) and not is_symbolic(x) for x in operands):
                return self.capture.numpy.call(function, operands, {})
            if symbol in ("==", "!=") and any(isinstance(x, (type(None), str, bytes, tuple, list, dict)) for x in operands):
                return symbol == "!="
            return function(*[x.fix() if type(x) is SymbolicScalar else x for x in operands])
        if symbol == "**" and any(type(x) is SymbolicScalar and x.text is None for x in operands):
            return self._power(*operands)
        if symbol in ("**", "<<", ">>") and type(operands[1]) is SymbolicScalar and operands[1].text is not None and \
                not (symbol == "**" and self._has_known_type(*operands)):
            operands = (operands[0], operands[1].fix())
        if any(type(x) is SymbolicScalar and x.text is None for x in operands):
            known = self._compared(symbol, *operands) if symbol in SWAPPED else None
            if known is not None:
                return known
            least = self._least(operands[0])
            found = self.capture.numpy.call(function, operands, {})
            sizes = [self.size_of(x) for x in operands] if symbol in ("+", "-", "*", "//", "%") else [None]
            if None not in sizes and (symbol in "+-*" or type(sizes[1]) is int and sizes[1] > 0):
                self.capture.dimensions[found.value] = function(*sizes)
            below = self.capture.index_ranges.places.get(getattr(operands[0], "value", None))
            if below is not None and symbol == "+" and type(operands[1]) is int and operands[1] >= 0:
                self.capture.index_ranges.places[found.value] = below + operands[1]
            multiple = self.capture.index_ranges.multiples.get(getattr(operands[0], "value", None))
            if multiple is not None and len(operands) == 2 and type(operands[1]) is int:
                made = multiple.computed(symbol, operands[1])
                if made is not None:
                    self.capture.index_ranges.multiples[found.value] = made
            if least is not None and symbol in ("+", "-") and len(operands) == 2 and type(operands[1]) is int:
                self.capture.index_ranges.least[found.value] = least.moved(operands[1] if symbol == "+" else -operands[1])
            return found
        result = _of_hints(function, operands)
        texts = [self.text_of(x) for x in operands]
        if symbol == "abs":
            return self._made(f"abs({texts[0]})", result, function, operands)
        text = f"({f' {symbol} '.join(texts)})" if len(texts) == 2 else f"({symbol}{texts[0]})"
        return self._made(text, result, function, operands)

    def _has_known_type(self, base: Any, exponent: SymbolicScalar) -> bool:
        """Whether the type of ``base ** exponent`` follows from the types and from a sign, which is guarded."""
        kinds = [x.python_type if type(x) is SymbolicScalar else type(x) for x in (base, exponent)]
        if kinds[1] is float:
            return bool(base >= 0)                      # else it may be complex
        if kinds[0] is not float:                       # it is a float if the exponent is negative, else whole
            self.operation(operator.ge, ">=", exponent, 0)
        return True

    def _least(self, number: Any) -> Optional[Least]:
        """What a number of a loop is certain not to be below."""
        return self.capture.index_ranges.least.get(number.truth) if type(number) is SymbolicScalar and number.text is None else None

    def _compared(self, symbol: str, *operands: Any) -> Optional[bool]:
        """A comparison of sizes, or with a number that a loop counts up or down, where that is certain."""
        sizes = [self.size_of(x) if type(x) is not SymbolicScalar or x.python_type is int else None for x in operands]
        if None not in sizes:
            return compared_sizes(sizes[0], symbol, sizes[1])
        for number, other, asked in ((operands[0], sizes[1], symbol), (operands[1], sizes[0], SWAPPED[symbol])):
            if other is None:
                continue
            least = self._least(number)
            if least is None:
                place, length = self._mirrored(number)
                other, asked = length - 1 - other, SWAPPED[asked]
                least = self.capture.index_ranges.least.get(place)
            known = compared(least, asked, other) if least is not None and type(other) is int else None
            if known is not None:
                return known
        return None

    def _mirrored(self, number: Any) -> Tuple[Any, Any]:
        """A place and a length, of which a number is ``length - 1 - place``; None and 0 for others."""
        is_of_run = type(number) is SymbolicScalar and number.text is None
        return self.capture.index_ranges.mirrored.get(number.truth, (None, 0)) if is_of_run else (None, 0)

    def size_of(self, number: Any) -> Any:
        """The number as an int or a size; None if it is neither."""
        if type(number) is int:
            return number
        if isinstance(number, Dim):
            return number.plain
        return self.capture.dimensions.get(number.value) if type(number) is SymbolicScalar and number.text is None else None

    def with_sizes(self, item: Any) -> Any:
        """The item, and what tuples, lists, dicts and slices hold, with sizes for numbers that are such."""
        if type(item) in (tuple, list):
            return type(item)(map(self.with_sizes, item))
        if type(item) is dict:
            return {key: self.with_sizes(part) for key, part in item.items()}
        if type(item) is slice:
            return slice(*map(self.with_sizes, (item.start, item.stop, item.step)))
        size = self.size_of(item)
        return Size(self.capture, size) if isinstance(size, Dim) else item

    def _power(self, base: Any, exponent: Any) -> Any:
        """``base ** exponent``, whose type follows from the types, except where an exponent is negative, or a base is."""
        kinds = [x.python_type if type(x) is SymbolicScalar else type(x) for x in (base, exponent)]
        if float in kinds:
            whole = type(exponent) in (int, float, bool) and float(exponent).is_integer() or kinds[1] is not float
            positive = type(base) is not SymbolicScalar and base >= 0
            return self.capture.numpy.call(operator.pow if whole or positive else real_power, (base, exponent), {})
        if kinds[1] is int and bool(exponent < 0):
            return self.capture.numpy.call(negative_power, (base, exponent), {})
        return self.capture.numpy.call(operator.pow, (base, exponent), {})

    def _made(self, text: str, hint: Any, function: Callable, operands: Tuple) -> Any:
        """What a function gives for numbers: an expression, or where that would be too long, a number of the graph."""
        if len(text) > LONGEST_EXPRESSION and type(hint) in (int, float):
            return self.capture.numpy.call(function, operands, {})
        return self.make(text, hint)

    def make(self, text: str, hint: Any) -> Any:
        """A symbolic number for an expression whose value in this call is ``hint``; the value, if it decides something."""
        kind = {bool: "py_bool", int: "py_int", float: "py_float"}.get(type(hint))
        if kind is None:
            self.capture.abort(f"a number of type {type(hint).__name__}")
        if kind == "py_bool" or len(text) > LONGEST_EXPRESSION or self.capture.deciding.is_fixed_expression(text):
            self.guard(text, hint)
            return hint
        return SymbolicScalar(self.capture, kind, text, hint)

    def text_of(self, operand: Any) -> str:
        """The Python text of an operand."""
        if type(operand) is SymbolicScalar:
            return operand.text
        if isinstance(operand, float) and (operand != operand or operand in (float("inf"), -float("inf"))):
            return self.capture.inputs.bind(operand, "number")
        return f"({operand!r})" if operand < 0 else repr(operand)

    def function_of_numbers(self, function: Callable, args: Tuple) -> Any:
        """``math.exp(x)`` and its like on symbolic numbers that are expressions."""
        result = _of_hints(function, args)
        if type(result) not in (bool, int, float):
            return function(*[x.fix() if type(x) is SymbolicScalar else x for x in args])
        name = self.capture.inputs.bind(function, getattr(function, "__name__", "function"))
        return self._made(f"{name}({', '.join(self.text_of(x) for x in args)})", result, function, args)

    def function_of_list(self, function: Callable, items: Sequence[Any], first: Any) -> Any:
        """``sum(items, first)`` and its like on symbolic numbers that are expressions."""
        name = self.capture.inputs.bind(function, function.__name__)
        text = f"{name}([{', '.join(map(self.text_of, items))}], {self.text_of(first)})"
        if len(text) > LONGEST_EXPRESSION:
            return self.capture.numpy.call(function, (tuple(items), first), {})
        return self.make(text, _of_hints(lambda first, *items: function(items, first), (first, *items)))

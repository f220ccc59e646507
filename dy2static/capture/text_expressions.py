"""Texts that change from call to call: expressions over them, and over numbers, fixed under a guard where Python needs one."""
from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Callable, List, Mapping, Optional, Tuple

from ..runtime.functions import join
from ..symbolic.known_texts import SymbolicText, fixed, is_expression
from ..symbolic.texts import text_of_run
from .expressions import LONGEST_EXPRESSION

if TYPE_CHECKING:
    from .protocols import Capture

_NONE: Mapping[str, Any] = {}

_PLAIN = (str, bytes, int, float, bool, type(None))


class TextExpressions:
    """What operators and methods make of texts that are inputs of one capture."""

    def __init__(self, capture: Capture):
        self.capture = capture

    def call(self, function: Callable, args: Tuple, kwargs: Mapping[str, Any] = _NONE, pattern: Optional[str] = None) -> Any:
        """What a function that only computes gives for texts and numbers, where expressions are known of all that are unknown.

        pattern: how the call is written, if not as one of the function.
        A text is an expression again, and so is a number; a truth is fixed.  For anything else the operands are fixed.
        """
        written = [self._operand_text(item) for item in (*args, *kwargs.values())]
        if None not in written:
            try:
                result = function(*map(_hint, args), **{name: _hint(item) for name, item in kwargs.items()})
            except Exception:                           # the user's error: below it comes again, for these very operands
                result = None
            if type(result) in (str, bytes, bool, int, float):
                return self._expression_of(pattern, function, written, tuple(kwargs), result)
        return function(*map(fixed, args), **{name: fixed(item) for name, item in kwargs.items()})

    def joined(self, *parts: Any) -> Any:
        """Texts, some of which only the run knows, one behind the other."""
        return text_of_run(self.capture, join, parts, name="join")

    def part(self, text: Any, index: slice) -> Any:
        """A slice of a text that only the run knows."""
        return text_of_run(self.capture, operator.getitem, (text, index), name="slice")

    def _expression_of(self, pattern: Optional[str], function: Callable, written: List[Any], names: Tuple[str, ...],
                       result: Any) -> Any:
        if pattern is not None:
            text = pattern.format(*written)
        else:
            given = [*written[:len(written) - len(names)], *map("{}={}".format, names, written[len(written) - len(names):])]
            text = f"{self.capture.inputs.bind(function, function.__name__.strip('_'))}({', '.join(given)})"
        if type(result) not in (str, bytes):
            return self.capture.expressions.make(text, result)
        if len(text) <= LONGEST_EXPRESSION:
            return SymbolicText(self.capture, text, result)
        self.capture.expressions.guard(text, result)
        return result

    def _operand_text(self, item: Any) -> Optional[str]:
        """The item as a part of an expression; None if it is something else."""
        if type(item) is tuple:
            parts = [self._operand_text(part) for part in item]
            return None if None in parts else f"({''.join([f'{part}, ' for part in parts])})"
        if type(item) is slice:
            parts = [self._operand_text(part) for part in (item.start, item.stop, item.step)]
            return None if None in parts else f"slice({', '.join(parts)})"
        if is_expression(item):
            return item.text
        if type(item) in (int, float):
            return self.capture.expressions.text_of(item)
        return repr(item) if type(item) in _PLAIN else None


def _hint(item: Any) -> Any:
    """The operand in the call that is being captured."""
    if type(item) is tuple:
        return tuple(map(_hint, item))
    if type(item) is slice:
        return slice(*map(_hint, (item.start, item.stop, item.step)))
    return item.hint if is_expression(item) else item

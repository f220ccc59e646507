"""``sum``.  From Python 3.12 on it carries along what is lost to rounding, if it adds floats: `+` after `+` has other last bits."""
from __future__ import annotations

import itertools
import sys
from typing import Any, Callable, List

from ..capture_context import Calls
from ..runtime import dy
from .iterators import parts_of
from .kinds import number_kind
from .list_functions import called
from .list_items import Items
from .lists import StagedList, symbolic_items
from .values import SymbolicScalar

#: Whether ``sum`` of floats is more exact than additions.
IS_COMPENSATED = sys.version_info >= (3, 12)

_NUMBERS = ("py_bool", "py_int", "py_float")


def total(calls: Calls, function: Callable, items: Any, *start: Any, **named: Any) -> Any:
    """``sum``: of what only the run knows the length of, a loop, unless these are numbers."""
    parts = parts_of(calls.capture, items)
    if len(start) > 1 or named and (start or set(named) != {"start"}):
        return calls.native(function)(items, *start, **named)
    first = (*start, *named.values(), 0)[0]
    if parts is None:
        is_exact = not IS_COMPENSATED or number_kind(first) not in _NUMBERS or not hasattr(type(items), "__iter__")
        return calls.native(function)(items, *start, **named) if is_exact else _of_some(calls, function, items, first)
    found = symbolic_items(items)
    if found is not None and found.kind in _NUMBERS and _has_one_type(found, first):
        listed = StagedList(found.capture, [found]) if type(first) is int and first == 0 else \
            StagedList(found.capture, [first]) + StagedList(found.capture, [found])
        return called(calls, symbolic_items(listed), function)      # type: ignore[arg-type]
    return dy.for_(parts, _plus, (first,), names=("the sum",))[0]


def _has_one_type(items: Items, first: Any) -> bool:
    """Whether the sum is of one type, however many items there are: of no floats, it is what it begins with."""
    if items.kind == "py_float":
        return number_kind(first) == "py_float" or items.is_sure and type(first) is int and first == 0
    return type(first) is int and first == 0


def _plus(item: Any, before: Any) -> Any:
    return before + item,


def _of_some(calls: Calls, function: Callable, items: Any, first: Any) -> Any:
    """The sum of items that are there, numbers as long as there are only such."""
    rest, numbers = iter(items), []
    for item in rest:
        if number_kind(item) not in _NUMBERS:
            return calls.native(function)(itertools.chain((item,), rest), _of_numbers(calls, function, numbers, first))
        numbers.append(item)
    return _of_numbers(calls, function, numbers, first)


def _of_numbers(calls: Calls, function: Callable, numbers: List[Any], first: Any) -> Any:
    given = (first, *numbers)
    if not any(type(x) is SymbolicScalar for x in given) or all(number_kind(x) != "py_float" for x in given):
        return calls.native(function)(numbers, first)
    if any(type(x) is SymbolicScalar and x.text is None for x in given):
        return calls.capture.numpy.call(function, (tuple(numbers), first), {})
    return calls.capture.expressions.function_of_list(function, numbers, first)

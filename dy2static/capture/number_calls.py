"""Builtins and functions of ``math`` on numbers that only the run knows: conversions, extremes, order, arithmetic."""
from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Callable, Iterable, List, Optional

from ..ir.dims import Dim
from ..ir.size_bounds import maximum, minimum
from ..runtime.functions import item_of_extreme, sorted_by
from ..symbolic.known_texts import SymbolicText
from ..symbolic.list_functions import of_numbers
from ..symbolic.sequences import CountedRange, Range
from ..symbolic.size_trials import without_sizes
from ..symbolic.sizes import Size
from ..symbolic.values import SymbolicArray, SymbolicScalar

if TYPE_CHECKING:
    from .protocols import Calls, Capture

#: Python's conversions.
CONVERSIONS = frozenset((float, int, bool))

#: So many items are compared in Python, each way on its own, so that what is chosen stays known; more are left to the run.
_FEW = 3


class NumberCalls:
    """Calls of builtins on numbers."""

    def __init__(self, calls: Calls):
        self.calls, self.capture = calls, calls.capture

    def range(self, *bounds: Any) -> Any:
        """Run ``range``; bounds that only the graph knows make a `Range`."""
        bounds = tuple(map(without_sizes, bounds))
        unknown = any(type(x) is SymbolicScalar and x.text is None for x in bounds)
        if not unknown:
            return range(*bounds)
        self.capture.deciding.sizes(*bounds)
        found = Range(self.capture, *bounds)
        if type(found.start) is int and type(found.length) is int:
            return CountedRange(range(found.start, found.start + found.length * found.step, found.step), found.stop)
        return found

    def converted(self, cls: type, *args: Any, **kwargs: Any) -> Any:
        """Run int, float or bool."""
        if cls is int and len(args) == 1 and type(args[0]) is Size:
            return Size(self.capture, args[0].plain)
        if any(type(x) is SymbolicText for x in args):
            return self.capture.texts.call(cls, args, kwargs)
        args = tuple(map(without_sizes, args)) if len(args) == 1 else args
        if len(args) == 1 and type(args[0]) is SymbolicArray:
            return self.capture.numpy.call(cls, args, kwargs)
        if len(args) == 1 and type(args[0]) is SymbolicScalar:
            if args[0].text is None:
                return self.capture.numpy.call(cls, args, kwargs)
            return self.capture.expressions.function_of_numbers(cls, args)
        return cls(*args, **kwargs)

    def of_truths(self, function: Callable, items: Any) -> Any:
        """``any`` and ``all``: of an array, or of a list of numbers, part of the graph."""
        if _is_row(items):
            return self.capture.numpy.call(function, (items,), {})
        found = of_numbers(self.calls, function, items)
        if found is not NotImplemented:
            return found
        if isinstance(items, (list, tuple)) and items and all(map(_kind, items)) and _has_numbers(items) and \
                not any(type(x) is tuple for x in items):
            return self.capture.numpy.call(function, (tuple(items),), {})
        return self.calls.native(function)(items)

    def extreme(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """``max`` and ``min``: of numbers of one type, or of tuples of such, part of the graph."""
        if len(args) == 1 and not kwargs and _is_row(args[0]) and args[0].type.shape[0] != 0:
            return self.capture.numpy.call(function, args, {})
        found = of_numbers(self.calls, function, args[0]) if len(args) == 1 and not kwargs else NotImplemented
        if found is not NotImplemented:
            return found
        if len(args) == 1 and (hasattr(type(args[0]), "__next__") or isinstance(args[0], range)):
            args = (list(args[0]),)
        items = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
        sizes = [] if kwargs else list(map(self.capture.expressions.size_of, items))
        of_numpy = {getattr(n, "dtype_of_number", None) for n in items if type(n) is Size} - {None}
        if None not in sizes and not of_numpy and any(isinstance(n, Dim) for n in sizes):
            size = reduce(maximum if function is max else minimum, sizes)
            return Size(self.capture, size) if isinstance(size, Dim) else size
        inside = self.capture.index_ranges.inside(items, sizes) if function is min else None
        if inside is not None:
            return inside
        if not kwargs and len(items) > 1 and _are_expressions(items):
            return self.capture.expressions.function_of_numbers(function, tuple(items))
        if not kwargs and len(items) > 1 and _is_of_one_type(items) and (_kind(items[0]) is not tuple or len(items) > _FEW - 1):
            return self.capture.numpy.call(function, tuple(items), {})
        if kwargs.get("key") is not None and len(kwargs) == 1 and len(items) > _FEW and all(type(x) is int for x in items):
            key = noted(self.capture, self.calls.callee(kwargs["key"]))
            keys = [key(x) for x in items]
            if _is_of_one_type(keys):
                return self.capture.numpy.call(item_of_extreme, (function, tuple(keys), tuple(items)), {})
            return function(items, key=dict(zip(items, keys)).__getitem__)
        return self.calls.native(function)(*args, **self._with_key(kwargs))

    def ordered(self, function: Callable, items: Iterable[Any], **kwargs: Any) -> Any:
        """``sorted``: of numbers of one type, or of tuples of such, part of the graph."""
        found = NotImplemented if kwargs else of_numbers(self.calls, function, items)
        if found is not NotImplemented:
            return found
        items = list(items)
        plain = kwargs.get("key") is None and type(kwargs.get("reverse", False)) is bool
        if plain and len(items) > 1 and _is_of_one_type(items) and (_kind(items[0]) is not tuple or len(items) > _FEW):
            return self.capture.numpy.call(function, (items,), kwargs)
        has_key = kwargs.get("key") is not None and type(kwargs.get("reverse", False)) is bool
        if has_key and len(items) > _FEW and all(type(x) is int for x in items):
            key = noted(self.capture, self.calls.callee(kwargs["key"]))
            keys = [key(x) for x in items]
            if _is_of_one_type(keys):
                return self.capture.numpy.call(sorted_by, (tuple(keys), tuple(items), kwargs.get("reverse", False)), {})
            return function(items, **{**kwargs, "key": dict(zip(items, keys)).__getitem__})
        return self.calls.native(function)(items, **self._with_key(kwargs))

    def _with_key(self, kwargs: Any) -> Any:
        if not callable(kwargs.get("key")):
            return kwargs
        return {**kwargs, "key": noted(self.capture, self.calls.callee(kwargs["key"]))}       # which is not looked at again

    def of_numbers(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Run a function of numbers, in the graph where one is symbolic."""
        args = tuple(map(without_sizes, args))
        symbolic = [x for x in args if type(x) is SymbolicScalar]
        if symbolic and not kwargs and all(type(x) in (int, float, bool, SymbolicScalar) for x in args):
            if all(x.text is not None for x in symbolic):
                return self.capture.expressions.function_of_numbers(function, args)
            if function is pow and len(args) == 2:
                return args[0] ** args[1]
            return self.capture.numpy.call(function, args, kwargs)
        of_arrays = getattr(function, "__module__", "") == "math" or function in (round, divmod)
        if of_arrays and any(type(x) is SymbolicArray for x in args):
            return self.capture.numpy.call(function, args, kwargs)
        if getattr(function, "__module__", "") == "math" and any(isinstance(x, (list, tuple)) and _has_numbers(x) for x in args):
            return self.capture.numpy.call(function, args, kwargs)
        return self.calls.native(function)(*args, **kwargs)


def note_order(capture: Capture, key: Any) -> None:
    """Note that something is put into an order by a key, or by several.  By sizes, each call has another: best left to Python."""
    if any(isinstance(capture.expressions.size_of(part), Dim) for part in (key if type(key) in (tuple, list) else (key,))):
        history = capture.free_sizes.history
        history.has_orders = True
        if history.leaves_orders:
            capture.abort("items are put into an order by sizes that are others in nearly every call", at_once=True,
                          hint="sort them outside of the compiled function")


def noted(capture: Capture, key: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives the keys of items, which are put into an order by them."""
    def of(item: Any) -> Any:
        found = key(item)
        note_order(capture, found)
        return found
    return of


def _is_row(item: Any) -> bool:
    """Whether this is an array of one dimension."""
    return type(item) is SymbolicArray and len(item.type.shape) == 1


def _kind(item: Any) -> Optional[Any]:
    """What type a number has, or that it is a tuple."""
    if type(item) is SymbolicScalar:
        return item.python_type
    if type(item) is SymbolicArray:
        return item.dtype.type if item.is_scalar else None
    return type(item) if type(item) in (int, float, bool, tuple) else None


def _is_of_one_type(items: List[Any]) -> bool:
    """Whether these are numbers of one type some of which only the run knows, or tuples of such."""
    kinds = {tuple(map(_kind, x)) if type(x) is tuple else (_kind(x),) for x in items}
    if len(kinds) != 1 or None in next(iter(kinds)) or tuple in next(iter(kinds)):
        return False
    return any(_has_numbers(x) if type(x) is tuple else _has_numbers((x,)) for x in items)


def _are_expressions(items: List[Any]) -> bool:
    """Whether these are floats, some of which are expressions over numbers.  Which one is chosen decides no size."""
    return {_kind(x) for x in items} == {float} and any(type(x) is SymbolicScalar for x in items) and \
        all(type(x) is float or type(x) is SymbolicScalar and x.text is not None for x in items)


def _has_numbers(items: Iterable[Any]) -> bool:
    return any(type(x) is SymbolicScalar and x.text is None or type(x) is SymbolicArray and x.is_scalar for x in items)

"""``_dy``: what converted code calls.

On Python values every function here does exactly what Python does.  Where a symbolic value decides, the handler of
that name in `hooks.handlers` takes over; without one, Python asks the value itself.
"""
from __future__ import annotations

import operator
import sys
from typing import Any, Callable, Iterator, Optional, Sequence, Tuple

import numpy as np

from . import patterns
from .hooks import handlers, stage, symbolic_types
from .unbound import Unbound, Undefined
from .unpacking import UNPACKED

_UNBOUND = ("cannot access local variable '{}' where it is not associated with a value" if sys.version_info >= (3, 11)
            else "local variable '{}' referenced before assignment")


def read(value: Any) -> Any:
    """The value of a name that may be unbound.  Raises UnboundLocalError as Python would."""
    if type(value) in symbolic_types:
        result = _staged("read", value)
        if result is not NotImplemented:
            return result
    if type(value) is Undefined:
        raise UnboundLocalError(_UNBOUND.format(value.name))
    return value


def leave(value: Any) -> Any:
    """The value of a name that leaves a part of a function; `Unbound` where it has none."""
    if type(value) in symbolic_types:
        result = _staged("leave", value)
        if result is not NotImplemented:
            return result
    return Unbound if type(value) is Undefined else value


def bound(value: Any) -> Any:
    """The value of a name that is bound here, if a decision has made that hard to see."""
    result = _staged("bound", value) if type(value) in symbolic_types else NotImplemented
    return value if result is NotImplemented else result


def owner(value: Any) -> Any:
    """The object whose attribute is set or deleted next."""
    if stage.capture is not None:
        _staged("owner", value)
    return value


def holder(value: Any, name: str) -> Any:
    """The object whose attribute ``name`` is read next: a part of a function, if it is one."""
    if stage.capture is not None:
        _staged("holder", value, name)
    return value


def call(function: Callable[..., Any]) -> Callable[..., Any]:
    """What to call for ``function``: itself, or its staged form while a capture runs."""
    capture = stage.capture
    return function if capture is None else capture.callee(function)


def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
    """What to apply for a decorator: itself, or the staged form of one of the user's while a capture runs."""
    capture = stage.capture
    return function if capture is None else capture.decorator(function)


def _staged(name: str, *arguments: Any) -> Any:
    """What the handler for symbolic values makes of a call; NotImplemented if it leaves the call to Python."""
    handler = handlers.get(name)
    return NotImplemented if handler is None else handler(stage.capture, *arguments)


# --- statements -----------------------------------------------------------------------------------------------------


def cond(test: Any, then: Callable[..., Tuple], orelse: Callable[..., Tuple], state: Tuple, *,
         names: Sequence[str] = ()) -> Tuple:
    """``if test: then else: orelse``, each taking and giving the local names of the block."""
    if type(test) in symbolic_types:
        result = _staged("cond", test, then, orelse, state, names)
        if result is not NotImplemented:
            return result
    return then(*state) if test else orelse(*state)


def while_(test: Callable[..., Any], body: Callable[..., Tuple], state: Tuple, *, names: Sequence[str] = ()) -> Tuple:
    """``while test: body``, both taking the local names of the loop, ``body`` giving them.

    The handler gets, before the others, what ``test(*state)`` has just given: any iteration may be the first to depend
    on a symbolic value.
    """
    while True:
        again = test(*state)
        if type(again) in symbolic_types:
            result = _staged("while_", again, test, body, state, names)
            if result is not NotImplemented:
                return result
        if not again:
            return state
        state = body(*state)


def for_(iterable: Any, body: Callable[..., Tuple], state: Tuple, *, names: Sequence[str] = (),
         stop: Optional[Callable[..., Any]] = None) -> Tuple:
    """``for item in iterable: body``; ``body`` takes the item and the local names of the loop, and gives the names.

    ``stop`` says after each item whether to take no further one.  Where that is symbolic, the handler ``for_rest``
    gets the answer and the iterator in place of ``iterable``.
    """
    if type(iterable) in symbolic_types:
        result = _staged("for_", iterable, body, state, names, stop)
        if result is not NotImplemented:
            return result
    iterator = iter(iterable)
    del iterable
    trips = NotImplemented if stage.capture is None or stop is not None else _staged("trips", iterator, body, names)
    try:
        while True:
            if trips is not NotImplemented:
                rest = trips.rest(state)
                if rest is not None:
                    return rest
            try:
                item = next(iterator)
            except StopIteration:
                return state
            state = body(item, *state)
            if stop is None:
                continue
            done = stop(*state)
            if type(done) in symbolic_types:
                result = _staged("for_rest", done, iterator, body, state, names, stop)
                if result is not NotImplemented:
                    return result
            if done:
                return state
    finally:
        del iterator, trips  # an exception keeps this frame: a generator must be closed before anyone handles it


def after(start: Optional[range]) -> range:
    """Where a loop goes on after the item at which this range begins; without one, at the first item."""
    return range(0, 1) if start is None else range(start.stop, start.stop + 1)


def rest(ahead: Tuple[str, int, Tuple[Any, ...]], start: range) -> Any:
    """What is left of the items that a loop goes through, from the number at which a range begins.

    ahead: of what kind they are (``enumerate``, ``zip`` or neither), the number of the first, and the lists or tuples.
    """
    kind, first, sequences = ahead
    items = [_items_from(sequence, start.start) for sequence in sequences]
    return enumerate(items[0], first + start.start) if kind == "enumerate" else zip(*items) if kind == "zip" else items[0]


def _items_from(sequence: Any, number: int) -> Iterator[Any]:
    """As the iterator of a list; it asks for no item before."""
    while number < len(sequence):
        yield sequence[number]
        number += 1


def assert_(test: Any, message: Optional[Callable[[], Any]] = None) -> None:
    """``assert test, message()``."""
    if type(test) in symbolic_types and _staged("assert_", test, message) is not NotImplemented:
        return
    if not test:
        raise AssertionError if message is None else AssertionError(message())


def handled(*seen: Any) -> None:
    """The begin of ``except ... as error:`` and of ``__exit__``, which may look at what an exception says."""
    if stage.capture is not None:
        for error in seen:
            if isinstance(error, BaseException):
                _staged("handled", error)


# --- expressions ----------------------------------------------------------------------------------------------------


def if_exp(test: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
    """``then() if test else orelse()``."""
    if type(test) in symbolic_types:
        result = _staged("if_exp", test, then, orelse)
        if result is not NotImplemented:
            return result
    return then() if test else orelse()


def and_(first: Any, *rest: Callable[[], Any]) -> Any:
    """``first and rest[0]() and …``: evaluates only what Python would."""
    value = first
    for number, thunk in enumerate(rest):
        if type(value) in symbolic_types:
            result = _staged("and_", value, *rest[number:])
            if result is not NotImplemented:
                return result
        if not value:
            return value
        value = thunk()
    return value


def or_(first: Any, *rest: Callable[[], Any]) -> Any:
    """``first or rest[0]() or …``: evaluates only what Python would."""
    value = first
    for number, thunk in enumerate(rest):
        if type(value) in symbolic_types:
            result = _staged("or_", value, *rest[number:])
            if result is not NotImplemented:
                return result
        if value:
            return value
        value = thunk()
    return value


def all_of(first: Any, *rest: Callable[[], Any]) -> Any:
    """Something with the truth of ``first and rest[0]() and …``."""
    value = first
    for number, thunk in enumerate(rest):
        if type(value) in symbolic_types:
            result = _staged("all_of", value, *rest[number:])
            if result is not NotImplemented:
                return result
        if not value:
            return False
        value = thunk()
    return value


def any_of(first: Any, *rest: Callable[[], Any]) -> Any:
    """Something with the truth of ``first or rest[0]() or …``."""
    value = first
    for number, thunk in enumerate(rest):
        if type(value) in symbolic_types:
            result = _staged("any_of", value, *rest[number:])
            if result is not NotImplemented:
                return result
        if value:
            return True
        value = thunk()
    return value


def not_(value: Any) -> Any:
    """``not value``."""
    if type(value) in symbolic_types:
        result = _staged("not_", value)
        if result is not NotImplemented:
            return result
    return not value


def list_of(items: Any, test: Optional[Callable[..., Any]], element: Callable[..., Any], count: int) -> list:
    """``[element for names in items if test]``; the functions take the names, of which there are ``count`` if they are a tuple."""
    if stage.capture is not None:
        result = _staged("list_of", items, test, element, count)
        if result is not NotImplemented:
            return result
    if not count:
        return [element(item) for item in items if test is None or test(item)]
    return [element(*names) for names in map(UNPACKED[count], items) if test is None or test(*names)]


def truth_of(function: Callable[..., Any], items: Any, test: Optional[Callable[..., Any]], element: Callable[..., Any],
             count: int) -> Any:
    """``function(element for names in items if test)``, as `list_of`; a capture decides ``all`` and ``any`` item by item."""
    if stage.capture is not None:
        result = _staged("truth_of", function, items, test, element, count)
        if result is not NotImplemented:
            return result
    return call(function)(element(*parts) for parts in map(UNPACKED[count], items) if test is None or test(*parts))


def items_of(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)``, which is iterated over; a capture gives a tuple where nothing can tell how many items are read."""
    items = call(function)(*args)
    found = NotImplemented if stage.capture is None else _staged("items_of", function, items, args)
    return items if found is NotImplemented else found


def list_(items: list) -> list:
    """The list of a display that is assigned; a capture gets one of its own kind."""
    if stage.capture is not None:
        result = _staged("list_", items)
        if result is not NotImplemented:
            return result
    return items


def is_(first: Any, second: Any) -> Any:
    """``first is second``; a capture knows which objects are stand-ins of one and the same."""
    capture = stage.capture
    return first is second if capture is None else capture.identical(first, second)


def is_not(first: Any, second: Any) -> Any:
    """``first is not second``."""
    return not_(is_(first, second))


def in_(item: Any, container: Any) -> Any:
    """``item in container``; the handler is asked during every capture, since what is inside may be symbolic."""
    if stage.capture is not None:
        result = _staged("in_", item, container)
        if result is not NotImplemented:
            return result
    return item in container


_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
                "!=": operator.ne, "is": is_, "is not": is_not, "in": in_,
                "not in": lambda item, container: not_(in_(item, container))}


def compare(left: Any, symbol: str, right: Any, *rest: Any) -> Any:
    """``left < right <= rest[1]() …``: each operand evaluated at most once, and only if Python would.

    rest: symbol, operand as a function of nothing, and so on.
    """
    result = _COMPARISONS[symbol](left, right)
    return and_(result, lambda: compare(right, rest[0], rest[1](), *rest[2:])) if rest else result


#: What computes with its index, instead of looking something up: ``np.r_[0, xs]``.
_COMPUTING_ITEMS = frozenset(map(type, (np.r_, np.c_, np.mgrid, np.ogrid)))


#: ``key[a:b, c]`` is the index itself.
key = np.s_


def item(container: Any, index: Any) -> Any:
    """``container[index]``."""
    if type(index) in symbolic_types or type(container) in _COMPUTING_ITEMS:
        result = _staged("item", container, index)
        if result is not NotImplemented:
            return result
    return container[index]


def format_(value: Any, spec: str = "", conversion: str = "") -> Any:
    """``f"{value!conversion:spec}"``."""
    if type(value) in symbolic_types or type(spec) in symbolic_types or isinstance(value, (Exception, tuple)):
        result = _staged("format_", value, spec, conversion)
        if result is not NotImplemented:
            return result
    return format(_CONVERSIONS[conversion](value) if conversion else value, spec)


def match(subject: Any, pattern: patterns.Pattern) -> Tuple[Any, Tuple[Any, ...]]:
    """Whether a subject of ``match`` matches a pattern, and the values of the names that this binds."""
    return pattern.match(subject, _WAYS)


_WAYS = patterns.Ways(all_of, if_exp, is_, call)

_CONVERSIONS = {"r": repr, "s": str, "a": ascii}


def fstring(*parts: Any) -> Any:
    """The parts of an f-string, formatted by `format_`, as one text."""
    if any(type(part) in symbolic_types for part in parts):
        result = _staged("fstring", *parts)
        if result is not NotImplemented:
            return result
    return "".join(parts)


def dict_(*pairs: Tuple[Any, Any]) -> Any:
    """``{key: value, …}``."""
    if any(type(key) in symbolic_types for key, _ in pairs):
        result = _staged("dict_", *pairs)
        if result is not NotImplemented:
            return result
    return {key: value for key, value in pairs}         # noqa: C416 (raises what a display raises)


def percent(template: str, values: Any) -> Any:
    """``template % values``."""
    given = values if type(values) is tuple else values.values() if type(values) is dict else (values,)
    if any(type(part) in symbolic_types or isinstance(part, (Exception, tuple)) for part in given):
        result = _staged("percent", template, values)
        if result is not NotImplemented:
            return result
    return template % values

"""Attributes of functions, and generic functions, of which the standard library sets attributes of its own."""
from __future__ import annotations

import functools
import types
from typing import Any, Callable, Dict

from ..capture_context import CaptureContext


class _Example:
    @functools.singledispatchmethod
    def method(self, item: Any) -> None:
        """Gives the code that all such methods share."""


#: The code of generic functions and of generic methods.  Python 3.14 has a class in place of the latter.
_GENERIC = [made.__code__ for made in (functools.singledispatch(len), _Example().method) if hasattr(made, "__code__")]

#: What ``functools`` sets on them and nothing else changes: implementations are guarded where they are called.
_OF_GENERIC = frozenset(("register", "dispatch", "registry", "_clear_cache", "__isabstractmethod__"))


def is_generic(function: types.FunctionType) -> bool:
    """Whether ``functools`` made a function that calls the implementation for the type of its first argument."""
    return any(function.__code__ is code for code in _GENERIC)


def own_attributes(function: types.FunctionType) -> Dict[str, Any]:
    """The attributes of a function that user code may read: all but the function that it wraps, and those of ``functools``."""
    hidden = _OF_GENERIC if is_generic(function) else frozenset()
    return {name: item for name, item in function.__dict__.items() if name != "__wrapped__" and name not in hidden}


def stop_at_parts(capture: CaptureContext, value: Any, name: str) -> None:
    """Stop the capture if a part of a function of the user's is read that may change in place: no guard would notice.

    Other parts are guarded.
    """
    function = value.__func__ if type(value) is types.MethodType else value
    if type(function) is not types.FunctionType or name not in _PARTS:
        return
    if not capture.heap.has_met(function) and function not in capture.heap.objects.methods:
        return                                          # it is made during the call
    if _PARTS[name](getattr(function, name)):
        capture.abort(f"{name} of the function {function.__name__} is read", hint="keep what it holds under a name of its own")
    capture.heap.definitions.add_function(function)


def _may_change(defaults: Any) -> bool:
    return not all(item is None or type(item) in (bool, int, float, str, bytes) for item in defaults or ())


#: Attributes of functions that Python sets, and whether what they hold may change in place.
_PARTS: Dict[str, Callable[[Any], bool]] = {
    "__defaults__": _may_change, "__kwdefaults__": bool, "__closure__": bool, "__globals__": bool,
}

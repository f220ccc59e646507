"""Attributes of functions, and generic functions, of which the standard library sets attributes of its own."""
from __future__ import annotations

import functools
import types
from typing import Any, Dict


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

"""Functions of the standard library that ask whether something is a function, a method, a class or a module."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..library_facts.python import KIND_QUESTIONS

if TYPE_CHECKING:
    from .protocols import Calls


def asks_kind(function: Any) -> bool:
    """Whether this is such a function: ``inspect.isfunction``, ``asyncio.iscoroutinefunction``."""
    return getattr(function, "__name__", "") in KIND_QUESTIONS.get(getattr(function, "__module__", None) or "", ())


def of_kind(calls: Calls, function: Callable[[Any], bool], item: Any) -> Any:
    """The answer; questions about the code of a function look at the code that the user wrote."""
    if function.__name__.endswith("function") and function.__name__ != "isfunction":
        item = calls.capture.functions.real(item)
    return calls.builtins.inspect(function, item)

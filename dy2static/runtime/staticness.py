"""How the compiler recognises functions that are decorated already: they are inlined into the capture of a caller."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Set

if TYPE_CHECKING:
    from ..capture_context import CaptureContext

#: The attribute that `not_to_static` sets.
NOT_STATIC = "_dy2static_not_static"

#: The names of the modules that `ignore_module` was given.
IGNORED: Set[str] = set()


class StaticCallable:
    """Base class of compiled functions, which ``to_static`` returns.  ``python_function`` is the callable as the user wrote it."""

    __slots__ = ()

    python_function: Callable[..., Any]

    def captured(self, capture: CaptureContext) -> Callable[..., Any]:
        """What a capture that meets a call of this one runs."""
        return capture.callee(self.python_function)


def is_static_function(value: Any) -> bool:
    """Whether ``value`` came out of ``to_static``."""
    return isinstance(value, StaticCallable)


def is_static_method(value: Any) -> bool:
    """Whether ``value`` is what ``to_static`` gives for a method of an object."""
    return isinstance(value, StaticCallable) and hasattr(type(value), "__self__")

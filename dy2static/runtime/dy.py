"""``_dy``: what converted code calls.

On Python values every function here does exactly what Python does.  While a capture runs on this thread, calls and
decisions on symbolic values are handed to it.
"""
from __future__ import annotations

import sys
from typing import Any, Callable, Sequence, Tuple

from .hooks import stage


class Undefined:
    """Stands for a local name that is not bound yet; raises only when it is read."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"<unbound {self.name}>"


_UNBOUND = ("cannot access local variable '{}' where it is not associated with a value" if sys.version_info >= (3, 11)
            else "local variable '{}' referenced before assignment")


def read(value: Any) -> Any:
    """The value of a name that may be unbound.  Raises UnboundLocalError as Python would."""
    if type(value) is Undefined:
        raise UnboundLocalError(_UNBOUND.format(value.name))
    return value


def call(function: Callable[..., Any]) -> Callable[..., Any]:
    """What to call for ``function``: itself, or its staged form while a capture runs."""
    capture = stage.capture
    return function if capture is None else capture.callee(function)


def cond(test: Any, then: Callable[..., Tuple], orelse: Callable[..., Tuple], state: Tuple, *,
         names: Sequence[str] = ()) -> Tuple:
    """``if test: then else: orelse``, each taking and giving the local names of the block."""
    return then(*state) if test else orelse(*state)


def and_(first: Any, *rest: Callable[[], Any]) -> Any:
    """``first and rest[0]() and …``: evaluates only what Python would."""
    value = first
    for thunk in rest:
        if not value:
            return value
        value = thunk()
    return value


def or_(first: Any, *rest: Callable[[], Any]) -> Any:
    """``first or rest[0]() or …``: evaluates only what Python would."""
    value = first
    for thunk in rest:
        if value:
            return value
        value = thunk()
    return value


def not_(value: Any) -> bool:
    """``not value``."""
    return not value


def is_(first: Any, second: Any) -> bool:
    """``first is second``."""
    capture = stage.capture
    return first is second if capture is None else capture.identical(first, second)


def is_not(first: Any, second: Any) -> bool:
    """``first is not second``."""
    return not is_(first, second)

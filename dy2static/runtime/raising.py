"""Exceptions that a program raises: made again from their parts."""
from __future__ import annotations

import sys
from typing import Any, Mapping, Optional, Sequence, Tuple

from ..errors import Location
from .dy import read
from .traceback import traceback_at
from .unbound import Undefined


def make_error(cls: type, args: Tuple, attributes: Optional[Mapping], suppressed: bool, state: Optional[Mapping] = None,
               cause: Optional[BaseException] = None, context: Optional[BaseException] = None) -> BaseException:
    """The exception of these parts; without calling what a class of the user's defines.

    attributes: None for what its arguments alone make.  state: what it holds that is no attribute.
    """
    if attributes is None:
        made = cls(*args)
    else:
        base = next(base for base in cls.__mro__ if base.__module__ == "builtins")
        made = base.__new__(cls)
        made.args = args
        made.__dict__.update(attributes)
        for name, value in (state or {}).items():
            object.__setattr__(made, name, value)
    made.__cause__, made.__context__ = cause, context
    made.__suppress_context__ = suppressed
    return made


class Raised:
    """`make_error` for what was raised at the user's lines, outermost first, and caught."""

    def __init__(self, places: Sequence[Location]):
        self.places = tuple(places)

    def __call__(self, *parts: Any) -> BaseException:
        """The exception of these parts, with a traceback."""
        made = make_error(*parts)
        if self.places and made.__context__ is None:
            made.__context__ = sys.exc_info()[1]
        return made.with_traceback(traceback_at(self.places))


def raise_again(*parts: Any) -> None:
    """Raise the exception that `make_error` makes of these parts."""
    made = make_error(*parts)
    context = made.__context__
    try:
        raise made
    finally:
        made.__context__ = context or made.__context__


def check_bound(bound: bool, name: str) -> None:
    """Raise NameError or UnboundLocalError, as Python does, unless the local name is bound."""
    if not bound:
        read(Undefined(name))

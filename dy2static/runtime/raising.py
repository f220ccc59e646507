"""Exceptions that a program raises: made again from their parts."""
from __future__ import annotations

from typing import Any, Tuple

from .dy import Undefined, read


def make_error(kind: type, args: Tuple, attributes: Any, suppressed: bool) -> BaseException:
    """The exception of these parts; of classes of the user's, without calling their ``__init__`` again."""
    made = kind(*args) if attributes is None else kind.__new__(kind, *args)
    made.__dict__.update(attributes or {})
    made.__suppress_context__ = suppressed
    return made


def raise_again(*parts: Any) -> None:
    """Raise the exception that `make_error` makes of these parts."""
    raise make_error(*parts)


def check_bound(bound: bool, name: str) -> None:
    """Raise NameError or UnboundLocalError, as Python does, unless the local name is bound."""
    if not bound:
        read(Undefined(name))

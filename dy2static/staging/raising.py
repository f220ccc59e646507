"""Exceptions under a decision: the host makes them again when the program runs."""
from __future__ import annotations

import dis
from typing import Any, Tuple

from chainer.utils.type_check import InvalidType

from ..runtime.dy import Undefined, read
from ..world.aborts import CaptureAborted


def is_raised(error: Exception) -> bool:
    """Whether a ``raise`` statement made the exception; others may come from what is symbolic."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is not None and step.tb_frame.f_code.co_code[step.tb_lasti] == dis.opmap["RAISE_VARARGS"] and \
        not (error.args and type(error.args[0]) is str and error.args[0].startswith("exceptions must derive"))


def is_plain(error: Exception) -> bool:
    """Whether the exception is its class and arguments, and nothing more: none of the user's was being handled either."""
    if type(error) is InvalidType:
        return all(type(part) is str for part in arguments_of(error))
    own = [cls for cls in type(error).__mro__ if "__init__" in cls.__dict__ or "__new__" in cls.__dict__]
    around = None if error.__suppress_context__ else error.__context__
    return own[0].__module__ == "builtins" and error.__cause__ is None and not error.__dict__ and \
        (around is None or isinstance(around, CaptureAborted))


def arguments_of(error: Exception) -> Tuple[Any, ...]:
    """What the class is called with to make the exception again."""
    return (error.expect, error.actual, *error.args) if type(error) is InvalidType else error.args


def raise_again(kind: type, *args: Any) -> None:
    raise kind(*args)


def check(test: Any, message: Any) -> None:
    if not test:
        raise AssertionError if message is None else AssertionError(message)


def check_bound(bound: bool, name: str) -> None:
    if not bound:
        read(Undefined(name))

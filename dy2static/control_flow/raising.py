"""Exceptions under a decision: the host makes them again when the program runs."""
from __future__ import annotations

import dis
from typing import Any, Tuple

from chainer.utils.type_check import InvalidType

from ..heap.aborts import CaptureAborted


def is_raised(error: Exception) -> bool:
    """Whether a ``raise`` statement made the exception; others may come from what is symbolic."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is not None and step.tb_frame.f_code.co_code[step.tb_lasti] == dis.opmap["RAISE_VARARGS"] and \
        not (error.args and type(error.args[0]) is str and error.args[0].startswith("exceptions must derive"))


def can_be_made(error: BaseException) -> bool:
    """Whether `make_error` can make the exception again.

    It must have no cause, no exception of the user's may have been handled when it was raised, and a class of the user's must
    consist of arguments and attributes.
    """
    if type(error) is InvalidType:
        return all(type(part) is str for part in (error.expect, error.actual, *error.args))
    own = [cls for cls in type(error).__mro__ if cls.__module__ != "builtins"]
    base = next(cls for cls in type(error).__mro__ if cls.__module__ == "builtins")
    simple = base.__basicsize__ == BaseException.__basicsize__ or not own and not error.__dict__
    plain = not any(cls.__dict__.get("__new__") or cls.__dict__.get("__slots__") for cls in own)
    around = None if error.__suppress_context__ else error.__context__
    return simple and plain and error.__cause__ is None and (around is None or isinstance(around, CaptureAborted))


def parts_of(error: BaseException) -> Tuple[Any, ...]:
    """What `make_error` takes to make the exception again."""
    if type(error) is InvalidType:
        return InvalidType, (error.expect, error.actual, *error.args), None, error.__suppress_context__
    attributes = None if type(error).__module__ == "builtins" else dict(error.__dict__)
    return type(error), error.args, attributes, error.__suppress_context__

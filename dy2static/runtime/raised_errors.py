"""Whether NumPy's floating-point errors and warnings are exceptions now, and calls that end so before they have done anything.

A program computes first, and does last what others see.  Where a computation raises, eager mode has done some of that already.
"""
from __future__ import annotations

import warnings
from typing import Any, Callable, List

import numpy as np

from ..errors import CheckWarning, ExportWarning, FallbackWarning, SaveWarning, SettingWarning

#: What computations do not give.
_OTHERS = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning,
           CheckWarning, ExportWarning, FallbackWarning, SaveWarning, SettingWarning)


#: The mark of an error.
_UNDONE = "_dy2static_undone"

#: The warning filters of the last look, if none of them raises what computations may give.
_harmless: List[tuple] = []


def errors_are_raised() -> bool:
    """Whether a floating-point error calls code or raises, or a warning raises that computations may give."""
    global _harmless
    if not {"raise", "call"}.isdisjoint(np.geterr().values()):
        return True
    if warnings.filters == _harmless:           # a comparison of the same objects, mostly
        return False
    filters: List[tuple] = list(warnings.filters)
    if any([action == "error" and not issubclass(category, _OTHERS) for action, _, category, *_ in filters]):
        return True
    _harmless = filters
    return False


def undone(error: BaseException) -> BaseException:
    """The error that the forward of a program raised, before which nothing else has happened: the call may run again, eagerly."""
    if isinstance(error, (FloatingPointError, Warning)):
        error.__dict__[_UNDONE] = True
    return error


def is_undone(error: BaseException) -> bool:
    """Whether a call that ended by this error may run again.  That is told once."""
    return error.__dict__.pop(_UNDONE, False)


def or_eagerly(call: Callable[[], Any], eagerly: Callable[[], Any]) -> Any:
    """What a call gives; where it is undone, what the eager call gives, or raises."""
    try:
        return call()
    except Exception as error:
        if not is_undone(error):
            raise
    return eagerly()                                    # what that raises does not have the other error as its context

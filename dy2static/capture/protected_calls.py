"""Failures where user code may catch them: decided first, and raised while the function is captured."""
from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Callable, Tuple

import numpy as np

from ..runtime.functions import OF_MATRICES, Attempt
from ..symbolic.values import SymbolicScalar

if TYPE_CHECKING:
    from .protocols import Capture

#: Functions of Python's numbers that fail for certain operands only: zero divisors, and what is no number or infinite.
DECIDABLE = frozenset((operator.truediv, operator.floordiv, operator.mod, int))


def raise_first(function: Callable, number: Any, *divisor: Any) -> None:
    """Decide, where user code may catch the error, whether one of `DECIDABLE` fails."""
    if divisor:
        if divisor[0] == 0:
            _raise_as(function, _one_like(number), 0 * _one_like(divisor[0]))
    elif number != number:
        _raise_as(function, float("nan"))
    elif abs(number) == float("inf"):
        _raise_as(function, float("inf"))


def _raise_as(function: Callable, *numbers: Any) -> None:
    """Raise what the function raises, by a statement: `raising.is_raised`."""
    try:
        function(*numbers)
    except (ZeroDivisionError, ValueError, OverflowError) as error:
        kind, args = type(error), error.args
    raise kind(*args)


def _one_like(number: Any) -> Any:
    return (number.python_type if type(number) is SymbolicScalar else type(number))(1)


def attempted(capture: Capture, function: Any, args: Tuple, kwargs: Any) -> Any:
    """The result of a function of matrices, on the way through the function on which it does not fail.

    NotImplemented for other functions and other operands.
    """
    name = getattr(function, "__name__", "")
    if name not in OF_MATRICES or getattr(np.linalg, name, None) is not function or not args:
        return NotImplemented
    if len(getattr(args[0], "shape", ())) < 2:
        return NotImplemented
    failed, result = capture.numpy.call(Attempt(function, name), args, kwargs)
    if failed:
        raise np.linalg.LinAlgError(OF_MATRICES[name])
    return result

"""Failures where user code may catch them: decided first, and raised while the function is captured."""
from __future__ import annotations

import operator
from typing import Any, Callable, Tuple

import numpy as np

from ..symbolic.values import SymbolicScalar

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


#: What functions of NumPy's raise because of what a matrix holds.
OF_MATRICES = {
    "inv": "Singular matrix", "solve": "Singular matrix",
    "cholesky": "Matrix is not positive definite", "svd": "SVD did not converge", "pinv": "SVD did not converge",
    "eigh": "Eigenvalues did not converge", "eigvalsh": "Eigenvalues did not converge",
}


class Attempt:
    """A function of `OF_MATRICES` that says whether it failed instead of raising."""

    def __init__(self, function: Callable, name: str):
        self.function, self.__name__ = function, name

    def __call__(self, matrix: Any, *args: Any, **kwargs: Any) -> Tuple[bool, Any]:
        """Whether it failed, and the result, or one of the same type."""
        try:
            return False, self.function(matrix, *args, **kwargs)
        except np.linalg.LinAlgError:
            regular = np.broadcast_to(np.eye(matrix.shape[-1], dtype=matrix.dtype), matrix.shape)
            return True, self.function(regular, *args, **kwargs)


def attempted(capture: Any, function: Any, args: Tuple, kwargs: Any) -> Any:
    """The result of a function of matrices, on the way through the function on which it does not fail.

    NotImplemented for other functions and other operands.
    """
    name = getattr(function, "__name__", "")
    if name not in OF_MATRICES or getattr(np.linalg, name, None) is not function or not args:
        return NotImplemented
    if len(getattr(args[0], "shape", ())) < 2:
        return NotImplemented
    failed, result = capture.numpy_call(Attempt(function, name), args, kwargs)
    if failed:
        raise np.linalg.LinAlgError(OF_MATRICES[name])
    return result

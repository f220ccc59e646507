"""Functions that captures put into graphs beside those of NumPy and Python."""
from __future__ import annotations

from typing import Any, Callable, List, Tuple

import numpy as np


def class_counts(y: np.ndarray, t: np.ndarray, ignored: int) -> Tuple[np.ndarray, ...]:
    """Per class: how often it is the target, is predicted, and is predicted rightly.  y: (N, C, ...); t: (N, ...) int."""
    t = t.astype(np.int32, copy=False)
    count = np.amax(t) + 1
    skipped = (t == ignored).ravel()
    predicted = np.where(skipped, count, y.argmax(axis=1).ravel())
    true = np.where(skipped, count, t.ravel())
    right = np.where(predicted == true, true, count)
    support, relevant, found = (np.bincount(x, minlength=count + 1)[:count] for x in (true, predicted, right))
    return support, relevant, found


def itself(array: Any) -> Any:
    """The array."""
    return array


def true_rows(mask: np.ndarray) -> np.ndarray:
    """The indexes of what is true, in order."""
    return np.flatnonzero(mask)


def real_power(base: Any, exponent: Any) -> float:
    """``base ** exponent``.  Raises TypeError where that is a complex number."""
    result = base ** exponent
    if isinstance(result, complex):
        raise TypeError(f"{base!r} ** {exponent!r} is a complex number, which compiled code does not compute with")
    return result


def negative_power(base: int, exponent: int) -> float:
    """``base ** exponent`` for a negative int, as a float: Python, too, computes it with floats.

    The capture tries it on examples, whose exponents may be as large as an int64: to that power, an int takes seconds.
    """
    return float(base) ** float(min(exponent, -1))


def item_of_extreme(function: Callable, keys: Any, items: Any) -> Any:
    """The item with the least or greatest key.  function: ``min`` or ``max``."""
    return function(zip(keys, items), key=lambda pair: pair[0])[1]


def sorted_by(keys: Any, items: Any, reverse: bool) -> List[Any]:
    """The items sorted by their keys, as ``sorted`` sorts."""
    return [item for _, item in sorted(zip(keys, items), key=lambda pair: pair[0], reverse=reverse)]


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


_CONVERSIONS = {"r": repr, "s": str, "a": ascii}


def format_value(value: Any, spec: str, conversion: str) -> str:
    """A value as a replacement field of an f-string has it.  conversion: the letter behind ``!``, or nothing."""
    return format(_CONVERSIONS[conversion](value) if conversion else value, spec)


def join(*parts: str) -> str:
    """The parts as one text."""
    return "".join(parts)

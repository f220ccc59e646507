"""What is known of everything that may be called on arrays, by the name alone: functions, methods, attributes and operators."""
from __future__ import annotations

from typing import FrozenSet

from . import numpy, python
from .table import named

_TABLES = (numpy.FUNCTIONS, numpy.LINALG, numpy.RANDOM, numpy.METHODS, numpy.ATTRIBUTES, numpy.UFUNC_METHODS,
           python.OPERATOR_FUNCTIONS, python.BUILTINS, python.MATH)


def known_as(mark: str) -> FrozenSet[str]:
    """The names with a mark, wherever they stand."""
    return named(mark, *_TABLES)

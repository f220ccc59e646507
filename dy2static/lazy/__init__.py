"""Lazy arrays: NumPy code builds an expression, which is compiled as a whole and computed when its values are needed.

`array` makes one.  Operators, ufuncs, functions of NumPy's and methods give further ones.  Printing, iteration, ``float``,
``numpy.asarray`` and whatever else needs values computes them, and so do `evaluate` and ``y.evaluate()``.  `numpy` is their
namespace by the Python array API standard, `random` has generators.  `stats` counts what has been compiled.
"""
from __future__ import annotations

from . import (
    indexing,  # noqa: F401 - gives lazy arrays their indexing
    numpy,
    operators,  # noqa: F401 - gives lazy arrays their operators
    random,
)
from .arrays import LazyArray
from .counts import stats
from .differentiation import grad, hessian_vector_product, jvp, value_and_grad, vjp
from .evaluation import backend, strict
from .inspection import explain
from .making import array, evaluate

__all__ = ["LazyArray", "array", "backend", "evaluate", "explain", "grad", "hessian_vector_product", "jvp", "numpy", "random",
           "stats", "strict", "value_and_grad", "vjp"]

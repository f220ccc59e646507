"""Draws from the generator of NumPy of as many numbers as only the run knows: the types follow from the arguments."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Tuple

import numpy as np

from ..ir.dims import Dim, less
from ..ir.size_bounds import maximum
from ..ir.types import Tensor
from ..symbolic.values import SymbolicArray, SymbolicScalar

if TYPE_CHECKING:
    from .protocols import Capture

#: Of draws along one axis: what they draw from, and how much.
_ARGUMENTS: Dict[str, Callable[..., Tuple[Any, Any]]] = {
    "choice": lambda a, size=None, replace=True, p=None: (a, size),
    "permutation": lambda x: (x, x),
}


def drawn_type(capture: Capture, name: str, args: Tuple, kwargs: Mapping[str, Any]) -> Optional[Tensor]:
    """The type of what ``np.random`` draws from a number or the items of an array; None if that takes a trial.

    A number that must not be negative is not below zero: the draw itself raises if it is.
    """
    if name not in _ARGUMENTS:
        return None
    try:
        source, size = _ARGUMENTS[name](*args, **kwargs)
    except TypeError:                                   # arguments that it does not have: a trial raises what the draw does
        return None
    is_array = type(source) is SymbolicArray and not source.is_scalar
    if is_array and (name == "permutation" or source.ndim != 1) or not (is_array or _is_whole(source)):
        return None
    count = count_of(capture, size)
    return None if count is None else Tensor((count,), source.dtype if is_array else np.dtype(int))


def _is_whole(number: Any) -> bool:
    if type(number) is SymbolicArray:
        return number.is_scalar and number.dtype.kind in "iu"
    return type(number) is int or isinstance(number, Dim) or type(number) is SymbolicScalar and number.kind == "py_int"


def count_of(capture: Capture, number: Any) -> Any:
    """A number as a size that is not below zero; None for what is no whole number."""
    if not _is_whole(number):
        return None
    size = number if type(number) is int else capture.expressions.size_of(number)
    if size is None:
        size = capture.numpy.call(np.arange, (number,), {}).type.shape[0]
    return size if less(size, 0) is False else maximum(0, size)

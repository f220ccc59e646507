"""How functions of the namespace enter expressions."""
from __future__ import annotations

import sys
from typing import Any, Callable

import numpy as np

from ..arrays import LazyArray
from ..functions import FUNCTIONS
from ..making import array
from ..protocols import called

_frame = sys._getframe


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The lazy result of a function of NumPy's, or of one in this folder: an operation that the caller's caller built.

    Functions that enter no expression are called at once, and their results are lazy arrays.
    """
    is_lazy = function in FUNCTIONS or function.__module__.startswith(__package__) or isinstance(function, np.ufunc)
    return called(function, args, kwargs, _frame(2), is_lazy)


def ufunc(function: np.ufunc, *args: Any) -> Any:
    """The lazy result of a ufunc.  Raises TypeError where no argument is an array."""
    if not any([isinstance(arg, (LazyArray, np.ndarray)) for arg in args]):
        raise TypeError(f"{function.__name__} takes arrays, not {', '.join([type(arg).__name__ for arg in args])}")
    return called(function, args, {}, _frame(2), True)


def at_once(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function gives for the values of lazy arrays, as lazy arrays."""
    return called(function, args, kwargs, _frame(2), False)


def made(values: Any) -> LazyArray:
    """The lazy array of an array that was made just now."""
    return array(values, copy=False)


def on_cpu(device: Any) -> None:
    """Raise ValueError for a device other than ``"cpu"``."""
    if device not in (None, "cpu"):
        raise ValueError(f"there is no device {device!r}: lazy arrays live on 'cpu'")

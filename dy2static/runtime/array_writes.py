"""Writes into arrays as functions of their contents, and whether arrays that are written share memory."""
from __future__ import annotations

from typing import Any, Callable, Dict, Sequence, Tuple

import numpy as np


def overlap(written: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> bool:
    """Whether an array that is written is read-only, or may share memory with another one."""
    return any(not array.flags.writeable or any(np.may_share_memory(array, other) for other in (*others, *written[:i]))
               for i, array in enumerate(written))


class Into:
    """``function(*args, out=array)`` as a function that writes into its first operand."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __call__(self, array: np.ndarray, *args: Any, **kwargs: Any) -> None:
        self.function(*args, out=array, **kwargs)


def write_at(contents: np.ndarray, steps: Tuple, function: Callable[..., Any], args: Tuple, kwargs: Dict[str, Any]) -> np.ndarray:
    """A copy of the contents after ``function`` wrote into the view at the end of the steps."""
    return write_in_place(contents.copy(order="K"), steps, function, args, kwargs)


def write_in_place(contents: np.ndarray, steps: Tuple, function: Callable[..., Any], args: Tuple,
                kwargs: Dict[str, Any]) -> np.ndarray:
    """The contents after ``function`` wrote into the view at the end of the steps; no copy is made."""
    view = contents
    for step, step_args, step_kwargs in steps:
        view = step(view, *step_args, **step_kwargs)
    function(view, *args, **kwargs)
    return contents


def write_at_checked(*args: Any) -> np.ndarray:
    """The same, for what may fail on what arrays hold."""
    return write_at(*args)


def write_by_numpy(*args: Any) -> np.ndarray:
    """The same, for what NumPy computes in a wider dtype than that of the array: no other code does."""
    return write_at(*args)


#: What generated code calls instead where the contents are its own and the old ones are not read again.
write_at.in_place = write_at_checked.in_place = write_in_place         # type: ignore[attr-defined]


def itself(array: np.ndarray) -> np.ndarray:
    """The array; as a step, nothing is changed."""
    return array

"""Gradients of arrays by arrays, as a function that captures know; it has no form of its own in Python."""
from __future__ import annotations

from typing import Any, List, Sequence


class OutsideError(TypeError):
    """Gradients of arrays were asked where no capture runs."""


def needs_seed(y: Any) -> str:
    """What the error says where the gradient of an array that is no number is asked, and none is given for its elements."""
    return f"the gradient of an array of shape {y.shape} needs one for each element: give it, or take the sum or the mean"


def array_gradients(y: Any, xs: Sequence[Any], seed: Any = None) -> List[Any]:
    """The gradients of an array by others from which it was computed in the same compiled function.

    y: floats, of shape () unless ``seed`` is given, which has its shape and dtype.  Each gradient has the shape and dtype of its
    array; zeros where y does not depend on it.

    Raises `TypeError` for a y that is no number, and outside of compiled functions.
    """
    if seed is None and getattr(y, "shape", ()) != ():
        raise TypeError(needs_seed(y))
    raise OutsideError("gradients of arrays exist in compiled functions only")

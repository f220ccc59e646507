"""The rows of an array of which only the run knows how many there are: what a ``for`` goes over."""
from __future__ import annotations

from typing import Any, Callable

import chainer.functions as F

from ..ir.dims import Dim
from .values import SymbolicArray, SymbolicVariable


class Rows:
    """The parts of an array or a Variable along an axis, as a sequence for a ``for`` statement."""

    def __init__(self, capture: Any, array: Any, axis: int = 0):
        self.capture, self.array, self.axis = capture, array, axis

    @property
    def length(self) -> Any:
        """How many there are."""
        return self.array.shape[self.axis].number

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, (slice, tuple)):
            return self._refuse()
        return self.array[(slice(None),) * self.axis + (place,) if self.axis else place]

    def _refuse(self, *_: Any) -> Any:
        return self.capture.abort("the parts of an array are used other than one by one, and their number is not known",
                                  sizes=self.array.shape[self.axis].symbols)

    __iter__ = __len__ = __contains__ = __bool__ = __reversed__ = __repr__ = __eq__ = __add__ = __radd__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def has_rows(item: Any, axis: int = 0) -> bool:
    """Whether only the run knows how many parts an array has along an axis."""
    return isinstance(item, (SymbolicArray, SymbolicVariable)) and -len(item.shape) <= axis < len(item.shape) and \
        isinstance(item.shape[axis], Dim)


def separate(calls: Any, function: Callable, x: Any, axis: int = 0) -> Any:
    """``F.separate``."""
    if type(axis) is int and isinstance(x, SymbolicVariable) and has_rows(x, axis):
        return Rows(calls.capture, x, axis % len(x.shape))
    return calls.native(function)(x, axis)


#: Functions that give such parts.
PARTING = {F.separate: separate}

"""Symbolic values: what user code meets instead of Variables, arrays and numbers while a capture runs.

None of them is a number or an ndarray, so nothing that bypasses the capture can compute with made-up contents: it
stops the capture instead.
"""
from __future__ import annotations

from typing import Any

from .arrays import ArrayMethod, SymbolicArray, SymbolicScalar
from .buffers import Buffer
from .elements import Flat
from .host_objects import SymbolicObject
from .known_texts import SymbolicText
from .sizes import Size
from .variables import SymbolicParameter, SymbolicVariable

__all__ = [
    "PARTS", "ArrayMethod", "Maybe", "SymbolicArray", "SymbolicParameter", "SymbolicScalar", "SymbolicVariable", "is_symbolic"]

#: What shows an array in other ways.
PARTS = (Flat, Buffer)


def is_symbolic(value: Any) -> bool:
    """Whether the value stands for something that is known at run time only."""
    return isinstance(value, (SymbolicArray, SymbolicScalar, SymbolicVariable, SymbolicObject)) or \
        type(value) in (Size, SymbolicText, *PARTS)


class Maybe:
    """The value of a local name that may be unbound: ``bound`` says at run time whether it is."""

    __slots__ = ("value", "bound", "name")

    def __init__(self, value: Any, bound: Any, name: str):
        self.value, self.bound, self.name = value, bound, name

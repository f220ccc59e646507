"""The user's classes that code sees as they are, without a shadow: what they hold may change unseen."""
from __future__ import annotations

import collections
import enum
import types
from typing import Dict, Iterator, Set

import chainer
import numpy as np

from ..capture_context import CaptureContext
from .ownership import is_library_class

#: What a class and `typing`, `dataclasses` and `enum` note of it, once.
_NOTED = frozenset(("__annotations__", "__slots__", "__dataclass_fields__"))
_CHANGEABLE = (list, dict, set, bytearray, collections.deque, np.ndarray, chainer.Variable, chainer.Link)


class OpenClasses:
    """Stops a capture whose code reads an attribute of such a class that holds a list, an array or the like.

    Such a read is neither guarded nor recorded.  Which names are read is known from the code of all functions that are converted.
    """

    def __init__(self, capture: CaptureContext):
        self._capture = capture
        self._held: Dict[str, type] = {}
        self._named: Set[str] = set()
        self._seen: Set[type] = set()

    def add(self, cls: type) -> None:
        """Take note of a class."""
        if cls in self._seen:
            return
        self._seen.add(cls)
        for base in cls.__mro__:
            for name, value in () if is_library_class(base) else vars(base).items():
                is_of_enum = isinstance(cls, enum.EnumMeta) and name.startswith("_")
                if isinstance(value, _CHANGEABLE) and name not in _NOTED and not is_of_enum:
                    self._held[name] = cls
        self._check()

    def made(self, cls: type) -> None:
        """Take note of a class that is made during the capture: what it holds is known."""
        self._seen.add(cls)

    def runs(self, code: types.CodeType) -> None:
        """Take note of the code of a function."""
        self._named.update(_names(code))
        self._check()

    def _check(self) -> None:
        for name in self._held.keys() & self._named:
            self._capture.abort(f"attribute {name!r} of class {self._held[name].__name__} is read, which may change")


def _names(code: types.CodeType) -> Iterator[str]:
    """The attributes that code may read, as names or as texts for ``getattr``."""
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _names(const)
        elif type(const) is str:
            yield const

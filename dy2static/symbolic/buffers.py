"""``.data`` of an array: its memory, without what arrays can do."""
from __future__ import annotations

import operator
from typing import Any, Iterator

import numpy as np

from ..heap.stand_ins import stands_for
from ..runtime.array_parts import of_buffer
from .elements import Array, Elements

#: What follows from the type of an array.
_OF_TYPES = ("format", "itemsize", "nbytes", "ndim", "shape", "suboffsets")

#: What follows from how it lies in memory.
_OF_LAYOUT = ("c_contiguous", "contiguous", "f_contiguous", "readonly", "strides")


class Buffer:
    """A ``memoryview`` of an array."""

    __slots__ = ("owner",)

    def __init__(self, owner: Array):
        self.owner = owner

    @property
    def __class__(self) -> type:
        return memoryview

    def as_array(self) -> Array:
        """What NumPy's functions make of it."""
        return self.owner.capture.numpy.call(of_buffer, (self.owner,), {})

    def _example(self) -> memoryview:
        """A view of other contents, which raises where this one would."""
        if self.owner.dtype.kind == "f" and self.owner.itemsize not in (4, 8):
            self._refuse()                              # some versions of Python know no such items
        return memoryview(np.broadcast_to(np.zeros((), self.owner.dtype), tuple(map(operator.index, self.owner.shape))))

    def __len__(self) -> int:
        return self.owner.shape[0] if self.owner.shape else len(self._example())

    def __getitem__(self, key: Any) -> Any:
        if type(key) is slice and self.owner.ndim == 1:
            return Buffer(self.owner[key])
        if not all(type(entry) is int for entry in (key if type(key) is tuple else (key,))):
            self._refuse()
        self._example()[key]
        return self.owner[key].item()

    def __iter__(self) -> Iterator[Any]:
        if self.owner.ndim != 1:
            return iter(self._example())                # raises
        return Elements(self.owner, operator.index(self.owner.size), self.__getitem__)

    def tolist(self) -> Any:
        """The items, as lists of lists."""
        self._example()
        return self.owner.tolist()

    def tobytes(self, order: Any = None) -> Any:
        """The contents as bytes, which only the host knows."""
        return self.owner.tobytes(order or "C")

    @property
    def obj(self) -> Array:
        """The array."""
        return self._refuse() if self.owner.is_scalar else self.owner

    def __getattr__(self, name: str) -> Any:
        if not hasattr(memoryview, name):
            raise AttributeError(f"'memoryview' object has no attribute {name!r}")
        if name in _OF_LAYOUT:
            return getattr(self.owner.capture.array_writes.layouts.example(self.owner).data, name)
        return getattr(self._example(), name) if name in _OF_TYPES else self._refuse()

    def _refuse(self, *_: Any) -> Any:
        return self.owner.capture.abort("`.data` of an array is used other than as an array, or item by item",
                                        hint="use the array itself")

    __setitem__ = __eq__ = __hash__ = __contains__ = __enter__ = __exit__ = __array__ = __reversed__ = _refuse  # type: ignore


stands_for(Buffer, memoryview)

"""The elements of an array one by one, also by ``.flat``."""
from __future__ import annotations

import operator
from typing import Any, Callable, Iterator, List, Optional, Protocol, Tuple

import numpy as np

from ..capture_context import CaptureContext
from ..heap.stand_ins import stands_for
from ..library_facts.python import symbols
from ..runtime.array_parts import flat_item, of_flat, set_flat_item


class Array(Protocol):
    """A `SymbolicArray`, as what shows it in other ways knows it."""

    capture: CaptureContext
    memory: Any

    @property
    def shape(self) -> Tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def is_scalar(self) -> bool: ...
    def __getitem__(self, key: Any) -> Any: ...
    def __setitem__(self, key: Any, item: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...


class Elements:
    """An iterator over the elements of an array, each as it is when it is asked for.

    array, count, place: the array, how many there are, and the number of the next one.
    reads: whether one was read after the array was written: then it belongs to the region of the graph in which it was asked for.
    """

    def __init__(self, array: Array, count: int, read: Callable[[int], Any]):
        self.array, self._read, self.reads, self.count = array, read, False, count
        self._items: List[Any] = [read(i) for i in range(count)]
        self._contents = None if array.memory is None else array.memory.contents
        self.place = 0

    @property
    def is_of_rows(self) -> bool:
        """Whether these are what the array has along its first axis."""
        return getattr(self._read, "__self__", None) is self.array

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        place, self.place = self.place, self.place + 1
        if place >= len(self._items):
            raise StopIteration
        if not self._is_written():
            return self._items[place]
        self.reads = True
        return self._read(place)

    def _is_written(self) -> bool:
        memory = self.array.memory
        before = memory.initial if memory is not None and self._contents is None else self._contents
        return memory is not None and memory.contents is not before


class Flat:
    """``array.flat``: one way through the elements, and indexing by their places."""

    __slots__ = ("owner", "is_used")
    __array_priority__ = 150
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, owner: Array):
        self.owner, self.is_used = owner, False

    @property
    def __class__(self) -> type:
        return np.flatiter

    def __len__(self) -> int:
        return self.owner.size

    def __iter__(self) -> Iterator[Any]:
        if self.is_used:
            self._refuse()
        self.is_used = True
        return Elements(self.owner, operator.index(self.owner.size), self.__getitem__)

    def __getitem__(self, key: Any) -> Any:
        place = self._place(key)
        if place is not None:
            return self.owner[place]
        call = self.owner.capture.numpy.call
        if type(key) is slice:
            return call(("method", "copy"), (call(("method", "reshape"), (self.owner, -1), {})[key],), {})
        return call(flat_item, (self.owner, key), {})

    def __setitem__(self, key: Any, item: Any) -> None:
        place, owner = self._place(key), self.owner
        if place is not None and owner.dtype.kind == "f" and isinstance(item, (bool, int, float)):
            owner[place] = item
        else:
            fill(owner, set_flat_item, item, key)

    def _place(self, key: Any) -> Optional[Any]:
        """The index of the element at a place, where both are known; None where NumPy has to find it."""
        shape = self.owner.shape
        if type(key) is not int or not all(type(n) is int for n in shape):
            return None
        size = self.owner.size
        return tuple(map(int, np.unravel_index(key % size, shape))) if -size <= key < size else None

    @property
    def base(self) -> Array:
        """The array."""
        return self.owner

    def copy(self) -> Array:
        """The elements as a new array."""
        return self.owner.capture.numpy.call(("method", "flatten"), (self.owner,), {})

    def as_array(self) -> Array:
        """What NumPy's functions make of it."""
        return self.owner.capture.numpy.call(of_flat, (self.owner,), {})

    def __getattr__(self, name: str) -> Any:
        if not hasattr(np.flatiter, name):
            raise AttributeError(f"'numpy.flatiter' object has no attribute {name!r}")
        self._refuse()

    def _refuse(self, *_: Any) -> Any:
        return self.owner.capture.abort("the place that `.flat` of an array has come to is asked for",
                                        hint="go over `.flat` once, in one `for` statement")

    __next__ = __array__ = _refuse


def fill(array: Array, function: Callable[..., None], items: Any, *key: Any) -> None:
    """Write items into the elements of an array in their order; NumPy reads them while it writes."""
    capture = array.capture
    views = capture.array_writes.views
    items = items.as_array() if hasattr(type(items), "as_array") else items
    views.learn()
    if type(items) is type(array) and views.root(items)[0] is views.root(array)[0]:
        capture.abort("`.flat` of an array is filled with what shares its memory", hint="give it a copy")
    capture.array_writes.write(array, function, (*key, items), {})


def _comparison(function: Callable[[Any, Any], Any]) -> Callable[[Flat, Any], Any]:
    def compare(self: Flat, other: Any) -> Any:
        return self.owner.capture.numpy.call(function, (self.as_array(), other), {})
    return compare


for _function in symbols("comparison"):
    setattr(Flat, f"__{_function.__name__}__", _comparison(_function))


stands_for(Flat, np.flatiter)

"""Shadows of lists: appending does not read, items are loaded when they are needed."""
from __future__ import annotations

import collections
from typing import Any, Dict, Iterator, List, Optional, Type

import numpy as np

from ..capture_context import Heap
from ..record.guards import ItemTypesMatch, LengthMatch
from ..record.paths import ArrayOfList, Item, Length, Source
from ..record.writes import AssignList, Change, ExtendList, SetListItem, Write
from ..runtime.list_arrays import array_of_list
from .dict_shadows import check_place
from .right_operands import COMPARISONS, added, adds_itself, ask_right_first


class Unread:
    """Stands in the storage for an item that was not loaded: C code that copies the storage gets these.

    Any use of one stops the capture.
    """

    __slots__ = ("heap",)

    def __init__(self, heap: Heap):
        self.heap = heap

    def _used(self, *_: Any) -> Any:
        self.heap.capture.abort("an item of a list was copied by code that cannot be seen", hint="write `list(xs)`, not `xs`")

    @property                                           # type: ignore[misc]
    def __class__(self) -> Any:
        """Asked by `isinstance`; also of all objects that there are, when the capture is over."""
        return Unread if self.heap.is_disposed else self._used()

    __bool__ = __len__ = __iter__ = __getattr__ = __getitem__ = __call__ = __contains__ = __index__ = __float__ = _used
    __int__ = __str__ = __repr__ = __format__ = __hash__ = __array__ = __next__ = __enter__ = __exit__ = _used
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = _used
    __neg__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __matmul__ = __rmatmul__ = __mod__ = __rpow__ = _used


def holds_numbers(real: Any) -> bool:
    """Whether this is a list or a deque of floats, and of nothing else."""
    return type(real) in (list, collections.deque) and {*map(type, real)} == {float}


class ShadowList(list):
    """The shadow of a list.  Appending does not read; most else loads all items and guards the length."""

    __class__ = property(lambda self: list)             # type: ignore[assignment]
    growth: Type[Write] = ExtendList

    def __init__(self, heap: Heap, real: list, source: Source):
        unread = [Unread(heap)] * len(real)
        super().__init__(unread)
        self.heap, self.real, self.source = heap, real, source
        self.whole = False
        self.arrays: Dict[Optional[str], Any] = {}      # that NumPy makes of it
        self.before: List[Any] = unread
        self.originals: List[Any] = unread              # and what was written back for good
        self.outside = len(unread)                      # how many there were before the present decision

    def load_all(self) -> None:
        """Load the items of the real list before those that were appended."""
        self.heap.check_fresh()
        if self.whole:
            return
        self.whole = True
        self.heap.capture.inputs.note_length(self.heap.source(Length, self.source), len(self.real))
        self.heap.guard(LengthMatch(self.source, len(self.real)))
        items = [self.heap.shadow(item, self.heap.source(Item, self.source, i)) for i, item in enumerate(self.real)]
        self.originals, self.before = items + self.originals[len(items):], items + self.before[len(items):]
        list.__setitem__(self, slice(len(items)), items)

    def numbers(self) -> Any:
        """A list of the graph with the present items, if these are more or fewer from call to call; None otherwise.

        The items are numbers of one type, or arrays of one shape and dtype.
        """
        source = self.source
        if self.whole or not self.heap.has_varying_contents(source):
            return None
        more = list.__getitem__(self, slice(len(self.real), None))
        inputs, is_of_floats = self.heap.capture.inputs, holds_numbers(self.real)
        array = self._array_of_one_type()
        if array is not None:
            self.heap.guard(ItemTypesMatch(source, type(self.real[0])))
            return inputs.list_of_elements(source, array, self._array, type(self.real[0]), more)
        if not is_of_floats:
            return None
        self.heap.check_fresh()
        self.heap.guard(ItemTypesMatch(source, float))
        return inputs.list_of_numbers(source, more)

    def _array_of_one_type(self) -> Any:
        """The array of a list of items of one type of which only the run knows how many there are; None otherwise."""
        if type(self.real) is not list or len({*map(type, self.real)}) != 1 or not self._is_as_it_was():
            return None
        inputs, length = self.heap.capture.inputs, self.heap.source(Length, self.source)
        array = self._array(None) if type(inputs.length(length, len(self.real))) is not int else None
        is_of_floats = array is not None and type(self.real[0]) is int and array.dtype.kind == "f"      # as ints may be too large
        return None if is_of_floats else array

    def _is_as_it_was(self) -> bool:
        """Whether arrays in the list certainly hold what they held when the call began, when they are put together."""
        capture = self.heap.capture
        may_change = capture.array_writes.written or capture.staging.in_loop
        return not may_change or not self.real or type(self.real[0]) is not np.ndarray

    def array_of_items(self, dtype: Optional[str]) -> Any:
        """The array of the present items, if they are numbers and more or fewer from call to call; None otherwise.

        dtype: text for it; None where NumPy chooses it.
        """
        is_as_given = not self.whole and list.__len__(self) == len(self.real)
        is_input = is_as_given and self.heap.has_varying_contents(self.source) and self._is_as_it_was()
        return self._array(dtype) if is_input else None

    def _array(self, dtype: Optional[str]) -> Any:
        """The array of the items that the real list has; None where NumPy makes none of numbers, or of arrays of one shape."""
        self.heap.check_fresh()
        if not self._is_as_it_was():
            self.heap.capture.abort("arrays of a list whose length differs from call to call are joined after one was written")
        if dtype not in self.arrays:
            array = array_of_list(self.real, dtype)
            source, length = self.heap.source(ArrayOfList, self.source, dtype), self.heap.source(Length, self.source)
            self.arrays[dtype] = None if array is None else self.heap.capture.inputs.array(array, source, length)
        return self.arrays[dtype]

    def length(self) -> Any:
        """The length, without reading the items: a number that may change from call to call."""
        if self.whole:
            return list.__len__(self)
        self.heap.check_fresh()
        known = len(self.real)
        for array in [array for array in self.arrays.values() if array is not None]:     # whose size is the same number
            return array.shape[0] + (list.__len__(self) - known)
        return self.heap.shadow(known, self.heap.source(Length, self.source)) + (list.__len__(self) - known)

    def __bool__(self) -> bool:
        return bool(self.length() > 0)

    def changes(self) -> Iterator[Change]:
        """The items that were appended since the last call, or one item that was set, or all."""
        items = list.copy(self)
        known = self.before
        differ = [k for k, (a, b) in enumerate(zip(items, known)) if a is not b] if len(items) >= len(known) else [-1]
        if not differ:
            if len(items) > len(known):
                yield self.growth, None, items[len(known):]
        elif len(differ) == 1 and len(items) == len(known):
            yield SetListItem, differ[0], items[differ[0]]
        else:
            yield AssignList, None, items
        self.before = items

    def is_changed(self) -> bool:
        """Whether `changes` would give anything; it stays so."""
        items = list.copy(self)
        return len(items) != len(self.before) or any(a is not b for a, b in zip(items, self.before))

    def was_changed(self) -> bool:
        """Whether an item was set, appended or removed during the capture."""
        items = list.copy(self)
        return len(items) != len(self.real) or any(a is not b for a, b in zip(items, self.originals))

    def appended_outside(self) -> List[Any]:
        """What was appended before the present decision and is not written back yet: counts as written back from here on."""
        items, known = list.copy(self), len(self.before)
        if not known < self.outside <= len(items) or any(a is not b for a, b in zip(items, self.before)):
            return []
        self.before = self.originals = items[:self.outside]
        return items[known:self.outside]

    def forget_written(self) -> None:
        """As if nothing had been written back."""
        self.originals = self.originals[:len(self.real)]

    check_place = check_place

    def __setitem__(self, index: Any, value: Any) -> None:
        self.check_place(index)
        self.load_all()
        list.__setitem__(self, index, value)

    def extend(self, items: Any) -> None:
        list.extend(self, list(items))

    def __iadd__(self, items: Any) -> "ShadowList":
        if adds_itself(items):
            return NotImplemented
        self.extend(items)
        return self

    def meet(self, other: Any) -> None:
        """Load the items, as they are joined to another list or compared with it."""
        self.load_all()

    def __add__(self, other: Any) -> Any:
        numbers = self.numbers()
        if numbers is not None:
            return numbers + other
        self.meet(other)
        if not isinstance(other, list):
            return added(self, other)
        load_other(self, other)
        return NotImplemented if hasattr(type(other), "symbolic") else list.__add__(self, other)   # that list knows more

    def __radd__(self, other: Any) -> Any:
        if not isinstance(other, list):
            return NotImplemented
        self.meet(other)                                # `list.__add__` takes what is in the storage
        return list.__add__(other, self)

    def __reduce_ex__(self, protocol: int) -> Any:
        return self.copy().__reduce_ex__(protocol)

    __hash__ = None


def _loading(name: str) -> Any:
    method = getattr(list, name)

    def load_first(self: ShadowList, *args: Any, **kwargs: Any) -> Any:
        numbers = self.numbers() if name == "copy" or name == "__getitem__" and not _is_missing(self, *args) else None
        if numbers is not None:
            return getattr(numbers, name)(*args, **kwargs)
        self.load_all()
        return method(self, *args, **kwargs)
    load_first.__name__ = name
    return load_first


def _is_missing(items: ShadowList, index: Any) -> bool:
    """Whether the list has no item at a place, in this call: a `for` over an object without ``__iter__`` ends there."""
    return type(index) is int and not -list.__len__(items) <= index < list.__len__(items)


def load_other(self: Any, other: Any) -> None:
    """Load the items of the list that C code is about to join or compare with: it takes what is in the storages of both."""
    if isinstance(other, ShadowList):
        other.meet(self)


def _comparing(name: str) -> Any:
    method = getattr(list, name)

    def load_both(self: ShadowList, other: Any) -> Any:
        self.meet(other)
        if hasattr(type(other), "symbolic"):            # a list that knows more
            return NotImplemented
        load_other(self, other)
        return method(self, other)
    load_both.__name__ = name
    return load_both


for _name in COMPARISONS:
    setattr(ShadowList, _name, _comparing(_name))
ask_right_first(ShadowList, list, (*COMPARISONS, "__add__"))
for _name in ("__getitem__", "__delitem__", "__len__", "__iter__", "__contains__", "__reversed__",
              "__mul__", "__rmul__", "__imul__", "__repr__",
              "index", "count", "insert", "pop", "remove", "reverse", "sort", "clear", "copy"):
    setattr(ShadowList, _name, _loading(_name))

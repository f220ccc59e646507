"""Shadows: stand-ins for the objects a call can reach, read lazily and written instead of the real ones.

A shadow has the class of its object (its own class is a subclass made here), so ``isinstance``, methods, properties
and ``super()`` work as they are.  What is read through it is shadowed in turn and guarded; what is written stays in
it.  Dropping the shadows undoes a capture.
"""
from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Tuple, Type

from ..record.guards import ItemTypesMatch, KeyAbsent, KeysMatch, LengthMatch
from ..record.paths import Item, Length, Source
from ..record.writes import AssignList, AssignSet, Change, DeleteItem, ExtendList, SetItem, SetListItem, Write
from .right_operands import COMPARISONS, added, adds_itself, ask_right_first, updated

if TYPE_CHECKING:
    from .heap import Heap

_ABSENT = object()

#: Of longer lists and dicts not all items are read to find one at a place that only the run knows.
_MOST_READ = 32


def as_key(key: Any) -> Any:
    """The key itself, also where it is a number of the graph (Python needs to know it) or the class of shadows."""
    if type(key) is str:
        return key
    if type(key) is tuple:
        return tuple([as_key(part) for part in key])
    if isinstance(key, type):
        return getattr(key, "_dy2static_class", key)
    return key.fix() if hasattr(type(key), "python_type") else key


def _check_place(self: Any, index: Any) -> None:
    """Stop where a part of a function uses an item of a long list or dict at a place that only the run knows.

    What the lines before the part have computed would be known if its contents were guarded, but it differs in each call.  The
    items are not read for that.
    """
    capture = self.heap.capture
    if capture.is_inner and capture.decides(index) and not self.whole and len(self.real) > _MOST_READ:
        capture.abort("an item of a long list or dict is used at a place that only the run knows", final=True)


class ShadowDict(dict):
    """The shadow of a dict: a plain dict, an instance's or a module's ``__dict__``, or the globals of a function.

    The storage holds what was loaded or written.  C code that looks into the storage directly (attribute writes,
    ``STORE_GLOBAL``) therefore works, and ``changes`` finds what it did.
    """

    def __init__(self, heap: Heap, real: dict, source: Source):
        dict.__init__(self)
        self.heap, self.real, self.source = heap, real, source
        self.loaded: Dict[Any, Any] = {}
        self.original: Dict[Any, Any] = {}
        self.absent: set = set()
        self.whole = False
        self.removed: set = set()
        self.dropped: List[Any] = []                    # removed since the last `changes`: set again, they go to the end

    def load(self, key: Any) -> Any:
        """The shadow of ``real[key]``, now in the storage; `_ABSENT` if there is none (which is then guarded)."""
        if key in self.loaded or key in self.absent or key in self.removed:
            return dict.get(self, key, _ABSENT)
        if key not in self.real:
            if not self.whole:
                self.absent.add(key)
                self.heap.guard(KeyAbsent(self.source, key))
            return _ABSENT
        value = self.heap.shadow(self.real[key], self.heap.source(Item, self.source, key))
        self.loaded[key] = self.original[key] = value
        dict.__setitem__(self, key, value)
        return value

    def load_all(self) -> None:
        """Load everything, in the order of the real dict, and guard that there is nothing else."""
        self.heap.check_fresh()
        if self.whole:
            return
        written = {k: v for k, v in dict.items(self) if k in self.removed or self.loaded.get(k, _ABSENT) is not v}
        self.heap.guard(KeysMatch(self.source, tuple(self.real)))
        self.whole = True
        for key in self.real:
            if key not in self.removed:
                self.load(key)
        ordered = {k: dict.get(self, k) for k in self.real if k not in self.removed}
        ordered.update(written)
        dict.clear(self)
        dict.update(self, ordered)

    def changes(self) -> Iterator[Change]:
        """What was set and deleted since the last call."""
        for key in list(self.loaded):
            if not dict.__contains__(self, key) or key in self.dropped:
                del self.loaded[key]
                self.removed.add(key)
                yield DeleteItem, key, None
        self.dropped.clear()
        for key, value in list(dict.items(self)):
            if self.loaded.get(key, _ABSENT) is not value:
                self.loaded[key] = value
                yield SetItem, key, value

    def is_changed(self) -> bool:
        """Whether `changes` would give anything; it stays so."""
        return bool(self.dropped) or any(self.loaded.get(key, _ABSENT) is not value for key, value in dict.items(self)) or any(
            not dict.__contains__(self, key) for key in self.loaded)

    def was_changed(self) -> bool:
        """Whether anything was set or deleted during the capture."""
        return self.is_changed() or bool(self.removed) or any(self.original.get(key, _ABSENT) is not value
                                                              for key, value in self.loaded.items())

    def has_new_flags(self) -> bool:
        """Whether something that was looked at and was None, a truth value or missing is there now, or is another one."""
        flags = [key for key, value in self.original.items() if value is None or type(value) is bool]
        return any(dict.get(self, key, _ABSENT) is not self.original[key] for key in flags) or \
            any(dict.__contains__(self, key) for key in self.absent)

    def __getitem__(self, key: Any) -> Any:
        key = as_key(key)
        value = dict.get(self, key, _ABSENT)
        if value is _ABSENT:
            value = self.load(key)
        if value is _ABSENT:
            raise KeyError(key)
        if self.heap.stale is not None:
            self.heap.check_fresh(value)
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        self.check_place(key)
        dict.__setitem__(self, as_key(key), value)

    def get(self, key: Any, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key: Any) -> bool:
        key = as_key(key)
        return dict.__contains__(self, key) or self.load(key) is not _ABSENT

    def __delitem__(self, key: Any) -> None:
        key = as_key(key)
        if key not in self:
            raise KeyError(key)
        self.load(key)                                  # one that was only written may be there, too
        dict.pop(self, key, None)
        self.removed.add(key)
        self.dropped.append(key)

    def pop(self, key: Any, *default: Any) -> Any:
        if key in self:
            value = self[key]
            del self[key]
            return value
        if default:
            return default[0]
        raise KeyError(key)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        for key in list(self):
            del self[key]

    def copy(self) -> dict:
        return dict(self.items())

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.copy().__reduce_ex__(protocol)

    def popitem(self) -> Tuple[Any, Any]:
        self.load_all()
        if not len(self):
            raise KeyError("popitem(): dictionary is empty")
        key = list(self)[-1]
        return key, self.pop(key)

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __iter__(self) -> Iterator[Any]:
        self.load_all()
        return dict.__iter__(self)

    def __len__(self) -> int:
        self.load_all()
        return dict.__len__(self)

    def keys(self) -> Any:
        self.load_all()
        return dict.keys(self)

    def values(self) -> Any:
        self.load_all()
        return dict.values(self)

    def items(self) -> Any:
        self.load_all()
        return dict.items(self)

    def __eq__(self, other: Any) -> bool:
        self.load_all()
        load_other(self, other)
        return dict.__eq__(self, other)

    def __ne__(self, other: Any) -> bool:
        self.load_all()
        load_other(self, other)
        return dict.__ne__(self, other)

    def __or__(self, other: Any) -> dict:
        return updated(self.copy(), other) if isinstance(other, dict) else NotImplemented

    def __ror__(self, other: Any) -> dict:
        return updated(dict(other.items()), self) if isinstance(other, dict) else NotImplemented

    def __ior__(self, other: Any) -> "ShadowDict":
        self.update(other)
        return self

    def __reversed__(self) -> Iterator[Any]:
        return iter(list(self)[::-1])

    def __bool__(self) -> bool:
        return len(self) > 0

    def __repr__(self) -> str:
        self.load_all()
        return dict.__repr__(self)

    check_place = _check_place
    __hash__ = None


ask_right_first(ShadowDict, dict, ("__eq__", "__ne__", "__or__"))


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

    growth: Type[Write] = ExtendList

    def __init__(self, heap: Heap, real: list, source: Source):
        unread = [Unread(heap)] * len(real)
        super().__init__(unread)
        self.heap, self.real, self.source = heap, real, source
        self.whole = False
        self.before: List[Any] = unread
        self.originals: List[Any] = unread              # and what was written back for good
        self.outside = len(unread)                      # how many there were before the present decision

    def load_all(self) -> None:
        """Load the items of the real list before those that were appended."""
        self.heap.check_fresh()
        if self.whole:
            return
        self.whole = True
        self.heap.guard(LengthMatch(self.source, len(self.real)))
        items = [self.heap.shadow(item, self.heap.source(Item, self.source, i)) for i, item in enumerate(self.real)]
        self.originals, self.before = items + self.originals[len(items):], items + self.before[len(items):]
        list.__setitem__(self, slice(len(items)), items)

    def numbers(self) -> Any:
        """A list of the graph with the present items, if they are numbers and more or fewer from call to call; None otherwise."""
        source = self.source
        if self.whole or not self.heap.has_varying_contents(source) or not holds_numbers(self.real):
            return None
        self.heap.check_fresh()
        self.heap.guard(ItemTypesMatch(source, float))
        return self.heap.capture.inputs.list_of_numbers(source, list.__getitem__(self, slice(len(self.real), None)))

    def length(self) -> Any:
        """The length, without reading the items: a number that may change from call to call."""
        if self.whole:
            return list.__len__(self)
        self.heap.check_fresh()
        known = len(self.real)
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

    check_place = _check_place

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
        numbers = self.numbers() if name in ("__getitem__", "copy") else None
        if numbers is not None:
            return getattr(numbers, name)(*args, **kwargs)
        self.load_all()
        return method(self, *args, **kwargs)
    load_first.__name__ = name
    return load_first


def load_other(self: Any, other: Any) -> None:
    """Load what C code is about to join or compare with: it takes what is in the storages of two lists or dicts."""
    if isinstance(other, ShadowList):
        other.meet(self)
    elif isinstance(other, ShadowDict):
        other.load_all()


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


class ShadowSet(set):
    """The shadow of a set of plain values: all of it is read at once."""

    def __init__(self, real: set, source: Source):
        super().__init__(real)
        self.real, self.source, self.before = real, source, set(real)

    def changes(self) -> Iterator[Change]:
        """All items, if anything changed since the last call."""
        if set(self) != self.before:
            self.before = set(self)
            yield AssignSet, None, set(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return set, (list(self),)

    __hash__ = None



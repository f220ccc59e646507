"""Shadows of the caller's ordered dicts, default dicts, counters and deques."""
from __future__ import annotations

import collections
import operator
from typing import Any, Dict, Iterable, Iterator, Tuple

from ..capture_context import Heap
from ..record.guards import EqualsMatch, IdentityMatch
from ..record.paths import Attribute, BareItems, Source
from ..record.writes import AssignDeque, Change, ExtendDeque
from .dict_shadows import ShadowDict, as_key
from .list_shadows import ShadowList
from .right_operands import COMPARISONS, updated
from .stand_ins import name_in_messages, stands_for


class ShadowOrderedDict(ShadowDict, collections.OrderedDict):
    """The shadow of an OrderedDict, and one itself: Python would compare another on the left with the storage of this."""

    __class__ = property(lambda self: collections.OrderedDict)      # type: ignore[assignment]
    fromkeys = staticmethod(collections.OrderedDict.fromkeys)       # type: ignore[assignment]

    def move_to_end(self, key: Any, last: bool = True) -> None:
        if not last:
            self.heap.capture.abort("an item of an OrderedDict is moved to its beginning")
        value = self[key]
        del self[key]
        self[key] = value

    def popitem(self, last: bool = True) -> Tuple[Any, Any]:
        key = next(iter(self if not last else reversed(self)), None)
        if not len(self):
            raise KeyError("dictionary is empty")
        return key, self.pop(key)

    def copy(self) -> dict:
        return collections.OrderedDict(self.items())

    def __ror__(self, other: Any) -> dict:
        return updated(collections.OrderedDict(other.items()), self) if isinstance(other, dict) else NotImplemented

    def __eq__(self, other: Any) -> bool:
        same = dict(self.items()) == other
        return same and (not isinstance(other, collections.OrderedDict) or list(self) == list(other))

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __repr__(self) -> str:
        return repr(self.copy())

    __hash__ = None


class ShadowDictOfAll(ShadowDict):
    """The shadow of a dict that has something for keys that it has not."""

    def items_source(self) -> Source:
        """Programs look for items without asking what the dict makes of a key that is missing: it may add that."""
        return self.heap.source(BareItems, self.source)


class ShadowDefaultDict(ShadowDictOfAll, collections.defaultdict):
    """The shadow of a defaultdict: a key that is read and not there is made."""

    __class__ = property(lambda self: collections.defaultdict)      # type: ignore[assignment]
    fromkeys = staticmethod(collections.defaultdict.fromkeys)       # type: ignore[assignment]

    def __init__(self, heap: Heap, real: collections.defaultdict, source: Source):
        super().__init__(heap, real, source)
        self._factory = heap.shadow(real.default_factory, heap.source(Attribute, source, "default_factory"))

    @property
    def default_factory(self) -> Any:
        """What makes a value."""
        return self._factory

    @default_factory.setter
    def default_factory(self, value: Any) -> None:
        self.heap.capture.abort("the default_factory of a defaultdict is assigned")

    def __missing__(self, key: Any) -> Any:
        key = as_key(key)
        if self.default_factory is None:
            raise KeyError(key)
        self[key] = self.heap.capture.callee(self.default_factory)()
        return dict.__getitem__(self, key)

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if key in self else self.__missing__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if key in self else default

    def copy(self) -> dict:
        return collections.defaultdict(self.default_factory, self.items())

    __copy__ = copy

    def __ror__(self, other: Any) -> dict:
        made = collections.defaultdict(self.default_factory, other.items()) if isinstance(other, dict) else None
        return NotImplemented if made is None else updated(made, self)

    def __repr__(self) -> str:
        return repr(self.copy())


class ShadowCounter(ShadowDictOfAll, collections.Counter):
    """The shadow of a Counter, whose methods are Python over those of a dict."""

    __class__ = property(lambda self: collections.Counter)          # type: ignore[assignment]

    def __getitem__(self, key: Any) -> Any:
        return ShadowDict.__getitem__(self, key) if key in self else 0

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if key in self else default

    def copy(self) -> dict:
        return collections.Counter(dict(self.items()))

    def __delitem__(self, key: Any) -> None:
        if key in self:
            ShadowDict.__delitem__(self, key)

    def __or__(self, other: Any) -> dict:
        found = collections.Counter.__or__(self, other)         # not implemented for other dicts
        return updated(dict(self.items()), other) if found is NotImplemented and other.__class__ is dict else found

    def __ror__(self, other: Any) -> dict:
        return NotImplemented if isinstance(other, collections.Counter) else super().__ror__(other)

    update, __ior__ = collections.Counter.update, collections.Counter.__ior__
    __eq__, __repr__ = collections.Counter.__eq__, collections.Counter.__repr__
    __hash__ = None


class ShadowDeque(ShadowList):
    """The shadow of a deque.  Appending does not read; what falls out on the other side is the real deque's affair."""

    growth = ExtendDeque

    __class__ = property(lambda self: collections.deque)            # type: ignore[assignment]

    def __init__(self, heap: Heap, real: collections.deque, source: Source):
        super().__init__(heap, real, source)
        self.maxlen = real.maxlen
        match = IdentityMatch if self.maxlen is None else EqualsMatch
        heap.guard(match(heap.source(Attribute, source, "maxlen"), self.maxlen))

    def numbers(self) -> Any:
        """A list of the graph with the present items: see `ShadowList.numbers`."""
        numbers = super().numbers() if self.maxlen != 0 else None
        return numbers if numbers is None or self.maxlen is None else numbers[-self.maxlen:]

    def length(self) -> Any:
        """The length, without reading the items: see `ShadowList.length`."""
        found = super().length()
        is_full = self.maxlen is not None and (len(self.real) < list.__len__(self) and found > self.maxlen)
        return self.maxlen if is_full else found

    def __bool__(self) -> bool:
        return self.maxlen != 0 and super().__bool__()

    def load_all(self) -> None:
        """Load the items of the real deque before those that were appended, without those that fall out."""
        if not self.whole:
            super().load_all()
            self._trim()

    def meet(self, other: Any) -> None:
        """Load the items.  A deque is no list: neither equal to one nor joined to one."""
        if isinstance(other, list) and not isinstance(other, ShadowDeque):
            self.heap.capture.abort("a deque is compared with a list or joined to one")
        self.load_all()

    def changes(self) -> Iterator[Change]:
        """As those of a list, but for single items; as many appended items as there can be."""
        for kind, _, items in super().changes():
            if kind is ExtendDeque:
                yield kind, None, items if self.maxlen is None else items[max(0, len(items) - self.maxlen):]
            else:
                yield AssignDeque, None, list.copy(self)

    def append(self, item: Any) -> None:
        list.append(self, item)
        self._trim()

    def appendleft(self, item: Any) -> None:
        self.load_all()
        list.insert(self, 0, item)
        self._trim(left=False)

    def extend(self, items: Iterable) -> None:
        list.extend(self, list(items))
        self._trim()

    def extendleft(self, items: Iterable) -> None:
        for item in list(items):
            self.appendleft(item)

    def insert(self, index: int, item: Any) -> None:
        self.load_all()
        if self.maxlen is not None and list.__len__(self) >= self.maxlen:
            raise IndexError("deque already at its maximum size")
        list.insert(self, index, item)

    def pop(self) -> Any:                               # type: ignore[override]
        return self._taken(-1)

    def popleft(self) -> Any:
        return self._taken(0)

    def rotate(self, n: int = 1) -> None:
        items = collections.deque(self)
        items.rotate(n)
        list.__setitem__(self, slice(None), list(items))

    def copy(self) -> Any:
        return collections.deque(self, self.maxlen)

    def remove(self, item: Any) -> None:
        items = self.copy()
        items.remove(item)
        list.__setitem__(self, slice(None), items)

    def index(self, *args: Any) -> int:
        return self.copy().index(*args)

    def sort(self, **kwargs: Any) -> None:
        raise AttributeError("'collections.deque' object has no attribute 'sort'")

    def _taken(self, index: int) -> Any:
        if not len(self):
            raise IndexError("pop from an empty deque")
        return list.pop(self, index)

    def _trim(self, left: bool = True) -> None:
        """Let fall out what is too much, where the items are known."""
        while self.whole and self.maxlen is not None and list.__len__(self) > self.maxlen:
            list.pop(self, 0 if left else -1)

    def __getitem__(self, index: Any) -> Any:
        if not hasattr(type(index), "__index__"):
            raise TypeError(f"sequence index must be integer, not '{name_in_messages(type(index))}'")
        if not -len(self) <= index < len(self):
            raise IndexError("deque index out of range")
        return ShadowList.__getitem__(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self[index]
        list.__setitem__(self, index, value)

    def __delitem__(self, index: Any) -> None:
        self[index]
        list.__delitem__(self, index)

    def __iadd__(self, items: Iterable) -> "ShadowDeque":
        self.extend(items)
        return self

    def __imul__(self, count: int) -> "ShadowDeque":
        self.load_all()
        list.__setitem__(self, slice(None), list(self) * count)
        self._trim()
        return self

    def __repr__(self) -> str:
        return repr(self.copy())

    __hash__ = None


def _as_deque(name: str) -> Any:
    """A method that a deque does as a whole, with another one."""
    def method(self: ShadowDeque, other: Any) -> Any:
        found = getattr(self.copy(), name)(other.copy() if type(other) is ShadowDeque else other)
        if found is NotImplemented and isinstance(other, list):     # which would compare itself with the storage of this
            return _OPERATORS[name](self.copy(), list(other))
        return found
    method.__name__ = name
    return method


_OPERATORS = {name: getattr(operator, name) for name in COMPARISONS}

for _name in (*COMPARISONS, "__add__", "__mul__", "__rmul__"):
    setattr(ShadowDeque, _name, _as_deque(_name))

def _own_attribute(self: ShadowDict, name: str) -> Any:
    """An attribute that the class has not: the user may have given it one."""
    if name in vars(self.__dict__.get("real", self)):
        self.heap.capture.abort(f"the attribute `{name}` of an {self.__class__.__name__} is read")
    raise AttributeError(f"{name_in_messages(self.__class__)!r} object has no attribute {name!r}")


for _with_attributes in (ShadowOrderedDict, ShadowCounter):
    _with_attributes.__getattr__ = _own_attribute

#: The shadow of each kind of collection.
COLLECTIONS: Dict[type, Any] = {
    collections.OrderedDict: ShadowOrderedDict, collections.defaultdict: ShadowDefaultDict,
    collections.Counter: ShadowCounter, collections.deque: ShadowDeque,
}
for _real, _stand_in in COLLECTIONS.items():
    stands_for(_stand_in, _real)

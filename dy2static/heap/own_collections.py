"""Shadows of dicts and lists of a class of the user's (a dict whose keys are attributes, say), and of namespaces."""
from __future__ import annotations

import types
from typing import Any, Dict, Iterator, List

from ..capture_context import Heap
from ..record.guards import KeysMatch, LengthMatch
from ..record.paths import BareItems, Item, Source
from ..record.writes import AssignList, Change, DeleteItem, SetItem
from ..runtime.bare_items import has_own_ways
from .dict_shadows import as_key
from .stand_ins import stands_for

#: The methods that read a dict or a list.
_READS = {
    dict: ("__getitem__", "__contains__", "__iter__", "__len__", "__eq__", "__ne__", "__or__", "__reversed__", "get", "keys",
           "values", "items", "copy", "pop", "popitem", "setdefault"),
    list: ("__getitem__", "__contains__", "__iter__", "__len__", "__eq__", "__ne__", "__add__", "__mul__", "__reversed__",
           "index", "count", "copy", "pop", "sort", "reverse", "remove"),
}


class OwnItems:
    """The items of such a dict or list: its shadow is one itself, and holds all of them from the start."""

    def __init__(self, heap: Heap, real: Any, shadow: Any, source: Source):
        if has_own_ways(type(real), base_of(type(real))):
            source = heap.source(BareItems, source)
        self.shadow, self.source = shadow, source
        if isinstance(real, dict):
            heap.guard(KeysMatch(source, tuple(dict.keys(real))))
            dict.update(shadow, {key: heap.shadow(value, heap.source(Item, source, key)) for key, value in dict.items(real)})
        else:
            heap.guard(LengthMatch(source, list.__len__(real)))
            list.extend(shadow, [heap.shadow(item, heap.source(Item, source, i)) for i, item in enumerate(list.copy(real))])
        self.original = self.before = self.contents()

    def contents(self) -> Any:
        """A copy of what is in the shadow."""
        return dict(dict.items(self.shadow)) if isinstance(self.shadow, dict) else list.copy(self.shadow)

    def changes(self) -> Iterator[Change]:
        """The changes since the last call, in the form that shadows of dicts and lists use."""
        before, now = self.before, self.contents()
        self.before = now
        if isinstance(now, list):
            if len(now) != len(before) or any(a is not b for a, b in zip(now, before)):
                yield AssignList, None, now
            return
        stay = [key for key in before if key in now]
        moved = [] if list(now)[:len(stay)] == stay else stay
        for key in before:
            if key not in now or key in moved:
                yield DeleteItem, as_key(key), None
        for key, value in now.items():
            if key not in before or key in moved or value is not before[key]:
                yield SetItem, as_key(key), value


def base_of(cls: type) -> Any:
    """``dict`` or ``list``, if instances are one of these with attributes and nothing else; None for other classes."""
    base = next((base for base in cls.__mro__ if base in _READS), None)
    only = all(known in (object, base) or known.__basicsize__ <= base.__basicsize__ + 2 * _POINTER and known.__flags__ & _HEAP
               for known in cls.__mro__) if base is not None else False
    slots = any(known.__dict__.get("__slots__") for known in cls.__mro__)
    return base if only and cls is not base and cls.__dictoffset__ != 0 and not slots else None


def checked_reads(heap: Heap, cls: type) -> Dict[str, Any]:
    """The methods that the class has of its base, asking first whether a host call may have changed the items."""
    base = base_of(cls)
    names: List[str] = [name for name in _READS.get(base, ()) if getattr(cls, name) is getattr(base, name)]
    return {name: _checked(heap, getattr(base, name)) for name in names}


def _checked(heap: Heap, function: Any) -> Any:
    def method(shadow: Any, *args: Any, **kwargs: Any) -> Any:
        heap.check_fresh()
        return function(shadow, *args, **kwargs)
    method.__name__ = function.__name__
    return method


_POINTER = object.__basicsize__ // 2
_HEAP = 1 << 9                                          # Py_TPFLAGS_HEAPTYPE: a class that a `class` statement made


class Namespace:
    """Stands for `types.SimpleNamespace`, whose attributes cannot be replaced."""

    def __eq__(self, other: Any) -> Any:
        return self.__dict__ == other.__dict__ if isinstance(other, type(self)._dy2static_class) else NotImplemented

    def __repr__(self) -> str:
        return "namespace(" + ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items()) + ")"

    def __reduce_ex__(self, protocol: Any) -> Any:
        type(self)._dy2static_heap.capture.abort("a SimpleNamespace is copied")

    __hash__ = None                                     # type: ignore[assignment]


stands_for(Namespace, types.SimpleNamespace)

"""Shadows: stand-ins for the objects a call can reach, read lazily and written instead of the real ones.

A shadow has the class of its object (its own class is a subclass made here), so ``isinstance``, methods, properties
and ``super()`` work as they are.  What is read through it is shadowed in turn and guarded; what is written stays in
it.  Dropping the shadows undoes a capture.
"""
from __future__ import annotations

from typing import Any, Collection, Dict, Iterator, List, Tuple

from ..capture_context import Heap
from ..record.guards import KeyAbsent, KeysMatch
from ..record.paths import Item, Source
from ..record.writes import Change, DeleteItem, SetItem
from .right_operands import ask_right_first, updated

ABSENT = object()

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


def check_place(self: Any, index: Any) -> None:
    """Stop where an item is used at a place that only the run knows: of a list that grows, or of a long list or dict in a part.

    Of a list that grows there would be a program for each length.  In a part, what the lines before it have computed would be
    known if its contents were guarded, but it differs in each call.  The items are not read for that.
    """
    capture = self.heap.capture
    if self.whole or not capture.decides(index):
        return
    if self.source.path() in self.heap.grown:
        capture.abort("an item of a list that is longer or shorter in nearly every call is used at a place that only the run knows",
                      final=True)
    if capture.is_inner and len(self.real) > _MOST_READ:
        capture.abort("an item of a long list or dict is used at a place that only the run knows", final=True)


class ShadowDict(dict):
    """The shadow of a dict: a plain dict, an instance's or a module's ``__dict__``, or the globals of a function.

    The storage holds what was loaded or written.  C code that looks into the storage directly (attribute writes,
    ``STORE_GLOBAL``) therefore works, and ``changes`` finds what it did.
    """

    __class__ = property(lambda self: dict)             # type: ignore[assignment]

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
        """The shadow of ``real[key]``, now in the storage; `ABSENT` if there is none (which is then guarded)."""
        if key in self.loaded or key in self.absent or key in self.removed:
            return dict.get(self, key, ABSENT)
        if key not in self.real:
            if not self.whole:
                self.absent.add(key)
                self.heap.guard(KeyAbsent(self.source, key))
            return ABSENT
        value = self.loaded[key] = self.original[key] = self._read(key)
        dict.__setitem__(self, key, value)
        return value

    def _read(self, key: Any) -> Any:
        """The shadow of ``real[key]``."""
        return self.heap.shadow(self.real[key], self.heap.source(Item, self.items_source(), key))

    def items_source(self) -> Source:
        """The path by which items are read."""
        return self.source

    def load_all(self) -> None:
        """Load everything, in the order of the real dict, and guard that there is nothing else."""
        self.heap.check_fresh()
        if self.whole:
            return
        self.heap.guard(KeysMatch(self.source, tuple(self.real)))
        self.whole = True
        for key in self.real:
            if key not in self.original:                # what was written over or removed, too: this may be undone
                value = self.original[key] = self._read(key)
                if key not in self.loaded and key not in self.removed:
                    self.loaded[key] = value
                    dict.setdefault(self, key, value)
        found = self.in_order(dict(dict.items(self)), self.removed)
        dict.clear(self)
        dict.update(self, found)

    def in_order(self, contents: Dict[Any, Any], removed: Collection = ()) -> Dict[Any, Any]:
        """Contents of this dict in the order in which a dict has them, if its keys are known.

        removed: those of the real dict's keys that were removed: if they are there, they were set again.
        """
        first = self.real if self.whole else ()
        return {**{key: contents[key] for key in first if key in contents and key not in removed}, **contents}

    def changes(self) -> Iterator[Change]:
        """What was set and deleted since the last call."""
        for key in list(self.loaded):
            if not dict.__contains__(self, key) or key in self.dropped:
                del self.loaded[key]
                self.removed.add(key)
                yield DeleteItem, key, None
        self.dropped.clear()
        for key, value in list(dict.items(self)):
            if self.loaded.get(key, ABSENT) is not value:
                self.loaded[key] = value
                yield SetItem, key, value

    def is_changed(self) -> bool:
        """Whether `changes` would give anything; it stays so."""
        return bool(self.dropped) or any(self.loaded.get(key, ABSENT) is not value for key, value in dict.items(self)) or any(
            not dict.__contains__(self, key) for key in self.loaded)

    def was_changed(self) -> bool:
        """Whether anything was set or deleted during the capture."""
        return self.is_changed() or bool(self.removed) or any(self.original.get(key, ABSENT) is not value
                                                              for key, value in self.loaded.items())

    def has_new_flags(self) -> bool:
        """Whether something that was looked at and was None, a truth value or missing is there now, or is another one."""
        flags = [key for key, value in self.original.items() if value is None or type(value) is bool]
        return any(dict.get(self, key, ABSENT) is not self.original[key] for key in flags) or \
            any(dict.__contains__(self, key) for key in self.absent)

    def __getitem__(self, key: Any) -> Any:
        key = as_key(key)
        value = dict.get(self, key, ABSENT)
        if value is ABSENT:
            value = self.load(key)
        if value is ABSENT:
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
        return dict.__contains__(self, key) or self.load(key) is not ABSENT

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
        if isinstance(other, ShadowDict):
            other.load_all()
        return dict.__eq__(self, other)

    def __ne__(self, other: Any) -> bool:
        self.load_all()
        if isinstance(other, ShadowDict):
            other.load_all()
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

    check_place = check_place
    __hash__ = None


ask_right_first(ShadowDict, dict, ("__eq__", "__ne__", "__or__"))

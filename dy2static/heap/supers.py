"""``super()`` in converted code."""
from __future__ import annotations

import functools
from typing import Any

from ..capture_context import Heap
from ..record.paths import Constant, InstanceDict, Item
from .dict_shadows import ABSENT
from .objects import real_class
from .ownership import is_library_class


class GuardedSuper(super):
    """``super(cls, item)`` of shadows: properties are staged, and attributes of classes are read through shadows."""

    def __init__(self, heap: Heap, *args: Any):
        super().__init__(*[real_class(cls) for cls in args[:1]], *args[1:])
        self._dy2static_heap = heap

    def __getattribute__(self, name: str) -> Any:
        read = functools.partial(super.__getattribute__, self)
        start, cls, item = read("__self_class__"), read("__thisclass__"), read("__self__")
        if start is None or name.startswith("__"):
            return read(name)
        heap, passed = object.__getattribute__(self, "_dy2static_heap"), []
        bases = iter(type.mro(start))
        while next(bases) is not cls:                   # not by equality: the class of a shadow equals the real one
            pass
        for base in bases:
            found, is_assigned = heap.class_attributes.own(base, name)
            if is_assigned:
                heap.class_attributes.rely_on_absence(passed, name)
                return found
            if found is not ABSENT:
                break
            passed.append(base)
        else:
            return read(name)
        if isinstance(found, property) and item is not start:
            return heap.capture.callee(found.fget)(item)
        if hasattr(type(found), "__get__") and not isinstance(found, type) or is_library_class(base):
            return read(name)
        heap.class_attributes.rely_on_absence(passed, name)
        attributes = heap.source(InstanceDict, heap.source(Constant, None, base))
        return heap.shadow(found, heap.source(Item, attributes, name))


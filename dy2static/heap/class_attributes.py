"""Class attributes that the user's code assigns and deletes: a mapping stands in for the class."""
from __future__ import annotations

from typing import Any, Dict, Iterable, Set, Tuple

from ..capture_context import Heap
from ..record.guards import KeyAbsent
from ..record.paths import ClassNamespace, Constant, InstanceDict
from ..runtime.slots import ClassView
from .attributes import lookup
from .dict_shadows import ABSENT, ShadowDict
from .ownership import is_library_class


class ClassAttributes:
    """What a capture has assigned and deleted in classes.

    Only data can be assigned: Python may run a method, a descriptor or a special attribute without asking the capture.
    """

    def __init__(self, heap: Heap):
        self._heap, self._capture = heap, heap.capture
        self._spaces: Dict[type, ShadowDict] = {}
        self._told: Set[type] = set()

    def assign(self, cls: type, name: str, value: Any) -> None:
        """``cls.name = value``."""
        if hasattr(type(value), "__get__"):
            self._refuse(cls, name, "assigned")
        self._space(cls, name, "assigned")[name] = value

    def delete(self, cls: type, name: str) -> None:
        """``del cls.name``."""
        space = self._space(cls, name, "deleted")
        if name not in space:
            raise AttributeError(name)
        if any(name in base.__dict__ for base in cls.__mro__ if base is not cls):
            self._refuse(cls, name, "deleted")          # then another class has the attribute, and paths lead to the one here
        del space[name]

    def find(self, cls: type, name: str) -> Tuple[Any, bool]:
        """The raw attribute that `lookup` finds, and whether the capture has assigned it."""
        if not self._spaces:
            return lookup(cls, name), False
        for k, base in enumerate(cls.__mro__):
            found, is_assigned = self.own(base, name)
            if found is not ABSENT:
                if is_assigned:
                    self.rely_on_absence(cls.__mro__[:k], name)
                return found, is_assigned
        return ABSENT, False

    def rely_on_absence(self, classes: Iterable[type], name: str) -> None:
        """Guard that classes which a look-up passes have no attribute of this name themselves."""
        for cls in classes:
            if not is_library_class(cls) and name not in cls.__dict__:
                self._heap.guard(KeyAbsent(self._heap.source(InstanceDict, self._heap.source(Constant, None, cls)), name))

    def own(self, cls: type, name: str) -> Tuple[Any, bool]:
        """The raw attribute that a class has itself, and whether the capture has assigned it; `ABSENT` if there is none."""
        space = self._spaces.get(cls)
        if space is not None and dict.__contains__(space, name):
            return space[name], True
        return ABSENT if space is not None and name in space.removed else cls.__dict__.get(name, ABSENT), False

    def told(self, cls: type) -> None:
        """Take note that code sees the ``__dict__`` of a class."""
        self._told.add(cls)
        if cls in self._spaces:
            self._capture.abort(f"the __dict__ of class {cls.__name__} is read after an attribute was assigned")

    def _space(self, cls: type, name: str, verb: str) -> ShadowDict:
        """The mapping of a class whose attribute is about to be assigned or deleted."""
        is_special = name.startswith("__") and name.endswith("__")
        if cls in self._told or is_special or is_library_class(cls) or hasattr(type(lookup(cls, name)), "__get__"):
            self._refuse(cls, name, verb)
        space = self._spaces.get(cls)
        if space is None:
            heap = self._heap
            source = heap.source(ClassNamespace, heap.source(Constant, None, cls))
            self._spaces[cls] = space = heap.track(ShadowDict(heap, ClassView(cls), source))
        return space

    def _refuse(self, cls: type, name: str, verb: str) -> None:
        self._capture.abort(f"attribute {name!r} of class {cls.__name__} is {verb}")

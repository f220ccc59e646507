"""Parts of the heap: shadows of objects and classes, their attributes, and the entries of ``chainer.config``."""
from __future__ import annotations

import types
from typing import Any, Dict, Iterable, Protocol, Set, Tuple

from ..record.paths import Source


class ConfigEntries(Protocol):
    """The user's entries of ``chainer.config``."""

    def assigned(self, owner: Any, name: str) -> None:
        """An entry is about to be set."""

    def read(self, name: str, everywhere: bool = True) -> Any:
        """The entry as user code sees it.  Raises AttributeError if there is none."""


class Objects(Protocol):
    """Shadows of objects and classes.  methods: those of the user's classes that the capture has met."""

    methods: Set[types.FunctionType]

    def is_user_class(self, cls: type) -> bool:
        """Whether instances of a class can be shadowed: it is the user's, and has no C base."""

    def can_shadow(self, real: Any) -> bool:
        """Whether an object can be shadowed."""

    def make(self, real: Any, source: Source) -> Any:
        """A shadow of an object."""

    def make_instance(self, cls: type, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        """``cls(*args, **kwargs)`` of a user's class, its methods staged."""

    def check_class(self, cls: type) -> None:
        """Stop if Python would run code of the user's unseen on instances of a class that have no shadows."""

    def rely_on_class(self, cls: type, data: bool = False) -> None:
        """Guard what Python may run for a class and its metaclass; with ``data``, all their attributes."""

    def shown(self, cls: type) -> type:
        """What code sees of a class."""

    def shadow_class(self, cls: type) -> type:
        """The class of the shadows of its instances."""

    def is_subclass(self, kind: Any, cls: Any) -> bool:
        """``issubclass(kind, cls)`` of what these stand for."""


class ClassAttributes(Protocol):
    """What a capture has assigned and deleted in classes."""

    def assign(self, cls: type, name: str, value: Any) -> None:
        """``cls.name = value``."""

    def delete(self, cls: type, name: str) -> None:
        """``del cls.name``."""

    def find(self, cls: type, name: str) -> Tuple[Any, bool]:
        """The raw attribute that a look-up finds, and whether the capture has assigned it."""

    def own(self, cls: type, name: str) -> Tuple[Any, bool]:
        """The raw attribute that a class has itself, and whether the capture has assigned it."""

    def rely_on_absence(self, classes: Iterable[type], name: str) -> None:
        """Guard that classes have no attribute of this name themselves."""

    def told(self, cls: type) -> None:
        """Take note that code sees the ``__dict__`` of a class."""


class Attributes(Protocol):
    """Attributes of shadows."""

    def read_attribute(self, shadow: Any, name: str) -> Any:
        """``shadow.name``, in Python's order."""

    def write_attribute(self, shadow: Any, name: str, method: str, *value: Any) -> bool:
        """``shadow.name = value`` or ``del shadow.name`` where code of the user's does it; False if Python does."""

    def for_reader(self, found: Any, frame: types.FrameType) -> Any:
        """A function or method that code reads: the converted one where a library reads it, which calls it unseen."""

    def converted(self, found: Any) -> Any:
        """A function or method of the user's as code may call it that is not converted."""

    def read_missing(self, shadow: Any, name: str) -> Any:
        """What ``__getattr__`` of the class returns."""

    def identified(self, shadow: Any) -> Any:
        """The object that a shadow stands for, guarded to be this very one."""

    def of_class(self, cls: type, name: str, getter: types.FunctionType) -> Any:
        """What a descriptor of the user's gives for ``cls.name``."""


class Makers(Protocol):
    """What makes shadows."""

    def need_plain(self, function: types.FunctionType) -> None:
        """Stop if an attribute of a function may change in place, which no guard would notice."""

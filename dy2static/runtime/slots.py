"""Attributes as a mapping that can be written, where `vars` gives none: of objects with slots, and of classes."""
from __future__ import annotations

import types
from typing import Any, Iterator, MutableMapping, Tuple


def slots_of(cls: type) -> Tuple[str, ...]:
    """The names of the slots of instances."""
    return tuple([name for base in cls.__mro__ for name, kind in base.__dict__.items()
                  if type(kind) is types.MemberDescriptorType])


class SlotsView(MutableMapping):
    """The attributes of an object in its slots, and in its ``__dict__`` where it has one, too."""

    __slots__ = ("item",)

    def __init__(self, item: Any):
        self.item = item

    def __getitem__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self.item, name) if self._has(name) else vars(self.item)[name]
        except (AttributeError, TypeError):
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        object.__setattr__(self.item, name, value)

    def __delitem__(self, name: str) -> None:
        object.__delattr__(self.item, name)

    def __contains__(self, name: Any) -> bool:
        try:
            self[name]
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        filled = [name for name in slots_of(type(self.item)) if name in self]
        return iter([*filled, *getattr(self.item, "__dict__", ())])

    def __len__(self) -> int:
        return len(list(self))

    def _has(self, name: str) -> bool:
        return name in slots_of(type(self.item))


class ClassView(MutableMapping):
    """The attributes that a class has itself."""

    __slots__ = ("cls",)

    def __init__(self, cls: type):
        self.cls = cls

    def __getitem__(self, name: str) -> Any:
        return vars(self.cls)[name]

    def __setitem__(self, name: str, value: Any) -> None:
        type.__setattr__(self.cls, name, value)

    def __delitem__(self, name: str) -> None:
        type.__delattr__(self.cls, name)

    def __contains__(self, name: Any) -> bool:
        return name in vars(self.cls)

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self.cls))

    def __len__(self) -> int:
        return len(vars(self.cls))

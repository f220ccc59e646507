"""Shadows of objects and modules: what is read from them and written to them goes through the heap."""
from __future__ import annotations

import sys
import types
from typing import Any, ClassVar, Iterable, Optional

from ..capture_context import Heap
from ..record.paths import Source
from .dict_shadows import ShadowDict


class ShadowModule(types.ModuleType):
    """The shadow of a user's module: its names are read, guarded and written as those of an object."""

    def __init__(self, name: str, attributes: ShadowDict, source: Source):
        object.__setattr__(self, "_dy2static_attributes", attributes)
        object.__setattr__(self, "_dy2static_source", source)

    def __getattribute__(self, name: str) -> Any:
        attributes = object.__getattribute__(self, "_dy2static_attributes")
        if name == "__dict__":
            return attributes
        if name == "__class__":
            return types.ModuleType
        try:
            return attributes[name]
        except KeyError:
            fallback = attributes.get("__getattr__")
        if fallback is None:
            raise AttributeError(f"module {attributes.real.get('__name__')!r} has no attribute {name!r}")
        return attributes.heap.capture.callee(fallback)(name)

    def __dir__(self) -> Iterable[str]:
        return object.__getattribute__(self, "_dy2static_attributes").keys()

    def __setattr__(self, name: str, value: Any) -> None:
        object.__getattribute__(self, "_dy2static_attributes")[name] = value

    def __delattr__(self, name: str) -> None:
        del object.__getattribute__(self, "_dy2static_attributes")[name]


_FUNCTIONS = frozenset((types.FunctionType, types.MethodType))


class ShadowBase:
    """Mixed into the class of every object shadow, before the object's own class."""

    _dy2static_heap: ClassVar[Heap]
    _dy2static_class: ClassVar[type]

    def __getattribute__(self, name: str) -> Any:
        attributes = heap_of(self).attributes
        found = attributes.read_attribute(self, name)
        return attributes.for_reader(found, sys._getframe(1)) if type(found) in _FUNCTIONS else found

    def __setattr__(self, name: str, value: Any) -> None:
        if not heap_of(self).attributes.write_attribute(self, name, "__setattr__", value):
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if not heap_of(self).attributes.write_attribute(self, name, "__delattr__"):
            delete_attribute(self, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """For `copy`, which looks into the storage of the attributes, and calls what this gives first."""
        attributes, converted = object.__getattribute__(self, "__dict__"), heap_of(self).attributes.converted
        for name, given in (("__reduce_ex__", (protocol,)), ("__reduce__", ())):
            method = getattr(class_of(self), name)
            if isinstance(method, types.FunctionType):
                found = converted(method)(self, *given)
                return (converted(found[0]), *found[1:]) if isinstance(found, tuple) else found
        if isinstance(attributes, ShadowDict):
            attributes.load_all()
        found = super().__reduce_ex__(protocol)
        state = found[2] if len(found) > 2 else None
        return (*found[:2], dict(state.items()), *found[3:]) if isinstance(state, ShadowDict) else found

    def __dir__(self) -> Iterable[str]:
        """The names of the object that this stands for."""
        attributes, kind = object.__getattribute__(self, "__dict__"), class_of(self)
        if kind.__dir__ is not object.__dir__ or not isinstance(attributes, ShadowDict):
            return super().__dir__()
        heap_of(self).objects.rely_on_class(kind, data=True)
        return {*dir(kind), *attributes.keys()}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Making a shadow class must not run the ``__init_subclass__`` of the user's."""


def delete_attribute(shadow: ShadowBase, name: str) -> None:
    """``object.__delattr__(shadow, name)``, noted also if the attribute was not read, or only written."""
    attributes = object.__getattribute__(shadow, "__dict__")
    if isinstance(attributes, ShadowDict) and name in attributes:
        del attributes[name]
    else:
        object.__delattr__(shadow, name)


# Not through the metaclass, whose `__getattribute__` is Python: each read of an attribute asks for both.

def heap_of(shadow: ShadowBase) -> Heap:
    """The heap that an object shadow belongs to."""
    return type.__getattribute__(type(shadow), "_dy2static_heap")


def class_of(shadow: ShadowBase) -> type:
    """The class of the object that a shadow stands for."""
    return type.__getattribute__(type(shadow), "_dy2static_class")


def attributes_of(shadow: ShadowBase) -> ShadowDict:
    """The `ShadowDict` that an object shadow keeps its attributes in."""
    return object.__getattribute__(shadow, "__dict__")


def origin_of(shadow: Any) -> Optional[Source]:
    """The path of the object behind a shadow; None for objects made during the capture."""
    if isinstance(shadow, ShadowBase):
        return attributes_of(shadow).source.parent if isinstance(attributes_of(shadow), ShadowDict) else None
    return getattr(shadow, "source", None)

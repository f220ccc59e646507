"""Shadows of objects: their classes, and how attributes are read and written through them."""
from __future__ import annotations

import abc
import dataclasses
import enum
import sys
import types
from typing import Any, Callable, Dict, Set, Tuple

import chainer

from .dataclass import CONSTANTS, frozen_against, initialise, is_generated
from .own_collections import Namespace, OwnItems, base_of, checked_reads
from .shadows import _ABSENT, ShadowBase, ShadowDict, attributes_of, origin_of
from .slots import SlotsView, slots_of
from .sources import Source
from .trust import is_library, is_library_class
from .unshadowed import impurity_of

_NOT_SHADOWED = (BaseException, tuple, enum.Enum, chainer.FunctionNode, chainer.Function)
_POINTER = object.__basicsize__ // 2


class Objects:
    """The part of a `World` that makes shadows of objects and classes."""

    capture: Any
    real_of: Callable
    _classes: Dict[type, type]
    _checked: Set[type]
    _user_classes: Dict[type, bool]
    asked: Set[type]                                            # abstract classes of which ``issubclass`` is running
    _plain_readers: Set[type]                                    # classes that are known to read attributes as Python does

    def _is_user_class(self, cls: type) -> bool:
        known = self._user_classes.get(cls)
        if known is None:
            known = self._user_classes[cls] = (
                not is_library_class(cls) and type(cls) in (type, abc.ABCMeta) and self._has_plain_instances(cls)
                and not issubclass(cls, _NOT_SHADOWED + (chainer.Variable,)))
        return known

    @staticmethod
    def _has_plain_instances(cls: type) -> bool:
        """Whether instances are nothing but a ``__dict__`` (no slots, no C base)."""
        return cls.__dictoffset__ != 0 and cls.__basicsize__ <= _Plain.__basicsize__

    @staticmethod
    def _has_slots(cls: type) -> bool:
        """Whether instances are nothing but slots, or slots and a ``__dict__``."""
        return cls.__basicsize__ <= _Plain.__basicsize__ + len(slots_of(cls)) * _POINTER and bool(slots_of(cls))

    def _can_shadow(self, real: Any) -> bool:
        cls = type(real)
        if cls is types.SimpleNamespace:
            return True
        if base_of(cls) is not None:                    # not those whose items are their attributes
            return not is_library_class(cls) and vars(real) is not real and type(cls) is type
        return ((self._has_plain_instances(cls) or self._has_slots(cls))
                and not isinstance(real, _NOT_SHADOWED)
                and (not is_library_class(cls) or cls.__module__.startswith("chainer.")
                     or cls.__module__ in ("contextlib", "argparse")))

    def _object(self, real: Any, source: Source) -> ShadowBase:
        cls = Namespace if type(real) is types.SimpleNamespace else type(real)
        base = base_of(cls)
        shadow = (base or object).__new__(self.shadow_class(cls))
        has_slots = base is None and not self._has_plain_instances(cls)
        kind, namespace = ("slots", SlotsView(real)) if has_slots else ("dict", real.__dict__)
        attributes = self._track(ShadowDict(self, namespace, self.source(kind, source)))
        object.__setattr__(shadow, "__dict__", attributes)
        if base is not None:
            self._track(OwnItems(self, real, shadow, source))
        return shadow

    def check_class(self, cls: type) -> None:
        """Stop if Python would run code of the user's unseen on instances of a class that have no shadows."""
        if cls not in self._checked:
            self.rely_on_class(cls, data=True)
            found = impurity_of(cls)
            if found:
                self.capture.abort(f"{found} may do more than compute, and Python runs it as it is, unseen",
                                   hint="a plain class without slots or a built-in base is compiled")
            self._checked.add(cls)

    def rely_on_class(self, cls: type, data: bool = False) -> None:
        """Guard what Python may run for a class and its metaclass; with ``data``, all their attributes."""
        self.definitions.add_class(cls, data)
        if not is_library_class(type(cls)):
            self.definitions.add_class(type(cls), data=True)

    def is_subclass(self, kind: Any, cls: Any) -> bool:
        """``issubclass(kind, cls)`` of what these stand for; of abstract classes, the answer is guarded."""
        kind, cls = real_class(kind), real_class(cls)
        if cls in type.mro(kind) or not isinstance(cls, abc.ABCMeta) or cls in self.asked:
            return cls in type.mro(kind)
        self.asked.add(cls)                             # it asks its subclasses, the classes of shadows among them
        try:
            return self.definitions.add_answer(kind, cls)
        finally:
            self.asked.discard(cls)

    def shadow_class(self, cls: type) -> type:
        """The class of the shadows of instances of ``cls``, which also stands for ``cls`` itself."""
        made = self._classes.get(cls)
        if made is None:
            self.rely_on_class(cls, data=is_library_class(cls))
            meta = type("ShadowMeta", (ShadowMeta, type(cls)), {}) if type(cls) is not type else ShadowMeta
            body = {"_dy2static_world": self, "_dy2static_class": cls, "__module__": cls.__module__,
                    "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
            body.update(self._special_methods(cls))
            body.update(checked_reads(self, cls))
            of_items = _lookup(cls, "__class_getitem__")
            if isinstance(of_items, classmethod) and isinstance(of_items.__func__, types.FunctionType):
                body["__class_getitem__"] = classmethod(self._staged_special(of_items.__func__))
            made = self._classes[cls] = type.__new__(meta, cls.__name__, (ShadowBase, cls), body)
        return made

    def _special_methods(self, cls: type) -> Dict[str, Callable]:
        """Staged versions of the special methods that Python itself calls (``__add__``, ``__enter__``, …)."""
        found: Dict[str, Callable] = {}
        for base in reversed(cls.__mro__):
            if is_library_class(base):
                continue
            for name, function in base.__dict__.items():
                special = name.startswith("__") and name.endswith("__") and name not in _NOT_STAGED
                if special and isinstance(function, types.FunctionType):
                    found[name] = function if is_generated(base, function) else self._staged_special(function)
        if cls.__repr__ is object.__repr__:             # which names the address of the object
            found["__repr__"] = lambda shadow: object.__repr__(self.identified(shadow))
        hashed = cls.__hash__
        if "__eq__" in found and hashed is not None:
            staged = isinstance(hashed, types.FunctionType) and not is_generated(_owner(cls, "__hash__"), hashed)
            found["__hash__"] = self._staged_special(hashed) if staged else hashed
        return found

    def identified(self, shadow: ShadowBase) -> Any:
        """The object that a shadow stands for, guarded to be this very one; the shadow, of an object made during the capture."""
        source = origin_of(shadow)
        if source is None:
            return shadow
        real = self.real_of(shadow)
        self.guard(source, "is", real)
        return real

    def _staged_special(self, function: types.FunctionType) -> Callable:
        def special(shadow: Any, *args: Any, **kwargs: Any) -> Any:
            return self.capture.callee(function)(shadow, *args, **kwargs)

        def truth(shadow: Any) -> bool:
            found = self.capture.callee(function)(shadow)
            return bool(found) if getattr(found, "python_type", None) is bool else found     # Python asks now
        made = truth if function.__name__ == "__bool__" else special
        made.__name__ = function.__name__
        return made

    def read_attribute(self, shadow: ShadowBase, name: str) -> Any:
        """``shadow.name``, in Python's order: data descriptors, instance, class, ``__getattr__``."""
        cls = type(shadow)._dy2static_class
        attributes = attributes_of(shadow)
        if name == "__dict__":
            if isinstance(attributes, ShadowDict) and attributes.source.kind == "slots":
                self.capture.abort("the __dict__ of an object with slots is read")
            return attributes
        if name == "__reduce_ex__":
            return object.__getattribute__(shadow, name)
        if name == "__class__":
            real = types.SimpleNamespace if cls is Namespace else cls
            return self.shadow_class(cls) if self._is_user_class(cls) else real
        if isinstance(shadow, (dict, list)):
            self.check_fresh()
        found = _lookup(cls, name)
        if cls not in self._plain_readers:
            if isinstance(_lookup(cls, "__getattribute__"), types.FunctionType):
                self.capture.abort(f"class {cls.__name__} has a __getattribute__")
            self._plain_readers.add(cls)
        if found is not _ABSENT and _is_data_descriptor(found):
            return self._data_descriptor(shadow, cls, name, found)
        value = attributes.get(name, _ABSENT)
        if value is not _ABSENT:
            return value
        if found is not _ABSENT:
            return self._class_attribute(shadow, cls, name, found)
        if not is_library_class(cls):
            self.guard(self.source("const", None, cls), "lacks", name)
        fallback = _lookup(cls, "__getattr__")
        if fallback is not _ABSENT:
            return self.capture.callee(fallback)(shadow, name)
        raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")

    def _data_descriptor(self, shadow: ShadowBase, cls: type, name: str, found: Any) -> Any:
        if type(found) is types.MemberDescriptorType and isinstance(attributes_of(shadow), ShadowDict):
            value = attributes_of(shadow).get(name, _ABSENT)
            if value is _ABSENT:
                raise AttributeError(name if sys.version_info < (3, 10) else f"{cls.__name__!r} object has no attribute {name!r}")
            return value
        if isinstance(found, property):
            return self.capture.callee(found.fget)(shadow)
        getter = _lookup(type(found), "__get__")
        if isinstance(getter, types.FunctionType):
            return self.capture.callee(getter)(self._descriptor(cls, name, found), shadow, cls)
        return object.__getattribute__(shadow, name)

    def _descriptor(self, cls: type, name: str, found: Any) -> Any:
        """The shadow of a descriptor of the user's, whose methods read its attributes."""
        self.rely_on_class(type(found))
        owner = self.source("const", None, _owner(cls, name))
        return self.shadow(found, self.source("item", self.source("dict", owner), name))

    def _class_attribute(self, shadow: ShadowBase, cls: type, name: str, found: Any) -> Any:
        if isinstance(found, types.FunctionType):
            return types.MethodType(found, shadow)
        if isinstance(found, classmethod):
            owner = self.shadow_class(cls) if self._is_user_class(cls) else cls
            return types.MethodType(found.__func__, owner)
        if isinstance(found, staticmethod):
            return found.__func__
        getter = _lookup(type(found), "__get__")
        if isinstance(getter, types.FunctionType) and not is_library(getter.__module__ or ""):
            return self.capture.callee(getter)(self._descriptor(cls, name, found), shadow, cls)
        if getter is not _ABSENT and not isinstance(found, type):
            return type(found).__get__(found, shadow, cls)
        if is_library_class(cls) or name in CONSTANTS:
            return found
        return self.shadow(found, self.source("attr", self.source("const", None, cls), name))

    def write_attribute(self, shadow: ShadowBase, name: str, method: str, accessor: str, *value: Any) -> bool:
        """``shadow.name = value`` or ``del shadow.name`` where code of the user's does it; False if Python does."""
        cls = type(shadow)._dy2static_class
        if name in ("__class__", "__dict__"):
            self.capture.abort(f"{name} of an object is assigned")
        own = _lookup(cls, method)
        if frozen_against(cls, method, name):
            verb = "assign to" if value else "delete"
            raise dataclasses.FrozenInstanceError(f"cannot {verb} field {name!r}")
        if isinstance(own, types.FunctionType) and not is_library(own.__module__ or "") and \
                not is_generated(_owner(cls, method), own):
            self.capture.callee(own)(shadow, name, *value)
            return True
        found = _lookup(cls, name)
        if type(found) is types.MemberDescriptorType and isinstance(attributes_of(shadow), ShadowDict):
            self._write_slot(attributes_of(shadow), name, *value)
            return True
        if isinstance(found, property) and getattr(found, accessor) is not None:
            self.capture.callee(getattr(found, accessor))(shadow, *value)
            return True
        setter = _lookup(type(found), "__set__" if value else "__delete__")
        if isinstance(setter, types.FunctionType) and not is_library(setter.__module__ or ""):
            self.capture.callee(setter)(self._descriptor(cls, name, found), shadow, *value)
            return True
        return False

    @staticmethod
    def _write_slot(attributes: ShadowDict, name: str, *value: Any) -> None:
        if value:
            attributes[name] = value[0]
        elif name in attributes:
            del attributes[name]
        else:
            raise AttributeError(name)

    def make_instance(self, cls: type, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        """``cls(*args, **kwargs)`` of a user's class, its methods staged."""
        made = _lookup(cls, "__new__")
        if _lookup(cls, "__del__") is not _ABSENT:
            self.capture.abort(f"class {cls.__name__} has a __del__")
        if isinstance(made, staticmethod):
            shadow = self.capture.callee(made.__func__)(self.shadow_class(cls), *args, **kwargs)
            if not isinstance(shadow, cls):
                return shadow
            cls = type(shadow)._dy2static_class if isinstance(shadow, ShadowBase) else cls
        else:
            if getattr(cls, "__abstractmethods__", None):
                raise TypeError(f"Can't instantiate abstract class {cls.__name__}")     # the words are the eager run's
            shadow = object.__new__(self.shadow_class(cls))
        init = _lookup(cls, "__init__")
        if is_generated(_owner(cls, "__init__"), init):
            initialise(self, _owner(cls, "__init__"), shadow, args, kwargs)
        elif isinstance(init, types.FunctionType):
            self.capture.callee(init)(shadow, *args, **kwargs)
        elif (args or kwargs) and not isinstance(made, staticmethod):
            raise TypeError(f"{cls.__name__}() takes no arguments")
        return shadow

    def dispose_classes(self) -> None:
        """Make the shadow classes stop being subclasses of the user's."""
        for made in self._classes.values():
            if self._has_plain_instances(made):         # the layout of others cannot change
                type.__setattr__(made, "__bases__", (ShadowBase, _Plain))


class _Plain:
    pass


_NOT_STAGED = frozenset(("__init__", "__new__", "__del__", "__getattribute__", "__getattr__", "__setattr__", "__delattr__",
                         "__init_subclass__", "__class_getitem__", "__reduce__", "__reduce_ex__", "__hash__", "__call__",
                         "__set_name__", "__get__", "__set__", "__delete__"))


#: What a class tells of itself: that of a shadow is no part of it.
_OF_CLASSES = frozenset(("__dict__", "__bases__", "__mro__"))


class ShadowMeta(type):
    """The class of shadow classes: reads of class attributes are guarded, writes stop the capture."""

    def __getattribute__(cls, name: str) -> Any:
        if name.startswith(("__", "_dy2static")) and name not in _OF_CLASSES or name == "mro":
            return type.__getattribute__(cls, name)
        real, world = type.__getattribute__(cls, "_dy2static_class"), type.__getattribute__(cls, "_dy2static_world")
        if name == "__dict__":
            return world.shadow(real.__dict__, world.source("dict", world.source("const", None, real)))
        if name in _OF_CLASSES:
            return tuple([world.shadow_class(base) if world._is_user_class(base) else base for base in getattr(real, name)])
        found = _lookup(real, name)
        if found is _ABSENT:
            return type.__getattribute__(cls, name)
        if isinstance(found, classmethod):
            return types.MethodType(found.__func__, cls)
        if hasattr(type(found), "__get__") and not isinstance(found, type):
            return type(found).__get__(found, None, real)
        return world.shadow(found, world.source("attr", world.source("const", None, real), name))

    def __setattr__(cls, name: str, value: Any) -> None:
        if name == "__slotnames__":                     # what `copy` remembers of a class
            type.__setattr__(cls, name, value)
            return
        cls._dy2static_world.capture.abort(f"attribute {name!r} of class {cls.__name__} is assigned")

    def __delattr__(cls, name: str) -> None:
        cls._dy2static_world.capture.abort(f"attribute {name!r} of class {cls.__name__} is deleted")

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._dy2static_world.make_instance(cls._dy2static_class, args, kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        # what stands for a number or an array says so
        return cls._dy2static_world.is_subclass(instance.__class__, cls) or isinstance(instance, cls._dy2static_class)

    def __subclasscheck__(cls, other: type) -> bool:
        return cls._dy2static_world.is_subclass(other, cls)

    def __eq__(cls, other: Any) -> bool:
        return other is cls or other is cls._dy2static_class

    def __hash__(cls) -> int:
        return hash(cls._dy2static_class)

    def __new__(meta, name: str, bases: Tuple, body: Dict[str, Any], **kwargs: Any) -> type:
        for base in bases:
            if isinstance(base, ShadowMeta):
                base._dy2static_world.capture.abort(f"class {name} is derived from {base.__name__} inside the compiled function")
        return super().__new__(meta, name, bases, body, **kwargs)


def _lookup(cls: type, name: str) -> Any:
    """The raw class attribute, as attribute access finds it; `_ABSENT` if there is none."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return _ABSENT


def _owner(cls: type, name: str) -> type:
    """The class that an attribute of ``cls`` comes from."""
    return next((base for base in cls.__mro__ if name in base.__dict__), cls)


def _is_data_descriptor(found: Any) -> bool:
    kind = type(found)
    return hasattr(kind, "__set__") or hasattr(kind, "__delete__")


def real_class(value: Any) -> Any:
    """The class a shadow class stands for; anything else as it is."""
    return value._dy2static_class if isinstance(value, ShadowMeta) else value

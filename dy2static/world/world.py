"""The world of one capture: the memo from real objects to shadows, the guards, and how attributes are read."""
from __future__ import annotations

import abc
import dataclasses
import enum
import functools
import os
import sys
import types
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import chainer
import numpy as np

from ..runtime.staticness import is_static_function
from .aborts import CaptureAborted
from .dataclass import CONSTANTS, frozen_against, initialise, is_generated
from .shadows import _ABSENT, ShadowBase, ShadowDict, ShadowList, ShadowModule, ShadowSet, attributes_of
from .sources import Guard, Source, Sources
from .trust import is_library, is_library_class
from .unshadowed import impurity_of

_SINGLETONS = (type(None), bool, type(Ellipsis), type(NotImplemented), types.BuiltinFunctionType, np.ufunc,
               types.MethodWrapperType, types.WrapperDescriptorType, types.MethodDescriptorType,
               types.ClassMethodDescriptorType, type(np.sum))
_VALUES = (str, bytes, complex, frozenset, range, slice, np.dtype)
_NOT_SHADOWED = (BaseException, tuple, enum.Enum, chainer.FunctionNode, chainer.Function)
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.ufunc, type(np.sum))
_WITH_STATE = (os, sys)                     # the environment, arguments and streams are read at every call
_NUMBERS = {int: "py_int", float: "py_float"}


class World:
    """Shadows and guards of one capture.

    capture: makes the symbolic values for arrays, Variables and other objects (`input_array` and its kin).
    varying: paths of numbers that have been seen to change: they become inputs instead of guards.
    """

    def __init__(self, capture: Any, varying: Set[Tuple]):
        self.capture, self.varying = capture, varying
        self.guards: List[Guard] = []
        self._relied: Set[Tuple] = set()
        self.sources = Sources()
        self.containers: List[Any] = []
        self.stale: Optional[str] = None                # a host call that may have changed what is read from here on
        self._memo: Dict[int, Tuple[Any, Any, Source]] = {}
        self._origins: Dict[int, Source] = {}
        self._classes: Dict[type, type] = {}
        self._checked: Set[type] = set()
        self._functions: Dict[int, Tuple[types.FunctionType, dict]] = {}

    def source(self, kind: str, parent: Optional[Source], key: Any = None) -> Source:
        """The interned source of one step."""
        return self.sources.get(kind, parent, key)

    def guard(self, source: Optional[Source], test: str, expected: Any = None) -> None:
        """Remember what the capture relies on."""
        key = source, test, id(expected)
        if key not in self._relied:
            self._relied.add(key)
            self.guards.append(Guard(source, test, expected))

    def check_fresh(self, value: Any = None) -> None:
        """Stop if this value, just read from an object of the user's, may have been changed by a host call."""
        if self.stale is not None and not isinstance(value, _NAMED) and not is_static_function(value):
            self.capture.abort(f"state is read after {self.stale}, which runs on the host and may have changed it",
                               hint="read what is needed before that call")

    # --- shadows ------------------------------------------------------------------------------------------------

    def shadow(self, real: Any, source: Source) -> Any:
        """What user code sees instead of ``real``, which was read by ``source``."""
        kind = type(real)
        if kind in _NUMBERS:
            return self._number(real, source)
        if kind in _SINGLETONS or isinstance(real, enum.Enum) or is_static_function(real):
            if isinstance(real, enum.Enum):
                self.check_class(kind)
            self.guard(source, "is", real)
            return real
        if kind in _VALUES or isinstance(real, (np.generic, np.dtype)):
            self.guard(source, "eq", real)
            return real
        known = self._memo.get(id(real))
        if known is not None:
            if known[2] is not source:
                self.guard(source, "same", known[2])
            return known[1]
        made = self._make(real, source)
        self._memo[id(real)] = (real, made, source)
        if isinstance(made, (tuple, types.MethodType, functools.partial)):
            self._origins[id(made)] = source
        return made

    def origin(self, made: Any) -> Optional[Source]:
        """The source of a tuple, bound method or partial that stands for one of the user's."""
        return self._origins.get(id(made))

    def _number(self, real: Any, source: Source) -> Any:
        if source.path() in self.varying:
            self.guard(source, "type", type(real))
            return self.capture.number(source, real, _NUMBERS[type(real)])
        self.guard(source, "eq", real)
        return real

    def _make(self, real: Any, source: Source) -> Any:
        kind = type(real)
        maker = self._MAKERS.get(kind)
        if maker is not None:
            return maker(self, real, source)
        if isinstance(real, type):
            self.guard(source, "is", real)
            return self.shadow_class(real) if self._is_user_class(real) else real
        if isinstance(real, tuple) and hasattr(kind, "_fields"):
            self.check_class(kind)
            return kind._make(self._items(real, source))
        if isinstance(real, chainer.Variable):
            return self.capture.input_variable(real, source)
        self.guard(source, "type", kind)
        if self._can_shadow(real):
            return self._object(real, source)
        return self.capture.input_object(real, source)

    def _items(self, real: tuple, source: Source) -> List[Any]:
        self.guard(source, "type", type(real))
        self.guard(source, "len", len(real))
        return [self.shadow(item, self.source("item", source, i)) for i, item in enumerate(real)]

    def _tuple(self, real: tuple, source: Source) -> tuple:
        return tuple(self._items(real, source))

    def _list(self, real: list, source: Source) -> ShadowList:
        self.guard(source, "type", list)
        return self._track(ShadowList(self, real, source))

    def _dict(self, real: dict, source: Source) -> ShadowDict:
        self.guard(source, "type", dict)
        return self._track(ShadowDict(self, real, source))

    def _set(self, real: set, source: Source) -> Any:
        if not all(type(item) in (int, float, bool, str, bytes, type(None)) for item in real):
            return self.capture.input_object(real, source)
        self.guard(source, "type", set)
        self.guard(source, "eq", set(real))
        return self._track(ShadowSet(real, source))

    def _array(self, real: np.ndarray, source: Source) -> Any:
        return self.capture.input_array(real, source)

    def _function(self, real: types.FunctionType, source: Source) -> types.FunctionType:
        self.guard(source, "is", real)
        extra = {k: v for k, v in real.__dict__.items() if k != "__wrapped__"}
        if extra and not is_library(real.__module__ or ""):
            attributes = self.source("dict", source)
            self.guard(attributes, "keys", tuple(real.__dict__))
            for key in extra:
                if not isinstance(extra[key], _SINGLETONS + _VALUES + (int, float, types.FunctionType, type)):
                    self.capture.abort(f"the function {real.__name__} has an attribute {key!r} of type {type(extra[key]).__name__}")
                self.shadow(extra[key], self.source("item", attributes, key))
        self._functions[id(real)] = (real, dict(real.__dict__))
        return real

    def _method(self, real: types.MethodType, source: Source) -> types.MethodType:
        self.guard(source, "type", types.MethodType)
        function = self.shadow(real.__func__, self.source("attr", source, "__func__"))
        return types.MethodType(function, self.shadow(real.__self__, self.source("attr", source, "__self__")))

    def _partial(self, real: functools.partial, source: Source) -> functools.partial:
        self.guard(source, "type", functools.partial)
        parts = [self.shadow(getattr(real, name), self.source("attr", source, name)) for name in ("func", "args")]
        keywords = {k: self.shadow(v, self.source("item", self.source("attr", source, "keywords"), k))
                    for k, v in real.keywords.items()}
        self.guard(self.source("attr", source, "keywords"), "keys", tuple(real.keywords))
        return functools.partial(parts[0], *parts[1], **keywords)

    def _module(self, real: types.ModuleType, source: Source) -> types.ModuleType:
        self.guard(source, "is", real)
        if is_library(real.__name__) and real not in _WITH_STATE:
            return real
        return ShadowModule(real.__name__, self._track(ShadowDict(self, real.__dict__, self.source("dict", source))))

    _MAKERS: Dict[type, Callable] = {
        tuple: _tuple, list: _list, dict: _dict, set: _set, np.ndarray: _array, types.FunctionType: _function,
        types.MethodType: _method, functools.partial: _partial, types.ModuleType: _module,
    }

    def _track(self, container: Any) -> Any:
        self.containers.append(container)
        return container

    # --- objects and classes ------------------------------------------------------------------------------------

    @staticmethod
    def _is_user_class(cls: type) -> bool:
        return (not is_library_class(cls) and type(cls) in (type, abc.ABCMeta) and World._has_plain_instances(cls)
                and not issubclass(cls, _NOT_SHADOWED + (chainer.Variable,)))

    @staticmethod
    def _has_plain_instances(cls: type) -> bool:
        """Whether instances are nothing but a ``__dict__`` (no slots, no C base)."""
        return (cls.__dictoffset__ != 0 and cls.__basicsize__ <= _Plain.__basicsize__
                and not any(base.__dict__.get("__slots__") for base in cls.__mro__))

    def _can_shadow(self, real: Any) -> bool:
        cls = type(real)
        return (isinstance(getattr(real, "__dict__", None), dict) and self._has_plain_instances(cls)
                and not isinstance(real, _NOT_SHADOWED)
                and (not is_library_class(cls) or cls.__module__.startswith("chainer.")
                     or cls.__module__ in ("contextlib", "argparse")))

    def _object(self, real: Any, source: Source) -> ShadowBase:
        shadow = object.__new__(self.shadow_class(type(real)))
        attributes = self._track(ShadowDict(self, real.__dict__, self.source("dict", source)))
        object.__setattr__(shadow, "__dict__", attributes)
        return shadow

    def check_class(self, cls: type) -> None:
        """Stop if Python would run code of the user's unseen on instances of a class that have no shadows."""
        if cls not in self._checked:
            found = impurity_of(cls)
            if found:
                self.capture.abort(f"{found} may do more than compute, and Python runs it as it is, unseen",
                                   hint="a plain class without slots or a built-in base is compiled")
            self._checked.add(cls)

    def shadow_class(self, cls: type) -> type:
        """The class of the shadows of instances of ``cls``, which also stands for ``cls`` itself."""
        made = self._classes.get(cls)
        if made is None:
            meta = type("ShadowMeta", (ShadowMeta, type(cls)), {}) if type(cls) is not type else ShadowMeta
            body = {"_dy2static_world": self, "_dy2static_class": cls, "__module__": cls.__module__,
                    "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
            body.update(self._special_methods(cls))
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
        hashed = cls.__hash__
        if "__eq__" in found and hashed is not None:
            staged = isinstance(hashed, types.FunctionType) and not is_generated(_owner(cls, "__hash__"), hashed)
            found["__hash__"] = self._staged_special(hashed) if staged else hashed
        return found

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
            return attributes
        if name == "__reduce_ex__":
            return object.__getattribute__(shadow, name)
        if name == "__class__":
            return self.shadow_class(cls) if self._is_user_class(cls) else cls
        found = _lookup(cls, name)
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
        if isinstance(found, property):
            self._guard_class(cls, name, found)
            return self.capture.callee(found.fget)(shadow)
        getter = _lookup(type(found), "__get__")
        if isinstance(getter, types.FunctionType):
            self._guard_class(cls, name, found)
            return self.capture.callee(getter)(found, shadow, cls)
        return object.__getattribute__(shadow, name)

    def _class_attribute(self, shadow: ShadowBase, cls: type, name: str, found: Any) -> Any:
        if isinstance(found, types.FunctionType):
            self._guard_class(cls, name, found)
            return types.MethodType(found, shadow)
        if isinstance(found, classmethod):
            self._guard_class(cls, name, found)
            owner = self.shadow_class(cls) if self._is_user_class(cls) else cls
            return types.MethodType(found.__func__, owner)
        if isinstance(found, staticmethod):
            self._guard_class(cls, name, found.__func__)
            return found.__func__
        if hasattr(type(found), "__get__") and not isinstance(found, type):
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
            self._guard_class(cls, method, own)
            self.capture.callee(own)(shadow, name, *value)
            return True
        found = _lookup(cls, name)
        if isinstance(found, property) and getattr(found, accessor) is not None:
            self._guard_class(cls, name, found)
            self.capture.callee(getattr(found, accessor))(shadow, *value)
            return True
        setter = _lookup(type(found), "__set__" if value else "__delete__")
        if isinstance(setter, types.FunctionType) and not is_library(setter.__module__ or ""):
            self._guard_class(cls, name, found)
            self.capture.callee(setter)(found, shadow, *value)
            return True
        return False

    def _guard_class(self, cls: type, name: str, found: Any) -> None:
        if is_library_class(cls):
            return
        source = self.source("attr", self.source("const", None, cls), name)
        if isinstance(found, classmethod):
            source, found = self.source("attr", source, "__func__"), found.__func__
        self.guard(source, "is", found)

    def make_instance(self, cls: type, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        """``cls(*args, **kwargs)`` of a user's class, its methods staged."""
        made = _lookup(cls, "__new__")
        if _lookup(cls, "__del__") is not _ABSENT:
            self.capture.abort(f"class {cls.__name__} has a __del__")
        if isinstance(made, staticmethod):
            self._guard_class(cls, "__new__", made.__func__)
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
            self._guard_class(cls, "__init__", init)
            initialise(self, _owner(cls, "__init__"), shadow, args, kwargs)
        elif isinstance(init, types.FunctionType):
            self._guard_class(cls, "__init__", init)
            self.capture.callee(init)(shadow, *args, **kwargs)
        elif (args or kwargs) and not isinstance(made, staticmethod):
            raise TypeError(f"{cls.__name__}() takes no arguments")
        return shadow

    def real_of(self, made: Any) -> Any:
        """The object of the user's that a shadow or a symbolic value stands for."""
        return next(real for real, known, _ in self._memo.values() if known is made)

    # --- at the end ---------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Check what cannot be intercepted, and add the guards over all objects together."""
        for function, attributes in self._functions.values():
            if function.__dict__ != attributes:
                raise CaptureAborted(f"an attribute of the function {function.__name__} is assigned")
        objects = [source for real, made, source in self._memo.values()
                   if isinstance(made, (ShadowList, ShadowDict, ShadowBase, ShadowSet, chainer.Variable))]
        if len(objects) > 1:
            self.guard(None, "distinct", tuple(objects))


    def dispose(self) -> None:
        """Leave nothing behind: the shadow classes stop being subclasses of the user's."""
        for function, attributes in self._functions.values():
            if function.__dict__ != attributes:
                function.__dict__.clear()
                function.__dict__.update(attributes)
        for made in self._classes.values():
            type.__setattr__(made, "__bases__", (ShadowBase, _Plain))


class _Plain:
    pass


_NOT_STAGED = frozenset(("__init__", "__new__", "__del__", "__getattribute__", "__getattr__", "__setattr__", "__delattr__",
                         "__init_subclass__", "__class_getitem__", "__reduce__", "__reduce_ex__", "__hash__", "__call__",
                         "__set_name__", "__get__", "__set__", "__delete__"))


class ShadowMeta(type):
    """The class of shadow classes: reads of class attributes are guarded, writes stop the capture."""

    def __getattribute__(cls, name: str) -> Any:
        if name.startswith(("__", "_dy2static")) or name == "mro":
            return type.__getattribute__(cls, name)
        real, world = type.__getattribute__(cls, "_dy2static_class"), type.__getattribute__(cls, "_dy2static_world")
        found = _lookup(real, name)
        if found is _ABSENT:
            return type.__getattribute__(cls, name)
        if isinstance(found, (types.FunctionType, property)):
            world._guard_class(real, name, found)
            return found
        if isinstance(found, classmethod):
            world._guard_class(real, name, found)
            return types.MethodType(found.__func__, cls)
        if isinstance(found, staticmethod):
            world._guard_class(real, name, found.__func__)
            return found.__func__
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
        return isinstance(instance, cls._dy2static_class)

    def __subclasscheck__(cls, other: type) -> bool:
        # Not ``issubclass``: an ABC would ask all subclasses of the real class, among them this one, for ever.
        return cls._dy2static_class in type.mro(other)

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

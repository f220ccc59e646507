"""Shadows of objects, and their classes."""
from __future__ import annotations

import abc
import enum
import operator
import sys
import types
from typing import Any, Callable, Dict, Set, Tuple

import chainer

from ..capture_context import Heap
from ..record.guards import AttributeAbsent
from ..record.paths import Attribute, Constant, InstanceDict, Item, Slots, Source
from ..runtime.rule_states import counts_of
from ..runtime.slots import SlotsView, slots_of
from . import aliases
from .attributes import is_of_user, lookup, owner_of
from .dataclass import CONSTANTS, initialise, is_generated
from .dict_shadows import ABSENT, ShadowDict
from .object_shadows import ShadowBase, class_of
from .open_classes import OpenClasses
from .own_collections import Namespace, OwnItems, base_of, checked_reads
from .ownership import CALLING_BACK, is_library_class, is_made_by_type
from .plain_instances import Reads
from .stand_ins import name_in_messages, stands_for

_NOT_SHADOWED = (BaseException, tuple, enum.Enum, chainer.FunctionNode, chainer.Function)
_POINTER = object.__basicsize__ // 2


class Objects:
    """The shadows of objects and classes of one heap.  asked: abstract classes of which ``issubclass`` is running."""

    def __init__(self, heap: Heap):
        self.heap, self.capture = heap, heap.capture
        self.asked: Set[type] = set()
        self._classes: Dict[type, type] = {}
        self._specials: Dict[types.FunctionType, Callable] = {}
        self._checked: Set[type] = set()
        self._relied: Set[Tuple[type, bool]] = set()
        self._met: Set[type] = set()                    # classes whose methods are known
        self.methods: Set[types.FunctionType] = set()   # those of the user's classes that the capture has met
        self._user_classes: Dict[type, bool] = {}
        self.open_classes = OpenClasses(heap.capture)

    def is_user_class(self, cls: type) -> bool:
        """Whether instances of a class can be shadowed: it is the user's, and has no C base."""
        known = self._user_classes.get(cls)
        if known is None:
            known = self._user_classes[cls] = (
                not is_library_class(cls) and is_made_by_type(cls) and self._has_plain_instances(cls)
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

    def can_shadow(self, real: Any) -> bool:
        """Whether an object can be shadowed."""
        cls = type(real)
        if cls is types.SimpleNamespace:
            return True
        if base_of(cls) is not None:                    # not those whose items are their attributes
            return not is_library_class(cls) and vars(real) is not real and type(cls) is type
        return ((self._has_plain_instances(cls) or self._has_slots(cls))
                and not isinstance(real, _NOT_SHADOWED)
                and (not is_library_class(cls) or cls.__module__.startswith("chainer.")
                     or cls.__module__ in ("contextlib", "argparse")))

    def make(self, real: Any, source: Source) -> ShadowBase:
        """A shadow of an object."""
        cls = Namespace if type(real) is types.SimpleNamespace else type(real)
        base = base_of(cls)
        shadow = (base or object).__new__(self.shadow_class(cls))
        has_slots = base is None and not self._has_plain_instances(cls)
        if has_slots:
            attributes = self.heap.track(ShadowDict(self.heap, SlotsView(real), self.heap.source(Slots, source)))
        else:
            attributes = aliases.of_object(self.heap, real.__dict__, self.heap.source(InstanceDict, source))
        object.__setattr__(shadow, "__dict__", attributes)
        self.heap.counts.update([self.heap.source(Item, attributes.source, name) for name in counts_of(cls)])
        if base is not None:
            self.heap.track(OwnItems(self.heap, real, shadow, source))
        return shadow

    def check_class(self, cls: type) -> None:
        """Stop if Python would run code of the user's unseen on instances of a class (or metaclass) that have no shadows."""
        if cls not in self._checked:
            self.open_classes.add(cls)
            if not issubclass(cls, type):
                self.rely_on_class(cls, data=True)
            reads = Reads(cls)
            if reads.impure:
                self.capture.abort(f"{reads.impure} may do more than compute, and Python runs it as it is, unseen",
                                   hint="a plain class without slots, a metaclass or a built-in base is compiled")
            self._checked.add(cls)
            for space, name in reads.globals:
                self.heap.definitions.add_entry(cls.__name__, space, name)
            for kind in reads.classes:
                self.rely_on_class(kind, data=True)
                for member in kind if isinstance(kind, enum.EnumMeta) else ():
                    self.heap.rely_on_member(member)
                self.check_class(kind)

    def rely_on_class(self, cls: type, data: bool = False) -> None:
        """Guard what Python may run for a class and its metaclass; with ``data``, all their attributes."""
        if (cls, data) in self._relied:
            return
        self._relied.add((cls, data))
        self.heap.definitions.add_class(cls, data)
        if not is_library_class(type(cls)):
            self.heap.definitions.add_class(type(cls), data=True)
        for base in cls.__mro__:
            if base not in self._met and not is_library_class(base):
                self._met.add(base)
                self._rely_on_methods(base)

    def _rely_on_methods(self, cls: type) -> None:
        """Guard the attributes that the methods of a class have, as other functions may."""
        for method in vars(cls).values():
            if type(method) is types.FunctionType:
                self.methods.add(method)
                self.heap.makers.need_plain(method)
                for name in vars(method):
                    self.heap.definitions.add_entry(method.__qualname__, vars(method), name)

    def shown(self, cls: type) -> type:
        """What code sees of a class: that of the shadows of its instances, if they have any."""
        if self.is_user_class(cls):
            return self.shadow_class(cls)
        if not is_library_class(cls):
            self.open_classes.add(cls)
        return cls

    def is_subclass(self, kind: Any, cls: Any) -> bool:
        """``issubclass(kind, cls)`` of what these stand for; of abstract classes, the answer is guarded."""
        kind, cls = real_class(kind), real_class(cls)
        if cls in type.mro(kind) or not isinstance(cls, abc.ABCMeta) or cls in self.asked:
            return cls in type.mro(kind)
        self.asked.add(cls)                             # it asks its subclasses, the classes of shadows among them
        try:
            return self.heap.definitions.add_answer(kind, cls)
        finally:
            self.asked.discard(cls)

    def shadow_class(self, cls: type) -> type:
        """The class of the shadows of instances of ``cls``, which also stands for ``cls`` itself."""
        made = self._classes.get(cls)
        if made is None:
            self.rely_on_class(cls, data=is_library_class(cls))
            methods = self._special_methods(cls)
            bases = self._shadowed_bases(cls) if _RIGHT_FIRST & methods.keys() else ()
            body = {"_dy2static_heap": self.heap, "_dy2static_class": cls, "__module__": cls.__module__,
                    "__qualname__": cls.__qualname__, "__doc__": cls.__doc__, **methods}
            body.update(checked_reads(self.heap, cls))
            if lookup(cls, "__getattr__") is not ABSENT:
                body["__getattr__"] = lambda shadow, name: self.heap.attributes.read_missing(shadow, name)
            new = lookup(cls, "__new__")
            if isinstance(new, staticmethod) and isinstance(new.__func__, types.FunctionType):
                body["__new__"] = staticmethod(self._staged_special(new.__func__))
            of_items = lookup(cls, "__class_getitem__")
            if isinstance(of_items, classmethod) and isinstance(of_items.__func__, types.FunctionType):
                body["__class_getitem__"] = classmethod(self._staged_special(of_items.__func__))
            made = type.__new__(_meta_of(cls, bases), name_in_messages(cls), (*(bases or (ShadowBase,)), cls), body)
            self._classes[cls] = made
        return made

    def _shadowed_bases(self, cls: type) -> Tuple[type, ...]:
        """The classes of the shadows of its bases, for operators: Python compares the classes of two operands."""
        return tuple([self.shadow_class(base) for base in cls.__bases__ if not is_library_class(base)])

    def _special_methods(self, cls: type) -> Dict[str, Callable]:
        """Staged versions of the special methods that Python itself calls (``__add__``, ``__enter__``, …)."""
        found: Dict[str, Callable] = {}
        for base in reversed(cls.__mro__):
            if is_library_class(base) and base is not CALLING_BACK:
                continue
            for name, function in base.__dict__.items():
                special = name.startswith("__") and name.endswith("__") and name not in _NOT_STAGED
                if special and isinstance(function, types.FunctionType):
                    found[name] = function if is_generated(base, function) else self._staged_special(function)
                else:                                   # such as None, which says that there is none
                    found.pop(name, None)
        if cls.__repr__ is object.__repr__:             # which names the address of the object
            found["__repr__"] = lambda shadow: object.__repr__(self.heap.attributes.identified(shadow))
        hashed = cls.__hash__
        if isinstance(hashed, types.FunctionType) and not is_generated(owner_of(cls, "__hash__"), hashed):
            found["__hash__"] = self._staged_special(hashed)
        elif "__eq__" in found and hashed is not None:
            found["__hash__"] = hashed
        return found

    def _staged_special(self, function: types.FunctionType) -> Callable:
        """The staged version, the same one for each class that has the function: Python compares these, too."""
        if function not in self._specials:
            self._specials[function] = self._stage_special(function)
        return self._specials[function]

    def _stage_special(self, function: types.FunctionType) -> Callable:
        def special(shadow: Any, /, *args: Any, **kwargs: Any) -> Any:
            return self.capture.callee(function)(shadow, *args, **kwargs)

        def truth(shadow: Any) -> bool:
            found = self.capture.callee(function)(shadow)
            return bool(found) if getattr(found, "python_type", None) is bool else found     # Python asks now

        def hashed(shadow: Any) -> int:
            return operator.index(self.capture.callee(function)(shadow))
        made = {"__bool__": truth, "__hash__": hashed}.get(function.__name__, special)
        made.__name__ = function.__name__
        return made

    def make_instance(self, cls: type, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        """``cls(*args, **kwargs)`` of a user's class, its methods staged."""
        made = lookup(cls, "__new__")
        if lookup(cls, "__del__") is not ABSENT:
            self.capture.abort(f"class {cls.__name__} has a __del__")
        if isinstance(made, staticmethod):
            shadow = self.capture.callee(made.__func__)(self.shadow_class(cls), *args, **kwargs)
            if not isinstance(shadow, cls):
                return shadow
            cls = class_of(shadow) if isinstance(shadow, ShadowBase) else cls
        else:
            if getattr(cls, "__abstractmethods__", None):
                object.__new__(cls, *args, **kwargs)    # raises: Python names what is abstract
            shadow = object.__new__(self.shadow_class(cls))
        init = lookup(cls, "__init__")
        if is_generated(owner_of(cls, "__init__"), init):
            initialise(self.heap, owner_of(cls, "__init__"), shadow, args, kwargs)
        elif isinstance(init, types.FunctionType):
            self.capture.callee(init)(shadow, *args, **kwargs)
        elif (args or kwargs) and not isinstance(made, staticmethod):
            raise TypeError(f"{cls.__name__}() takes no arguments")
        return shadow

    def dispose(self) -> None:
        """Make the shadow classes stop being subclasses of the user's."""
        for made in self._classes.values():
            if self._has_plain_instances(made):         # the layout of others cannot change
                type.__setattr__(made, "__bases__", (ShadowBase, _Plain))


class _Plain:
    pass


_NOT_STAGED = frozenset(("__init__", "__new__", "__del__", "__getattribute__", "__getattr__", "__setattr__", "__delattr__",
                         "__init_subclass__", "__class_getitem__", "__reduce__", "__reduce_ex__", "__hash__"))


#: The methods that Python takes from the right operand first if its class derives from that of the left one.
_RIGHT_FIRST = frozenset([f"__{name}__" for name in (
    "eq ne lt le gt ge radd rsub rmul rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand rxor ror").split()])


def _meta_of(cls: type, bases: Tuple[type, ...]) -> type:
    """The class of the class of the shadows of ``cls``, if that derives from ``bases``."""
    found = set(map(type, bases)) or {ShadowMeta}
    metas = [meta for meta in found if not any(other is not meta and issubclass(other, meta) for other in found)]
    return metas[0] if len(metas) == 1 and issubclass(metas[0], type(cls)) else \
        type(name_in_messages(type(cls)), (*metas, type(cls)), {})


#: What a class tells of itself: that of a shadow is no part of it.
_OF_CLASSES = frozenset(("__dict__", "__bases__", "__mro__", "__base__", "__class__", "__annotations__", "__abstractmethods__"))


class ShadowMeta(type):
    """The class of shadow classes: reads of class attributes are guarded, `ClassAttributes` keeps what is written."""

    def __getattribute__(cls, name: str) -> Any:
        if name.startswith("_dy2static"):
            return type.__getattribute__(cls, name)
        if name == "mro":
            return lambda: list(cls.__mro__)
        real, heap = type.__getattribute__(cls, "_dy2static_class"), type.__getattribute__(cls, "_dy2static_heap")
        if name in _OF_CLASSES:
            return _told(heap, real, name)
        found, is_assigned = heap.class_attributes.find(real, name)
        if is_assigned:
            return found
        if name.startswith("__") and not _is_data(real, name, found):
            found = type.__getattribute__(cls, name)    # who calls it unseen has the staged one
            seen = type(found) is types.FunctionType and sys._getframe(1).f_code in heap.capture.calls.staged_codes
            return type.__getattribute__(real, name) if seen else found
        if found is ABSENT:
            try:
                return type.__getattribute__(cls, name)         # of the metaclass
            except AttributeError:
                if not is_library_class(real):
                    heap.guard(AttributeAbsent(heap.source(Constant, None, real), name))
                raise
        if isinstance(found, classmethod):
            return types.MethodType(found.__func__, cls)
        getter = lookup(type(found), "__get__")
        if is_of_user(getter):
            return heap.attributes.of_class(real, name, getter)
        if getter is not ABSENT and not isinstance(found, type):
            return type(found).__get__(found, None, real)
        return heap.shadow(found, heap.source(Attribute, heap.source(Constant, None, real), name))

    def __setattr__(cls, name: str, value: Any) -> None:
        if name == "__slotnames__":                     # what `copy` remembers of a class
            type.__setattr__(cls, name, value)
            return
        cls._dy2static_heap.class_attributes.assign(cls._dy2static_class, name, value)

    def __delattr__(cls, name: str) -> None:
        cls._dy2static_heap.class_attributes.delete(cls._dy2static_class, name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._dy2static_heap.objects.make_instance(cls._dy2static_class, args, kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        # what stands for a number or an array says so
        return cls._dy2static_heap.objects.is_subclass(instance.__class__, cls) or isinstance(instance, cls._dy2static_class)

    def __subclasscheck__(cls, other: type) -> bool:
        return cls._dy2static_heap.objects.is_subclass(other, cls)

    def __eq__(cls, other: Any) -> bool:
        # not by `__getattribute__`: whatever looks for the class of a shadow among others comes here
        return other is cls or other is type.__getattribute__(cls, "_dy2static_class")

    def __hash__(cls) -> int:
        return hash(type.__getattribute__(cls, "_dy2static_class"))

    def __new__(meta, name: str, bases: Tuple, body: Dict[str, Any], **kwargs: Any) -> type:
        for base in bases:
            if isinstance(base, ShadowMeta):
                base._dy2static_heap.capture.abort(f"class {name} is derived from {base.__name__} inside the compiled function")
        return super().__new__(meta, name, bases, body, **kwargs)


def _told(heap: Heap, cls: type, name: str) -> Any:
    """What a class tells of itself, one of `_OF_CLASSES`."""
    told = getattr(cls, name)
    if name in ("__dict__", "__annotations__"):
        place = heap.source(Constant, None, cls)
        if name == "__dict__":
            heap.class_attributes.told(cls)
        return heap.shadow(told, heap.source(*((InstanceDict, place) if name == "__dict__" else (Attribute, place, name))))
    if name == "__base__":
        return heap.objects.shown(told)
    return tuple(map(heap.objects.shown, told)) if type(told) is tuple else told


def _is_data(cls: type, name: str, value: Any) -> bool:
    """Whether an attribute whose name has underscores is one of the user's that may change: no method, and no text."""
    return (not isinstance(value, (str, type(None))) and not hasattr(type(value), "__get__") and name not in CONSTANTS
            and value is not ABSENT and not is_library_class(owner_of(cls, name)))


def real_class(value: Any) -> Any:
    """The class a shadow class stands for; anything else as it is."""
    return value._dy2static_class if isinstance(value, ShadowMeta) else value


stands_for(ShadowMeta, type)

"""How attributes of shadows are read and written: in Python's order, and every read is guarded."""
from __future__ import annotations

import dataclasses
import dis
import functools
import sys
import types
from typing import Any, Optional, Set

from chainer.backends._cpu import CpuDevice

from ..capture_context import Heap
from ..record.guards import AttributeAbsent, IdentityMatch
from ..record.paths import Attribute, Constant, InstanceDict, Item, Slots
from .dataclass import CONSTANTS, frozen_against, is_generated
from .dict_shadows import ABSENT, ShadowDict
from .object_shadows import ShadowBase, attributes_of, class_of, delete_attribute, origin_of
from .own_collections import Namespace
from .ownership import is_converted, is_library, is_library_class


class Attributes:
    """The attributes of the shadows of one heap."""

    def __init__(self, heap: Heap):
        self.heap, self.capture = heap, heap.capture
        self._plain_readers: Set[type] = set()          # classes that are known to read attributes as Python does

    def read_attribute(self, shadow: ShadowBase, name: str) -> Any:
        """``shadow.name``, in Python's order: data descriptors, instance, class."""
        cls = class_of(shadow)
        attributes = attributes_of(shadow)
        if name == "__dict__":
            if isinstance(attributes, ShadowDict) and isinstance(attributes.source, Slots):
                self.capture.abort("the __dict__ of an object with slots is read")
            return attributes
        if name == "__reduce_ex__":
            return object.__getattribute__(shadow, name)
        if name == "__class__":
            return types.SimpleNamespace if cls is Namespace else self.heap.objects.shown(cls)
        if issubclass(type(shadow), (dict, list)):      # `isinstance` would come back here for the ``__class__``
            self.heap.check_fresh()
        found, is_assigned = self.heap.class_attributes.find(cls, name)
        if cls not in self._plain_readers:
            if isinstance(lookup(cls, "__getattribute__"), types.FunctionType):
                self.capture.abort(f"class {cls.__name__} has a __getattribute__")
            self._plain_readers.add(cls)
        if found is not ABSENT and not is_assigned and _is_data_descriptor(found):
            return self._data_descriptor(shadow, cls, name, found)
        value = attributes.get(name, ABSENT)
        if value is not ABSENT:
            return value
        if found is not ABSENT:
            return found if is_assigned else self._class_attribute(shadow, cls, name, found)
        if hasattr(type(cls), name):                    # `cls.__name__` is the metaclass's: objects do not have it
            self.heap.class_attributes.rely_on_absence(cls.__mro__, name)
        elif not is_library_class(cls):
            self.heap.guard(AttributeAbsent(self.heap.source(Constant, None, cls), name))
        raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")

    def for_reader(self, found: Any, frame: types.FrameType) -> Any:
        """A function or method that code reads: where a library does, which calls it unseen, the converted one.

        A capture that has stopped converts nothing: what the library does then puts its own state in order.
        """
        code = frame.f_code
        if self.capture.failed is not None or code in self.capture.calls.staged_codes or \
                frame.f_globals.get("__name__", "").startswith("dy2static.") and code is not ShadowBase.__reduce_ex__.__code__:
            return found
        return self.converted(found)

    def converted(self, found: Any) -> Any:
        """A function or method of the user's as code may call it that is not converted; anything else as it is."""
        function = found.__func__ if type(found) is types.MethodType else found
        if type(function) is not types.FunctionType or not is_converted(function):
            return found
        called = self.capture.callee(function)
        return types.MethodType(called, found.__self__) if type(found) is types.MethodType else called

    def read_missing(self, shadow: ShadowBase, name: str) -> Any:
        """What ``__getattr__`` of the class returns. Python asks for it after any AttributeError of `read_attribute`."""
        return self.capture.callee(lookup(class_of(shadow), "__getattr__"))(shadow, name)

    def write_attribute(self, shadow: ShadowBase, name: str, method: str, *value: Any) -> bool:
        """``shadow.name = value`` or ``del shadow.name`` where code of the user's does it; False if Python does."""
        cls = class_of(shadow)
        own = lookup(cls, method)
        if frozen_against(cls, method, name):
            verb = "assign to" if value else "delete"
            raise dataclasses.FrozenInstanceError(f"cannot {verb} field {name!r}")
        if isinstance(own, types.FunctionType) and not is_library(own.__module__ or "") and \
                not is_generated(owner_of(cls, method), own):
            self.capture.callee(own)(shadow, name, *value)
            return True
        return self._write_by_descriptor(shadow, name, method, *value)

    def write_plainly(self, method: str, shadow: ShadowBase, name: str, *value: Any) -> None:
        """``object.__setattr__`` or ``object.__delattr__``, past the methods of the class."""
        if self._write_by_descriptor(shadow, name, method, *value):
            return
        if value:
            object.__setattr__(shadow, name, *value)
        else:
            delete_attribute(shadow, name)

    def _write_by_descriptor(self, shadow: ShadowBase, name: str, method: str, *value: Any) -> bool:
        """Let a slot, a property or a descriptor take the value; False if there is none of that name."""
        cls = class_of(shadow)
        if name in ("__class__", "__dict__"):
            self.capture.abort(f"{name} of an object is assigned")
        found, accessor = lookup(cls, name), "fset" if value else "fdel"
        if type(found) is types.MemberDescriptorType and isinstance(attributes_of(shadow), ShadowDict):
            self._write_slot(attributes_of(shadow), name, *value)
            return True
        if isinstance(found, property) and getattr(found, accessor) is not None:
            self.capture.callee(getattr(found, accessor))(shadow, *value)
            return True
        setter = lookup(type(found), "__set__" if value else "__delete__")
        if is_of_user(setter):
            self.capture.callee(setter)(self._descriptor(cls, name, found), shadow, *value)
            return True
        if cls.__dictoffset__ == 0 and type(found) is not types.MemberDescriptorType and not _is_data_descriptor(found):
            getattr(object, method)(object.__new__(cls), name, *value)      # raises: there is no place for it
        return False

    def identified(self, shadow: ShadowBase) -> Any:
        """The object that a shadow stands for, guarded to be this very one; the shadow, of an object made during the capture."""
        source = origin_of(shadow)
        if source is None:
            return shadow
        real = self.heap.real_of(shadow)
        self.heap.guard(IdentityMatch(source, real))
        return real

    def _data_descriptor(self, shadow: ShadowBase, cls: type, name: str, found: Any) -> Any:
        if type(found) is types.MemberDescriptorType and isinstance(attributes_of(shadow), ShadowDict):
            value = attributes_of(shadow).get(name, ABSENT)
            if value is ABSENT:
                raise AttributeError(name if sys.version_info < (3, 10) else f"{cls.__name__!r} object has no attribute {name!r}")
            return value
        if isinstance(found, property):
            given = _attribute_given(found.fget) if type(found.fget) is types.FunctionType else None
            return self.capture.callee(found.fget)(shadow) if given is None else getattr(shadow, given)
        getter = lookup(type(found), "__get__")
        if isinstance(getter, types.FunctionType):
            own = not is_library_class(owner_of(cls, name))
            return self.capture.callee(getter)(self._descriptor(cls, name, found) if own else found, shadow, cls)
        return object.__getattribute__(shadow, name)

    def _descriptor(self, cls: type, name: str, found: Any) -> Any:
        """The shadow of a descriptor of the user's, whose methods read its attributes."""
        self.heap.objects.rely_on_class(type(found))
        owner = self.heap.source(Constant, None, owner_of(cls, name))
        return self.heap.shadow(found, self.heap.source(Item, self.heap.source(InstanceDict, owner), name))

    def of_class(self, cls: type, name: str, getter: types.FunctionType) -> Any:
        """What a descriptor of the user's gives for ``cls.name``."""
        descriptor = self._descriptor(cls, name, lookup(cls, name))
        return self.capture.callee(getter)(descriptor, None, self.heap.objects.shadow_class(cls))

    def _class_attribute(self, shadow: ShadowBase, cls: type, name: str, found: Any) -> Any:
        attributes = attributes_of(shadow)
        if isinstance(found, types.FunctionType):
            return types.MethodType(found, shadow)
        if isinstance(found, classmethod):
            return types.MethodType(found.__func__, self.heap.objects.shown(cls))
        if isinstance(found, staticmethod):
            return found.__func__
        getter = lookup(type(found), "__get__")
        if type(found) is functools.cached_property and found.attrname and \
                not (isinstance(attributes, ShadowDict) and isinstance(attributes.source, Slots)):
            attributes[found.attrname] = value = self.capture.callee(found.func)(shadow)
            return value
        if is_of_user(getter):
            return self.capture.callee(getter)(self._descriptor(cls, name, found), shadow, cls)
        if getter is not ABSENT and not isinstance(found, type):
            return type(found).__get__(found, shadow, cls)
        if (is_library_class(cls) or name in CONSTANTS) and type(found) is not CpuDevice:
            return found
        return self.heap.shadow(found, self.heap.source(Attribute, self.heap.source(Constant, None, cls), name))

    @staticmethod
    def _write_slot(attributes: ShadowDict, name: str, *value: Any) -> None:
        if value:
            attributes[name] = value[0]
        elif name in attributes:
            del attributes[name]
        else:
            raise AttributeError(name)


@functools.lru_cache(maxsize=1024)
def _attribute_given(getter: types.FunctionType) -> Optional[str]:
    """The attribute that a getter of a library gives (``return self._device``); None for one that does anything else."""
    if is_converted(getter):
        return None
    steps = [step for step in dis.get_instructions(getter) if step.opname not in ("RESUME", "CACHE")]
    is_plain = [step.opname for step in steps] == ["LOAD_FAST", "LOAD_ATTR", "RETURN_VALUE"]
    return steps[1].argval if is_plain and steps[0].argval == getter.__code__.co_varnames[0] else None


def lookup(cls: type, name: str) -> Any:
    """The raw class attribute, as attribute access finds it; `ABSENT` if there is none."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return ABSENT


def is_of_user(method: Any) -> bool:
    """Whether a method of a descriptor is a function of the user's."""
    return isinstance(method, types.FunctionType) and not is_library(method.__module__ or "")


def owner_of(cls: type, name: str) -> type:
    """The class that an attribute of ``cls`` comes from."""
    return next((base for base in cls.__mro__ if name in base.__dict__), cls)


def _is_data_descriptor(found: Any) -> bool:
    kind = type(found)
    return hasattr(kind, "__set__") or hasattr(kind, "__delete__")

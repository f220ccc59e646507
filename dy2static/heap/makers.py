"""What stands for objects of each kind when they are first read, and what is relied on in them."""
from __future__ import annotations

import enum
import functools
import os
import sys
import types
import warnings
from typing import Any, Callable, Dict, List, Tuple

import chainer
import numpy as np

from ..capture_context import Heap
from ..record.guards import EqualsMatch, IdentityMatch, KeysMatch, LengthMatch, TypeMatch
from ..record.paths import Attribute, Constant, InstanceDict, Item, Shown, Source, shown_by
from ..runtime.staticness import is_static_method
from . import aliases
from .aborts import CaptureAborted
from .collection_shadows import COLLECTIONS
from .dict_shadows import ShadowDict
from .function_attributes import own_attributes
from .list_shadows import ShadowList
from .object_shadows import ShadowModule
from .ownership import is_library, is_library_class
from .public_names import foreign_names
from .set_shadows import ShadowSet

SINGLETONS = (type(None), bool, type(Ellipsis), type(NotImplemented), types.BuiltinFunctionType, np.ufunc,
              types.MethodWrapperType, types.WrapperDescriptorType, types.MethodDescriptorType,
              types.ClassMethodDescriptorType, type(np.sum))
VALUES = (str, bytes, complex, frozenset, range, slice, np.dtype)
_WITH_STATE = (os, sys)                     # the environment, arguments and streams are read at every call


class Refused(CaptureAborted):
    """An argument is read that differs in nearly every call."""


class Makers:
    """Makes the shadows and symbolic values of one heap.  is_lenient: whether an item of a tuple is read."""

    def __init__(self, heap: Heap):
        self.heap, self.capture = heap, heap.capture
        self.is_lenient = False
        self._registered = [*chainer._get_link_hooks().values()]
        self._functions: Dict[int, Tuple[types.FunctionType, dict]] = {}

    def make(self, real: Any, source: Source) -> Any:
        """What stands for an object that is read for the first time."""
        kind = type(real)
        maker = self._MAKERS.get(kind)
        if maker is not None:
            return maker(self, real, source)
        if isinstance(real, type):
            self.heap.guard(IdentityMatch(source, real))
            if not is_library_class(real) and not self.heap.objects.is_user_class(real):
                self.heap.objects.rely_on_class(real, data=True)
                if not is_library_class(kind):
                    self.heap.objects.check_class(kind)
                if isinstance(real, enum.EnumMeta):
                    self.heap.objects.check_class(real)
                    for member in real:
                        self.heap.rely_on_member(member)
            return self.heap.objects.shown(real)
        if isinstance(real, tuple) and hasattr(kind, "_fields"):
            self.heap.objects.check_class(kind)
            return kind._make(self._items(real, source))
        if is_static_method(real):
            return self._method(real, source)
        if isinstance(real, chainer.Variable):
            return self.capture.inputs.variable(real, source)
        if isinstance(real, types.ModuleType) and is_library(real.__name__):        # of a class of its own
            return self._module(real, source)
        if isinstance(real, chainer.get_array_types()):
            return self.capture.inputs.array(real, source)
        self.heap.guard(TypeMatch(source, kind))
        if self.heap.objects.can_shadow(real):
            return self.heap.objects.make(real, source)
        return self.capture.inputs.object(real, source)

    def _items(self, real: tuple, source: Source) -> List[Any]:
        self.heap.guard(TypeMatch(source, type(real)))
        self.heap.guard(LengthMatch(source, len(real)))
        return [self._item(item, self.heap.source(Item, source, i)) for i, item in enumerate(real)]

    def _item(self, real: Any, source: Source) -> Any:
        """An item of a tuple, all of which are read at once: one that is not relied on is unknown, and the others can be used."""
        outer, self.is_lenient = self.is_lenient, True
        try:
            return self.heap.shadow(real, source)
        except Refused:
            return self.capture.inputs.unknown(source)
        finally:
            self.is_lenient = outer

    def _tuple(self, real: tuple, source: Source) -> tuple:
        return tuple(self._items(real, source))

    def _list(self, real: list, source: Source) -> ShadowList:
        if getattr(warnings._showwarnmsg_impl, "__self__", None) is real:       # type: ignore[attr-defined]
            self.capture.abort("the list of `warnings.catch_warnings(record=True)` is read")
        self.heap.guard(TypeMatch(source, list))
        return self.heap.track(ShadowList(self.heap, real, source))

    def _dict(self, real: dict, source: Source) -> ShadowDict:
        self.heap.guard(TypeMatch(source, dict))
        return self.heap.track(ShadowDict(self.heap, real, source))

    def link_hooks(self) -> Any:
        """The shadow of the link hooks registered for this thread.  The first line of an entry checks that there are none."""
        real = chainer._get_link_hooks()
        if [*real.values()] != self._registered:        # by Chainer's own `__enter__`, which runs now and in no program
            self.capture.abort("a link hook is registered inside the compiled function", hint="register it around the call")
        source = self.heap.source(Attribute, self.heap.source(Constant, None, chainer._thread_local), "link_hooks")
        known = self.heap.known(real)
        if known is not None:
            return known[0]
        shadow = self.heap.track(COLLECTIONS[type(real)](self.heap, real, source))
        shadow.whole = not real
        self.heap.remember(real, shadow, source)
        return shadow

    def _proxy(self, real: types.MappingProxyType, source: Source) -> Any:
        self.heap.guard(TypeMatch(source, types.MappingProxyType))
        if isinstance(source, InstanceDict):            # of a class
            return types.MappingProxyType(self.heap.track(ShadowDict(self.heap, real, source)))      # type: ignore[arg-type]
        return types.MappingProxyType(self.heap.shadow(shown_by(real), self.heap.source(Shown, source)))

    def _collection(self, real: Any, source: Source) -> Any:
        self.heap.guard(TypeMatch(source, type(real)))
        return self.heap.track(COLLECTIONS[type(real)](self.heap, real, source))

    def _set(self, real: set, source: Source) -> Any:
        if not all(type(item) in (int, float, bool, str, bytes, type(None)) for item in real):
            return self.capture.inputs.object(real, source)
        self.heap.guard(TypeMatch(source, set))
        self.heap.guard(EqualsMatch(source, set(real)))
        return self.heap.track(ShadowSet(real, source))

    def _array(self, real: np.ndarray, source: Source) -> Any:
        return self.capture.inputs.array(real, source)

    def _function(self, real: types.FunctionType, source: Source) -> types.FunctionType:
        self.heap.guard(IdentityMatch(source, real))
        extra = own_attributes(real)
        if extra and not is_library(real.__module__ or ""):
            attributes = self.heap.source(InstanceDict, source)
            self.heap.guard(KeysMatch(attributes, tuple(real.__dict__)))
            self.need_plain(real)
            for key in extra:
                self.heap.fix(extra[key], self.heap.source(Item, attributes, key))
        self._functions[id(real)] = (real, dict(real.__dict__))
        return real

    def need_plain(self, function: types.FunctionType) -> None:
        """Stop if an attribute of a function may change in place, which no guard would notice."""
        for name, item in own_attributes(function).items():
            if not isinstance(item, SINGLETONS + VALUES + (int, float, types.FunctionType, type)):
                self.capture.abort(f"the function {function.__name__} has an attribute {name!r} of type {type(item).__name__}")

    def _method(self, real: types.MethodType, source: Source) -> types.MethodType:
        self.heap.guard(TypeMatch(source, type(real)))
        function = self.heap.shadow(real.__func__, self.heap.source(Attribute, source, "__func__"))
        return types.MethodType(function, self.heap.shadow(real.__self__, self.heap.source(Attribute, source, "__self__")))

    def bound_builtin(self, real: Any, source: Source) -> Any:
        """A method that is written in C, of an object that may change: that of its shadow."""
        self.heap.guard(TypeMatch(source, type(real)))
        self.heap.guard(EqualsMatch(self.heap.source(Attribute, source, "__name__"), real.__name__))
        made = getattr(self.heap.shadow(real.__self__, self.heap.source(Attribute, source, "__self__")), real.__name__)
        self.heap.remember(real, made, source)
        self.heap.came_from(made, source)
        return made

    def _partial(self, real: functools.partial, source: Source) -> functools.partial:
        self.heap.guard(TypeMatch(source, functools.partial))
        parts = [self.heap.shadow(getattr(real, name), self.heap.source(Attribute, source, name)) for name in ("func", "args")]
        keywords = {k: self.heap.shadow(v, self.heap.source(Item, self.heap.source(Attribute, source, "keywords"), k))
                    for k, v in real.keywords.items()}
        self.heap.guard(KeysMatch(self.heap.source(Attribute, source, "keywords"), tuple(real.keywords)))
        made = functools.partial(parts[0], *parts[1], **keywords)
        attributes = self.heap.source(InstanceDict, source)
        self.heap.guard(KeysMatch(attributes, tuple(vars(real))))
        vars(made).update({k: self.heap.shadow(v, self.heap.source(Item, attributes, k)) for k, v in vars(real).items()})
        return made

    def _module(self, real: types.ModuleType, source: Source) -> types.ModuleType:
        self.heap.guard(IdentityMatch(source, real))
        if is_library(real.__name__) and real not in _WITH_STATE:
            for name in foreign_names(real):
                self.heap.definitions.add_name(real, name)
            return real
        names = aliases.of_module(self.heap, real.__dict__, self.heap.source(InstanceDict, source))
        return ShadowModule(real.__name__, names, source)

    def check_functions(self) -> None:
        """Stop if code has assigned an attribute of a function, which nothing intercepts."""
        for function, attributes in self._functions.values():
            if function.__dict__ != attributes:
                raise CaptureAborted(f"an attribute of the function {function.__name__} is assigned")

    def restore_functions(self) -> None:
        """Put back what was assigned."""
        for function, attributes in self._functions.values():
            if function.__dict__ != attributes:
                function.__dict__.clear()
                function.__dict__.update(attributes)

    _MAKERS: Dict[type, Callable] = {
        tuple: _tuple, list: _list, dict: _dict, set: _set, np.ndarray: _array, types.FunctionType: _function,
        types.MethodType: _method, functools.partial: _partial, types.ModuleType: _module,
        types.MappingProxyType: _proxy, **dict.fromkeys(COLLECTIONS, _collection),
    }

"""What a call of a class does: conversions, exceptions, instances of the user's classes."""
from __future__ import annotations

import contextlib
import enum
import functools
import types
from typing import TYPE_CHECKING, Any, Callable

import chainer
import numpy as np

from ..heap.collection_shadows import COLLECTIONS
from ..heap.dataclass import initialise
from ..heap.dict_shadows import ShadowDict
from ..heap.list_shadows import ShadowList
from ..heap.object_shadows import ShadowBase
from ..heap.ownership import is_converted, is_library_class, is_made_inside
from ..heap.set_shadows import ShadowSet
from ..heap.supers import GuardedSuper
from ..library_facts.python import PURE_MODULES, builtin
from ..runtime import dy
from ..symbolic.buffers import Buffer
from ..symbolic.host_objects import BoundHostMethod, SymbolicObject
from ..symbolic.iterators import ITERATORS, parts_of
from ..symbolic.known_texts import TextKeyed
from ..symbolic.layouts import Flags
from ..symbolic.lists import StagedList, as_staged, symbolic_items
from ..symbolic.sequences import CountedRange, Range, Rows
from ..symbolic.values import SymbolicArray, SymbolicVariable, is_symbolic
from .number_calls import CONVERSIONS

if TYPE_CHECKING:
    from .protocols import Calls

#: What makes a text of something.
TEXT = builtin("text")

#: Their constructors run as they are.
AS_THEY_ARE = (chainer.Variable, chainer.FunctionNode, chainer.Function)

COLLECTION_KINDS = {shadow: kind for kind, shadow in COLLECTIONS.items()}


class Classes:
    """Calls of classes."""

    def __init__(self, calls: Calls):
        self.calls, self.capture = calls, calls.capture

    def callee(self, cls: type) -> Callable:
        """What to call in place of a class."""
        if cls is super:
            return functools.partial(GuardedSuper, self.capture.heap)
        if cls is type:
            return self._type
        if issubclass(cls, BaseException) and cls.__module__ == "builtins":
            return cls                                  # only holds its arguments, whatever they are
        if cls in CONVERSIONS:
            return functools.partial(self.calls.numbers.converted, cls)
        if cls is bytes:
            return self._bytes
        if cls is range:
            return self.calls.numbers.range
        if cls is list:
            return self._list
        if cls in ITERATORS:
            return functools.partial(ITERATORS[cls], self.calls)
        if cls in TEXT:
            return functools.partial(self.calls.builtins.text, cls)
        if cls is chainer.Parameter:
            return self.capture.made_parameters.make
        if cls in (np.errstate, contextlib.suppress):
            self.capture.abort(f"a `with {cls.__name__}(...)` decides what happens when a compiled operation fails")
        if cls.__module__.startswith("numpy.random"):
            return self.calls.host(cls)
        if issubclass(cls, np.generic):
            return lambda *args: (self.capture.numpy.call(cls, args, {}) if any(map(is_symbolic, args)) else cls(*args))
        if not is_library_class(cls) and not issubclass(cls, AS_THEY_ARE) and not isinstance(cls, enum.EnumMeta):
            return functools.partial(self._instance, cls)
        if is_made_inside(cls):
            return self.capture.heap.objects.shadow_class(cls)
        if cls.__module__ in PURE_MODULES or issubclass(cls, (BaseException, tuple, chainer.Variable, chainer.FunctionNode,
                                                               chainer.Function)):
            return self.calls.native(cls)
        if cls.__module__.startswith(("chainer.", "numpy")) or not is_library_class(cls):
            return self.calls.native(cls)
        return self.calls.host(cls)

    def _instance(self, cls: type, *args: Any, **kwargs: Any) -> Any:
        """``cls(*args, **kwargs)`` of a user's class whose instances have no shadows: what it defines itself is staged."""
        self.capture.heap.objects.check_class(cls)
        if type(cls).__call__ is not type.__call__:
            if not is_library_class(type(cls)):
                self.capture.abort(f"the metaclass of {cls.__name__} has a __call__")
            return self.calls.native(cls)(*args, **kwargs)
        new, init = [next(base.__dict__[name] for base in cls.__mro__ if name in base.__dict__) for name in ("__new__", "__init__")]
        function = getattr(new, "__func__", None)
        if isinstance(function, types.FunctionType) and self._has_source(function):
            made = self.calls.callee(function)(cls, *args, **kwargs)
        elif new is object.__new__:
            made = object.__new__(cls)
        elif issubclass(cls, BaseException):
            made = new(cls, *args, **kwargs)
        else:
            made = self.calls.native(new if function is None else function)(cls, *args, **kwargs)
        if not isinstance(made, cls) or init is object.__init__:
            return made
        if isinstance(init, types.FunctionType) and self._has_source(init):
            self.calls.callee(init)(made, *args, **kwargs)
        elif isinstance(made, BaseException):
            init(made, *args, **kwargs)
        else:
            self.calls.native(init)(made, *args, **kwargs)
        return made

    def initialise(self, function: types.FunctionType, made: Any, *args: Any, **kwargs: Any) -> None:
        """The ``__init__`` that `dataclasses` has written for a class."""
        cls = next(base for base in type(made).__mro__ if base.__dict__.get("__init__") is function)
        initialise(self.capture.heap, cls, made, args, kwargs)

    def _list(self, *items: Any) -> Any:
        """``list(...)``: it may come to grow under a decision."""
        if len(items) == 1 and symbolic_items(items[0]) is not None:
            return as_staged(items[0]).copy()
        if len(items) == 1 and parts_of(self.capture, items[0]) is not None:
            return dy.list_of(items[0], None, lambda item: item, 0)
        return StagedList(self.capture, self.calls.native(list)(*items))

    @staticmethod
    def _has_source(function: types.FunctionType) -> bool:
        """Whether somebody wrote a function; methods of named tuples and dataclasses are generated."""
        return is_converted(function) and not function.__code__.co_filename.startswith("<string>")

    def _bytes(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and type(args[0]) in (Buffer, SymbolicArray):
            if type(args[0]) is SymbolicArray and args[0].dtype.kind != "f" and not args[0].shape:
                self.capture.abort("bytes() of an array without dimensions")        # as many zeros as it says
            return args[0].tobytes()
        return self.calls.native(bytes)(*args, **kwargs)

    def _type(self, value: Any, *rest: Any) -> Any:
        if rest:
            self.capture.imports.check_bases(value, rest[0])
            return type(value, *rest)
        self.capture.staging.need_exact(value)
        kinds = {**COLLECTION_KINDS, ShadowList: list, ShadowDict: dict, ShadowSet: set, StagedList: list, Range: range,
                 CountedRange: range, TextKeyed: dict, Flags: type(np.empty(0).flags),
                 Rows: tuple, SymbolicVariable: chainer.Variable}
        kind = type(value)
        if kind is BoundHostMethod or kind is SymbolicObject and value.real is SymbolicObject.Missing:
            self.capture.abort("type() of an object that is known at run time only", of_host=True)
        if kind in kinds:
            return kinds[kind]
        if is_symbolic(value):
            return chainer.Parameter if isinstance(value, chainer.Parameter) else value.__class__
        return value.__class__ if isinstance(value, ShadowBase) else kind

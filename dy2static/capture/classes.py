"""What a call of a class does: conversions, exceptions, instances of the user's classes."""
from __future__ import annotations

import contextlib
import enum
import functools
import types
from typing import Any, Callable

import chainer
import numpy as np

from ..symbolic.known_texts import TextKeyed
from ..symbolic.lists import StagedList
from ..symbolic.rows import ITERATORS, Range, Rows
from ..symbolic.values import BoundHostMethod, SymbolicObject, SymbolicVariable, is_symbolic
from ..world.collection_shadows import COLLECTIONS
from ..world.dataclass import initialise
from ..world.shadows import ShadowBase, ShadowDict, ShadowList, ShadowSet
from ..world.supers import GuardedSuper
from ..world.trust import is_converted, is_library_class
from .number_calls import CONVERSIONS

#: Modules of the standard library whose functions only compute.
PURE_MODULES = frozenset(("math", "operator", "_operator", "builtins", "functools", "_functools", "itertools",
                           "collections", "_collections", "collections.abc", "_collections_abc", "copy", "dataclasses",
                           "typing", "string", "re", "textwrap", "numbers", "statistics", "fractions", "decimal", "types",
                           "abc", "_abc", "keyword", "enum", "bisect", "_bisect", "heapq", "_heapq", "cmath", "contextlib",
                           "copyreg", "numpy", "warnings_registry"))

#: What makes a text of something.
TEXT = frozenset((str, repr, format, ascii))

#: Their constructors run as they are.
AS_THEY_ARE = (chainer.Variable, chainer.FunctionNode, chainer.Function)

COLLECTION_KINDS = {shadow: kind for kind, shadow in COLLECTIONS.items()}


class Classes:
    """Of `Calls`: classes."""

    capture: Any
    callee: Callable
    native: Callable
    host: Callable
    _convert: Callable
    _range: Callable
    _text: Callable

    def _class(self, cls: type) -> Callable:
        if cls is super:
            return functools.partial(GuardedSuper, self.capture.world)
        if cls is type:
            return self._type
        if issubclass(cls, BaseException) and cls.__module__ == "builtins":
            return cls                                  # only holds its arguments, whatever they are
        if cls in CONVERSIONS:
            return functools.partial(self._convert, cls)
        if cls is range:
            return self._range
        if cls in ITERATORS:
            return functools.partial(ITERATORS[cls], self)
        if cls in TEXT:
            return functools.partial(self._text, cls)
        if issubclass(cls, (chainer.Link, chainer.Parameter)) and is_library_class(cls):
            return lambda *args, **kwargs: self.capture.abort(f"a {cls.__name__} is made inside the compiled function")
        if cls in (np.errstate, contextlib.suppress):
            self.capture.abort(f"{cls.__name__} decides what happens when something fails at run time")
        if cls.__module__.startswith("numpy.random"):
            return self.host(cls)
        if issubclass(cls, np.generic):
            return lambda *args: (self.capture.numpy_call(cls, args, {}) if any(map(is_symbolic, args)) else cls(*args))
        if not is_library_class(cls) and not issubclass(cls, AS_THEY_ARE) and not isinstance(cls, enum.EnumMeta):
            return functools.partial(self._instance, cls)
        if cls.__module__ in PURE_MODULES or issubclass(cls, (BaseException, tuple, chainer.Variable, chainer.FunctionNode,
                                                               chainer.Function)):
            return self.native(cls)
        if cls.__module__.startswith(("chainer.", "numpy")) or not is_library_class(cls):
            return self.native(cls)
        return self.host(cls)

    def _instance(self, cls: type, *args: Any, **kwargs: Any) -> Any:
        """``cls(*args, **kwargs)`` of a user's class whose instances have no shadows: what it defines itself is staged."""
        self.capture.world.check_class(cls)
        if any(isinstance(base.__dict__.get("__call__"), types.FunctionType) for base in type(cls).__mro__):
            self.capture.abort(f"the metaclass of {cls.__name__} has a __call__")
        new, init = [next(base.__dict__[name] for base in cls.__mro__ if name in base.__dict__) for name in ("__new__", "__init__")]
        function = getattr(new, "__func__", None)
        if isinstance(function, types.FunctionType) and self._has_source(function):
            made = self.callee(function)(cls, *args, **kwargs)
        elif new is object.__new__:
            made = object.__new__(cls)
        elif issubclass(cls, BaseException):
            made = new(cls, *args, **kwargs)
        else:
            made = self.native(new if function is None else function)(cls, *args, **kwargs)
        if not isinstance(made, cls) or init is object.__init__:
            return made
        if isinstance(init, types.FunctionType) and self._has_source(init):
            self.callee(init)(made, *args, **kwargs)
        elif isinstance(made, BaseException):
            init(made, *args, **kwargs)
        else:
            self.native(init)(made, *args, **kwargs)
        return made

    def _initialise(self, function: types.FunctionType, made: Any, *args: Any, **kwargs: Any) -> None:
        """The ``__init__`` that `dataclasses` has written for a class."""
        cls = next(base for base in type(made).__mro__ if base.__dict__.get("__init__") is function)
        initialise(self.capture.world, cls, made, args, kwargs)

    @staticmethod
    def _has_source(function: types.FunctionType) -> bool:
        """Whether somebody wrote a function; methods of named tuples and dataclasses are generated."""
        return is_converted(function) and not function.__code__.co_filename.startswith("<string>")

    def _type(self, value: Any, *rest: Any) -> Any:
        if rest:
            return type(value, *rest)
        self.capture.staging.need_exact(value)
        kinds = {**COLLECTION_KINDS, ShadowList: list, ShadowDict: dict, ShadowSet: set, StagedList: list, Range: range,
                 TextKeyed: dict,
                 Rows: tuple, SymbolicVariable: chainer.Variable}
        kind = type(value)
        if kind is BoundHostMethod or kind is SymbolicObject and value.real is SymbolicObject.Missing:
            self.capture.abort("type() of an object that is known at run time only", of_host=True)
        if kind in kinds:
            return kinds[kind]
        if is_symbolic(value):
            return chainer.Parameter if isinstance(value, chainer.Parameter) else value.__class__
        return value.__class__ if isinstance(value, ShadowBase) else kind

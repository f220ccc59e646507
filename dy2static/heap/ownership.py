"""Whose code is whose: which modules are libraries that may run as they are, and which are the user's."""
from __future__ import annotations

import contextlib
import datetime
import decimal
import dis
import enum
import fractions
import functools
import os
import pathlib
import re
import sys
import sysconfig
import types
import uuid
from typing import Any, Optional

import chainer

from ..runtime.staticness import IGNORED, NOT_STATIC

#: Libraries whose module and class attributes are constants for us and whose functions are never converted …
_LIBRARIES = ("builtins", "numpy", "chainer", "chainerx", "chainermn.communicators", "cupy", "cupyx", "scipy", "six", "dy2static",
              "gast", "astor", "hypothesis", "pytest", "_pytest")
#: … but for these, which are written as user code is, and are converted like it.
_CONVERTED = ("chainer.links", "chainer.link", "chainer.sequential", "chainer.link_hooks", "chainer.link_hook",
              "chainer.distributions", "chainer.distribution", "chainer.dataset.convert", "chainer.device_resident",
              "chainer.optimizer", "chainer.optimizers", "chainer.optimizer_hooks", "dy2static.training",
              "chainer.training._updater", "chainer.training.updaters.standard_updater",
              "chainer.functions.noise.gumbel_softmax", "chainer.utils.walker_alias",
              "chainer.graph_optimizations.static_graph_utilities", "contextlib")
#: The classes of Chainer's reporters whose methods are converted, too.
_SUMMARIES = ("Summary.", "DictSummary.", "Reporter.__init__")
#: The properties of iterators that tell how far they are, which are converted, too.
_PROGRESS = frozenset(("current_position", "epoch", "is_new_epoch", "epoch_detail", "previous_epoch_detail", "_epoch_size"))
#: Of whose classes the instances that are made inside have shadows, as those of the user's classes have.
_MADE_INSIDE = ("chainer.dataset.convert", "chainer.device_resident", "chainer.backends._cpu", "chainer.reporter")
#: The same of a class of Python's own: its special methods, which call methods of the user's, are converted, too.
CALLING_BACK = contextlib.closing
#: Whose objects are looked into as those of a user are: loaded models.
_LOOKED_INTO = ("dy2static.saved.layer", "dy2static.saved.state")
_STDLIB = os.path.normpath(sysconfig.get_paths()["stdlib"])
_STDLIB_NAMES = getattr(sys, "stdlib_module_names", frozenset())


@functools.lru_cache(maxsize=4096)
def _within(name: str, packages: Any) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def is_library(name: str) -> bool:
    """Whether a module of this name is a library: never written, its attributes never guarded."""
    known = _is_library_by_name(name)
    return _is_standard(name) if known is None else known


@functools.lru_cache(maxsize=4096)
def _is_library_by_name(name: str) -> Optional[bool]:
    """Whether a module of this name is a library; None where the name does not tell."""
    if _within(name, _LIBRARIES):
        return name not in _LOOKED_INTO
    if name.startswith("_cython_"):                     # of the types of functions written in Cython
        return True
    root = name.partition(".")[0]
    if root in _STDLIB_NAMES:
        return root != "__main__"
    return False if _STDLIB_NAMES or root == "__main__" else None


def _is_standard(name: str) -> bool:
    """Whether a module is of the standard library, where Python (3.9) has no list of their names.

    A module that `sys.modules` does not have is the user's.
    """
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if file is None:
        origin = getattr(getattr(module, "__spec__", None), "origin", None)
        return name in sys.builtin_module_names or origin in ("built-in", "frozen")
    return os.path.normpath(file).startswith(_STDLIB + os.sep) and "site-packages" not in file


def is_converted(function: types.FunctionType) -> bool:
    """Whether a Python function is converted: the user's, Chainer's links, and context managers of the user's."""
    name = function.__globals__.get("__name__", "")
    return _within(name, _CONVERTED) or not is_library(name) or tells_progress(function) or \
        name == "chainer.reporter" and function.__qualname__.startswith(_SUMMARIES)


def tells_progress(function: types.FunctionType) -> bool:
    """Whether a function is a property of one of Chainer's iterators that tells how far it is."""
    return function.__name__ in _PROGRESS and _is_of_iterators(function)


def fetches(function: types.FunctionType) -> bool:
    """Whether a function is the method of one of Chainer's iterators that gives the next examples."""
    return function.__name__ == "__next__" and _is_of_iterators(function)


def _is_of_iterators(function: types.FunctionType) -> bool:
    return function.__globals__.get("__name__", "").startswith("chainer.iterators.")


def is_left_alone(function: types.FunctionType, entry: Any = None) -> bool:
    """Whether a function stays as it is: it is marked `not_to_static`, or of a module of `ignore_module`.

    entry: a function that is compiled all the same, unless it is marked.
    """
    if getattr(function, NOT_STATIC, False):
        return True
    if not IGNORED or function is entry or not is_converted(function):
        return False
    return _within(function.__globals__.get("__name__", ""), frozenset(IGNORED))


def is_generated(function: types.FunctionType) -> bool:
    """Whether `dataclasses` made a method: it reads, assigns and compares attributes, and has no source."""
    return function.__code__.co_filename == "<string>" and function.__name__ in _GENERATED


_GENERATED = frozenset(("__init__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__setattr__", "__delattr__"))


def is_immutable(value: Any) -> bool:
    """Whether a value of the standard library, or a text or number of a class of the user's, never changes."""
    kind = type(value)
    if kind in _IMMUTABLE or isinstance(value, pathlib.PurePath):
        return True
    if kind in _PLAIN or not isinstance(value, _PLAIN) or isinstance(value, enum.Enum) or is_library(kind.__module__):
        return False
    return not getattr(value, "__dict__", None) and "__slots__" not in kind.__dict__


@functools.lru_cache(maxsize=None)
def changes_itself(cls: type) -> bool:
    """Whether a method of a class, other than `__init__`, assigns or deletes attributes of its object, as those of triggers do."""
    methods = [part for base in cls.__mro__ for name, value in vars(base).items() if name not in ("__init__", "__new__")
               for part in (value, getattr(value, "fget", None), getattr(value, "fset", None), getattr(value, "fdel", None))]
    return any(_assigns_to_first(part.__code__) for part in methods if isinstance(part, types.FunctionType))


def _assigns_to_first(code: types.CodeType) -> bool:
    loaded = None
    for step in dis.get_instructions(code):
        if step.opname in ("STORE_ATTR", "DELETE_ATTR") and loaded == code.co_varnames[:1]:
            return True
        loaded = None
        if step.opname.startswith("LOAD_FAST"):         # two names at once in newer versions of Python
            loaded = (step.argval[-1] if isinstance(step.argval, tuple) else step.argval,)
    return False


#: Their instances do not change, and their methods only compute.
_IMMUTABLE = (decimal.Decimal, fractions.Fraction, re.Pattern, re.Match, datetime.date, datetime.datetime, datetime.time,
              datetime.timedelta, datetime.timezone, uuid.UUID)
_PLAIN = (str, bytes, int, float)


def is_library_class(cls: type) -> bool:
    """Whether a class is a library's.  One that is made by calling a metaclass says the metaclass's module: look there."""
    name = cls.__module__
    if not is_library(name):
        return False
    found = getattr(sys.modules.get(name), cls.__qualname__.partition(".")[0], None)
    return found is not None or name == "builtins" or not issubclass(cls, chainer.Link)


def is_made_by_type(cls: type) -> bool:
    """Whether the metaclass of a class is a library's, and makes instances as `type` does (that of TypedDict makes dicts)."""
    return is_library_class(type(cls)) and type(cls).__call__ is type.__call__


def is_made_inside(cls: type) -> bool:
    """Whether instances of a class of a library's that are made inside are like those of a user's class."""
    # not `issubclass`, which asks all subclasses of an abstract class, those of shadows among them: their answers are guarded
    is_made = chainer.Link in cls.__mro__ or chainer.Distribution in cls.__mro__
    return cls.__module__ in _MADE_INSIDE or cls is CALLING_BACK or is_made and is_library_class(cls)


#: The methods of a function that Chainer calls.
_METHODS = frozenset(("forward", "forward_cpu", "forward_gpu", "backward", "backward_cpu", "backward_gpu", "backward_accumulate",
                      "check_type_forward", "apply"))


def is_altered(cls: type) -> bool:
    """Whether a method of a function of Chainer's is not one that its class came with."""
    for base in cls.__mro__:
        if not is_library_class(base) or base in (chainer.FunctionNode, chainer.Function, object):
            continue
        for name, value in vars(base).items():
            function = getattr(value, "__func__", getattr(value, "fget", value))
            if not isinstance(function, types.FunctionType):
                if name in _METHODS:
                    return True
            elif not is_library(function.__module__ or ""):
                return True
    return False

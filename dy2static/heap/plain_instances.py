"""Classes of the user's whose instances have no shadows: tuples with names, lists, errors, enums, classes with slots.

Python itself calls their properties and special methods, as they are written, on real objects.  That is sound where
these read nothing but their arguments; other classes stop the capture.
"""
from __future__ import annotations

import builtins
import types
from typing import Any, Dict, Iterator, List, Set, Tuple

import chainer
import numpy as np

from ..library_facts.python import IMPURE
from .dataclass import is_generated
from .ownership import is_library, is_library_class

#: Where effects, or answers that change, may come from.
_IMPURE = IMPURE.union(("random", "time", "logging", "report", "warnings", "warn", "config"))
_CONVERTED_WHEN_CALLED = frozenset(("__init__", "__new__"))


#: What other code may change in place, unseen.
_CHANGEABLE = (list, dict, set, bytearray, np.ndarray, chainer.Variable, chainer.Link)


class Reads:
    """What Python would run unseen on instances of a class, and what this reads.

    impure: a function that may do more than compute; "" if there is none.  globals: the namespaces and names of the user's classes
    that it reads.
    """

    def __init__(self, cls: type):
        self.globals: List[Tuple[Dict[str, Any], str]] = []
        self._cls = cls
        self._seen: Set[types.FunctionType] = set()
        self.impure = self._impure()

    @property
    def classes(self) -> List[type]:
        """The user's classes that are read by their names."""
        return [space[name] for space, name in self.globals]

    def _impure(self) -> str:
        for base in self._cls.__mro__:
            for name, found in () if is_library_class(base) else base.__dict__.items():
                for function in _run_by_python(name, found):
                    if not (is_generated(base, function) or self._only_computes(function)):
                        return f"{base.__name__}.{name}"
        return ""

    def _only_computes(self, function: types.FunctionType) -> bool:
        """Whether a function reads nothing but its arguments, builtins, libraries and what is constant in classes."""
        code = function.__code__
        if function in self._seen or is_library(function.__module__ or "") or code.co_filename.startswith("<string>"):
            return True
        self._seen.add(function)
        return set(code.co_freevars) <= {"__class__"} and self._code_only_computes(code, function.__globals__)

    def _code_only_computes(self, code: types.CodeType, namespace: Dict[str, Any]) -> bool:
        for name in code.co_names:
            if name in _IMPURE:
                return False
            if name not in namespace:
                continue
            found = namespace[name]
            home = found.__name__ if isinstance(found, types.ModuleType) else getattr(found, "__module__", None)
            if getattr(builtins, name, None) is found or home and is_library(home):
                continue
            if not (isinstance(found, type) and _is_made_plainly(found)):
                return False
            self.globals.append((namespace, name))
        for found in [getattr(cls, name, None) for cls in (self._cls, *self.classes) for name in code.co_names]:
            function = getattr(found, "__func__", found)
            if isinstance(found, _CHANGEABLE) or isinstance(function, types.FunctionType) and not self._only_computes(function):
                return False
        return all(self._code_only_computes(const, namespace) for const in code.co_consts if isinstance(const, types.CodeType))


def _run_by_python(name: str, found: Any) -> Iterator[types.FunctionType]:
    """The functions that Python calls when this class attribute is used, without a call in the user's code."""
    if isinstance(found, property):
        yield from (part for part in (found.fget, found.fset, found.fdel) if isinstance(part, types.FunctionType))
    elif isinstance(found, types.FunctionType):
        if name.startswith("__") and name.endswith("__") and name not in _CONVERTED_WHEN_CALLED:
            yield found
    elif name == "_missing_" and isinstance(found, classmethod) and isinstance(found.__func__, types.FunctionType):
        yield found.__func__
    elif not isinstance(found, (staticmethod, classmethod, type)) and not is_library(type(found).__module__):
        for part in ("__get__", "__set__", "__delete__"):
            if isinstance(getattr(type(found), part, None), types.FunctionType):
                yield getattr(type(found), part)


def _is_made_plainly(cls: type) -> bool:
    """Whether making an instance runs nothing that somebody wrote."""
    for base in cls.__mro__:
        for name in () if is_library_class(base) else ("__init__", "__new__", "__post_init__", "_missing_"):
            function = getattr(base.__dict__.get(name), "__func__", base.__dict__.get(name))
            if isinstance(function, types.FunctionType) and not is_library(function.__module__ or "") and \
                    not function.__code__.co_filename.startswith("<string>"):
                return False
    return True

"""The names under which libraries offer their functions, and those that somebody has replaced."""
from __future__ import annotations

import bisect
import builtins
import cmath
import collections
import contextlib
import copy
import ctypes
import functools
import heapq
import itertools
import logging
import math
import operator
import os
import random
import re
import statistics
import string
import sys
import time
import types
import warnings
from typing import Any, Dict, Iterator, List, Optional, Tuple

import chainer
import numpy as np

from .ownership import is_library

Name = Tuple[types.ModuleType, str]

#: Modules whose functions users call, and replace in tests.
_MODULES = (
    builtins, math, cmath, operator, itertools, functools, collections, copy, random, time, os, os.path, string, re, statistics,
    warnings, logging, contextlib, heapq, bisect, np, np.linalg, np.random, np.fft, chainer, chainer.functions, chainer.links,
    chainer.backend, chainer.backends.cuda, chainer.utils, chainer.reporter, chainer.initializers, chainer.distributions,
    chainer.dataset, chainer.dataset.convert)

#: Where a dict of a 64-bit CPython before 3.13 has its version, in bytes: a number that every change of the dict replaces.
_VERSION_OFFSET = 24


def _version_in(space: Dict[str, Any]) -> ctypes.c_uint64:
    return ctypes.c_uint64.from_address(id(space) + _VERSION_OFFSET)


def _versions_work() -> bool:
    """Whether versions of dicts are where they are expected."""
    if sys.implementation.name != "cpython" or sys.version_info >= (3, 13) or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    space: Dict[str, Any] = {"one": 1}
    seen = [_version_in(space).value]
    for change in (lambda: space.update(one=2), lambda: space.update(two=2), lambda: space.pop("one"), lambda: None):
        change()
        seen.append(_version_in(space).value)
    return len(set(seen)) == 4 and seen[-1] == seen[-2]


class _Offer:
    """All names of a module, and what those of them that can be called stood for when this was made."""

    def __init__(self, module: types.ModuleType):
        self.module, space = module, vars(module)
        self.names = frozenset(space)
        self.original = {name: value for name, value in space.items() if callable(value)}
        self._version = _version_in(space) if _HAS_VERSIONS else None
        self._same_at: Optional[int] = None             # the version at which nothing was found to be replaced

    def changes(self) -> List[str]:
        """The names that stand for something else, and those of new callables."""
        version = None if self._version is None else self._version.value
        if version is not None and version == self._same_at:
            return []
        space = vars(self.module)
        found = [name for name, value in self.original.items() if space.get(name) is not value]
        found += [name for name in space.keys() - self.names if callable(space.get(name))]
        if not found:
            self._same_at = version
        return found


_HAS_VERSIONS = _versions_work()
_OFFERS = tuple(map(_Offer, _MODULES))

_NAMES: Dict[int, List[Name]] = {}
for _offer in _OFFERS:
    for _name, _value in _offer.original.items():
        _NAMES.setdefault(id(_value), []).append((_offer.module, _name))


def names_of(function: Any) -> Iterator[Name]:
    """The names of library modules that stand for a function or class now."""
    for module, name in _NAMES.get(id(function), ()):
        if vars(module).get(name) is function:
            yield module, name
    if isinstance(function, types.FunctionType):
        home = sys.modules.get(function.__module__ or "")
        if home is not None and is_library(home.__name__) and vars(home).get(function.__name__) is function:
            yield home, function.__name__


def replaced_names() -> Iterator[Name]:
    """The names that stand for something else than when this module was imported, and callables under new names.

    What captures of ours replace for a while is not among them, nor what modules do to their private names
    (``warnings.catch_warnings`` does).
    """
    for offer in _OFFERS:
        space = vars(offer.module)
        yield from ((offer.module, name) for name in offer.changes()
                    if not name.startswith("_") and not _is_ours(space.get(name)))


def foreign_names(module: types.ModuleType) -> Iterator[str]:
    """The names of another library module under which somebody may have put a function there."""
    if not any(module is known for known in _MODULES):
        package = module.__name__.partition(".")[0]
        for name, value in vars(module).items():
            home = getattr(value, "__module__", None)
            if callable(value) and not isinstance(value, type) and (type(home) is not str or home.partition(".")[0] != package):
                yield name


def _is_ours(value: Any) -> bool:
    return (getattr(value, "__module__", None) or "").startswith("dy2static.") and isinstance(value, types.FunctionType)

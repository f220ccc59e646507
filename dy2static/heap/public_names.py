"""The names under which libraries offer their functions, and those that somebody has replaced."""
from __future__ import annotations

import bisect
import builtins
import cmath
import collections
import contextlib
import copy
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
from typing import Any, Dict, Iterator, List, Tuple

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

class _Offer:
    """All names of a module, and what those of them that can be called stood for when this was made."""

    def __init__(self, module: types.ModuleType):
        self.module, space = module, vars(module)
        self.names = frozenset(space)
        self.original = {name: value for name, value in space.items() if callable(value)}

    def changes(self) -> List[str]:
        """The names that stand for something else, and those of new callables."""
        space, original = vars(self.module), self.original
        found = []
        if not all(map(operator.is_, map(space.get, original), original.values())):     # nearly always they are
            found = [name for name, value in original.items() if space.get(name) is not value]
        if not self.names.issuperset(space):
            found += [name for name in space.keys() - self.names if callable(space.get(name))]
        return found


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

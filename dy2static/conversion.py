"""Source to source for one function: parse, transform, load; kept for as long as its code lives."""
from __future__ import annotations

import logging
import threading
import types
import weakref
from typing import Any, Dict, List, Tuple

import gast

from . import config, transformers
from .pyast.loader import LoadedFunction, load
from .pyast.parser import parse
from .pyast.printer import unparse

log = logging.getLogger("dy2static")


class Converted:
    """The converted form of a function: the tree, its text, and the code that runs."""

    def __init__(self, tree: gast.FunctionDef, loaded: LoadedFunction):
        self.tree, self.loaded = tree, loaded

    @property
    def code(self) -> str:
        """The transformed source."""
        return unparse(self.tree)


#: By the identity of code objects: equal ones may come from two files.
_converted: Dict[int, Converted] = {}

#: Python 3.11 counts the depth of trees per process, not per thread: two conversions at once confuse it.
_lock = threading.RLock()


def conversion_of(function: types.FunctionType) -> Converted:
    """The conversion of a function, made on first use.

    Raises SourceNotFoundError and UnsupportedSyntaxError.
    """
    code = function.__code__
    found = _converted.get(id(code))
    if found is not None:
        return found
    with _lock:
        tree = transformers.apply(transformers.PIPELINE, parse(function), _log_after(function))
        found = _converted[id(code)] = Converted(tree, load(tree, function))
    weakref.finalize(code, _converted.pop, id(code), None).atexit = False
    if config.VERBOSITY.value >= 2:
        log.warning("converted %s (%s:%d)", function.__qualname__, code.co_filename, code.co_firstlineno)
    return found


def convert(function: types.FunctionType) -> LoadedFunction:
    """The compiled form of a function's conversion."""
    return conversion_of(function).loaded


def wanted_levels() -> Tuple[str, ...]:
    """What `set_code_level` asked for, as names or numbers in lower case."""
    return tuple(part.strip().lower() for part in str(config.CODE_LEVEL.value).split(",") if part.strip())


def _log_after(function: types.FunctionType) -> Any:
    count: List[int] = [0]

    def after(transformer: Any, tree: gast.FunctionDef) -> None:
        count[0] += 1
        levels = wanted_levels()
        last = count[0] == len(transformers.PIPELINE)
        name = transformer.__name__
        if levels and ("all" in levels or name.lower() in levels or str(count[0]) in levels or (last and "last" in levels)):
            log.warning("After transformer %d '%s' of %s:\n%s", count[0], name, function.__qualname__, unparse(tree))
    return after

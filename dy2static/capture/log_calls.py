"""Calls of loggers: the host makes them, but for those that the level of the logger suppresses."""
from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Callable, Container

from ..ir.types import type_of
from ..library_facts.python import LOG_LEVELS, LOGGED
from ..record.guards import LogOff
from ..record.paths import Constant
from ..runtime.guard_tests import is_off
from ..symbolic.host_objects import BoundHostMethod

if TYPE_CHECKING:
    from .protocols import Calls

#: The classes of loggers that say by themselves whether they are off.
_PLAIN = (logging.Logger, logging.RootLogger)


def is_log_method(function: Any, names: Container[str] = LOGGED) -> bool:
    """Whether this is one of these methods of a logger."""
    return type(function) is BoundHostMethod and isinstance(function.owner.real, logging.Logger) and function.method in names


def asks_log(calls: Calls, function: Any) -> Callable[..., Any]:
    """Let the host say whether a logger is enabled."""
    return lambda level: calls.capture.host.call(function, (level,), {}, (type_of(True),), name="isEnabledFor")


def logged(calls: Calls, function: Any, *args: Any, **kwargs: Any) -> None:
    """A message: left to the host, or dropped where the logger is off for its level, on which later calls rely."""
    capture, level = calls.capture, LOG_LEVELS.get(function.method if type(function) is BoundHostMethod else function.__name__)
    if level is not None and args and not capture.heap.stale and not capture.host.sets_levels:
        logger = function.owner.real if type(function) is BoundHostMethod else logging.root
        if type(logger) in _PLAIN and is_off(logger, level):
            source = capture.inputs.source_of(function.owner.value) if logger is not logging.root else \
                capture.heap.source(Constant, None, logger)
            capture.heap.guard(LogOff(source, level))
            return None
    return capture.host.call(function, args, kwargs, (), None, name=function.method if type(function) is BoundHostMethod else "")

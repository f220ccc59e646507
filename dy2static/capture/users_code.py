"""Which calls of libraries may run code of the user's: by what they call, by the objects they get, and by texts of these."""
from __future__ import annotations

import functools
import logging
import types
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Mapping, Sequence

import chainer

from ..heap.object_shadows import ShadowBase
from ..heap.objects import real_class
from ..heap.ownership import is_library, is_library_class
from ..ir.graph import Value
from ..lowering import host
from ..runtime.host_calls import MethodOf
from ..symbolic.host_objects import SymbolicObject
from .purity import only_computes, only_tells
from .value_enumeration import producer

if TYPE_CHECKING:
    from .protocols import Capture

#: Iterators that only read a container of Python's own.
_OVER_CONTAINERS = tuple(map(type, map(iter, ([], (), {}, {}.values(), {}.items(), set(), "", b"", range(0)))))

#: Libraries whose objects do not call functions of the user's.
_SELF_CONTAINED = frozenset(("datetime", "io", "_io", "numpy", "random", "time"))

#: How deep a function of the user's is looked for in an object of a library's, and in how many items of a container.
_DEPTH, _MOST_ITEMS = 3, 32


def may_run_users_code(item: Any) -> bool:
    """Whether using an object that only the host knows may run code of the user's.

    That may be a generator, a cache of a function's results, an object of a library's that holds a function of the user's, or a
    Variable with its graph.
    """
    if type(item) is not SymbolicObject:
        return _holds_users_code(item) if isinstance(item, functools._lru_cache_wrapper) else False
    if item.real is SymbolicObject.Missing:
        return not _is_of_library(item.capture.builder, item.value)
    kind = type(item.real)
    return not is_library_class(kind) or issubclass(kind, Iterator) and kind not in _OVER_CONTAINERS or _holds_users_code(item.real)


def may_run_for_text(capture: Capture, function: Any, given: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call that prints, logs or makes a text runs a method of the user's which may do more than that.

    Streams and handlers of logs that stand behind ``sys.stdout`` and loggers, and reporters, are not looked at.
    """
    if function is chainer.report:                      # which makes no text
        return False
    if function is print and _is_users(capture, kwargs.get("file")):
        return True
    return any(_changes_in_text(capture, item, _DEPTH) for item in given)


def _is_users(capture: Capture, stream: Any) -> bool:
    real = _real(capture, stream)
    return real is not None and not is_library_class(type(real))


def _real(capture: Capture, item: Any) -> Any:
    """The object that stands behind a shadow or a value of the graph; None for one that a run makes."""
    if type(item) is SymbolicObject:
        return None if item.real is SymbolicObject.Missing else item.real
    return capture.heap.real_of(item) if capture.heap.source_of(item) is not None else item


def _changes_in_text(capture: Capture, item: Any, depth: int) -> bool:
    """Whether a method that makes a text of an item may change something."""
    real = _real(capture, item)
    if isinstance(real, (list, tuple, set, frozenset, dict)) and depth:
        parts = [*real, *real.values()] if isinstance(real, dict) else real
        if any(_changes_in_text(capture, part, depth - 1) for part in list(parts)[:_MOST_ITEMS]):
            return True
    kind = real_class(type(real))
    if is_library_class(kind):
        return False
    found = [next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None) for name in _TEXTS]
    return any(isinstance(function, types.FunctionType) and not is_library(function.__globals__.get("__name__", ""))
               and not only_tells(function, item if isinstance(item, ShadowBase) else real) for function in found)


#: The methods that make texts of objects.
_TEXTS = ("__str__", "__repr__", "__format__")


def _holds_users_code(item: Any, depth: int = _DEPTH) -> bool:
    """Whether an object of a library's is or holds a function of the user's that may do more than compute."""
    if isinstance(item, types.FunctionType):
        return not is_library(item.__module__ or "") and not only_computes(item)
    if depth == 0 or isinstance(item, (type, types.ModuleType, logging.Logger)):
        return False
    if isinstance(item, types.MethodType):
        parts = [item.__func__, item.__self__]
    elif isinstance(item, functools._lru_cache_wrapper):
        parts = [item.__wrapped__]
    elif isinstance(item, functools.partial):
        parts = [item.func, *item.args, *item.keywords.values()]
    elif isinstance(item, weakref.finalize):
        parts = list(item.peek() or ())
    elif isinstance(item, (list, tuple, set, frozenset)):
        parts = list(item)
    else:
        parts = list(item.values() if isinstance(item, dict) else getattr(item, "__dict__", {}).values())
    return any(_holds_users_code(part, depth - 1) for part in parts[:_MOST_ITEMS])


def _is_of_library(builder: Any, value: Value) -> bool:
    """Whether the result of a host call is an object of a library's that knows nothing of the user's, such as a file."""
    node = producer(builder, value)
    function = node.attrs["call"].function if node is not None and node.op is host.host_call else None
    if type(function) is MethodOf:
        return _is_of_library(builder, node.inputs[function.hole.index])       # type: ignore[union-attr]
    return (getattr(function, "__module__", None) or "").partition(".")[0] in _SELF_CONTAINED

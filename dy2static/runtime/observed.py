"""Checks results of host calls whose types are known from an earlier call only."""
from __future__ import annotations

import weakref
from typing import Any, List, Tuple

import numpy as np

from ..errors import RunError
from ..ir.types import Dynamic, type_of


class Surprise(RunError):
    """In a run, a function does something else than the program relies on."""


#: The code of functions on the host whose results were of other kinds than in the call that was observed.
VARYING_CODES: "weakref.WeakSet[Any]" = weakref.WeakSet()

#: What has no type in a graph: texts, objects, Variables.
OTHER = Dynamic()


def look(result: Any, containers: bool = True) -> Tuple[Any, List[Any]]:
    """The kind of a result, and its leaves in order.

    A kind is a type of the graph, None for None, or (class, keys, kinds of the parts) for tuples and, with ``containers``, for
    lists and dicts.
    """
    cls = type(result)
    if result is None:
        return None, []
    if cls in (bool, int, float) or isinstance(result, np.generic) and result.dtype.kind in "fiub":
        return type_of(result), [result]
    if cls is np.ndarray and result.dtype.kind in "fiub" and result.dtype.isnative:
        return type_of(result), [result]
    keys: Any = None
    if cls is dict and containers and all(type(key) in (str, int) for key in result):
        keys, parts = tuple(result), tuple(result.values())
    elif cls is tuple or cls is list and containers or isinstance(result, tuple) and hasattr(cls, "_fields"):
        parts = tuple(result)
    else:
        return OTHER, [result]
    found = [look(part, containers) for part in parts]
    return (cls, keys, tuple([kind for kind, _ in found])), [leaf for _, leaves in found for leaf in leaves]


class Observed:
    """Takes the result of a host call apart, which must be of the kind that was observed in an earlier call.

    code: whose result it is.  pure: that only computes.  failed: a run has seen another kind; programs with this call are of no
    use any more.
    """

    __slots__ = ("kind", "code", "name", "pure", "failed")

    def __init__(self, kind: Any, code: Any, name: str, pure: bool):
        self.kind, self.code, self.name, self.pure, self.failed = kind, code, name, pure, False

    def __call__(self, result: Any) -> List[Any]:
        kind, leaves = look(result, self.pure)
        if kind != self.kind:
            self.failed = True
            VARYING_CODES.add(self.code)
            raise Surprise(f"{self.name} gives a result of another type, shape or dtype than in an earlier call", hint=_HINT)
        return leaves


class Untouched:
    """Checks that a host call leaves a Variable as it was, as an earlier call did."""

    __slots__ = ("code", "name", "failed")

    def __init__(self, code: Any, name: str):
        self.code, self.name, self.failed = code, name, False

    def __call__(self, variable: Any, array: Any, requires_grad: bool) -> None:
        if variable._data[0] is not array or variable.requires_grad is not requires_grad:
            self.failed = True
            VARYING_CODES.add(self.code)
            raise Surprise(f"{self.name} changes a Variable that it is given, which it did not in an earlier call", hint=_HINT)


_HINT = "what this call has changed before stays changed; later calls run eagerly"

"""Generic functions of ``functools.singledispatch``: the type of the first argument decides what is called."""
from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, Callable

from ..record.guards import IdentityMatch
from ..record.paths import Constant, Implementation

if TYPE_CHECKING:
    from .protocols import Calls


def implementation(calls: Calls, function: types.FunctionType) -> Callable[..., Any]:
    """Call the implementation for the type of the first argument; a guard says that it is this one.

    A call without positional arguments raises what Python raises.
    """
    cells = {name: cell.cell_contents for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ())}
    dispatch = cells["dispatch"] if "dispatch" in cells else cells["self"].dispatcher.dispatch

    def call(*args: Any, **kwargs: Any) -> Any:
        if not args:
            return function(**kwargs)
        heap, kind = calls.capture.heap, calls.classes.callee(type)(args[0])
        found, source = dispatch(kind), heap.source(Implementation, heap.source(Constant, None, dispatch), kind)
        if isinstance(found, (classmethod, staticmethod)):
            heap.guard(IdentityMatch(source, found))
        else:
            found = heap.shadow(found, source)
        return calls.callee(found.__get__(cells["obj"], cells["cls"]) if "obj" in cells else found)(*args, **kwargs)
    return call

"""Weak references of the user's: what they refer to is read as an attribute is."""
from __future__ import annotations

import types
import weakref
from typing import TYPE_CHECKING, Any, Callable

import chainer

from ..record.paths import Referent
from ..symbolic.host_objects import SymbolicObject

if TYPE_CHECKING:
    from .protocols import Calls

#: Objects that a program would keep alive for its guards; and those of a computation, which may end within the call: the parts of a
#: function would keep them alive longer than eager mode.
_LEFT_OUT = (type, types.FunctionType, types.ModuleType, chainer.Variable, *chainer.get_array_types())


def is_weak_reference(calls: Calls, function: Any) -> bool:
    """Whether a call gives the object of a weak reference, or None after the end of that object."""
    return type(function) is SymbolicObject and type(function.real) is weakref.ref and not isinstance(function.real(), _LEFT_OUT)


def referent(calls: Calls, reference: SymbolicObject) -> Callable[[], Any]:
    """Give the shadow of the object, or None; guards say that a later call finds one like it."""
    def read() -> Any:
        capture = calls.capture
        real = reference.real()
        capture.heap.check_fresh(real)
        return capture.heap.shadow(real, capture.heap.source(Referent, capture.inputs.source_of(reference.value)))
    return read

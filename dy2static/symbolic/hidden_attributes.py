"""Attributes that stand-ins have for the capture, and that the lists, numbers, arrays and Variables of the user's code have not."""
from __future__ import annotations

import abc
import collections
import functools
from typing import Any, Optional, Protocol

import chainer

from ..capture_context import CaptureContext
from ..heap.function_attributes import stop_at_parts
from ..heap.library_writes import stop_library_writes
from ..heap.stand_ins import name_in_messages, stood_for
from ..transformers.function_parts import HIDDEN
from .host_objects import BoundHostMethod, SymbolicObject
from .own_attributes import read_own
from .values import SymbolicArray, SymbolicParameter, SymbolicScalar, SymbolicVariable

_VARIABLES = {SymbolicVariable: chainer.Variable, SymbolicParameter: chainer.Parameter}
_WITH_ATTRIBUTES = (collections.OrderedDict, collections.Counter)


#: How Python's metaclasses answer `isinstance`: they look at classes only.
_BY_CLASS = (type.__instancecheck__, abc.ABCMeta.__instancecheck__, type(Protocol).__instancecheck__)


def before_read(capture: CaptureContext, item: Any, name: str) -> None:
    """Raise AttributeError if a stand-in is asked for an attribute that what it stands for has not.  Python reads it next."""
    if name in HIDDEN:
        check_read(capture, item, name)
    else:
        stop_at_parts(capture, item, name)


def before_write(capture: CaptureContext, item: Any) -> None:
    """Stop the capture if an attribute that must not change now is about to be set or deleted."""
    real = stood_for(type(item))
    if real in (list, dict, set, collections.deque, *_WITH_ATTRIBUTES):
        capture.abort(f"an attribute of a {real.__name__} is set or deleted")
    if isinstance(item, functools.partial) and capture.heap.source_of(item) is not None:
        capture.abort("an attribute of a partial is set or deleted")
    stop_library_writes(capture, item)


def check_read(capture: CaptureContext, item: Any, name: str) -> None:
    """Raise AttributeError if a stand-in has an attribute that what it stands for has not."""
    if type(item) in _VARIABLES:
        if name == "__dict__":
            capture.abort("the attributes of a Variable are read as a dict")
        if name in HIDDEN and not has(_VARIABLES[type(item)], name):
            read_own(item, name)
            capture.abort(f"the attribute `{name}` of a Variable, which the capture uses itself, is read")
        return
    if type(item) is SymbolicObject and has(SymbolicObject, name):
        capture.abort(f"attribute {name!r} of {item.describe()} is read", of_host=True)
    if type(item) is BoundHostMethod and has(BoundHostMethod, name):
        item.refuse()
    real = _real_class(item)
    if real in _WITH_ATTRIBUTES and (name == "__dict__" or name in vars(item.real)):
        capture.abort(f"the attribute `{name}` of an {real.__name__} is read")
    if real is not None and not has(real, name):
        raise AttributeError(f"'{name_in_messages(real)}' object has no attribute {name!r}")


def asks_classes(spec: Any) -> bool:
    """Whether `isinstance` looks at the class of the object only, and not, by a metaclass of the user's, at the object."""
    if type(spec) is tuple:
        return all(map(asks_classes, spec))
    return not isinstance(spec, type) or type(spec).__instancecheck__ in _BY_CLASS


def has(cls: type, name: str) -> bool:
    """Whether objects of a class have an attribute by their class: `hasattr` of it would also ask the metaclass."""
    return any([name in vars(each) for each in cls.__mro__])


def _real_class(item: Any) -> Optional[type]:
    """The class without attributes of its own that a stand-in stands for; None for other objects."""
    if type(item) in (SymbolicArray, SymbolicScalar):
        return item.__class__
    real = stood_for(type(item))
    return real if real in _WITH_ATTRIBUTES or real is not None and not has(real, "__dict__") else None

"""Dataclasses: what their generated methods do, done with shadows."""
from __future__ import annotations

import dataclasses
import operator
import types
from typing import Any, Dict, Iterator, List, Tuple

from ..capture_context import Heap
from ..record.paths import Attribute, Constant

#: What `dataclasses` keeps on a class: it is not assigned later.
CONSTANTS = ("__dataclass_fields__", "__dataclass_params__")


def is_generated(cls: type, function: Any) -> bool:
    """Whether this method of the class was written by `dataclasses`.

    It then has no source, and calls nothing of the user's but what `initialise` calls.
    """
    return "__dataclass_fields__" in cls.__dict__ and isinstance(function, types.FunctionType) and \
        (function.__code__.co_filename == "<string>" or hasattr(function, "__wrapped__")
         and function.__wrapped__.__code__.co_filename == "<string>")


def frozen_against(cls: type, method: str, name: str) -> bool:
    """Whether a frozen dataclass refuses that ``method`` (``__setattr__``, ``__delattr__``) is used on an attribute."""
    owner = next((base for base in cls.__mro__ if method in base.__dict__), cls)
    if not is_generated(owner, owner.__dict__.get(method)):
        return False
    return cls is owner or any(field.name == name for field in dataclasses.fields(owner))


def initialise(heap: Heap, cls: type, shadow: Any, args: Tuple, kwargs: Dict[str, Any]) -> None:
    """The ``__init__`` of a dataclass: its fields in order, defaults, factories, and then ``__post_init__``."""
    made = cls.__dict__["__init__"]
    heap.definitions.add_function(made)
    if any(map(operator.is_not, made.__defaults__ or (), _defaults(cls))):
        heap.capture.abort(f"the defaults of {cls.__name__}.__init__ were assigned", hint="give the fields other defaults")
    given, late = _bind(heap, cls, args, kwargs), []
    for field in _fields(cls):
        if field.init and field.name in given:
            value = given[field.name]
        elif field.default_factory is not dataclasses.MISSING:
            value = heap.capture.callee(field.default_factory)()
        elif field.default is not dataclasses.MISSING and field.init:
            constant = heap.source(Constant, None, field)
            value = heap.shadow(field.default, heap.source(Attribute, constant, "default"))
        else:
            continue
        if field._field_type is dataclasses._FIELD_INITVAR:      # type: ignore[attr-defined]
            late.append(value)
        elif cls.__dataclass_params__.frozen:                    # type: ignore[attr-defined]
            object.__setattr__(shadow, field.name, value)
        else:
            setattr(shadow, field.name, value)
    finish = getattr(cls, "__post_init__", None)
    if finish is not None:
        heap.capture.callee(shadow.__post_init__)(*late)


def _defaults(cls: type) -> List[Any]:
    """The defaults of positional parameters with which `dataclasses` writes ``__init__``."""
    return [field.default if field.default is not dataclasses.MISSING else dataclasses._HAS_DEFAULT_FACTORY     # type: ignore
            for field in _fields(cls) if field.init and not getattr(field, "kw_only", False)
            and (field.default, field.default_factory) != (dataclasses.MISSING, dataclasses.MISSING)]


def _fields(cls: type) -> Iterator[dataclasses.Field]:
    """The fields and what is only for ``__init__``."""
    for field in cls.__dataclass_fields__.values():              # type: ignore[attr-defined]
        if field._field_type is not dataclasses._FIELD_CLASSVAR:  # type: ignore[attr-defined]
            yield field


def _bind(heap: Heap, cls: type, args: Tuple, kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """The arguments by name."""
    fields: List[dataclasses.Field] = [field for field in _fields(cls) if field.init]
    positional = [field.name for field in fields if not getattr(field, "kw_only", False)]
    given = dict(zip(positional, args))
    needed = [field.name for field in fields if field.default is dataclasses.MISSING
              and field.default_factory is dataclasses.MISSING]
    names = {field.name for field in fields}
    if len(args) > len(positional) or not names.issuperset(kwargs) or not given.keys().isdisjoint(kwargs) \
            or not {*given, *kwargs}.issuperset(needed):
        raise TypeError(f"{cls.__name__}.__init__() does not take these arguments")      # the words are the eager run's
    return {**given, **kwargs}

"""Where a compiled function was put in place of the one that the user wrote, and putting that one back."""
from __future__ import annotations

import sys
import types
from typing import Any, Callable

from ..static_function import OPTIONS, StaticFunction


def put_back(static: StaticFunction, instance: Any = None) -> Callable:
    """The function as it was written, which now is again where the compiled one was; a method if there is an instance.

    instance: whose method it is.  An object that was compiled as one is what it was before, and others stay as they are.
    """
    original = static.python_function
    if instance is not None:
        method = types.MethodType(original, instance)
        attributes = {} if isinstance(instance, type) else getattr(instance, "__dict__", {})
        own = [name for name, value in attributes.items()
               if getattr(value, "__func__", None) is static and value.__self__ is instance]
        for name in own:
            del attributes[name]
        cls = type(instance)
        if OPTIONS in vars(cls) and static in vars(cls).values():
            instance.__class__ = cls.__mro__[1]
            return method
        if own:
            return method
    for place, name in static.places:
        cls = place()                                   # type: ignore[assignment]
        if cls is not None and OPTIONS not in vars(cls):
            _replace(cls, name, static, original)
    *path, name = static.__qualname__.split(".")
    container: Any = sys.modules.get(static.__module__)
    for part in path:
        container = getattr(container, part, None)
    if isinstance(container, (type, types.ModuleType)):
        _replace(container, name, static, original)
    return original if instance is None else method


def _replace(container: Any, name: str, static: Any, original: Callable) -> None:
    found = vars(container).get(name)
    if isinstance(found, (staticmethod, classmethod)) and found.__func__ is static:
        setattr(container, name, type(found)(original))
    elif found is static:
        inherited = isinstance(container, type) and any(vars(base).get(name) is original for base in container.__mro__[1:])
        if inherited:
            delattr(container, name)
        else:
            setattr(container, name, original)

"""Operators whose right operand Python asks first: an instance of a class that derives from that of the left one.

Classes of shadows do not derive from each other as the user's classes do, so that Python does not know.
"""
from __future__ import annotations

from typing import Any, Callable, Iterable, Set

from .stand_ins import stands_for

#: The method of the right operand that takes the place of one of the left.
_REFLECTED = {"__add__": "__radd__", "__or__": "__ror__", "__eq__": "__eq__", "__ne__": "__ne__",
              "__lt__": "__gt__", "__le__": "__ge__", "__gt__": "__lt__", "__ge__": "__le__"}
COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_stand_ins: Set[type] = set()                           # the classes that stand for dicts and lists themselves


def ask_right_first(cls: type, base: type, names: Iterable[str]) -> None:
    """Let these operators of a class that stands for ``base`` ask instances of other subclasses of ``base`` first.

    Libraries call the class of an item to make one like it (``dataclasses.asdict``).
    """
    _stand_ins.add(cls)
    stands_for(cls, base)
    cls.__new__ = lambda made, *args: base.__new__(made) if len(args) > 1 else base(*args)      # type: ignore[method-assign]
    for name in names:
        setattr(cls, name, _asking(getattr(cls, name), base, _REFLECTED[name]))


def _asking(method: Callable, base: type, reflected: str) -> Callable:
    def ask(left: Any, right: Any) -> Any:
        kind = getattr(type(right), "_dy2static_class", type(right))
        derives = kind is not left.__class__ and issubclass(kind, base if left.__class__ in _stand_ins else left.__class__)
        if not derives or getattr(kind, reflected, None) is getattr(base, reflected, None) or \
                not _stand_ins.isdisjoint(type.mro(type(right))):
            return method(left, right)
        found = getattr(type(right), reflected)(right, left)
        return method(left, right) if found is NotImplemented else found
    ask.__name__ = method.__name__
    return ask


def adds_itself(items: Any) -> bool:
    """Whether ``a_list += items`` is ``items.__radd__(a_list)``: lists have no addition of numbers, which Python tries first."""
    return type(items) not in (bool, int, float, complex) and hasattr(type(items), "__radd__") and \
        _stand_ins.isdisjoint(type.mro(type(items)))


def added(items: list, other: Any) -> Any:
    """``a_list + other``, where the other is no list: what its ``__radd__`` returns, or Python's error."""
    reflected = getattr(type(other), "__radd__", None)
    found = NotImplemented if reflected is None else reflected(other, items)
    return list.__add__(items, other) if found is NotImplemented else found


def updated(made: dict, other: dict) -> dict:
    """A new dict, updated by another one: what ``|`` returns."""
    made.update(other.items())
    return made

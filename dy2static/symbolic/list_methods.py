"""Methods of lists that need the number of items: captures stop where only the run knows it."""
from __future__ import annotations

from typing import Any, Callable, Iterator, Type

from ..heap.list_shadows import load_other
from ..heap.right_operands import COMPARISONS, ask_right_first
from .members import Members, MembersBackwards

#: The methods, and what they do to a list.
_METHODS = (("__delitem__", "deleted from"), ("__iter__", "iterated over by a library"), ("__contains__", "searched"),
            ("__reversed__", "reversed"), ("__eq__", "compared"), ("__ne__", "compared"), ("__lt__", "compared"),
            ("__le__", "compared"), ("__gt__", "compared"), ("__ge__", "compared"), ("__mul__", "repeated"),
            ("__rmul__", "repeated"), ("__imul__", "repeated"), ("__repr__", "printed"), ("index", "searched"),
            ("count", "searched"), ("remove", "searched"), ("sort", "sorted"))


def refuse_methods(cls: type) -> None:
    """Give a class of lists these methods: `list`'s, where the numbers of items are known."""
    for name, what in _METHODS:
        setattr(cls, name, _unless_symbolic(cls, name, what))
    ask_right_first(cls, list, (*COMPARISONS, "__add__"))
    for name, members in (("__iter__", Members), ("__reversed__", MembersBackwards)):
        setattr(cls, name, _over_members(getattr(cls, name), members))


def _unless_symbolic(cls: type, name: str, what: str) -> Callable:
    method = getattr(list, name)

    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.symbolic is not None or any(type(x) is cls and x.symbolic is not None for x in args):
            self._refuse(what)
        for x in args:
            load_other(self, x)
        return method(self, *args, **kwargs)
    guarded.__name__ = name
    return guarded


def _over_members(refusing: Callable, members: Type[Members]) -> Callable:
    """A method that gives the items one by one.  refusing: the one that only looks whether their number is known."""
    def iterate(self: Any) -> Iterator[Any]:
        refusing(self)
        return members(self)
    return iterate

"""The user's classes that code sees as they are, without a shadow: what they hold may change unseen."""
from __future__ import annotations

import collections
import dis
import enum
import types
from typing import Any, Dict, Iterator, List, Set, Tuple

import chainer
import numpy as np

from ..capture_context import CaptureContext
from ..runtime.definitions import BOOKKEEPING
from .dict_shadows import ABSENT
from .ownership import is_immutable, is_library_class

#: What a class and `typing`, `dataclasses` and `enum` note of it, once.
_NOTED = frozenset(("__annotations__", "__slots__", "__dataclass_fields__"))
_CHANGEABLE = (list, dict, set, bytearray, collections.deque, types.SimpleNamespace, np.ndarray, chainer.Variable, chainer.Link)

#: What may read attributes of a class by names that no code holds.
_LOOKING = frozenset(("__dict__", "vars", "dir", "getmembers"))


class OpenClasses:
    """Stops a capture whose code reads an attribute of such a class that holds a list, an array or the like.

    Such a read is neither guarded nor recorded.  Which names are read is known from the code of all functions that are converted.
    """

    def __init__(self, capture: CaptureContext):
        self._capture = capture
        self._held: Dict[str, type] = {}
        self._named: Set[str] = set()
        self._seen: Set[type] = set()
        self._counters: Dict[type, Set[str]] = {}               # of classes that stay whole
        self._stored: Dict[type, Set[str]] = {}
        self._ran: Dict[types.CodeType, None] = {}
        self._before: List[Tuple[Any, Dict[str, Any]]] = []      # classes and members of enums, and their attributes

    def add(self, cls: type) -> None:
        """Take note of a class."""
        if cls in self._seen:
            return
        self._seen.add(cls)
        is_enum = isinstance(cls, enum.EnumMeta)
        owners = [base for base in cls.__mro__ if not is_library_class(base)]
        self._before += [(owner, dict(vars(owner))) for owner in [*owners, *(cls if is_enum else ())]]
        for base in owners:
            for name, value in vars(base).items():
                if name not in _NOTED and not (is_enum and name.startswith("_")) and _may_change(value):
                    self._held[name] = cls
        for member in cls if is_enum else ():
            for name, value in vars(member).items():
                if _may_change(value):
                    self._held["value" if name == "_value_" else name] = cls
        self._check()

    def assigned(self) -> Iterator[Tuple[Any, str, Any]]:
        """What code has assigned and deleted in these classes, unseen: the owner, the name and what was there, if anything."""
        for owner, before in self._before:
            now = vars(owner)
            for name in {**before, **now}:
                if now.get(name, ABSENT) is not before.get(name, ABSENT) and name not in BOOKKEEPING:
                    yield owner, name, before.get(name, ABSENT)

    def restore(self) -> None:
        """Put back what was assigned and deleted."""
        for owner, name, value in list(self.assigned()):
            setter = type if isinstance(owner, type) else object
            if value is ABSENT:
                setter.__delattr__(owner, name)
            else:
                setter.__setattr__(owner, name, value)

    def made(self, cls: type) -> None:
        """Take note of a class that is made during the capture: what it holds is known."""
        self._seen.add(cls)

    def stays_whole(self, cls: type) -> None:
        """Take note of a class whose methods run as Python in each run of the program."""
        if cls in self._counters:
            return
        own = _own_bases(cls)
        numbers = {name for base in own for name, value in vars(base).items() if type(value) in (int, float)}
        inherited = {name for base in cls.__mro__ if base not in own for name in vars(base)}
        self._counters[cls] = numbers & self.stored_by(cls) - inherited
        self._check()

    def stored_by(self, cls: type) -> Set[str]:
        """The attributes that the methods of a class assign, of whatever; not those that making an object does."""
        if cls not in self._stored:
            self._stored[cls] = {step.argval for method in _methods(cls) if method.__name__ not in ("__init__", "__new__")
                                 for code in _codes(method.__code__) for step in dis.get_instructions(code)
                                 if step.opname == "STORE_ATTR"}
        return self._stored[cls]

    def counters(self) -> Iterator[Tuple[type, Set[str]]]:
        """Of each class that stays whole, the numbers that its methods replace, but for those that converted code may read."""
        for cls, names in self._counters.items():
            yield cls, set() if self._named & _LOOKING else names - self._named

    def runs(self, code: types.CodeType) -> None:
        """Take note of the code of a function."""
        self._named.update(_names(code))
        self._ran[code] = None
        self._check()

    def _check(self) -> None:
        for name in self._held.keys() & self._named:
            self._capture.abort(f"attribute {name!r} of class {self._held[name].__name__} is read, which may change")
        for cls, names in self._counters.items():
            read = {name for code in self._ran for name in _reads(code, cls)} if names else names
            for name in names & read:
                self._capture.abort(f"attribute {name!r} of class {cls.__name__} is read, which its own methods change")


def _may_change(value: Any) -> bool:
    """Whether an attribute is, or a tuple that it is has in it, something that can be changed in place."""
    if isinstance(value, tuple):
        return any(map(_may_change, value))
    kind = type(value)
    is_of_user = not is_library_class(kind) and not isinstance(value, (type, enum.Enum)) and not hasattr(kind, "__get__")
    return isinstance(value, _CHANGEABLE) or is_of_user and not is_immutable(value)


def own_bases(cls: type) -> List[type]:
    """A class and its bases, but for those of libraries."""
    return [base for base in cls.__mro__ if not is_library_class(base)]


def _own_bases(cls: type) -> List[type]:
    """A class and its bases, but for those of libraries."""
    return [base for base in cls.__mro__ if not is_library_class(base)]


def _methods(cls: type) -> List[types.FunctionType]:
    found = [getattr(item, "__func__", item) for base in _own_bases(cls) for item in vars(base).values()]
    return [method for method in found if isinstance(method, types.FunctionType)]


def _reads(code: types.CodeType, cls: type) -> Iterator[str]:
    """The attributes that code may read of a class: all but those of another ``self``."""
    is_own = any(code is method.__code__ for method in _methods(cls))
    for inner in _codes(code):
        steps = list(dis.get_instructions(inner))
        for owner, step in zip(steps, steps[1:]):       # since Python 3.13, one step may load two names
            names = owner.argval if type(owner.argval) is tuple else (owner.argval,)
            if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and (is_own or names[-1:] != ("self",)):
                yield step.argval
        if "getattr" in inner.co_names:
            yield from (const for const in inner.co_consts if type(const) is str)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object, and those inside of it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


def _names(code: types.CodeType) -> Iterator[str]:
    """The attributes that code may read, as names or as texts for ``getattr``."""
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _names(const)
        elif type(const) is str:
            yield const

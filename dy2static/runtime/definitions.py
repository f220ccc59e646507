"""What a program relies on in classes, functions and names of libraries, and whether it still holds."""
from __future__ import annotations

import abc
import ctypes
import operator
import sys
import types
from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

_MISSING = object()

#: Where a class object of a 64-bit CPython has its version tag, in bytes.
TAG_OFFSET = 384

#: Py_TPFLAGS_HEAPTYPE: a class to which attributes can be assigned.
_HEAP = 1 << 9

#: Entries of a class that Python writes for itself.
BOOKKEEPING = frozenset((
    "__dict__", "__weakref__", "__annotations__", "__annotate__", "__annotate_func__",
    "__annotations_cache__", "__slotnames__", "__abstractmethods__", "_abc_impl", "__static_attributes__", "__firstlineno__",
    "__orig_bases__", "__parameters__", "__type_params__"))

#: What captures put in the place of functions of Chainer's for a while, for all threads, and what they found there.
REPLACED: Dict[types.FunctionType, Any] = {}

_Contents = Tuple[Tuple[type, Tuple[str, str], Dict[str, Any]], ...]


class Known(NamedTuple):
    """What `unchanged` compares: of the classes, their version tags; of functions, code and defaults; names in dicts.

    The native function reads the fields by their places.
    """

    classes: Tuple[type, ...]
    tags: List[int]
    views: Tuple[Any, ...]
    functions: Tuple[types.FunctionType, ...]
    codes: Tuple[types.CodeType, ...]
    defaults: Tuple[Optional[Tuple], ...]
    keyword_defaults: Tuple[Optional[Dict], ...]
    spaces: Tuple[Dict[str, Any], ...]
    keys: Tuple[str, ...]
    values: Tuple[Any, ...]
    token: List[Any]


class Definitions:
    """Classes, functions, names of modules and answers of ``issubclass`` that a program was captured from.

    A capture adds to it; the finished program asks `unchanged` with `known`, and `changed` only where that says no:

        if not unchanged(definitions.known) and definitions.changed(): ...

    CPython gives a class another version tag when an attribute of it or of one of its bases is assigned.  Equal tags
    therefore mean that nothing was assigned.  Where tags differ, `changed` compares what counts and keeps the new tags.
    """

    def __init__(self, ends: Tuple[type, ...] = ()):
        """ends: classes that are not looked at as bases of others, since they are added themselves."""
        self._ends = ends
        self._classes: Dict[type, Tuple[bool, _Contents]] = {}
        self._left_out: Dict[type, Collection[str]] = {}
        self._functions: Dict[types.FunctionType, Tuple[types.CodeType, Optional[Tuple], Optional[Dict]]] = {}
        self._names: Dict[Tuple[int, str], Tuple[str, Dict[str, Any], Any]] = {}
        self._answers: Dict[Tuple[type, type], bool] = {}
        self._known: Optional[Known] = None

    def add_class(self, cls: type, data: bool = False) -> None:
        """Rely on the methods, descriptors and special attributes of a class; with ``data``, on all its attributes."""
        known = self._classes.get(cls)
        if known is None or data and not known[0]:
            self._classes[cls] = data, self._contents(cls, data)

    def leave_out(self, cls: type, names: Collection[str]) -> None:
        """Do not rely on these attributes of a class."""
        if cls in self._classes and names:
            self._left_out[cls] = names

    def add_function(self, function: types.FunctionType) -> None:
        """Rely on the code and the defaults of a function, but not on what is in the dict of keyword defaults."""
        self._functions[function] = _parts_of(function)

    def add_name(self, module: types.ModuleType, name: str) -> None:
        """Rely on what a name of a module stands for."""
        self.add_entry(module.__name__, vars(module), name)

    def add_entry(self, owner: str, space: Dict[str, Any], name: str) -> None:
        """Rely on what a dict, of an owner of this name, holds under a name."""
        self._names[id(space), name] = owner, space, _entry(space, name)

    def add_answer(self, cls: type, base: type) -> bool:
        """Whether a class counts as a subclass of another one, which ``register`` can change: relied on from here on."""
        answer = issubclass(cls, base)
        if self._known is None:
            self._answers[cls, base] = answer
        return answer

    def __bool__(self) -> bool:
        return bool(self._classes or self._functions or self._names or self._answers)

    @property
    def known(self) -> Known:
        """What `unchanged` compares.  Nothing can be added afterwards."""
        if self._known is None:
            classes, functions, names = tuple(self._classes), tuple(self._functions), tuple(self._names.items())
            self._known = Known(
                classes, [_renewed_tag(cls) for cls in classes], tuple(map(_view_of, classes)),
                functions, *(zip(*self._functions.values()) if functions else ((), (), ())),
                tuple([space for _, (_, space, _) in names]), tuple([key for (_, key), _ in names]),
                tuple([value for _, (_, _, value) in names]), [abc.get_cache_token()] if self._answers else [])
        return self._known

    def changed(self) -> bool:
        """Whether anything that a program relies on has changed: of the classes, those whose version tags differ are compared."""
        known = self.known
        tags, token = list(map(_renewed_tag, known.classes)), abc.get_cache_token()
        touched = [cls for cls, tag, expected in zip(known.classes, tags, known.tags) if tag != expected or tag == _UNKNOWN]
        if next(self._differences(touched), None) is not None:
            return True
        known.tags[:] = tags                            # read before the comparison: what is assigned from then on is seen
        if self._answers:
            known.token[:] = [token]
        return False

    def difference(self) -> Optional[str]:
        """What differs, in words; None if nothing does."""
        return next(self._differences(self._classes), None)

    def _differences(self, classes: Iterable[type]) -> Iterator[str]:
        for (_, key), (owner, space, value) in self._names.items():
            if _entry(space, key) is not value:
                yield f"{owner}.{key} was replaced"
        for function, parts in self._functions.items():
            if any(map(operator.is_not, _parts_of(function), parts)):
                yield f"code or defaults of {function.__qualname__} were replaced"
        for cls in classes:
            yield from self._class_differences(cls)
        for (cls, base), answer in self._answers.items():
            if issubclass(cls, base) is not answer:
                yield f"class {cls.__name__} was registered with {base.__name__}"

    def _class_differences(self, cls: type) -> Iterator[str]:
        (data, before), left_out = self._classes[cls], self._left_out.get(cls, ())
        if self._bases(cls) != [base for base, _, _ in before]:
            yield f"the bases of class {cls.__name__} were replaced"
            return
        for base, names, known in before:
            if _names_of(base) != names:
                yield f"{names[0]}.__name__ was replaced"
            found = vars(base)
            for name, value in known.items():
                if found.get(name, _MISSING) is not value and _entry(found, name) is not value and name not in left_out:
                    yield f"{base.__name__}.{name} was replaced"
            for name, value in found.items():
                if name not in known and name not in left_out and _counts(name, value, data):
                    yield f"{base.__name__}.{name} was replaced"

    def _contents(self, cls: type, data: bool) -> _Contents:
        """The attributes that count, of the class and of each base, and their names."""
        return tuple([(base, _names_of(base), {name: _found(value) for name, value in vars(base).items()
                                               if _counts(name, value, data)}) for base in self._bases(cls)])

    def _bases(self, cls: type) -> List[type]:
        return [base for base in cls.__mro__ if (base is cls or base not in self._ends) and base.__flags__ & _HEAP]


def _found(value: Any) -> Any:
    """A value as it is when nothing is captured."""
    return REPLACED.get(value, value) if type(value) is types.FunctionType else value


def _entry(space: Mapping[str, Any], name: str) -> Any:
    return _found(space.get(name, _MISSING))


def _parts_of(function: types.FunctionType) -> Tuple[types.CodeType, Optional[Tuple], Optional[Dict]]:
    return function.__code__, function.__defaults__, function.__kwdefaults__


def _names_of(cls: type) -> Tuple[str, str]:
    return cls.__name__, cls.__qualname__


def _counts(name: str, value: Any, data: bool) -> bool:
    """Whether a class attribute is relied on: with ``data``, or where Python may run something for it.

    Other attributes are guarded where they are read.
    """
    return name not in BOOKKEEPING and (data or name.startswith("__") and name.endswith("__") or hasattr(type(value), "__get__"))


def unchanged(known: Known) -> bool:
    """Whether everything is as `Definitions.known` says.  False also where that cannot be told.

    The native function of this name gives the same answers.
    """
    parts = zip(known.codes, known.defaults, known.keyword_defaults)
    return ([view[0] for view in known.views] == known.tags
            and not any([any(map(operator.is_not, _parts_of(f), expected)) for f, expected in zip(known.functions, parts)])
            and all(map(operator.is_, map(dict.get, known.spaces, known.keys), known.values))
            and known.token in ([], [abc.get_cache_token()]))


def _tag_at(cls: type) -> Any:
    return ctypes.c_uint32.from_address(id(cls) + TAG_OFFSET)


def _tags_work() -> bool:
    """Whether version tags are where they are expected: that of a class goes when an attribute of its base is assigned."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    base = type("Base", (), {})
    cls = type("Derived", (base,), {})
    seen = []
    for name in ("one", "two"):
        hasattr(cls, name)                              # a look-up gives a tag to a class that has none
        seen.append(_tag_at(cls).value)
        setattr(base, name, None)
        seen.append(_tag_at(cls).value)
    return seen[1] == seen[3] == 0 and 0 < seen[0] < seen[2]


#: Without version tags, each call compares what counts.
_HAS_TAGS = _tags_work()
_UNKNOWN = -1


def _view_of(cls: type) -> Any:
    """A sequence whose only item is the current version tag of a class."""
    return memoryview(_tag_at(cls)).cast("B").cast("I") if _HAS_TAGS else (0,)


def _renewed_tag(cls: type) -> int:
    """The version tag of a class; `_UNKNOWN` if it has none."""
    try:
        type.__getattribute__(cls, "_dy2static_no_attribute")       # a look-up gives a tag to a class that has none
    except AttributeError:
        pass
    return _view_of(cls)[0] or _UNKNOWN

"""Paths to the values that programs read: those of arguments as they are, all others from the objects of the saved model.

A path is a row ``[the row it goes on from, step, key]`` of one table; the first step is ``argument``, ``keyword`` or ``object``.
"""
from __future__ import annotations

import types
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import chainer
import numpy as np

from ..errors import LoadError, SaveError
from ..world.slots import SlotsView
from ..world.sources import Source, Sources
from .notation import need, value_in, value_out
from .state import ObjectsOut, is_plain_object, own_attributes

#: What may go into a saved model.
ARGUMENTS = "the arguments of a saved model are arrays, Variables, numbers, texts, and lists, tuples and dicts of them"

#: Where in a loaded layer the objects are that are no part of it: those of closures, globals, classes.
OUTSIDE = "_outside"

_STEPS = frozenset(("dict", "item", "cell", "attr", "len", "keys"))
_STEPS_OF_ARGUMENTS = frozenset(("item", "attr", "len", "keys"))

#: What the hooks of a Link are called in a file, where they are no hooks any more, but state of the programs.
HOOKS = "_hooks"

#: Attributes that are read of Variables and arrays, which are described as wholes.
_OF_VARIABLES = frozenset(("array", "creator_node"))

#: Attributes of loaded layers that are not the model's.
_OF_LAYERS = frozenset(("function", "mode", OUTSIDE))

#: Of `PathsOut.found`.
NOTHING: Any = object()

#: Attributes of functions and methods that programs read from the objects in their place.
_OF_FUNCTIONS = frozenset(("__defaults__", "__kwdefaults__", "__closure__", "__self__", "__func__", "__wrapped__"))


class PathsOut:
    """Writes the paths of the programs of one function.

    instance: what its first argument is, where it is a method; None for a function.  Arguments are counted from 1: 0 is the layer.
    """

    def __init__(self, objects: ObjectsOut, instance: Any):
        self.objects, self.instance = objects, instance
        self.rows: Dict[Tuple, int] = {}

    def said(self) -> List[Any]:
        """The table."""
        return [list(row) for row in self.rows]

    def is_given(self, source: Optional[Source]) -> bool:
        """Whether the path goes from an argument of the caller's."""
        while source is not None and source.parent is not None:
            source = source.parent
        return source is not None and source.kind in ("arg", "kwarg") and not self._is_instance(source)

    def _is_instance(self, source: Source) -> bool:
        return self.instance is not None and source.kind == "arg" and source.key == 0

    def real(self, source: Source) -> Any:
        """What is at the end of a path that does not go from an argument.  Raises `SaveError` where there is nothing."""
        try:
            return self._real(source)
        except (KeyError, IndexError, AttributeError, TypeError, ValueError):
            raise SaveError(f"{source.describe()} is not there any more") from None

    def _real(self, source: Source) -> Any:
        if source.kind == "const":
            return source.key
        if source.kind == "arg":
            return self.instance
        parent = self._real(source.parent)
        if source.kind == "item":
            return parent[source.key]
        if source.kind in ("dict", "slots"):
            return parent.__dict__ if source.kind == "dict" else SlotsView(parent)
        if source.kind in ("attr", "cell"):
            return getattr(parent, source.key if source.kind == "attr" else "cell_contents")
        return {"class": lambda: getattr(type(parent), source.key), "len": lambda: len(parent), "keys": lambda: tuple(parent)
                }[source.kind]()

    def found(self, source: Source) -> Any:
        """What is at the end of a path, if anything is."""
        try:
            return self._real(source)
        except (KeyError, IndexError, AttributeError, TypeError, ValueError):
            return NOTHING

    def row(self, source: Source) -> int:
        """The number of a path; what it goes through is described on the way."""
        if self.is_given(source):
            return self._given(source)
        real = self.found(source)
        if source.parent is None or self._is_outside(source):
            return self._add(None, "object", self.objects.number(real, _name(source)))
        if source.kind == "class":
            return self._of_class(source, self.real(source))
        parent, step = source.parent, source.kind
        row = self.row(parent)
        owner = self.found(parent)
        if owner is NOTHING or real is NOTHING:
            return self._add(row, "dict" if step == "slots" else step, source.key)      # in another state it is there
        if step == "item" and parent.kind in ("dict", "slots"):
            return self._add(row, step, self._describe_attribute(self._real(parent.parent), source.key, real, parent.parent))
        if step == "item" and not self._is_native(parent):
            self.objects.set_item(owner, source.key, real, _name(parent))
        elif step in ("attr", "cell") and is_plain_object(owner):
            self.objects.set_attribute(owner, source.key if step == "attr" else "cell_contents", real, _name(parent))
        elif step == "attr" and source.key not in _OF_VARIABLES:
            raise SaveError(f"{source.describe()} cannot be saved")
        return self._add(row, "dict" if step == "slots" else step, source.key)

    def _describe_attribute(self, owner: Any, key: str, item: Any, source: Source) -> str:
        """Let an object have an attribute, and give the name that it has in the file."""
        if isinstance(owner, chainer.Link):
            registered = key in owner._params or key in owner._persistent or isinstance(item, chainer.Link) and \
                any(child is item for child in owner.children())
            if registered or key in own_attributes(owner):
                return key
            key = HOOKS if key == "_local_link_hooks" else key      # what they do is in the graphs: nobody is to call them
        self.objects.set_attribute(owner, key, item, _name(source))
        return key

    def _is_outside(self, source: Source) -> bool:
        """Whether the path is to an object beside a layer that was loaded: ``layer.__dict__[OUTSIDE][k]``."""
        held = source.parent
        return source.kind == "item" and held is not None and held.kind == "item" and held.key == OUTSIDE and \
            held.parent.kind == "dict" and self._is_instance(held.parent.parent)

    def is_fact(self, source: Source) -> bool:
        """Whether the path is to what nobody changes: an attribute that every Link has, or one of a function."""
        if source.kind == "attr":
            return isinstance(self.found(source.parent), types.FunctionType)
        if source.kind != "item" or source.parent.kind != "dict":
            return False
        owner = self.found(source.parent.parent)
        return isinstance(owner, chainer.Link) and source.key in own_attributes(owner)

    def _is_native(self, source: Source) -> bool:
        """Whether a container is one that every Link has."""
        return source.kind == "item" and self.is_fact(source)

    def _of_class(self, source: Source, real: Any) -> int:
        """An attribute of a class: an object of its own that has it."""
        cls = type(self._real(source.parent))
        self.objects.set_attribute(cls, source.key, real, cls.__name__)
        return self._add(self._add(None, "object", self.objects.number(cls, cls.__name__)), "attr", source.key)

    def _given(self, source: Source) -> int:
        if source.parent is None:
            place = source.key + (self.instance is None) if source.kind == "arg" else source.key
            return self._add(None, {"arg": "argument", "kwarg": "keyword"}[source.kind], place)
        if source.kind not in ("item", "len", "keys") and not (source.kind == "attr" and source.key in _OF_VARIABLES):
            raise SaveError(f"{source.describe()}: {ARGUMENTS}")
        return self._add(self._given(source.parent), source.kind, source.key)

    def _add(self, parent: Optional[int], step: str, key: Any) -> int:
        if not (key is None or type(key) in (bool, int, str, float)):
            key = value_out(key, self.objects.arrays)
            key = {"value": key}
        return self.rows.setdefault((parent, step, key if not isinstance(key, dict) else _Key(key)), len(self.rows))


class _Key(dict):
    """A key that is no JSON atom, hashable."""

    def __hash__(self) -> int:                          # type: ignore[override]
        return hash(repr(self))


def _name(source: Source) -> str:
    """What an array at the end of a path is called in the file: ``l1.W``; of the model itself, nothing."""
    words: List[str] = []
    step: Optional[Source] = source
    while step is not None:
        if step.kind in ("item", "attr", "class") and not (step.kind == "attr" and step.key in _OF_VARIABLES):
            words.append("".join(c if c.isalnum() or c in "_.-" else "_" for c in str(step.key)))
        step = step.parent
    return ".".join(reversed(words))


def paths_in(said: Sequence[Any], arrays: Mapping[str, np.ndarray], root: Optional[int], outside: Sequence[int]
             ) -> Tuple[Source, List[Source]]:
    """The path of the layer, and the paths of a table.

    root: the number of the object that the layer is.  outside: those of the objects in `OUTSIDE`.  Raises `LoadError`.
    """
    sources = Sources()
    layer = sources.get("arg", None, 0)
    held = sources.get("item", sources.get("dict", layer), OUTSIDE)
    places = {number: k for k, number in enumerate(outside)}
    found: List[Source] = []
    for item in said:
        if type(item) is not list or len(item) != 3:
            raise LoadError(f"{str(item)[:80]} is not a step of a path")
        parent, step, key = item
        if type(key) is dict:
            key = value_in(key.get("value"), arrays)
        try:
            hash(key)
        except TypeError:
            raise LoadError(f"{str(key)[:80]} is not a key") from None
        if parent is None:
            found.append(_start(sources, layer, held, step, key, root, places))
        elif type(parent) is int and 0 <= parent < len(found) and type(step) is str and step in _STEPS:
            found.append(_further(sources, layer, found[parent], step, key))
        else:
            raise LoadError(f"{str(item)[:80]} is not a step of a path")
    return layer, found


def _further(sources: Sources, layer: Source, parent: Source, step: str, key: Any) -> Source:
    """A path that goes on from another one, to nothing but what files hold and callers give: no attribute of a class."""
    root = parent
    while root.parent is not None:
        root = root.parent
    if root is not layer and step not in _STEPS_OF_ARGUMENTS:
        raise LoadError(f"{str(step)[:40]} is no step from an argument")
    if parent.kind == "dict" and not (type(key) is str and key.isidentifier() and (key[:2] != "__" or key in _OF_FUNCTIONS)) \
            or parent.kind == "dict" and parent.parent is layer and key in _OF_LAYERS:
        raise LoadError(f"{str(key)[:80]} is not an attribute")
    if step != "attr" or type(key) is str and key in _OF_VARIABLES:
        return sources.get(step, parent, key)
    if root is not layer:
        raise LoadError(f"{str(key)[:80]} is not an attribute of an argument")
    return _further(sources, layer, sources.get("dict", parent), "item", key)       # all that a `State` has


def _start(sources: Sources, layer: Source, held: Source, step: Any, key: Any, root: Optional[int],
           places: Mapping[int, int]) -> Source:
    if step == "argument" and type(key) is int and key > 0:
        return sources.get("arg", None, key)
    if step == "keyword" and type(key) is str:
        return sources.get("kwarg", None, key)
    if step == "object" and type(key) is int and (key == root or key in places):
        return layer if key == root else sources.get("item", held, places[key])
    raise LoadError(f"a path begins with {str(step)[:40]} {str(key)[:40]}")


def path_at(said: Any, paths: Sequence[Source]) -> Source:
    """The path of this number.  Raises `LoadError`."""
    if not 0 <= need(said, int, "the number of a path") < len(paths):
        raise LoadError(f"there is no path {said}")
    return paths[said]

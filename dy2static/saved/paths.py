"""Paths to the values that programs read: those of arguments as they are, all others from the objects of the saved model.

A path is a row ``[the row it goes on from, step, key]`` of one table; the first step is ``argument``, ``keyword`` or ``object``.
"""
from __future__ import annotations

import types
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Type

import chainer
import numpy as np

from ..errors import LoadError, SaveError
from ..record.documents import need
from ..record.paths import (
    SAVED_STEPS,
    Argument,
    ArrayOfList,
    ArrayOfSize,
    Attribute,
    CellContents,
    ClassNamespace,
    InstanceDict,
    Item,
    Keyword,
    Length,
    Namespace,
    Source,
    Sources,
    follow,
)
from ..runtime.list_arrays import DTYPES
from .notation import value_in, value_out
from .state import ObjectsOut, is_plain_object, own_attributes

#: What may go into a saved model.
ARGUMENTS = "the arguments of a saved model are arrays, Variables, numbers, texts, and lists, tuples and dicts of them"

#: Where in a loaded layer the objects are that are no part of it: those of closures, globals, classes.
OUTSIDE = "_outside"

#: Steps behind an argument of the caller's.
_OF_ARGUMENTS = (Item, Attribute, Length, ArrayOfList, ArrayOfSize)

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
        root = None if source is None else source.root
        return isinstance(root, (Argument, Keyword)) and not self._is_instance(root)

    def _is_instance(self, source: Source) -> bool:
        return self.instance is not None and isinstance(source, Argument) and source.key == 0

    def found(self, source: Source) -> Any:
        """What is at the end of a path, if anything is."""
        try:
            return follow(source, lambda root: self.instance)
        except (KeyError, IndexError, AttributeError, TypeError, ValueError):
            return NOTHING

    def row(self, source: Source) -> int:
        """The number of a path; what it goes through is described on the way."""
        if self.is_given(source):
            return self._given(source)
        real = self.found(source)
        if source.parent is None or self._is_outside(source):
            return self._add(None, "object", self.objects.number(real, name_of_path(source)))
        if not source.saved:
            what = "attributes of " * isinstance(source, ClassNamespace) + source.describe()
            raise SaveError(f"{what} cannot be saved", hint="keep what changes in the model")
        parent, row = source.parent, self.row(source.parent)
        owner, key = self.found(parent), source.key
        if owner is NOTHING or real is NOTHING:
            pass                                        # in another state it is there
        elif isinstance(source, Item) and isinstance(parent, Namespace):
            key = self._describe_attribute(self.found(parent.parent), key, real, parent.parent)
        elif isinstance(source, Item) and not self._is_native(parent):
            self.objects.set_item(owner, key, real, name_of_path(parent))
        elif isinstance(source, (Attribute, CellContents)) and is_plain_object(owner):
            self.objects.set_attribute(owner, key if isinstance(source, Attribute) else "cell_contents", real, name_of_path(parent))
        elif isinstance(source, Attribute) and key not in _OF_VARIABLES:
            raise SaveError(f"{source.describe()} cannot be saved")
        return self._add(row, source.saved, key)

    def _describe_attribute(self, owner: Any, key: str, item: Any, source: Source) -> str:
        """Let an object have an attribute, and give the name that it has in the file."""
        if isinstance(owner, chainer.Link):
            registered = key in owner._params or key in owner._persistent or isinstance(item, chainer.Link) and \
                any(child is item for child in owner.children())
            if registered or key in own_attributes(owner):
                return key
            key = HOOKS if key == "_local_link_hooks" else key      # what they do is in the graphs: they must not be called
        self.objects.set_attribute(owner, key, item, name_of_path(source))
        return key

    def _is_outside(self, source: Source) -> bool:
        """Whether the path is to an object beside a layer that was loaded: ``layer.__dict__[OUTSIDE][k]``."""
        held = source.parent
        return isinstance(source, Item) and isinstance(held, Item) and held.key == OUTSIDE and \
            isinstance(held.parent, InstanceDict) and self._is_instance(held.parent.parent)

    def is_unchanging(self, source: Source) -> bool:
        """Whether the path leads to what never changes: an attribute that every Link has, or one of a function."""
        if isinstance(source, Attribute):
            return isinstance(self.found(source.parent), types.FunctionType)
        if not isinstance(source, Item) or not isinstance(source.parent, InstanceDict):
            return False
        owner = self.found(source.parent.parent)
        return isinstance(owner, chainer.Link) and source.key in own_attributes(owner)

    def _is_native(self, source: Source) -> bool:
        """Whether a container is one that every Link has."""
        return isinstance(source, Item) and self.is_unchanging(source)

    def _given(self, source: Source) -> int:
        if source.parent is None:
            place = source.key + (self.instance is None) if isinstance(source, Argument) else source.key
            return self._add(None, source.saved, place)
        if not isinstance(source, _OF_ARGUMENTS) or isinstance(source, Attribute) and source.key not in _OF_VARIABLES:
            raise SaveError(f"{source.describe()}: {ARGUMENTS}")
        return self._add(self._given(source.parent), source.saved, source.key)

    def _add(self, parent: Optional[int], step: str, key: Any) -> int:
        if not (key is None or type(key) in (bool, int, str, float)):
            key = value_out(key, self.objects.arrays)
            key = {"value": key}
        return self.rows.setdefault((parent, step, key if not isinstance(key, dict) else _Key(key)), len(self.rows))


class _Key(dict):
    """A key that is no JSON atom, hashable."""

    def __hash__(self) -> int:                          # type: ignore[override]
        return hash(repr(self))


def name_of_path(source: Source) -> str:
    """What an array at the end of a path is called in the file: ``l1.W``; of the model itself, nothing."""
    words: List[str] = []
    step: Optional[Source] = source
    while step is not None:
        if isinstance(step, Item) or isinstance(step, Attribute) and step.key not in _OF_VARIABLES:
            words.append("".join(c if c.isalnum() or c in "_.-" else "_" for c in str(step.key)))
        step = step.parent
    return ".".join(reversed(words))


def paths_in(said: Sequence[Any], arrays: Mapping[str, np.ndarray], root: Optional[int], outside: Sequence[int]
             ) -> Tuple[Source, List[Source]]:
    """The path of the layer, and the paths of a table.

    root: the number of the object that the layer is.  outside: those of the objects in `OUTSIDE`.  Raises `LoadError`.
    """
    sources = Sources()
    layer = sources.get(Argument, None, 0)
    held = sources.get(Item, sources.get(InstanceDict, layer), OUTSIDE)
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
        elif type(parent) is int and 0 <= parent < len(found) and type(step) is str and step in SAVED_STEPS:
            found.append(_further(sources, layer, found[parent], SAVED_STEPS[step], key))
        else:
            raise LoadError(f"{str(item)[:80]} is not a step of a path")
    return layer, found


def _further(sources: Sources, layer: Source, parent: Source, step: Type[Source], key: Any) -> Source:
    """A path that goes on from another one, to nothing but what files hold and callers give: no attribute of a class."""
    is_state = parent.root is layer
    if not is_state and step not in _OF_ARGUMENTS:
        raise LoadError(f"{step.word} is no step from an argument")
    if step is ArrayOfList and key not in DTYPES:
        raise LoadError(f"{str(key)[:80]} is no dtype of an array of a list")
    if isinstance(parent, InstanceDict) and (
            not (type(key) is str and key.isidentifier() and (key[:2] != "__" or key in _OF_FUNCTIONS))
            or parent.parent is layer and key in _OF_LAYERS):
        raise LoadError(f"{str(key)[:80]} is not an attribute")
    if step is not Attribute or type(key) is str and key in _OF_VARIABLES:
        return sources.get(step, parent, key)
    if not is_state:
        raise LoadError(f"{str(key)[:80]} is not an attribute of an argument")
    return _further(sources, layer, sources.get(InstanceDict, parent), Item, key)       # all that a `State` has


def _start(sources: Sources, layer: Source, held: Source, step: Any, key: Any, root: Optional[int],
           places: Mapping[int, int]) -> Source:
    if step == "argument" and type(key) is int and key > 0:
        return sources.get(Argument, None, key)
    if step == "keyword" and type(key) is str:
        return sources.get(Keyword, None, key)
    if step == "object" and type(key) is int and (key == root or key in places):
        return layer if key == root else sources.get(Item, held, places[key])
    raise LoadError(f"a path begins with {str(step)[:40]} {str(key)[:40]}")


def path_at(said: Any, paths: Sequence[Source]) -> Source:
    """The path of this number.  Raises `LoadError`."""
    if not 0 <= need(said, int, "the number of a path") < len(paths):
        raise LoadError(f"there is no path {said}")
    return paths[said]

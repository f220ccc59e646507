"""What the programs of a saved model work on: the Links and other objects they reach, as descriptions, and made again.

Only what is reached is written: of a Link its parameters, persistent values and children; of any object the attributes that
programs read; of lists, tuples and dicts all items that can be.  What is made again has the same paths: a Link is a Link, any
other object a `State`.  No class of the user's is needed, and none is looked for.
"""
from __future__ import annotations

import collections
import types
from typing import Any, Dict, List, Mapping, Optional, Sequence

import chainer
import numpy as np

from ..errors import LoadError, SaveError
from ..record.documents import entry, need, pair_of
from .notation import ArraysOut, value_in, value_out

#: Values that have no identity to keep.
ATOMS = (type(None), bool, int, float, str, np.generic, np.dtype, type(Ellipsis), slice, type(chainer.mixed16))
_CONTAINERS: Dict[str, Any] = {"list": list, "tuple": tuple, "dict": dict, "set": set, "deque": collections.deque,
                              "ordered dict": collections.OrderedDict}
_VARIABLES = {"variable": chainer.Variable, "parameter": chainer.Parameter}


class State:
    """An object of a saved model that is neither a Link nor a container: its attributes."""


def own_attributes(link: chainer.Link) -> frozenset:
    """The attributes that every Link of this kind has: made by Chainer, not saved."""
    return _OWN[next(kind for kind in (chainer.ChainList, chainer.Chain, chainer.Link) if isinstance(link, kind))]


_OWN = {kind: frozenset(vars(kind())) for kind in (chainer.Link, chainer.Chain, chainer.ChainList)}


def is_atom(item: Any) -> bool:
    """Whether a value is written where it stands, and not as an object."""
    return isinstance(item, ATOMS)


class ObjectsOut:
    """Describes objects; each has one number, by its identity."""

    def __init__(self, arrays: ArraysOut):
        self.arrays = arrays
        self.described: List[Dict[str, Any]] = []
        self._numbers: Dict[int, int] = {}
        self._kept: List[Any] = []                      # alive, so that no other object has the same id

    def number(self, item: Any, name: str) -> int:
        """The number of an object, which is described if it has not been.  name: of the arrays in it."""
        if id(item) not in self._numbers:
            self._numbers[id(item)] = len(self.described)
            self._kept.append(item)
            self.described.append({})
            self.described[self._numbers[id(item)]].update(self._described(item, name))
        return self._numbers[id(item)]

    def reference(self, item: Any, name: str) -> Any:
        """An atom, or the number of an object."""
        if not isinstance(item, ATOMS):
            return {"object": self.number(item, name)}
        if isinstance(item, str) and type(item) is not str or isinstance(item, int) and type(item) not in (int, bool):
            raise SaveError(f"{name} is of type {type(item).__name__}, which cannot be saved")
        return value_out(item, self.arrays)

    def set_attribute(self, owner: Any, key: str, item: Any, name: str) -> None:
        """Let the description of an object have this attribute."""
        attributes = self.described[self.number(owner, name)]["attributes"]
        if key not in attributes:
            attributes[key] = self.reference(item, f"{name}.{key}" if name else key)

    def set_item(self, owner: Any, key: Any, item: Any, name: str) -> None:
        """Let the description of a list, tuple or dict have this item."""
        items = self.described[self.number(owner, name)]["items"]
        if isinstance(owner, dict):
            written = value_out(key, self.arrays)
            pair = next((pair for pair in items if pair[0] == written and type(pair[0]) is type(written)), None)
            if pair is None:
                items.append([written, self.reference(item, f"{name}.{key}")])
            elif pair[1] is None:
                pair[1] = self.reference(item, f"{name}.{key}")
        elif items[key] is None:
            items[key] = self.reference(item, f"{name}.{key}")

    def _described(self, item: Any, name: str) -> Dict[str, Any]:
        if isinstance(item, chainer.Variable):
            return self._variable(item, name)
        if isinstance(item, np.ndarray):
            return {"kind": "array", "array": self.arrays.add(item, name)}
        if isinstance(item, chainer.Link):
            return self._link(item, name)
        kind = next((kind for kind, cls in _CONTAINERS.items() if type(item) is cls), None)
        if kind == "set":
            return {"kind": kind, "items": [value_out(part, self.arrays) for part in item]}
        if kind == "deque":
            return {"kind": kind, "items": [self.reference(part, f"{name}.{k}") for k, part in enumerate(item)],
                    "maxlen": item.maxlen}
        if kind in ("dict", "ordered dict"):
            items = {} if "__builtins__" in item else item          # of globals what programs read only
            return {"kind": kind, "items": [[value_out(key, self.arrays), self._if_possible(part, f"{name}.{key}")]
                                            for key, part in items.items() if is_atom(key)]}
        if kind is not None:
            return {"kind": kind, "items": [self._if_possible(part, f"{name}.{k}") for k, part in enumerate(item)]}
        return {"kind": "object", "attributes": {}}

    def _if_possible(self, item: Any, name: str) -> Any:
        """An item of a container that programs reach: None in the place of one that no file can hold."""
        holds = (*ATOMS, chainer.Variable, chainer.Link, np.ndarray, *_CONTAINERS.values())
        try:
            return self.reference(item, name) if isinstance(item, holds) else None
        except SaveError:
            return None

    def _variable(self, item: chainer.Variable, name: str) -> Dict[str, Any]:
        kind = next((kind for kind, cls in _VARIABLES.items() if type(item) is cls), None)
        if kind is None:
            raise SaveError(f"{name} is a Variable of type {type(item).__name__}, which cannot be saved")
        if item.array is not None and type(item.array) is not np.ndarray:
            raise SaveError(f"{name} is not on the CPU", hint="call to_cpu() first")
        array = None if item.array is None else self.arrays.add(item.array, name)
        return {"kind": kind, "array": array, "requires_grad": item.requires_grad, "name": item.name}

    def _link(self, item: chainer.Link, name: str) -> Dict[str, Any]:
        prefix = f"{name}." if name else ""
        described: Dict[str, Any] = {"kind": "list of links" if isinstance(item, chainer.ChainList) else "link"}
        described["parameters"] = {key: self.number(item.__dict__[key], f"{prefix}{key}") for key in sorted(item._params)}
        described["persistent"] = {key: self.reference(item.__dict__[key], f"{prefix}{key}") for key in sorted(item._persistent)}
        children = [(child.name, child) for child in item.children()]
        described["children"] = [[key, self.number(child, f"{prefix}{key}")] for key, child in children]
        return {**described, "name": item.name, "attributes": {}}


class ObjectsIn:
    """Makes the objects that `ObjectsOut` described.  Raises `LoadError` for an invalid description."""

    def __init__(self, described: Sequence[Any], arrays: Mapping[str, np.ndarray], root: Optional[int], make_root: Any):
        self.described, self.arrays = described, arrays
        self.made: List[Any] = [None] * len(described)
        self._open: List[bool] = [False] * len(described)
        self._root, self._make_root = root, make_root
        for number in range(len(described)):
            self._make(number)
        for number in range(len(described)):
            self._fill(number)

    def _make(self, number: int) -> Any:
        """The object of this number: a tuple with its items, anything else empty."""
        if self.made[number] is None:
            said = self.described[number]
            kind = entry(said, "kind", str, "an object")
            if kind == "tuple":
                if self._open[number]:
                    raise LoadError("a tuple contains itself")
                self._open[number] = True
                self.made[number] = tuple([self.reference(part) for part in entry(said, "items", list, kind)])
            else:
                self.made[number] = self._empty(number, kind, said)
        return self.made[number]

    def _empty(self, number: int, kind: str, said: Dict[str, Any]) -> Any:
        if kind in _VARIABLES:
            return self._variable(kind, said)
        if kind == "array":
            return self._array(said.get("array"))
        if kind in ("link", "list of links"):
            base = chainer.ChainList if kind == "list of links" else chainer.Chain
            return self._make_root(base) if number == self._root else base()
        if kind == "object":
            return State()
        if kind == "deque":
            maxlen = said.get("maxlen")
            return collections.deque(maxlen=maxlen if maxlen is None else need(maxlen, int, "the length of a deque"))
        if kind in _CONTAINERS:
            return _CONTAINERS[kind]()
        raise LoadError(f"there are no objects of the kind {kind[:60]!r}")

    def _array(self, name: Any) -> np.ndarray:
        if type(name) is not str or name not in self.arrays:
            raise LoadError(f"there is no array {str(name)[:60]!r}")
        return self.arrays[name]

    def _variable(self, kind: str, said: Dict[str, Any]) -> chainer.Variable:
        array = None if said.get("array") is None else self._array(said["array"])
        name = said.get("name")
        requires_grad = entry(said, "requires_grad", bool, kind)
        if name is not None:
            need(name, str, "the name of a Variable")
        if kind == "variable":
            return chainer.Variable(array, name=name, requires_grad=requires_grad)
        made = chainer.Parameter(array, name=name)
        made._requires_grad = made._node._requires_grad = requires_grad
        return made

    def reference(self, said: Any) -> Any:
        """What `ObjectsOut.reference` wrote."""
        if type(said) is dict and "object" in said:
            number = said["object"]
            if type(number) is not int or not 0 <= number < len(self.described):
                raise LoadError(f"there is no object {str(number)[:60]}")
            return self._make(number)
        return value_in(said, self.arrays)

    def _fill(self, number: int) -> None:
        said, made = self.described[number], self.made[number]
        if isinstance(made, chainer.Link):
            self._fill_link(said, made)
        if isinstance(made, (list, collections.deque)):
            made.extend([self.reference(part) for part in entry(said, "items", list, "a list")])
        elif isinstance(made, set):
            made.update(value_in(entry(said, "items", list, "a set"), self.arrays))
        elif isinstance(made, dict):
            for pair in entry(said, "items", list, "a dict"):
                key, part = pair_of(pair)
                made[value_in(key, self.arrays)] = self.reference(part)
        elif isinstance(made, (chainer.Link, State)):
            for key, part in entry(said, "attributes", dict, "an object").items():
                if isinstance(made, chainer.Link) and (key in own_attributes(made) or key in made.__dict__):
                    raise LoadError(f"the file sets {key[:60]!r} of a Link")
                made.__dict__[key] = self.reference(part)

    def _fill_link(self, said: Dict[str, Any], made: chainer.Link) -> None:
        made.name = None if said.get("name") is None else need(said["name"], str, "the name of a Link")
        with made.init_scope():
            for key, number in entry(said, "parameters", dict, "a Link").items():
                self._check_new(made, key)
                setattr(made, key, _need_kind(self.reference({"object": number}), chainer.Parameter, "a parameter"))
        for key, part in entry(said, "persistent", dict, "a Link").items():
            self._check_new(made, key)
            made.add_persistent(key, self.reference(part))
        for pair in entry(said, "children", list, "a Link"):
            key, number = pair_of(pair)
            child = _need_kind(self.reference({"object": number}), chainer.Link, "a child")
            if isinstance(made, chainer.ChainList):
                made.append(child)
            else:
                self._check_new(made, need(key, str, "the name of a child"))
                with made.init_scope():
                    setattr(made, key, child)

    def _check_new(self, made: chainer.Link, key: str) -> None:
        """A name of a parameter or child: no attribute that any Link has, which methods of Chainer's rely on."""
        if hasattr(type(made), key) or key in made.__dict__:
            raise LoadError(f"the file sets {key[:60]!r} of a Link")


def _need_kind(item: Any, kind: type, what: str) -> Any:
    if not isinstance(item, kind):
        raise LoadError(f"{what} of a Link is {type(item).__name__}")
    return item


#: Types of the user's arguments that a saved model can tell apart, by the names that files have for them.
TYPES: Dict[str, type] = {
    **{cls.__name__: cls for cls in (bool, int, float, str, type(None), tuple, list, dict, set, frozenset, range, slice, np.ndarray,
                                     chainer.Variable, chainer.Parameter, collections.deque, collections.OrderedDict)},
    **{f"numpy.{code.__name__}": code for code in {np.dtype(c).type for c in "?bBhHiIlLqQefd"}}}


def type_name(cls: type) -> Optional[str]:
    """The name of a type that files know; None for any other."""
    return next((name for name, known in TYPES.items() if known is cls), None)


def is_plain_object(item: Any) -> bool:
    """Whether attributes of an object are written as those of a `State`: no Link, container, Variable or array."""
    return not isinstance(item, (chainer.Link, chainer.Variable, np.ndarray, *_CONTAINERS.values(), *ATOMS)) or \
        isinstance(item, (types.FunctionType, types.ModuleType, type))

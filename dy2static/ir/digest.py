"""Exact forms of graphs: equal for graphs of which the same code is made, in this process or another.

A form is of tuples, texts, numbers and bytes only, so that `digest` can hash it.  What has no exact form raises `NoForm`: an
object that this module does not know is never taken for equal to another one.
"""
from __future__ import annotations

import dataclasses
import functools
import hashlib
import marshal
import sys
import types
from typing import Any, Callable, Dict, List, Mapping, Tuple

import numpy as np

from ..errors import Location
from .dims import Dim
from .graph import Graph, Node, Value
from .op import OPS, OpDef
from .types import Tensor

#: Packages whose functions and classes are the same in all processes that have the same versions of them.
LIBRARIES = frozenset({"builtins", "operator", "_operator", "math", "numpy", "scipy", "chainer", "dy2static"})

_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes})
_FUNCTIONS = (type, types.FunctionType, types.BuiltinFunctionType, type(np.sum))


class NoForm(Exception):
    """An object has no exact form."""


def digest(form: Any) -> str:
    """The hash of a form, in hexadecimal digits."""
    # the second version of marshal writes each object in full: what else refers to it makes no difference
    return hashlib.blake2b(marshal.dumps(form, 2), digest_size=20).hexdigest()


def named(found: Any) -> Tuple[str, str]:
    """The module and the name of a function or class of a library.  Raises `NoForm` for any other, and if it has been replaced."""
    module, name = getattr(found, "__module__", None), getattr(found, "__qualname__", None)
    if isinstance(found, np.ufunc):
        module = next((each for each in ("numpy", "scipy.special")
                       if getattr(sys.modules.get(each), found.__name__, None) is found), None)
        name = found.__name__
    if type(module) is not str or type(name) is not str or module.partition(".")[0] not in LIBRARIES:
        raise NoForm(f"{found!r} is not of a library")
    owner: Any = sys.modules.get(module)
    for part in name.split("."):
        owner = getattr(owner, part, None)
    if owner is not found:
        raise NoForm(f"{module}.{name} is not {found!r}")
    return module, name


class Forms:
    """Gives the forms of the objects of one record; an object that is compared by its identity has a number."""

    def __init__(self, ops: Mapping[str, OpDef] = OPS) -> None:
        self._ops = ops
        self._numbers: Dict[int, int] = {}
        self._types: Dict[int, Any] = {}
        self._names: Dict[int, Tuple[str, str]] = {}
        self._kept: List[Any] = []                  # so that nothing else gets their ids

    def number(self, item: Any) -> int:
        """The number of an object, in the order in which they have been met."""
        found = self._numbers.get(id(item))
        if found is None:
            found = self._numbers[id(item)] = len(self._numbers)
            self._kept.append(item)
        return found

    def of(self, item: Any) -> Any:
        """The form of an object.  Raises `NoForm`."""
        kind = type(item)
        if kind in _PLAIN:
            return item
        rule = _RULES.get(kind)
        if rule is not None:
            return rule(self, item)
        if isinstance(item, _FUNCTIONS) or isinstance(item, np.ufunc):
            return self._function(item)
        if isinstance(item, np.dtype):
            return _dtype(item)
        if isinstance(item, np.generic):
            return "number", _dtype(item.dtype), item.tobytes()
        if isinstance(item, tuple):
            return kind.__name__, self._named(kind), tuple([self.of(part) for part in item])
        return self._object(item)

    def graph(self, graph: Graph) -> Any:
        """The form of a graph."""
        inputs = tuple([self._made(value) for value in graph.inputs])
        nodes = tuple([self._node(node) for node in graph.nodes])
        return "graph", graph.name, inputs, nodes, tuple([self.number(value) for value in graph.outputs])

    def _made(self, value: Value) -> Any:
        return self.number(value), self._type(value.type), value.name

    def _type(self, type_: Any) -> Any:
        found = self._types.get(id(type_))
        if found is None:
            found = self._types[id(type_)] = self.of(type_)
            self._kept.append(type_)
        return found

    def _node(self, node: Node) -> Any:
        op, number = node.op, self.number
        if self._ops.get(op.name) is not op:
            raise NoForm(f"{op.name} is declared elsewhere")
        regions = tuple([self.graph(region) for region in node.regions])
        return (op.name, tuple([number(value) for value in node.inputs]), tuple([self._made(value) for value in node.outputs]),
                tuple([(name, self.of(attr)) for name, attr in node.attrs.items()]) if node.attrs else (), regions,
                None if node.loc is None else self._type(node.loc), node.recomputed)

    def _function(self, item: Any) -> Any:
        owner = getattr(item, "__self__", None)
        if isinstance(owner, np.ufunc):
            return "method", self._named(owner), item.__name__
        return "named", self._named(item)

    def _named(self, item: Any) -> Tuple[str, str]:
        """As `named`, which takes longer."""
        found = self._names.get(id(item))
        if found is None:
            found = self._names[id(item)] = named(item)
            self._kept.append(item)
        return found

    def _object(self, item: Any) -> Any:
        """The form of an object of dy2static's own, by what it holds."""
        kind = type(item)
        if kind.__module__.partition(".")[0] != "dy2static":
            raise NoForm(f"{kind.__name__} has no form")
        names, has_more = _names_of(kind)
        found: List[Any] = [self.of(getattr(item, name)) for name in names]
        if has_more:
            found += [(name, self.of(part)) for name, part in getattr(item, "__dict__", {}).items()]
        return "object", self._named(kind), tuple(found)


@functools.lru_cache(maxsize=256)
def _names_of(kind: type) -> Tuple[Tuple[str, ...], bool]:
    """The names of the fields or slots of a class of dy2static's, and whether instances may have more attributes."""
    if dataclasses.is_dataclass(kind):
        return tuple([field.name for field in dataclasses.fields(kind)]), False
    return tuple([name for each in kind.__mro__ for name in each.__dict__.get("__slots__", ())]), True


def _dtype(dtype: np.dtype) -> str:
    if dtype.hasobject or dtype.fields is not None or dtype.metadata is not None or dtype.subdtype is not None:
        raise NoForm(f"{dtype} has no form")
    return dtype.str


def _array(forms: Forms, array: np.ndarray) -> Any:
    content = hashlib.blake2b(np.ascontiguousarray(array).data, digest_size=20).digest() if array.size else b""
    return "array", array.shape, array.strides, _dtype(array.dtype), content


def _unordered(forms: Forms, items: Any) -> Any:
    return type(items).__name__, tuple(sorted([marshal.dumps(forms.of(item), 2) for item in items]))


def _terms(forms: Forms, size: Dim) -> Any:
    return "size", tuple([(tuple([(atom.kind, forms.of(tuple(atom.args))) for atom in monomial]), factor)
                          for monomial, factor in size._terms])


_RULES: Dict[type, Callable[[Forms, Any], Any]] = {
    tuple: lambda forms, item: ("tuple", *[forms.of(part) for part in item]),
    list: lambda forms, item: ("list", *[forms.of(part) for part in item]),
    dict: lambda forms, item: ("dict", *[(forms.of(key), forms.of(part)) for key, part in item.items()]),
    types.MappingProxyType: lambda forms, item: forms.of(dict(item)),
    set: _unordered, frozenset: _unordered,
    slice: lambda forms, item: ("slice", forms.of(item.start), forms.of(item.stop), forms.of(item.step)),
    range: lambda forms, item: ("range", item.start, item.stop, item.step),
    type(Ellipsis): lambda forms, item: ("...",),
    np.ndarray: _array, Dim: _terms, Graph: Forms.graph,
    Value: lambda forms, item: ("value", forms.number(item)),
    Tensor: lambda forms, item: ("tensor", *map(forms.of, item.shape), _dtype(item.dtype), item.device),
    Location: lambda forms, item: (item.file, item.line, item.col, item.function, *map(forms.of, item.callers)),
}

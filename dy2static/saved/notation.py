"""Attributes and types as JSON: plain values are themselves, tuples are lists, and everything else says what it is.

Arrays are names of entries of the file of arrays.  Nothing here makes an object of a class that is not in this module.
"""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, Mapping

import chainer
import numpy as np

from ..errors import LoadError, SaveError
from ..ir.dims import Dim
from ..ir.types import SCALAR_KINDS, Dynamic, Extent, Never, Scalar, Stack, Tensor, Token, Type, Union, python_scalar
from ..ir.types import List as ListType
from ..library_facts import numpy as numpy_facts
from ..library_facts.table import members
from ..runtime.host_calls import EmptyCall, Hole
from .expressions import SYMBOL, parsed, size_of
from .functions import function_of, name_of

#: dtypes of arrays in a graph or in what belongs to one.
DTYPES = frozenset(("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
                    "float64"))


class ArraysOut:
    """Collects arrays and gives each a name; one that is met twice has one name."""

    def __init__(self) -> None:
        self.named: Dict[str, np.ndarray] = {}
        self._names: Dict[int, str] = {}

    def add(self, array: np.ndarray, hint: str) -> str:
        """The name of an array.  hint: what it is called if nothing else is."""
        if id(array) not in self._names:
            if array.dtype.name not in DTYPES:
                raise SaveError(f"an array of dtype {array.dtype} cannot be saved")
            name, count = hint, 1
            while name in self.named:
                name, count = f"{hint}.{count}", count + 1
            self.named[name], self._names[id(array)] = array, name
        return self._names[id(array)]


# Types -------------------------------------------------------------------------------------------------------------


def type_out(type_: Type) -> Any:
    """``["float32", [2, "n"]]`` for an array, ``"py_int"``, ``{"list": ...}`` and so on."""
    if isinstance(type_, Tensor):
        if type_.device:
            raise SaveError("arrays on a GPU cannot be saved", hint='call `model.to_device("@numpy")` before')
        return [type_.dtype.name, [size_out(n) for n in type_.shape]]
    if isinstance(type_, Scalar):
        return type_.kind if type_.kind != "numpy" else f"numpy.{type_.dtype.name}"
    if isinstance(type_, (ListType, Stack)):
        return {"list" if isinstance(type_, ListType) else "stack": type_out(type_.elem)}
    if isinstance(type_, Extent):
        return {"size": type_.symbol}
    if isinstance(type_, Union):
        return {"one of": [type_out(part) for part in type_.alternatives]}
    return {Never: "never", Dynamic: "object", Token: "token"}[type(type_)]


def type_in(said: Any) -> Type:
    """The type that `type_out` wrote.  Raises `LoadError`."""
    if type(said) is list and len(said) == 2 and type(said[1]) is list:
        return Tensor(tuple([_extent(n) for n in said[1]]), dtype_in(said[0]))
    if type(said) is str:
        if said in SCALAR_KINDS and said != "numpy":
            return python_scalar(said)
        if said.startswith("numpy."):
            return Scalar("numpy", dtype_in(said[6:]))
        if said in ("never", "object", "token"):
            return {"never": Never, "object": Dynamic, "token": Token}[said]()
    if type(said) is dict and len(said) == 1:
        (kind, part), = said.items()
        if kind == "list":
            return ListType(type_in(part))
        if kind == "stack":
            return Stack(type_in(part))
        if kind == "size" and type(part) is str and SYMBOL.fullmatch(part):
            return Extent(part)
        if kind == "one of" and type(part) is list:
            return Union(tuple([type_in(alternative) for alternative in part]))
    raise LoadError(f"{str(said)[:80]} is not a type")


def _extent(said: Any) -> Any:
    size = size_of(said)
    if isinstance(size, int) and not 0 <= size < 1 << 48:
        raise LoadError(f"{size} is not the size of an axis")
    return size


def size_out(size: Any) -> Any:
    """An int, or the lists of an expression over symbols."""
    return int(size) if isinstance(size, (int, np.integer)) else parsed(str(size.plain))


def dtype_in(name: Any) -> np.dtype:
    """The dtype of this name.  Raises `LoadError`."""
    if type(name) is not str or name not in DTYPES:
        raise LoadError(f"{str(name)[:80]} is not a dtype of an array here")
    return np.dtype(name)


# Values ------------------------------------------------------------------------------------------------------------


def value_out(value: Any, arrays: ArraysOut) -> Any:
    """A value as JSON.  Raises `SaveError` for what has no form in a file."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if type(value) is tuple:
        return [value_out(part, arrays) for part in value]
    for kind, write in _WRITERS.items():
        if isinstance(value, kind):
            return write(value, arrays)
    name = name_of(value)
    if name is None:
        what = getattr(value, "__qualname__", None) or f"an object of type {type(value).__name__}"
        raise SaveError(f"{what} cannot be written into a file")
    return {"function": name}


def _items_out(value: Mapping, arrays: ArraysOut) -> Any:
    return [[value_out(key, arrays), value_out(part, arrays)] for key, part in value.items()]


def _number_out(value: np.generic, arrays: ArraysOut) -> Any:
    return {"number": [dtype_out(value.dtype), value_out(value.item(), arrays)]}


def dtype_out(dtype: np.dtype) -> str:
    """The name of a dtype.  Raises `SaveError` for one that no graph has."""
    if dtype.name not in DTYPES:
        raise SaveError(f"the dtype {dtype} cannot be written into a file")
    return dtype.name


#: How objects are written, by their types.
_WRITERS: Dict[Any, Callable[[Any, ArraysOut], Any]] = {
    list: lambda value, arrays: {"list": [value_out(part, arrays) for part in value]},
    dict: lambda value, arrays: {"dict": _items_out(value, arrays)},
    slice: lambda value, arrays: {"slice": [value_out(part, arrays) for part in (value.start, value.stop, value.step)]},
    type(Ellipsis): lambda value, arrays: {"ellipsis": True},
    Dim: lambda value, arrays: {"size": size_out(value)},
    type(chainer.mixed16): lambda value, arrays: {"mixed16": True},
    np.dtype: lambda value, arrays: {"dtype": dtype_out(value)},
    np.generic: _number_out,
    np.ndarray: lambda value, arrays: {"array": arrays.add(value, "constant")},
    (Tensor, Scalar, ListType, Stack, Extent, Union, Never, Dynamic, Token): lambda value, arrays: {"type": type_out(value)},
    Hole: lambda value, arrays: {"operand": value.index},
    EmptyCall: lambda value, arrays: {"of empty list": _empty_out(value.function)},
}

_OF_LISTS = {
    **{name: getattr(chainer.functions, name) for name in ("stack", "concat", "vstack", "hstack")},
    **{f"numpy.{name}": function for name, function in members(np, "listed", numpy_facts.FUNCTIONS)}}


def _empty_out(function: Any) -> str:
    found = next((name for name, known in _OF_LISTS.items() if known is function), None)
    if found is None:
        raise SaveError(f"{function.__name__} of a list cannot be written into a file")
    return found


def value_in(said: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The value that `value_out` wrote.  Raises `LoadError` for anything else."""
    if said is None or type(said) in (bool, int, float, str):
        return said
    if type(said) is list:
        return tuple([value_in(part, arrays) for part in said])
    if type(said) is dict and len(said) == 1:
        (kind, part), = said.items()
        if kind in _READERS:
            try:
                return _READERS[kind](part, arrays)
            except LoadError:
                raise
            except (TypeError, ValueError, KeyError, OverflowError) as error:
                raise LoadError(f"the file has {str(said)[:80]} where a value should be: {error}") from None
    raise LoadError(f"the file has {str(said)[:80]} where a value should be")


def _number_in(part: Any, arrays: Mapping[str, np.ndarray]) -> np.generic:
    dtype, value = part
    return dtype_in(dtype).type(value_in(value, arrays))


def _slice_in(part: Any, arrays: Mapping[str, np.ndarray]) -> slice:
    start, stop, step = [value_in(item, arrays) for item in part]
    return slice(start, stop, step)


def _pairs_in(part: Any, arrays: Mapping[str, np.ndarray]) -> Dict[Any, Any]:
    return {value_in(key, arrays): value_in(item, arrays) for key, item in part}


def _hole_in(part: Any, arrays: Mapping[str, np.ndarray]) -> Hole:
    if type(part) is not int or part < 0:
        raise ValueError("an operand has a number")
    return Hole(part)


_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

#: How they are read, by the one word that says what they are.
_READERS: Dict[str, Callable[[Any, Mapping[str, np.ndarray]], Any]] = {
    "float": lambda part, arrays: _FLOATS[part],
    "list": lambda part, arrays: list(value_in(list(part), arrays)),
    "dict": _pairs_in,
    "slice": _slice_in,
    "ellipsis": lambda part, arrays: Ellipsis,
    "size": lambda part, arrays: size_of(part),
    "mixed16": lambda part, arrays: chainer.mixed16,
    "dtype": lambda part, arrays: dtype_in(part),
    "number": _number_in,
    "array": lambda part, arrays: arrays[part],
    "type": lambda part, arrays: type_in(part),
    "operand": _hole_in,
    "of empty list": lambda part, arrays: EmptyCall(_OF_LISTS[part]),
    "function": lambda part, arrays: function_of(part),
}

"""The types of values in a graph: what is known about a value before any array exists."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Iterable, Iterator, Tuple
from typing import Union as _Union

import numpy as np

from .devices import device_of, is_device_array
from .dims import Dim

Size = _Union[int, Dim]
Shape = Tuple[Size, ...]

#: Python's own numbers keep Python's semantics (unbounded ints, ZeroDivisionError); "numpy" is a NumPy scalar.
SCALAR_KINDS = ("py_bool", "py_int", "py_float", "numpy")
PYTHON_TYPES = {"py_bool": bool, "py_int": int, "py_float": float}
_PYTHON_DTYPES = {"py_bool": np.dtype(bool), "py_int": np.dtype(np.int64), "py_float": np.dtype(np.float64)}


#: What sets a field of a frozen object.
_set = object.__setattr__


@dataclass(frozen=True)
class Tensor:
    """An array with a shape of ints and `Dim` expressions, a NumPy dtype, and a device (see `ir.devices`)."""

    shape: Shape
    dtype: np.dtype
    device: str = ""

    # less work than what `dataclass` would write and what would follow it: a compilation makes tens of thousands
    def __init__(self, shape: Iterable[Size], dtype: Any, device: str = "") -> None:
        _set(self, "shape", shape if type(shape) is tuple else tuple(shape))
        _set(self, "dtype", dtype if isinstance(dtype, np.dtype) else np.dtype(dtype))
        _set(self, "device", device)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Size:
        """The number of elements."""
        total: Any = 1
        for n in self.shape:
            total = total * n
        return total

    def __str__(self) -> str:
        return f"{self.dtype.name}[{', '.join(map(str, self.shape))}]{f' on {self.device}' if self.device else ''}"


@dataclass(frozen=True)
class Scalar:
    """One number that is not an array: a Python bool, int or float, or a NumPy scalar of ``dtype``."""

    kind: str
    dtype: np.dtype

    def __post_init__(self) -> None:
        if self.kind not in SCALAR_KINDS:
            raise ValueError(f"unknown scalar kind {self.kind!r}")
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    @property
    def shape(self) -> Shape:
        """No axes."""
        return ()

    def __str__(self) -> str:
        return self.kind if self.kind != "numpy" else f"numpy.{self.dtype.name}"


_PYTHON_SCALARS = {kind: Scalar(kind, dtype) for kind, dtype in _PYTHON_DTYPES.items()}


def python_scalar(kind: str) -> Scalar:
    """The `Scalar` of a Python kind: "py_bool", "py_int" or "py_float"."""
    return _PYTHON_SCALARS[kind]


@dataclass(frozen=True)
class List:
    """A list whose items all have the type ``elem``; its length is known at run time only."""

    elem: Any

    def __str__(self) -> str:
        return f"list[{self.elem}]"


@dataclass(frozen=True)
class Extent:
    """The number that the symbol of a size stands for: how a program hands a size on to another."""

    symbol: str

    def __str__(self) -> str:
        return f"size {self.symbol}"


@dataclass(frozen=True)
class Stack:
    """What a loop saves for its backward: pushed in order, popped in reverse."""

    elem: Any

    def __str__(self) -> str:
        return f"stack[{self.elem}]"


@dataclass(frozen=True)
class Union:
    """One of several types; at run time a tag says which."""

    alternatives: Tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "alternatives", tuple(self.alternatives))

    def __str__(self) -> str:
        return " | ".join(map(str, self.alternatives))


@dataclass(frozen=True)
class Never:
    """The type of a region that does not return, because it raises."""

    def __str__(self) -> str:
        return "never"


@dataclass(frozen=True)
class Dynamic:
    """Any Python object; only host nodes and opaque nodes read it."""

    def __str__(self) -> str:
        return "object"


@dataclass(frozen=True)
class Token:
    """The order of effects: a node with an effect takes the last token and gives the next."""

    def __str__(self) -> str:
        return "token"


Type = _Union[Tensor, Scalar, List, Extent, Stack, Union, Never, Dynamic, Token]


def type_of(value: Any) -> Type:
    """The type of a run-time value: an array, a NumPy scalar, a Python number, or `Dynamic`."""
    if isinstance(value, np.ndarray):
        return Tensor(value.shape, value.dtype)
    if is_device_array(value):
        return Tensor(value.shape, value.dtype, device_of(value))
    if isinstance(value, np.generic):
        return Scalar("numpy", value.dtype)
    if isinstance(value, bool):
        return python_scalar("py_bool")
    if isinstance(value, int):
        return python_scalar("py_int")
    if isinstance(value, float):
        return python_scalar("py_float")
    return Dynamic()


def placed(type_: Type, device: str) -> Type:
    """The type on this device; an array in it, or among the items of a list in it, that is on a device stays there."""
    if isinstance(type_, Tensor):
        return type_ if type_.device else replace(type_, device=device)
    return replace(type_, elem=placed(type_.elem, device)) if isinstance(type_, (List, Stack)) else type_


def unplaced(type_: Type) -> Type:
    """The type without devices."""
    if isinstance(type_, Tensor):
        return replace(type_, device="") if type_.device else type_
    return replace(type_, elem=unplaced(type_.elem)) if isinstance(type_, (List, Stack)) else type_


def place_of(type_: Type) -> str:
    """The device of the array, or of the items of the list, that a type stands for; "" if it does not say."""
    while isinstance(type_, (List, Stack)):
        type_ = type_.elem
    return type_.device if isinstance(type_, Tensor) else ""


def alike(a: Type, b: Type) -> bool:
    """Whether two types are the same, where an array that is on no device yet may be on any."""
    if a == b or type(a) is not type(b):
        return a == b
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return not (a.device and b.device) and replace(a, device="") == replace(b, device="")
    return isinstance(a, (List, Stack)) and isinstance(b, (List, Stack)) and alike(a.elem, b.elem)


def dims_in(item: Any) -> Iterator[Dim]:
    """The sizes in types, attributes and what these are made of that only the run knows."""
    kind = type(item)
    if isinstance(item, Dim):
        yield item
    elif kind is Tensor:
        yield from dims_in(item.shape)
    elif kind in (Stack, List):
        yield from dims_in(item.elem)
    elif kind in (tuple, list):
        for part in item:
            yield from dims_in(part)
    elif kind is slice:
        yield from dims_in((item.start, item.stop, item.step))

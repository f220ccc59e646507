"""Data types of the array API standard, and functions on them."""
from __future__ import annotations

from typing import Any, Dict, NamedTuple, Tuple, Union

import numpy as np
from numpy import complex64, complex128, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64

from ..arrays import LazyArray
from .calls import call, on_cpu

bool = np.bool_
e, inf, nan, pi, newaxis = np.e, np.inf, np.nan, np.pi, None

#: The names of dtypes by the kinds that the standard has.
KINDS: Dict[str, Tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]

_CLASSES = {"bool": bool, **{each.__name__: each for each in (
    int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, complex64, complex128)}}


class FloatInfo(NamedTuple):
    """What `finfo` gives: limits of a floating-point dtype, as numbers of Python's."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


class IntegerInfo(NamedTuple):
    """What `iinfo` gives: limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: np.dtype


def _dtype(item: Any) -> np.dtype:
    return item.dtype if isinstance(item, (LazyArray, np.ndarray)) else np.dtype(item)


def astype(x: LazyArray, dtype: Any, /, *, copy: Any = True, device: Any = None) -> LazyArray:
    """The array with another dtype; with ``copy=False`` the same object where it has that dtype.

    Raises ValueError for a device other than ``"cpu"``.
    """
    on_cpu(device)
    if not copy and x.dtype == dtype:
        return x
    return call(_as_type, x, np.dtype(dtype))           # type: ignore[no-any-return]


def _as_type(x: Any, dtype: Any) -> Any:
    return x.astype(dtype)


def can_cast(from_: Any, to: Any, /) -> Any:
    """Whether an array or dtype can be converted by the rules of promotion."""
    return np.can_cast(_dtype(from_), np.dtype(to))


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating-point dtype or array; of complex ones those of their parts.

    Raises ValueError for other dtypes.
    """
    found = np.finfo(_dtype(type))
    return FloatInfo(int(found.bits), float(found.eps), float(found.max), float(found.min), float(found.smallest_normal),
                     np.dtype(found.dtype))


def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer dtype or array.  Raises ValueError for other dtypes."""
    found = np.iinfo(_dtype(type))
    return IntegerInfo(int(found.bits), int(found.max), int(found.min), np.dtype(found.dtype))


def isdtype(dtype: Any, kind: Any) -> Any:
    """Whether a dtype is of a kind: its name in the standard, a dtype, or a tuple of them.

    Raises ValueError for a name that is no kind.
    """
    if isinstance(kind, tuple):
        return any([isdtype(dtype, each) for each in kind])
    if not isinstance(kind, str):
        return np.dtype(dtype) == np.dtype(kind)
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is no kind of dtypes; those are {', '.join(map(repr, KINDS))}")
    return np.dtype(dtype).name in KINDS[kind]


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """The dtype that results of these arrays, dtypes and numbers have.  Raises TypeError where there is none."""
    return np.result_type(*[each if isinstance(each, (int, float, complex)) else _dtype(each) for each in arrays_and_dtypes])


class Info:
    """What `__array_namespace_info__` gives: what the namespace can do, on which devices, with which dtypes."""

    def capabilities(self) -> Dict[str, Any]:
        """Masks may be indices, sizes may depend on contents, and the most axes that NumPy has."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64 if np.__version__ >= "2" else 32}

    def default_device(self) -> str:
        """The device of all arrays."""
        return "cpu"

    def devices(self) -> Any:
        """All devices."""
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> Dict[str, Any]:
        """The dtypes of what is made of Python's numbers.  Raises ValueError for a device other than ``"cpu"``."""
        on_cpu(device)
        return {"real floating": np.dtype("float64"), "complex floating": np.dtype("complex128"),
                "integral": np.dtype(int), "indexing": np.dtype(np.intp)}

    def dtypes(self, *, device: Any = None, kind: Union[None, str, Tuple[str, ...]] = None) -> Dict[str, Any]:
        """The dtypes by name, all or those of a kind.  Raises ValueError for a device or kind that there is not."""
        on_cpu(device)
        return {name: np.dtype(each) for name, each in _CLASSES.items() if kind is None or isdtype(each, kind)}


def __array_namespace_info__() -> Info:
    """What the namespace can do, on which devices, with which dtypes."""
    return Info()


__all__ = """
    astype can_cast finfo iinfo isdtype result_type bool e inf nan pi newaxis complex64 complex128 float32 float64 int8
    int16 int32 int64 uint8 uint16 uint32 uint64
""".split()

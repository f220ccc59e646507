"""The C form of an elementwise op: from a node to one expression of C.

The expression may call functions of ``native/include/dy2static_math.h``.
"""
from __future__ import annotations

import functools
import math
from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy as np

from .op import OpDef
from .types import Type

_C_TYPES = {"float32": "float", "float64": "double", "bool": "bool",
            **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}}
_LEAST = {bits: -2 ** (bits - 1) for bits in (8, 16, 32, 64)}


@functools.lru_cache(maxsize=64)                        # NumPy makes the name of a dtype anew each time
def c_type(dtype: Any) -> Optional[str]:
    """The C type of an element: ``float``, ``int32_t``, ``bool``…; None for those that have none here."""
    dtype = np.dtype(dtype)
    return _C_TYPES.get(dtype.name) if dtype.isnative else None


def c_suffix(dtype: Any) -> str:
    """How functions for a dtype end: ``f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 b``."""
    dtype = np.dtype(dtype)
    return "b" if dtype.kind == "b" else f"{dtype.kind}{8 * dtype.itemsize}"


def c_constant(value: Any, dtype: Any) -> str:
    """A number as a C constant of a dtype, exactly: a hexadecimal float, ``INFINITY``, ``NAN``, ``INT64_C(3)``, ``true``.

    A float is rounded to the dtype first.  Raises ValueError if a dtype of ints, or bool, cannot hold the number.
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return _float_constant(value, dtype)
    number = int(value)
    held = bool(value) if dtype.kind == "b" else number
    limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if number != value or not limits[0] <= number <= limits[1]:
        raise ValueError(f"{dtype.name} cannot hold {value!r}")
    if dtype.kind == "b":
        return "true" if held else "false"
    bits = 8 * dtype.itemsize
    if dtype.kind == "u":
        return f"UINT{bits}_C({number})"
    if number == _LEAST[bits]:
        return f"INT{bits}_MIN"
    return f"INT{bits}_C({number})" if number >= 0 else f"(-INT{bits}_C({-number}))"


def _float_constant(value: Any, dtype: np.dtype) -> str:
    single = dtype.itemsize == 4
    with np.errstate(all="ignore"):
        number = float(dtype.type(value))
    if math.isnan(number):
        return "NAN" if single else "((double)NAN)"
    if math.isinf(number):
        text = "INFINITY" if single else "((double)INFINITY)"
    else:
        text = math.fabs(number).hex() + ("f" if single else "")
    return f"(-{text})" if math.copysign(1.0, number) < 0 else text


class _Holes(Dict[str, str]):
    """Text for the holes of one template; attributes become constants of the result's type when they are asked for."""

    def __init__(self, attrs: Mapping[str, Any], dtype: np.dtype) -> None:
        super().__init__()
        self.attrs, self.dtype = attrs, dtype

    def __missing__(self, name: str) -> str:
        return c_constant(self.attrs[name], self.dtype)


def c_expression(op: OpDef, operands: Sequence[str], types: Sequence[Type], result: Type,
                 attrs: Mapping[str, Any]) -> Optional[str]:
    """The value of one element of ``op`` as a C expression; None if there is none for these types and attributes.

    operands: C variables, or constants, of the operands' C types (`c_type`).  They may be mentioned several times.  What
    the expression gives is to be converted to the C type of the result, as an assignment does.
    """
    dtypes = [getattr(type_, "dtype", None) for type_ in (*types, result)]
    if op.c is None or any(dtype is None or c_type(dtype) is None for dtype in dtypes):
        return None
    template = op.c if isinstance(op.c, str) else op.c(types, result, attrs)
    if template is None:
        return None
    holes = _Holes(attrs, dtypes[-1])
    holes.update(T=str(c_type(dtypes[-1])), s=c_suffix(dtypes[-1]), t=c_suffix(dtypes[0]))
    holes.update(_named(op, operands))
    try:
        return template.format_map(holes)
    except ValueError:                                    # an attribute that the dtype cannot hold
        return None


def _named(op: OpDef, operands: Sequence[str]) -> Dict[str, str]:
    names: List[str] = []
    for name in op.inputs:
        if name.startswith("*"):
            names += [f"{name[1:]}_{k}" for k in range(len(operands) - len(names))]
        else:
            names.append(name)
    return dict(zip(names, operands))

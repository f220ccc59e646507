"""Elementwise functions of the array API standard."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ..arrays import LazyArray
from .calls import call, ufunc

#: Functions of one array, and of two, that are ufuncs of NumPy's under these names.
UNARY = {name: name for name in """
    cos cosh exp expm1 isfinite isinf isnan log log1p log2 log10 logical_not negative positive reciprocal signbit sin sinh
    square sqrt tan tanh""".split()}
UNARY.update(abs="absolute", acos="arccos", acosh="arccosh", asin="arcsin", asinh="arcsinh", atan="arctan", atanh="arctanh",
             bitwise_invert="invert", conj="conjugate")
BINARY = {name: name for name in """
    add bitwise_and bitwise_or bitwise_xor copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp
    logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal remainder subtract""".split()}
BINARY.update(atan2="arctan2", bitwise_left_shift="left_shift", bitwise_right_shift="right_shift", pow="power")


def _unary(name: str, function: np.ufunc) -> Callable[[Any], Any]:
    def elementwise(x: LazyArray, /) -> LazyArray:
        return ufunc(function, x)                       # type: ignore[no-any-return]
    return _named(elementwise, name, f"As the array API standard has ``{name}``, for each element.")


def _promoting(function: np.ufunc) -> Callable[[Any, Any], Any]:
    """A ufunc of two arrays whose dtypes alone decide that of the result, as the standard has it.

    NumPy 1 lets an array without axes give way to one with some.
    """
    def promoting(x1: Any, x2: Any) -> Any:
        if x1.dtype != x2.dtype:
            dtype = np.promote_types(x1.dtype, x2.dtype)
            x1, x2 = x1.astype(dtype), x2.astype(dtype)
        return function(x1, x2)
    promoting.__name__ = function.__name__
    return promoting


def _binary(name: str, function: np.ufunc) -> Callable[[Any, Any], Any]:
    promoting = None if np.__version__ >= "2" else _promoting(function)

    def elementwise(x1: Any, x2: Any, /) -> LazyArray:
        if promoting is not None and type(x1) is LazyArray and type(x2) is LazyArray:
            return call(promoting, x1, x2)              # type: ignore[no-any-return]
        return ufunc(function, x1, x2)                  # type: ignore[no-any-return]
    return _named(elementwise, name, f"As the array API standard has ``{name}``, for each pair of elements, with broadcasting.")


def _rounding(name: str, function: np.ufunc) -> Callable[[Any], Any]:
    def elementwise(x: LazyArray, /) -> LazyArray:
        return ufunc(np.positive if x.dtype.kind in "iu" else function, x)      # type: ignore[no-any-return]
    return _named(elementwise, name, f"As the array API standard has ``{name}``, for each element; whole numbers stay as they are.")


def _named(function: Any, name: str, text: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


def sign(x: LazyArray, /) -> LazyArray:
    """The sign of each element; of a complex number the number on the unit circle in its direction."""
    return call(_complex_sign, x) if x.dtype.kind == "c" else ufunc(np.sign, x)         # type: ignore[no-any-return]


def _complex_sign(x: Any) -> Any:
    size = np.absolute(x)
    return np.where(size == 0, x, x / np.where(size == 0, 1, size).astype(size.dtype))


def real(x: LazyArray, /) -> LazyArray:
    """The real parts."""
    return call(np.real, x)                             # type: ignore[no-any-return]


def imag(x: LazyArray, /) -> LazyArray:
    """The imaginary parts."""
    return call(np.imag, x)                             # type: ignore[no-any-return]


def clip(x: LazyArray, /, min: Any = None, max: Any = None) -> LazyArray:
    """Each element, or the bound that it is beyond.  The dtype is that of ``x``."""
    if min is None and max is None:
        return ufunc(np.positive, x)                    # type: ignore[no-any-return]
    return call(_clip, x, min, max, x.dtype)            # type: ignore[no-any-return]


def _clip(x: Any, least: Any, most: Any, dtype: Any) -> Any:
    return np.clip(x, least, most).astype(dtype)


globals().update({name: _unary(name, getattr(np, spelled)) for name, spelled in UNARY.items()})
globals().update({name: _binary(name, getattr(np, spelled)) for name, spelled in BINARY.items()})
globals().update({name: _rounding(name, function) for name, function in (
    ("ceil", np.ceil), ("floor", np.floor), ("trunc", np.trunc), ("round", np.rint))})

__all__ = sorted([*UNARY, *BINARY, "ceil", "clip", "floor", "imag", "real", "round", "sign", "trunc"])

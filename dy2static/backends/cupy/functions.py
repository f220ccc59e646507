"""Functions that compute with NumPy as functions that compute with CuPy: the same code with other globals, or on copies."""
from __future__ import annotations

import functools
import types
from typing import Any, Callable, Dict, Iterator

import numpy as np
from chainer.backends import cuda

#: The package in whose functions ``np`` is the library of their arrays.
_OURS = __name__.partition(".")[0] + ".ops"

_copies: Dict[Callable[..., Any], Callable[..., Any]] = {}


def on_cupy(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of a function of an op to which NumPy is CuPy, and so to the functions of ops that it calls.

    Another function is returned itself.  Raises AttributeError if the function uses one of NumPy's that CuPy lacks.
    """
    if not _is_ours(function) or function in _copies:
        return _copies.get(function, function)
    names = dict(function.__globals__)
    cells = function.__closure__ and tuple([types.CellType(_of_cupy(cell.cell_contents)) for cell in function.__closure__])
    copy = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells)
    copy.__kwdefaults__ = function.__kwdefaults__
    _copies[function] = copy                            # first: it may call itself
    names.update({name: _of_cupy(names[name]) for name in _read_by(function.__code__) if name in names})
    return copy


def on_host(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that computes on the host, as one that takes and gives CuPy's arrays."""
    @functools.wraps(function)
    def copied(*args: Any, **kwargs: Any) -> Any:
        result = function(*map(_fetched, args), **{name: _fetched(value) for name, value in kwargs.items()})
        return tuple(map(cuda.cupy.asarray, result)) if isinstance(result, (tuple, list)) else cuda.cupy.asarray(result)
    return copied


def _fetched(value: Any) -> Any:
    return value.get() if isinstance(value, cuda.ndarray) else value


def _is_ours(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and value.__module__.startswith(_OURS)


def _read_by(code: types.CodeType) -> Iterator[str]:
    """The names that code reads, and the functions in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _read_by(constant)


def _of_cupy(value: Any) -> Any:
    """What stands for NumPy, a function of its, or a function of an op; anything else itself."""
    if value is np:
        return cuda.cupy
    if _is_ours(value):
        return on_cupy(value)
    module = getattr(value, "__module__", None) or ""
    if callable(value) and not isinstance(value, type) and module.partition(".")[0] == "numpy":
        return functools.reduce(getattr, _path(module, value.__name__), cuda.cupy)
    return value


def _path(module: str, name: str) -> Iterator[str]:
    """Where a function of NumPy's is in the package: ``lib.stride_tricks.as_strided``."""
    yield from [part.lstrip("_").replace("_impl", "") for part in module.split(".")[1:]]
    yield name

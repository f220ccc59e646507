"""The functions that a file may name: those that compute, draw, print, or do what we made them for; none that reads or
writes files, imports, or calls what it is given."""
from __future__ import annotations

import builtins
import functools
import math
import operator
import random
import string
import warnings
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import chainer
import numpy as np
from chainer.utils.type_check import InvalidType

from ..errors import LoadError
from ..library_facts import numpy as numpy_facts
from ..library_facts import python as python_facts
from ..library_facts.table import members, named
from ..runtime import array_parts, array_writes, functions, host_calls, raising, stores
from ..runtime.array_writes import Into
from ..runtime.functions import OF_MATRICES, Attempt
from ..runtime.host_calls import Attribute, Method
from ..runtime.node import make_variable, store_gradient

_METHODS, _ATTRIBUTES = named("saved", numpy_facts.METHODS), named("saved", numpy_facts.ATTRIBUTES)
_TEXT_METHODS, _UFUNC_METHODS = named("saved", python_facts.METHODS), named("saved", numpy_facts.UFUNC_METHODS)


def _public() -> Iterator[Tuple[str, Any]]:
    """The functions that a file may name, by their names."""
    for prefix, owner, table in (
            ("numpy", np, numpy_facts.FUNCTIONS), ("numpy.linalg", np.linalg, numpy_facts.LINALG),
            ("numpy.random", np.random, numpy_facts.RANDOM), ("random", random, python_facts.RANDOM),
            ("operator", operator, python_facts.OPERATOR_FUNCTIONS), ("builtins", builtins, python_facts.BUILTINS)):
        yield from ((f"{prefix}.{name}", found) for name, found in members(owner, "saved", table))
    yield from ((f"numpy.{name}", found) for name, found in vars(np).items() if isinstance(found, np.ufunc))
    yield from ((f"math.{name}", found) for name, found in vars(math).items() if callable(found))
    yield from ((f"builtins.{name}", found) for name, found in vars(builtins).items() if _is_error(found))
    yield from ((f"numpy.{dtype.__name__}", dtype) for dtype in {np.dtype(code).type for code in "?bBhHiIlLqQefd"})
    yield "numpy.ndarray", np.ndarray
    yield "chainer.report", chainer.reporter.report
    yield "chainer.type_check.InvalidType", InvalidType
    yield "warnings.warn", warnings.warn


def _is_plain_format(text: str) -> bool:
    """Whether a template takes nothing but what it is given: no attributes of it, no items."""
    try:
        return not any(name and ("." in name or "[" in name) or spec and "{" in spec
                       for _, name, spec, _ in string.Formatter().parse(text))
    except ValueError:
        return False


def _is_error(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, Exception)


#: Functions of ours that captures put into graphs, by the names that files have for them.
_OWN: Dict[str, Callable[..., Any]] = {
    "expressions.real_power": functions.real_power, "expressions._negative_power": functions.negative_power,
    "label_counts._class_counts": functions.class_counts, "masks._rows": functions.true_rows,
    "number_calls._item_of_extreme": functions.item_of_extreme, "number_calls._sorted_by": functions.sorted_by,
    "texts._format": functions.format_value, "texts._join": functions.join,
    "raising.check_bound": raising.check_bound, "raising.raise_again": raising.raise_again,
    "writes._write": array_writes.write_at, "writes._write_checked": array_writes.write_at_checked,
    "writes.write_by_numpy": array_writes.write_by_numpy, "writes._itself": array_writes.itself,
    "writes.overlaid": array_writes.overlaid,
    "writes._one": host_calls.as_it_is,
    **{f"array_parts.{function.__name__}": function for function in (
        array_parts.flat_item, array_parts.set_flat_item, array_parts.set_flat,
        array_parts.of_flat, array_parts.array_of_flat, array_parts.of_buffer)},
    "effects._store_item": stores.store_item, "effects._delete_item": stores.delete_item, "effects._extend": stores.extend,
    "effects._assign": stores.assign, "effects._assign_deque": stores.assign_deque, "effects._assign_set": stores.assign_set,
    "effects._store_cell": stores.store_cell, "effects._delete_cell": stores.delete_cell,
    "effects._write_array": stores.write_array, "effects.flat": host_calls.flat, "effects._one": host_calls.as_it_is,
    "effects._none": host_calls.nothing, "make_variable": make_variable, "store_gradient": store_gradient}


@functools.lru_cache(maxsize=None)
def _tables() -> Tuple[Dict[str, Any], Dict[int, str]]:
    known = dict(_public())
    known.update((f"dy2static.{name}", found) for name, found in _OWN.items())
    names = {id(found): name for name, found in reversed(list(known.items()))}
    return known, names


def name_of(function: Any) -> Optional[Any]:
    """How a file writes a function; None for one that it may not name."""
    if isinstance(function, Method):
        return {"method": function.name} if function.name in _METHODS else None
    if isinstance(function, Attribute):
        return {"attribute": function.name} if function.name in _ATTRIBUTES else None
    if isinstance(function, Attempt):
        return {"attempt": function.__name__}
    if isinstance(function, Into):
        inner = name_of(function.function)
        return None if inner is None else {"into": inner}
    owner = getattr(function, "__self__", None)
    if type(owner) is str and function.__name__ in _TEXT_METHODS:
        return {f"text {function.__name__}": owner} if _is_plain_format(owner) else None
    if isinstance(owner, np.ufunc) and function.__name__ in _UFUNC_METHODS:
        return {function.__name__: owner.__name__} if getattr(np, owner.__name__, None) is owner else None
    try:
        return _tables()[1].get(id(function))
    except TypeError:
        return None


def function_of(name: Any) -> Callable[..., Any]:
    """The function that a file names.  Raises `LoadError` where it must not, or there is none here."""
    if type(name) is str and name in _tables()[0]:
        return _tables()[0][name]
    if type(name) is dict and list(name) == ["into"]:
        return Into(function_of(name["into"]))
    if type(name) is dict and len(name) == 1 and type(next(iter(name.values()))) is str:
        (kind, text), = name.items()
        if kind == "method" and text in _METHODS:
            return Method(text)
        if kind == "attribute" and text in _ATTRIBUTES:
            return Attribute(text)
        if kind == "attempt" and text in OF_MATRICES:
            return Attempt(getattr(np.linalg, text), text)
        if kind in _UFUNC_METHODS and isinstance(getattr(np, text, None), np.ufunc):
            return getattr(getattr(np, text), kind)
        if kind in ("text format", "text join") and _is_plain_format(text):
            return getattr(text, kind[5:])
    raise LoadError(f"the file names the function {str(name)[:80]}, which this version does not call for it")

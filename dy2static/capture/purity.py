"""Functions on the host that are seen to compute only: they change nothing, so it does not matter how often they are called."""
from __future__ import annotations

import builtins
import dis
import functools
import io
import logging
import math
import types
from typing import Any, FrozenSet, Iterator, Mapping, Sequence

import numpy as np

from ..heap.object_shadows import ShadowBase
from ..heap.objects import real_class
from ..heap.ownership import is_library
from ..library_facts import numpy as numpy_facts
from ..library_facts import python as python_facts
from ..library_facts.python import CHANGING, LOGGED, builtin
from ..library_facts.table import named
from ..symbolic.host_objects import BoundHostMethod, SymbolicObject
from ..symbolic.known_texts import SymbolicText
from ..symbolic.lists import StagedList
from ..symbolic.values import SymbolicArray, SymbolicScalar, SymbolicVariable

_MODULES = (np, np.linalg, math)
_CONSTANTS = (type(None), bool, int, float, str)
_BUILTINS = builtin("pure")

#: What changes something, or does what is not looked at here.
_REFUSED = (*CHANGING, "STORE_DEREF", "STORE_NAME", "DELETE_DEREF", "LOAD_DEREF", "LOAD_BUILD_CLASS", "YIELD_VALUE", "MAKE_CELL")

#: What goes through the graph of Variables, or looks at it.
_OF_GRAPHS = frozenset(("backward", "creator", "creator_node", "grad", "unchain", "unchain_backward", "build_computational_graph"))

#: Functions of the modules that write, draw, or keep state.
_IMPURE = named("impure", numpy_facts.FUNCTIONS) | named("writes", numpy_facts.FUNCTIONS)

#: Attributes and methods of arrays, Variables, numbers, texts and containers that change nothing.
_READING = named("reads", numpy_facts.METHODS, numpy_facts.ATTRIBUTES, python_facts.METHODS)


def only_computes(function: Any, owner: Any = None, depth: int = 3) -> bool:
    """Whether a function that gets plain values reads them and constants and gives a result, and that is all.

    owner: of a method, the shadow of its object, of which it may read attributes that are plain.
    """
    if not isinstance(function, types.FunctionType) or function.__closure__ or depth == 0:
        return False
    owners = {} if owner is None else dict(zip(function.__code__.co_varnames[:1], (owner,)))
    return _is_plain_function(function, owners, depth, False)


def is_of_python(function: Any) -> bool:
    """Whether `np.frompyfunc` has made a function, or that of which it is a method, of one of Python's."""
    ufunc = getattr(function, "__self__", function)
    return type(ufunc) is np.ufunc and set("".join(ufunc.types)) <= set("O->")


def may_do_more(item: Any) -> bool:
    """Whether this is, or holds, a function that may do more than compute: a function of NumPy's would call it in trials, too."""
    if type(item) in (tuple, list) or type(item) is StagedList and item.is_plain:
        return any(map(may_do_more, item))
    if type(item) is dict:
        return any(map(may_do_more, item.values()))
    if isinstance(item, (types.MethodType, functools.partial)):
        return may_do_more(item.__func__ if isinstance(item, types.MethodType) else item.func)
    return isinstance(item, types.FunctionType) and not is_library(item.__module__ or "") and not only_computes(item)


def only_reads(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a function of the user's changes nothing that a capture reads: it may tell the screen or a log of what it gets.

    It gets plain values and objects of which it reads attributes that are plain.
    """
    if type(function) is BoundHostMethod:
        return _writes_text(function) and all(map(is_plain, args)) and not kwargs
    if isinstance(function, types.MethodType):
        function, args = function.__func__, (function.__self__, *args)
    if not isinstance(function, types.FunctionType) or function.__closure__ or not all(map(is_plain, kwargs.values())):
        return False
    code = function.__code__
    owners = {name: item for name, item in zip(code.co_varnames[:code.co_argcount], args) if isinstance(item, ShadowBase)}
    plain = [item for item in args if not isinstance(item, ShadowBase)]
    return len(owners) + len(plain) == len(args) and all(map(is_plain, plain)) and _is_plain_function(function, owners, 3, True)


def only_tells(function: types.FunctionType, owner: Any) -> bool:
    """Whether a method of an object's reads attributes of it that are plain, and changes nothing that a capture reads."""
    return not function.__closure__ and _is_plain_function(
        function, dict(zip(function.__code__.co_varnames[:1], (owner,))), 3, True)


def _writes_text(method: BoundHostMethod) -> bool:
    """Whether this is ``write`` or ``flush`` of a stream of Python's own, such as ``sys.stdout``."""
    found = getattr(type(method.owner.real), method.method, None)
    return any(found is getattr(kind, name) for kind in (io.TextIOWrapper, io.StringIO) for name in ("write", "flush"))


def looks_at_graphs(function: Any, depth: int = 3) -> bool:
    """Whether a function of Python, or one that it finds among its globals, names what goes through the graph of Variables."""
    function = getattr(function, "__func__", function)
    if not isinstance(function, types.FunctionType) or depth == 0:
        return False
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    return not names.isdisjoint(_OF_GRAPHS) or any(
        [looks_at_graphs(function.__globals__.get(name), depth - 1) for name in names])


def _is_plain_function(function: types.FunctionType, owners: Mapping[str, Any], depth: int, tells: bool) -> bool:
    return all(_is_plain(code, function, owners if code is function.__code__ else {}, depth, tells)
               for code in _codes(function.__code__))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


def _is_plain(code: types.CodeType, function: types.FunctionType, owners: Mapping[str, Any], depth: int, tells: bool) -> bool:
    if "out" in _keywords(code):
        return False
    names, module, owner = function.__globals__, None, None
    for step in dis.get_instructions(code):
        name, found = step.opname, None
        if name in _REFUSED or name.startswith("INPLACE_") or name == "BINARY_OP" and step.argrepr.endswith("="):
            return False
        reads = name in ("LOAD_ATTR", "LOAD_METHOD")
        if owner is not None and not (reads and "NULL" not in step.argrepr and _is_attribute(owner, step.argval)):
            return False                                # the object itself goes somewhere
        if name == "LOAD_GLOBAL":
            found = names[step.argval] if step.argval in names else getattr(builtins, step.argval, None)
            if not (_is_known(found, depth) or tells and (found is print or isinstance(found, logging.Logger))):
                return False
        elif reads and owner is None:
            telling = isinstance(module, logging.Logger)
            if not (step.argval in LOGGED if telling else step.argval not in _IMPURE if module is not None else
                    step.argval in _READING):
                return False
            found = None if telling else getattr(module, step.argval, None)
        module = found if isinstance(found, (types.ModuleType, logging.Logger)) else None
        *before, last = step.argval if isinstance(step.argval, tuple) and name.startswith("LOAD_FAST") else (step.argval,)
        if not owners.keys().isdisjoint(part for part in before if isinstance(part, str)):
            return False
        owner = owners.get(last) if "LOAD_FAST" in name else None
    return owner is None


def _is_attribute(owner: Any, name: str) -> bool:
    """Whether reading an attribute of the object runs no code, and gives what is plain."""
    classes = real_class(type(owner)).__mro__[:-1]
    found = next((part.__dict__[name] for part in classes if name in part.__dict__), None)
    if type(found) not in _CONSTANTS or any("__getattribute__" in part.__dict__ for part in classes):
        return False
    return found is None and name in getattr(owner, "__dict__", ()) and is_plain(owner.__dict__[name]) or found is not None


def is_plain(item: Any) -> bool:
    """Whether computing with an item calls no code of the user's: arrays, Variables, numbers, texts, and containers of these."""
    if type(item) in (tuple, list, StagedList):
        return type(item) is StagedList and item.symbolic is not None or all(map(is_plain, item))
    if type(item) is dict:
        return all(map(is_plain, item.values()))
    if type(item) is SymbolicObject:
        return item.is_text
    return type(item) in (*_CONSTANTS, SymbolicArray, SymbolicScalar, SymbolicText) or \
        isinstance(item, (SymbolicVariable, np.generic))


def _keywords(code: types.CodeType) -> FrozenSet[str]:
    """Names that may be those of keyword arguments."""
    found = set()
    for const in code.co_consts:
        found.update(const if isinstance(const, tuple) else (const,)) if isinstance(const, (str, tuple)) else None
    return frozenset(item for item in found if isinstance(item, str))


def _is_known(item: Any, depth: int) -> bool:
    if isinstance(item, types.ModuleType):
        return any(item is module for module in _MODULES)
    if isinstance(item, (type, types.BuiltinFunctionType)) and item in _BUILTINS:
        return True
    return type(item) in _CONSTANTS or isinstance(item, type) and issubclass(item, np.generic) or \
        only_computes(item, depth=depth - 1)

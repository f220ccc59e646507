"""Functions that only compute with what they are given: they may run at any time, as often as a library likes."""
from __future__ import annotations

import builtins
import dis
import math
import types
from typing import Any

import numpy as np
from chainer import functions

from ..library_facts.python import CHANGING, builtin
from ..runtime import dy

_MODULES = (np, math, functions, dy)
_PACKAGES = ("numpy", "math", "chainer.functions")
_BUILTINS = builtin("pure")
_CONSTANTS = (type(None), bool, int, float, str, type(Ellipsis))
_REFUSED_NAMES = frozenset(("report", "backward", "random_state", "seed", "set_state"))


def is_self_contained(function: Any) -> bool:
    """Whether a function reads nothing but its arguments, constants and functions of Chainer and NumPy, and changes nothing."""
    if not isinstance(function, types.FunctionType) or _is_known(function):
        return isinstance(function, types.FunctionType)
    held = [cell.cell_contents for cell in function.__closure__ or ()] if _is_filled(function) else [None, object()]
    held += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return all(type(item) in _CONSTANTS or _is_known(item) for item in held) and _is_plain(function.__code__, function.__globals__)


def apart(function: types.FunctionType) -> types.FunctionType:
    """A self-contained function that runs after its capture, too: with closure cells of its own."""
    closure = function.__closure__ and tuple([types.CellType(cell.cell_contents) for cell in function.__closure__])
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _is_filled(function: types.FunctionType) -> bool:
    try:
        return all(cell.cell_contents is not cell for cell in function.__closure__ or ())
    except ValueError:
        return False


def _is_plain(code: types.CodeType, names: Any) -> bool:
    for step in dis.get_instructions(code):
        if step.opname in CHANGING or step.argval in _REFUSED_NAMES and step.opname.startswith("LOAD_"):
            return False
        if step.opname == "LOAD_GLOBAL":
            found = names[step.argval] if step.argval in names else getattr(builtins, step.argval, None)
            if type(found) not in _CONSTANTS[:1] and not _is_known(found):
                return False
    return all(_is_plain(const, names) for const in code.co_consts if isinstance(const, types.CodeType))


def _is_known(item: Any) -> bool:
    """Whether it is a module or function of a library that only computes."""
    if isinstance(item, types.ModuleType):
        return any(item is module for module in _MODULES)
    if isinstance(item, (type, types.BuiltinFunctionType)) and item in _BUILTINS:
        return True
    module = getattr(item, "__module__", None) or ""
    return isinstance(item, (type, types.FunctionType, types.BuiltinFunctionType, np.ufunc)) and \
        any(module == name or module.startswith(name + ".") for name in _PACKAGES)

"""NumPy calls on arrays outside Chainer's graph as the expressions the user could have written."""
from __future__ import annotations

import operator
import types
from typing import Any, Callable, Optional, Sequence

import numpy as np

from ...library_facts.python import symbols
from ...runtime.devices import GPU_UFUNCS
from ...runtime.host_calls import Call, Hole

_INFIX, _PREFIX = symbols("binary", "comparison"), symbols("unary")


def call_text(call: Call, operands: Sequence[str], bind: Callable[[str, Any], str]) -> Optional[str]:
    """The call as an expression over these operands; None where it has no such form.

    bind: gives the name under which the code knows an object.
    """
    if not call.single or not all(has_text(item) for item in (*call.args, *call.kwargs.values())):
        return None
    args = [part_text(item, operands, bind) for item in call.args]
    function = call.function
    if function in _INFIX and len(args) == 2 and not call.kwargs:
        return f"{args[0]} {_INFIX[function]} {args[1]}"
    if function in _PREFIX and len(args) == 1:
        return f"{_PREFIX[function]}{args[0]}"
    if function is operator.getitem:
        return f"{args[0]}[{args[1]}]"
    keywords = [f"{name}={part_text(item, operands, bind)}" for name, item in call.kwargs.items()]
    method = getattr(function, "method", None)
    if method is not None and args:
        return f"{args[0]}.{method}({', '.join(args[1:] + keywords)})"
    attribute = getattr(function, "attribute", None)
    if attribute is not None and args:
        return f"{args[0]}.{attribute}"
    if isinstance(function, (types.FunctionType, types.BuiltinFunctionType, type, np.ufunc, type(np.sum), *GPU_UFUNCS)):
        name = getattr(function, "__name__", "function")
        known = name if function in (bool, int, float, abs, min, max, round) else bind(f"call_{name}", function)
        return f"{known}({', '.join(args + keywords)})"
    return None


def is_operator(call: Call) -> bool:
    """Whether the call is arithmetic or a comparison, which gives new memory always."""
    return call.function in _INFIX or call.function in _PREFIX


def part_text(item: Any, operands: Sequence[str], bind: Callable[[str, Any], str]) -> str:
    """One argument: an operand, a literal, a tuple, list or slice of such, or a name for an object."""
    kind = type(item)
    if kind is Hole:
        text = operands[item.index]
        return text if text.isidentifier() else f"({text})"
    if item is None or item is Ellipsis or kind in (bool, int, str):
        return repr(item) if kind is not int or item >= 0 else f"({item!r})"
    if kind is float and item == item and abs(item) != float("inf"):
        return repr(item) if item >= 0 else f"({item!r})"
    if kind is tuple:
        parts = [part_text(part, operands, bind) for part in item]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if kind is list:
        return f"[{', '.join([part_text(part, operands, bind) for part in item])}]"
    if kind is slice:
        return f"slice({', '.join([part_text(part, operands, bind) for part in (item.start, item.stop, item.step)])})"
    return bind("argument", item)


def has_text(item: Any) -> bool:
    """Whether all holes in an argument are where `part_text` looks for them."""
    if type(item) in (tuple, list):
        return all(has_text(part) for part in item)
    return not isinstance(item, (dict, tuple))

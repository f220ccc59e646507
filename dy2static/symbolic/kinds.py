"""What kind of thing a value is, for joins and loops: numbers, truths, and words for messages."""
from __future__ import annotations

from typing import Any, Optional, Sequence

from ..heap.wording import a_type
from ..ir.size_texts import described
from ..runtime.unbound import Undefined
from .array_or_variable import ArrayOrVariable
from .values import SymbolicArray, SymbolicScalar, SymbolicVariable

#: Stands for "is not there" among contents.
ABSENT = object()

_NUMBERS = {bool: "py_bool", int: "py_int", float: "py_float"}


def name_at(names: Sequence[str], index: int) -> str:
    """A variable by its number, for messages."""
    if index >= len(names):
        return "a value"
    return "the returned value" if names[index].startswith("return_value_") else f"`{names[index]}`"


def describe(value: Any) -> str:
    """A value, for messages: its type, or itself if it is short."""
    if type(value) is Undefined:
        return "unbound"
    if value is ABSENT:
        return "absent"
    if type(value) is ArrayOrVariable:
        return "an array or a Variable"
    if isinstance(value, SymbolicVariable):
        return f"a Variable {value.value.type.dtype} {described(value.value.type.shape)}"
    if type(value) is SymbolicArray:
        return f"an array {value.type.dtype} {described(value.type.shape)}"
    return repr(value) if value is None or type(value) in (bool, int, float, str) else a_type(value)


def number_kind(value: Any) -> Optional[str]:
    """"py_bool", "py_int", "py_float" or "numpy" for a number, symbolic or not; None for anything else."""
    return value.kind if type(value) is SymbolicScalar else _NUMBERS.get(type(value))


def is_truth(value: Any) -> bool:
    """Whether a value is a bool: one of Python, or a symbolic one."""
    if type(value) is SymbolicArray:
        return value.is_scalar and value.dtype.kind == "b"
    return number_kind(value) == "py_bool"


def decides_unlike(a: Any, b: Any) -> bool:
    """Whether these are numbers of different types, which can only be joined as truths."""
    kinds = [number_kind(x) or (x.type if type(x) is SymbolicArray and x.size == 1 else None) for x in (a, b)]
    return None not in kinds and kinds[0] != kinds[1]

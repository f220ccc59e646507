"""Operations that write: each gives the changed copy of its first operand, which its program may make in place."""
from __future__ import annotations

import operator
import sys
from typing import Any, Dict, List

import numpy as np

from ..library_facts.python import OPERATORS
from .calls import NO_NAMES, Call, Caller, Writer, applied


def _references(values: List[Any], place: int) -> int:
    """How many references there are to the value at a place."""
    value = values[place]
    return sys.getrefcount(value)


#: What `_references` counts for a value that nobody else has.
_ALONE = _references([np.empty(1)], 0)


def _own(values: List[Any], place: int) -> Any:
    """The value at a place, to be written to: a copy, unless nobody else has it."""
    count, value = _references(values, place), values[place]
    if type(value) is not np.ndarray:
        return value
    is_free = count <= _ALONE and value.base is None and value.flags.owndata and value.flags.writeable
    return value if is_free else value.copy(order="K")


class InPlace:
    """``a += b``, as a new version of ``a``.

    change: the function that does it.
    """

    __slots__ = ("sign", "change")

    arity = 2

    def __init__(self, sign: str):
        self.sign, self.change = sign, _IN_PLACE[sign]

    def statement(self, writer: Writer, name: str, operands: List[str]) -> str:
        """The text that gives ``name`` the new version."""
        return f"{name} = {operands[0]}.copy(); {name} {self.sign} {operands[1]}"

    def applied(self, values: List[Any], caller: Caller) -> Any:
        """The new version.  Raises what NumPy raises."""
        return self.changed(_own(values, 0), values[1], caller)

    def changed(self, array: Any, value: Any, caller: Caller) -> Any:
        """The array itself, or the other scalar, after it.  Raises what NumPy raises."""
        return caller(self.change, (array, value), NO_NAMES)


_IN_PLACE = {row.symbol + "=": getattr(operator, "i" + row.name.rstrip("_")) for row in OPERATORS if row.kind == "binary"}


class Stored:
    """``a[index] = b``, as a new version of ``a``.  getitem: the call that reads there; ``b`` is the last operand."""

    __slots__ = ("getitem",)

    def __init__(self, getitem: Call):
        self.getitem = getitem

    @property
    def arity(self) -> int:
        """How many operands there are: array, index, values."""
        return self.getitem.arity + 1

    def statement(self, writer: Writer, name: str, operands: List[str]) -> str:
        """The text that gives ``name`` the new version."""
        first, *rest, value = operands
        return f"{name} = {first}.copy(); {writer.call(self.getitem, [name, *rest])} = {value}"

    def applied(self, values: List[Any], caller: Caller) -> Any:
        """The new version.  Raises what NumPy raises."""
        changed = _own(values, 0)
        caller(operator.setitem, (changed, self.getitem.index(values[1:-1]), values[-1]), NO_NAMES)
        return changed


class Overlay:
    """What an array is after its view has got new contents: the view's operation, and the contents as one operand more."""

    __slots__ = ("op",)

    def __init__(self, op: Any):
        self.op = op

    @property
    def arity(self) -> int:
        """How many operands there are: array, what the view needs, contents."""
        return self.op.count("{}") + 1 if type(self.op) is str else self.op.arity + 1

    def statement(self, writer: Writer, name: str, operands: List[str]) -> str:
        """The text that gives ``name`` the new version."""
        first, *rest, value = operands
        return f"{name} = {first}.copy(); {writer.operation(self.op, [name, *rest])}[...] = {value}"

    def applied(self, values: List[Any], caller: Caller) -> Any:
        """The new version.  Raises what NumPy raises."""
        changed = _own(values, 0)
        view = applied(self.op, [changed, *values[1:-1]], caller)
        if not np.may_share_memory(view, changed):      # of an array in order it is a view
            changed = changed.copy()
            view = applied(self.op, [changed, *values[1:-1]], caller)
        caller(operator.setitem, (view, ..., values[-1]), NO_NAMES)
        return changed


class Out:
    """A call with ``out=a``, as a new version of ``a``, which is its last operand."""

    __slots__ = ("call", "arity")

    def __init__(self, call: Call):
        self.call, self.arity = call, call.arity

    def statement(self, writer: Writer, name: str, operands: List[str]) -> str:
        """The text that gives ``name`` the new version."""
        *rest, out = operands
        return f"{name} = {out}.copy(); {writer.call(self.call, [*rest, name])}"

    def applied(self, values: List[Any], caller: Caller) -> Any:
        """The new version.  Raises what NumPy raises."""
        changed = _own(values, -1)
        caller(*self.call.bound([*values[:-1], changed]))
        return changed


#: The operations that give a new version of an array.
WRITES = frozenset({InPlace, Stored, Overlay, Out})

_made: Dict[Any, Any] = {}


def write_of(kind: Any, op: Any) -> Any:
    """The one object of a kind for an operation: writes are compared by identity, as calls are."""
    found = _made.get((kind, op))
    if found is None:
        if len(_made) >= 4096:
            _made.clear()
        found = _made.setdefault((kind, op), kind(op))
    return found

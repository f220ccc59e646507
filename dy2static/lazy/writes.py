"""Operations that write: each gives the changed copy of its first operand, which its program may make in place."""
from __future__ import annotations

from typing import Any, Dict, List

from .calls import Call, Writer


class InPlace:
    """``a += b``, as a new version of ``a``."""

    __slots__ = ("sign",)

    arity = 2

    def __init__(self, sign: str):
        self.sign = sign

    def statement(self, writer: Writer, name: str, operands: List[str]) -> str:
        """The text that gives ``name`` the new version."""
        return f"{name} = {operands[0]}.copy(); {name} {self.sign} {operands[1]}"


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


class Out:
    """A call with ``out=a``, as a new version of ``a``, which is its last operand."""

    __slots__ = ("call", "arity")

    def __init__(self, call: Call):
        self.call, self.arity = call, call.arity

    def statement(self, writer: Writer, name: str, operands: List[str]) -> str:
        """The text that gives ``name`` the new version."""
        *rest, out = operands
        return f"{name} = {out}.copy(); {writer.call(self.call, [*rest, name])}"


_made: Dict[Any, Any] = {}


def write_of(kind: Any, op: Any) -> Any:
    """The one object of a kind for an operation: writes are compared by identity, as calls are."""
    found = _made.get((kind, op))
    if found is None:
        if len(_made) >= 4096:
            _made.clear()
        found = _made.setdefault((kind, op), kind(op))
    return found

"""Calls of NumPy's functions and methods with arrays somewhere in their arguments, and their text."""
from __future__ import annotations

import operator
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np

from ..library_facts.python import symbols
from ..pyast.loader import compile_text

#: What makes a call of NumPy's: ``caller(function, args, kwargs)``, from a frame that says where.
Caller = Callable[[Any, Sequence[Any], Dict[str, Any]], Any]

#: What the text of an operator does.
OPERATORS: Dict[str, Callable[..., Any]] = {
    **{f"{{}} {sign} {{}}": function for function, sign in symbols("binary", "comparison").items()},
    **{f"{sign}{{}}": function for function, sign in symbols("unary").items()}, "abs({})": operator.abs,
    **{"{}." + name: operator.attrgetter(name) for name in ("T", "real", "imag")}}

NO_NAMES: Dict[str, Any] = {}


def plainly(function: Any, args: Sequence[Any], kwargs: Dict[str, Any]) -> Any:
    """The caller that stands nowhere else."""
    return function(*args, **kwargs)


class Hole(NamedTuple):
    """The place of an operand in the arguments of a call."""


class Group(NamedTuple):
    """A list, tuple, slice or dict in the arguments of a call; of a dict, the values under ``names``."""

    kind: type
    items: Tuple[Any, ...]
    names: Tuple[Any, ...] = ()


class Constant(NamedTuple):
    """What the arguments of a call say without arrays.  The type tells 1 from True."""

    kind: type
    value: Any


class Call:
    """A function or method with everything that is said in a call of it but for the operands.

    target: the function, or the name of the method.  There is one object for each form, so that forms are compared by identity.
    """

    __slots__ = ("target", "args", "kwargs", "is_method", "arity", "_rest", "_names", "_index", "_uses")

    def __init__(self, target: Any, args: Group, kwargs: Group, is_method: bool, arity: int):
        self.target, self.args, self.kwargs, self.is_method, self.arity = target, args, kwargs, is_method, arity
        self._index: Any = None
        self._uses = 0
        rest, named = args.items[arity:], kwargs.items
        holes_first = all([type(item) is Hole for item in args.items[:arity]]) and len(args.items) >= arity
        is_plain = holes_first and all([type(item) is Constant for item in (*rest, *named)])
        self._rest = tuple([item.value for item in rest]) if is_plain else None     # what follows the operands
        self._names = dict(zip(kwargs.names, [item.value for item in named])) if is_plain else {}

    def bound(self, operands: Sequence[Any]) -> Tuple[Callable[..., Any], Sequence[Any], Dict[str, Any]]:
        """What is called for these operands, which are values, and with which arguments."""
        if self.target == "__getitem__":
            first, *inside = operands
            return operator.getitem, (first, self.index(inside)), NO_NAMES
        args: List[Any]
        if self._rest is not None:
            args, kwargs = [*operands, *self._rest], self._names
        else:
            rest = iter(operands)
            args = [next(rest) if type(item) is Hole else _filled(item, rest) for item in self.args.items]
            kwargs = _filled(self.kwargs, rest) if self.kwargs.names else NO_NAMES
        return (getattr(args.pop(0), self.target) if self.is_method else self.target), args, kwargs

    def index(self, operands: Sequence[Any]) -> Any:
        """The index of a call that reads by one, for the operands inside of it.  One that is used often is compiled."""
        if self._index is None:
            self._uses += 1
            if self._uses < _OFTEN:
                return _filled(self.args.items[1], iter(operands))
            names = [f"x{number}" for number in range(self.arity)]
            writer = Writer()
            text = f"def index({', '.join(names[1:])}):\n    return np.s_[{writer.index(self.args.items[1], iter(names[1:]))}]\n"
            self._index = compile_text(text, "<index of a lazy array>", writer.names)["index"]
        return self._index(*operands)


#: Uses of an index after which it is compiled.
_OFTEN = 32


def applied(op: Any, operands: Sequence[Any], caller: Caller) -> Any:
    """What an operation gives for values.  Raises what NumPy raises."""
    kind = type(op)
    if kind is str:
        return caller(OPERATORS[op], operands, NO_NAMES)
    if kind is Call:
        return caller(*op.bound(operands))
    if kind is np.ufunc:
        return caller(op, operands, NO_NAMES)
    return op.applied(operands, caller)


def _filled(item: Any, rest: Iterator[Any]) -> Any:
    """A part of a form with operands in its holes."""
    if type(item) is Hole:
        return next(rest)
    if type(item) is Constant:
        return item.value
    parts = [_filled(part, rest) for part in item.items]
    if item.kind is dict:
        return dict(zip(item.names, parts))
    return slice(*parts) if item.kind is slice else item.kind(parts)


#: What the arguments of a call say by their values.
CONSTANTS = frozenset({int, bool, str, bytes, type(None), type(Ellipsis)})


class Writer:
    """Writes calls as Python.  names: what the text names, which its globals have to hold."""

    def __init__(self) -> None:
        self.names: Dict[str, Any] = {"np": np}

    def arity(self, op: Any) -> int:
        """How many operands an operation has."""
        if type(op) is str:
            return op.count("{}")
        found: int = op.nin if isinstance(op, np.ufunc) else op.arity
        return found

    def statement(self, name: str, op: Any, operands: List[str]) -> str:
        """The text that gives ``name`` the result of an operation."""
        write = getattr(op, "statement", None)
        text: str = f"{name} = {self.operation(op, operands)}" if write is None else write(self, name, operands)
        return text

    def operation(self, op: Any, operands: List[str]) -> str:
        """The text of an operator, a ufunc or a call."""
        if type(op) is str:
            return op.format(*operands)
        return self.call(op, operands) if type(op) is Call else f"{self.path(op)}({', '.join(operands)})"

    def call(self, call: Call, operands: List[str]) -> str:
        """The text of a call with these operands."""
        rest = iter(operands)
        if call.is_method and call.target == "__getitem__":
            array, index = next(rest), call.args.items[1]
            return f"{array}[{self.index(index, rest)}]"
        args = [self._text(item, rest) for item in call.args.items]
        first = f"{args.pop(0)}.{call.target}" if call.is_method else self.path(call.target)
        named = [f"{name}={self._text(item, rest)}" for name, item in zip(call.kwargs.names, call.kwargs.items)]
        return f"{first}({', '.join(args + named)})"

    def path(self, function: Any) -> str:
        """How a function, dtype or class is spelled."""
        name = getattr(function, "__name__", "")
        owner = getattr(function, "__self__", None)
        if isinstance(owner, np.ufunc):
            return f"{self.path(owner)}.{name}"
        for module, place in ((np, "np"), (np.linalg, "np.linalg"), (np.fft, "np.fft")):
            if name.isidentifier() and vars(module).get(name) is function:
                return f"{place}.{name}"
        return self._named(name, function)

    def _named(self, name: str, value: Any) -> str:
        name = name if name.isidentifier() else "value"
        while self.names.setdefault(name, value) is not value:
            name += "_"
        return name

    def _text(self, item: Any, rest: Any) -> str:
        if type(item) is Hole:
            text: str = next(rest)
            return text
        if type(item) is Constant:
            if item.kind in CONSTANTS:
                return "..." if item.value is Ellipsis else repr(item.value)
            return self.path(item.value)
        parts = [self._text(part, rest) for part in item.items]
        if item.kind is dict:
            return "{" + ", ".join(f"{name!r}: {part}" for name, part in zip(item.names, parts)) + "}"
        if item.kind is slice:
            return f"slice({', '.join(parts)})"
        if item.kind is list:
            return f"[{', '.join(parts)}]"
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def index(self, item: Any, rest: Any) -> str:
        """The text of an index: slices with colons."""
        if type(item) is Group and item.kind is slice:
            start, stop, step = ["" if _is_none(part) else self._text(part, rest) for part in item.items]
            return f"{start}:{stop}" + (f":{step}" if step else "")
        if type(item) is Group and item.kind is tuple and item.items:
            parts = [self.index(part, rest) for part in item.items]
            return ", ".join(parts) + ("," if len(parts) == 1 else "")
        return self._text(item, rest)


def _is_none(item: Any) -> bool:
    return type(item) is Constant and item.value is None

"""Calls of NumPy's functions and methods with arrays somewhere in their arguments: a form that is compared, and the operands."""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np

from .nodes import Node, leaf


class Unsupported(Exception):
    """An argument that no expression holds."""


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

    __slots__ = ("target", "args", "kwargs", "is_method", "arity")


    def __init__(self, target: Any, args: Group, kwargs: Group, is_method: bool, arity: int):
        self.target, self.args, self.kwargs, self.is_method, self.arity = target, args, kwargs, is_method, arity

    def on(self, operands: Sequence[Any]) -> Any:
        """What the call gives for these operands, which are values.  Raises what NumPy raises."""
        rest = iter(operands)
        args, kwargs = _filled(self.args, rest), _filled(self.kwargs, rest)
        return getattr(args[0], self.target)(*args[1:], **kwargs) if self.is_method else self.target(*args, **kwargs)


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


_HOLE = Hole()
_CONSTANTS = frozenset({int, bool, str, bytes, type(None), type(Ellipsis)})
_known: Dict[Any, Call] = {}

#: So many forms are kept; then they are forgotten, and what is built later is compiled again.
_MOST = 4096


def call_of(target: Any, args: Tuple, kwargs: Dict[str, Any], node_of: Callable[[Any], Any],
            is_method: bool = False) -> Tuple[Call, Tuple[Node, ...]]:
    """The form of a call and its operands.

    node_of: gives the node of an array, and None for what is none.
    Raises `Unsupported` where an argument can be in no expression.
    """
    operands: List[Any] = []
    key = (target, is_method, _key(args, node_of, operands), _key(kwargs, node_of, operands) if kwargs else None)
    found = _known.get(key)
    if found is None:
        rest: List[Any] = []
        form = _form(args, node_of, rest), _form(kwargs, node_of, rest)
        if len(_known) >= _MOST:
            _known.clear()
        found = _known.setdefault(key, Call(target, *form, is_method, len(operands)))
    return found, tuple(operands)


def _key(item: Any, node_of: Callable[[Any], Any], operands: List[Any]) -> Any:
    """What tells the forms of arguments from others, quickly made; None for an operand.  Raises `Unsupported`."""
    kind = type(item)
    if kind in _CONSTANTS:
        return kind, item
    if kind is tuple or kind is list:
        return (kind, *[_key(part, node_of, operands) for part in item])
    if kind is Index:
        return _index_key(item.index, node_of, operands)
    if kind is dict:
        return (kind, *item, *[_key(part, node_of, operands) for part in item.values()])
    if kind is slice:
        return slice, _key(item.start, node_of, operands), _key(item.stop, node_of, operands), _key(item.step, node_of, operands)
    node = node_of(item)
    if node is not None:
        operands.append(node)
        return None
    before = len(operands)
    form = _form(item, node_of, operands)
    return None if len(operands) > before else form


def _index_key(item: Any, node_of: Callable[[Any], Any], operands: List[Any]) -> Any:
    kind = type(item)
    if kind is int:
        operands.append(item)
        return None
    if kind is slice:
        bounds = item.start, item.stop, item.step
        given = [bound for bound in bounds if bound is not None]
        if all([type(bound) is int for bound in given]):
            operands += given
            return slice, bounds[0] is None, bounds[1] is None, bounds[2] is None
        return (kind, *[_index_key(bound, node_of, operands) for bound in bounds])
    if kind is tuple:
        return (kind, *[_index_key(part, node_of, operands) for part in item])
    return _key(item, node_of, operands)


def _form(item: Any, node_of: Callable[[Any], Any], operands: List[Any]) -> Any:
    kind = type(item)
    if kind in _CONSTANTS:
        return Constant(kind, item)
    if kind is Index:
        return _index_form(item.index, node_of, operands)
    if kind in (float, complex):
        operands.append(item)
        return _HOLE
    if isinstance(item, np.generic):
        operands.append(leaf(item))
        return _HOLE
    if kind in (tuple, list):
        return Group(kind, tuple([_form(part, node_of, operands) for part in item]))
    if kind is dict:
        return Group(dict, tuple([_form(part, node_of, operands) for part in item.values()]), tuple(item))
    if kind is slice:
        return Group(slice, tuple([_form(part, node_of, operands) for part in (item.start, item.stop, item.step)]))
    node = node_of(item)
    if node is not None:
        operands.append(node)
        return _HOLE
    if isinstance(item, (np.dtype, type, np.ufunc)):
        return Constant(kind, item)
    raise Unsupported(f"{kind.__name__} as an argument")


class Index(NamedTuple):
    """An index as an argument.  Its whole numbers are operands: they may vary from call to call."""

    index: Any


def _index_form(item: Any, node_of: Callable[[Any], Any], operands: List[Any]) -> Any:
    if type(item) is int:
        operands.append(item)
        return _HOLE
    if type(item) is tuple:
        return Group(tuple, tuple([_index_form(part, node_of, operands) for part in item]))
    if type(item) is slice:
        return Group(slice, tuple([_index_form(part, node_of, operands) for part in (item.start, item.stop, item.step)]))
    return _form(item, node_of, operands)


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
            if item.kind in _CONSTANTS:
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

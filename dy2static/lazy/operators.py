"""Operators, indexing and methods of lazy arrays, from tables."""
from __future__ import annotations

import sys
from typing import Any, Callable

import numpy as np

from ..library_facts.python import symbols
from .arrays import LazyArray, array_of_node
from .calls import Index, Unsupported, call_of
from .depth import MOST_DEPTH, keep_shallow
from .evaluation import result_of
from .functions import METHODS
from .nodes import COMPUTED, NUMBERS, TRACED, Node, call_node, leaf
from .protocols import method_called, node_of, operand, values
from .views import is_alone, is_scalar, view_of, write
from .writes import InPlace, Stored, write_of

_frame = sys._getframe
_new = object.__new__


def _binary(text: str) -> Callable[[LazyArray, Any], Any]:
    def method(self: LazyArray, other: Any) -> Any:
        left = self._node if self._view is None else self._now
        kind = type(other)
        node = _new(Node)
        depth = left.depth
        if kind is LazyArray:
            other = other._node if other._view is None else other._now
            if other.depth > depth:
                depth = other.depth
        elif kind not in NUMBERS:
            other = operand(other)
            if other is None:
                return NotImplemented
        frame = _frame(1)
        node.op, node.args, node.code, node.last, node.depth = text, (left, other), frame.f_code, frame.f_lasti, depth + 1
        node.result = node.type = None
        if MOST_DEPTH <= depth < TRACED:
            keep_shallow(node)
        made = _new(LazyArray)
        made._node, made._view = node, None
        return made
    return method


def _reflected(text: str) -> Callable[[LazyArray, Any], Any]:
    def method(self: LazyArray, other: Any) -> Any:
        first = operand(other)
        if first is None:
            return NotImplemented
        return array_of_node(call_node(text, (first, self._now), _frame(1)))
    return method


def _in_place(text: str, sign: str) -> Callable[[LazyArray, Any], Any]:
    op = InPlace(sign)

    def method(self: LazyArray, other: Any) -> Any:
        given = operand(other)
        if given is None:
            return NotImplemented
        frame = _frame(1)
        if is_scalar(self):                             # as NumPy's: the name gets another object
            return array_of_node(call_node(text, (self._now, given), frame))
        node = call_node(op, (self._now, given), frame)
        if MOST_DEPTH < node.depth < TRACED:
            keep_shallow(node)
        write(self, node, frame)
        return self
    return method


def _unary(text: str) -> Callable[[LazyArray], Any]:
    def method(self: LazyArray) -> Any:
        return array_of_node(call_node(text, (self._now,), _frame(1)))
    return method


def _named_method(name: str) -> Callable[..., Any]:
    def method(self: LazyArray, *args: Any, **kwargs: Any) -> Any:
        return method_called(name, (self, *args), kwargs, _frame(1))
    method.__name__ = name
    method.__doc__ = f"As ``numpy.ndarray.{name}``, lazily."
    return method


def _seen_by(name: str) -> property:
    def attribute(self: LazyArray) -> LazyArray:
        return view_of(self, "{}.%s" % name, (), lambda there: getattr(there, name), _frame(1), unsure=name in ("real", "imag"))
    return property(attribute, doc=f"As ``numpy.ndarray.{name}``, lazily.")


def _last_two_exchanged(self: LazyArray) -> LazyArray:
    """The array with its last two axes exchanged."""
    return method_called("swapaxes", (self, -1, -2), {}, _frame(1))     # type: ignore[no-any-return]


# --- indexing ---------------------------------------------------------------------------------------------------------------------

_BASIC = frozenset({int, slice, type(None), type(Ellipsis)})


def is_basic(index: Any) -> bool:
    """Whether an index chooses without arrays, so that NumPy gives a view, or a scalar."""
    if type(index) is tuple:
        return all([type(part) in _BASIC for part in index])
    return type(index) in _BASIC


def _is_constant(node: Node) -> bool:
    """Whether a node has been computed, and no gradient goes on from it."""
    return node.result is not None and node.depth < TRACED


def _is_there(index: Any) -> bool:
    """Whether all arrays in an index have been computed."""
    if type(index) is tuple:
        return all(map(_is_there, index))
    return type(index) is not LazyArray or index.is_evaluated


def _gives_scalars(index: Any) -> bool:
    """Whether a basic index may choose one element."""
    return all([type(part) is int for part in index]) if type(index) is tuple else type(index) is int


def _getitem(self: LazyArray, index: Any) -> Any:
    frame = _frame(1)
    index = _plain(index)
    if is_basic(index):
        unsure = self._now.result is None and _gives_scalars(index)
        return view_of(self, *_index_call(self, index), lambda there: there[index], frame, unsure)
    try:
        call, operands = call_of("__getitem__", (self, Index(index)), {}, node_of, is_method=True)
    except Unsupported:
        return array_of_node(leaf(result_of(self._now)[values(index)], COMPUTED))
    return array_of_node(call_node(call, operands, frame))


def _index_call(array: LazyArray, index: Any) -> Any:
    call, operands = call_of("__getitem__", (array, Index(index)), {}, node_of, is_method=True)
    return call, operands[1:]


def _plain(index: Any) -> Any:
    """An index with NumPy's whole numbers as Python's."""
    if type(index) is tuple:
        return tuple([_plain(part) for part in index])
    return int(index) if isinstance(index, np.integer) else index


def _setitem(self: LazyArray, index: Any, value: Any) -> None:
    frame = _frame(1)
    index = _plain(index)
    given = operand(value)
    if given is None:
        raise TypeError(f"{type(value).__name__} cannot be stored in a lazy array")
    if is_scalar(self):
        raise TypeError(f"'{type(result_of(self._now)).__name__}' object does not support item assignment")
    there = self._view is None and _is_constant(self._node) and (type(given) is not Node or _is_constant(given))
    if there and _is_there(index):
        index = values(index)
        result = given.result if type(given) is Node else given
        del given, value
        if is_alone(self):
            self._node.result[index] = result
        else:
            changed = self._node.result.copy(order="K")
            changed[index] = result
            self._node = leaf(changed, COMPUTED)
        return
    try:
        call, operands = call_of("__getitem__", (self, Index(index)), {}, node_of, is_method=True)
    except Unsupported:
        changed = np.array(result_of(self._now))
        changed[values(index)] = values(value)
        write(self, leaf(changed, COMPUTED), frame)
        return
    node = call_node(write_of(Stored, call), (*operands, given), frame)
    if MOST_DEPTH < node.depth < TRACED:
        keep_shallow(node)
    write(self, node, frame)


_ARITHMETIC, _COMPARISONS = [{function.__name__.rstrip("_"): sign for function, sign in symbols(kind).items()}
                             for kind in ("binary", "comparison")]


def install() -> None:
    """Give lazy arrays their operators and methods."""
    for name, sign in _ARITHMETIC.items():
        text = "{} %s {}" % sign
        setattr(LazyArray, f"__{name}__", _binary(text))
        setattr(LazyArray, f"__r{name}__", _reflected(text))
        setattr(LazyArray, f"__i{name}__", _in_place(text, f"{sign}="))
    for name, sign in _COMPARISONS.items():
        setattr(LazyArray, f"__{name}__", _binary("{} %s {}" % sign))
    for name, text in (("neg", "-{}"), ("pos", "+{}"), ("invert", "~{}"), ("abs", "abs({})")):
        setattr(LazyArray, f"__{name}__", _unary(text))
    for name in METHODS:
        setattr(LazyArray, name, _named_method(name))
    for name in ("T", "real", "imag"):
        setattr(LazyArray, name, _seen_by(name))
    LazyArray.mT = property(_last_two_exchanged)        # type: ignore[attr-defined]
    LazyArray.__divmod__ = lambda self, other: (self // other, self % other)        # type: ignore[attr-defined]
    LazyArray.__rdivmod__ = lambda self, other: (other // self, other % self)       # type: ignore[attr-defined]
    LazyArray.__getitem__, LazyArray.__setitem__ = _getitem, _setitem               # type: ignore[attr-defined]


install()

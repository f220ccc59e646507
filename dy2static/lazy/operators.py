"""Operators and methods of lazy arrays, from tables."""
from __future__ import annotations

import operator
import sys
from typing import Any, Callable, FrozenSet

import numpy as np

from ..library_facts.lazy import METHODS as marks_of
from ..library_facts.python import symbols
from . import evaluation
from .arrays import LazyArray, array_of_op
from .calls import OPERATORS
from .depth import MOST_DEPTH, keep_shallow
from .evaluation import result_of
from .forms import Unsupported, call_of, operand
from .functions import METHODS
from .nodes import NUMBERS, TRACED, Node, call_node, writing
from .protocols import at_once, called
from .sites import caller_of
from .views import is_constant, is_scalar, view_of, write, write_now
from .writes import InPlace

_frame = sys._getframe
_new = object.__new__


#: What a scalar of NumPy's that is a whole number repeats.
_SEQUENCES = frozenset({list, tuple})


def _is_count(array: LazyArray) -> bool:
    return is_scalar(array) and array.dtype.kind in "iu"


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
            if kind in _SEQUENCES and text == "{} * {}" and _is_count(self):
                return other * operator.index(self)
            given = operand(other)
            if given is None:
                return _with_object(text, self, other, other, _frame(1))
            other = given
        frame = _frame(1)
        node.op, node.args, node.code, node.last, node.depth = text, (left, other), frame.f_code, frame.f_lasti, depth + 1
        node.result = node.type = None
        if MOST_DEPTH <= depth < TRACED:
            keep_shallow(node)
        made = _new(LazyArray)
        made._node, made._view = node, None
        return made
    return method


def _with_object(operation: Any, left: Any, right: Any, other: Any, frame: Any) -> Any:
    """What NumPy's operator gives for a lazy array and an object that no expression holds, unless the object decides itself.

    operation: the text of the operator, or the function that writes to ``left``.
    """
    if hasattr(other, "__array_ufunc__") or hasattr(other, "__array_priority__"):
        return NotImplemented
    is_changing = type(operation) is not str
    return at_once(operation if is_changing else OPERATORS[operation], (left, right), {}, frame, is_changing)


def _reflected(text: str) -> Callable[[LazyArray, Any], Any]:
    def method(self: LazyArray, other: Any) -> Any:
        if type(other) in _SEQUENCES and text == "{} * {}" and _is_count(self):
            return other * operator.index(self)
        first = other if type(other) in NUMBERS else operand(other)
        if first is None:
            return _with_object(text, other, self, other, _frame(1))
        return array_of_op(text, (first, self._node if self._view is None else self._now), _frame(1))
    return method


def _in_place(text: str, sign: str) -> Callable[[LazyArray, Any], Any]:
    op = InPlace(sign)

    def method(self: LazyArray, other: Any) -> Any:
        given = operand(other)
        frame = _frame(1)
        if given is None:
            return _with_object(op.change, self, other, other, frame)
        if is_scalar(self):                             # as NumPy's: the name gets another object
            return array_of_op(text, (self._now, given), frame)
        with writing:
            if self._view is None or not _is_changed_now(self, op, given, frame):
                write(self, call_node(op, (self._now, given), frame), frame)
        return self
    return method


def _is_changed_now(view: LazyArray, op: InPlace, given: Any, frame: Any) -> bool:
    """Whether a small view has been changed in place; an expression would copy all that it sees."""
    now = view._now
    if not is_constant(now) or now.result.size > evaluation.SMALL or not evaluation.may_be_direct():
        return False
    del now
    if type(given) is Node:
        if not evaluation.compute_small((given,)):
            return False
        given = given.result
    caller = caller_of(call_node(op, (), frame))
    return write_now(view, lambda there: op.changed(there, given, caller))


def _unary(text: str) -> Callable[[LazyArray], Any]:
    def method(self: LazyArray) -> Any:
        return array_of_op(text, (self._node if self._view is None else self._now,), _frame(1))
    return method


def _named_method(name: str, marks: FrozenSet[str]) -> Callable[..., Any]:
    is_view, is_unsure, is_frozen, is_late = "sees" in marks, "memory" in marks, "fixed" in marks, "late" in marks

    def method(self: LazyArray, *args: Any, **kwargs: Any) -> Any:
        frame = _frame(1)
        if "out" in kwargs and kwargs["out"] is not None:
            return called(getattr(np, name), (self, *args), kwargs, frame, True)
        try:
            call, operands = call_of(name, (self, *args), kwargs, is_method=True)
        except Unsupported:
            return at_once(getattr(np.ndarray, name), (self, *args), kwargs, frame, False)
        if is_view or name == "astype" and not kwargs.get("copy", True):
            late = is_late or not is_view               # astype computes, unless it gives the array itself
            result = None if late else operands[0].result
            there = getattr(result, name)(*args, **kwargs) if result is not None and len(operands) == 1 else None
            return view_of(self, call, operands[1:], frame, unsure=is_unsure or not is_view, frozen=is_frozen, there=there,
                           late=late)
        return array_of_op(call, operands, frame)
    method.__name__ = name
    method.__doc__ = f"As ``numpy.ndarray.{name}``, lazily."
    return method


def _seen_by(name: str) -> property:
    text, is_unsure = "{}." + name, name in ("real", "imag")

    def attribute(self: LazyArray) -> LazyArray:
        return view_of(self, text, (), _frame(1), unsure=is_unsure)

    def assign(self: LazyArray, value: Any) -> None:
        if is_scalar(self):
            setattr(result_of(self._now), name, value)  # NumPy says that it is not writable
        if name == "imag" and self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        attribute(self)[...] = value                    # type: ignore[index]
    return property(attribute, assign, doc=f"As ``numpy.ndarray.{name}``, lazily.")


def _last_two_exchanged(self: LazyArray) -> LazyArray:
    """The array with its last two axes exchanged."""
    call, operands = call_of("swapaxes", (self, -1, -2), {}, is_method=True)
    return view_of(self, call, operands[1:], _frame(1))


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
        setattr(LazyArray, name, _named_method(name, marks_of[name]))
    for name in ("T", "real", "imag"):
        setattr(LazyArray, name, _seen_by(name))
    LazyArray.mT = property(_last_two_exchanged)        # type: ignore[attr-defined]
    LazyArray.__divmod__ = lambda self, other: (self // other, self % other)        # type: ignore[attr-defined]
    LazyArray.__rdivmod__ = lambda self, other: (other // self, other % self)       # type: ignore[attr-defined]


install()

"""Sizes of arrays that only the run knows, as user code and Chainer get them."""
from __future__ import annotations

import operator
from typing import Any, Callable, Optional, Tuple

import numpy as np

from ..capture_context import CaptureContext
from ..heap.stand_ins import stands_for
from ..ir.dims import Dim, equal, less
from ..ir.op import OPS


class Size(Dim):
    """A size in the shape of a symbolic array.

    Sums and products with ints are sizes again; anything else is a number of the graph, and where Python needs the number itself,
    the capture stops.  dtype: what NumPy makes of it, if it was computed with NumPy's integers; None for an int of Python's.
    """

    __slots__ = ("capture", "dtype_of_number")

    #: Numbers of NumPy leave arithmetic to the size.
    __array_ufunc__ = None

    def __init__(self, capture: CaptureContext, size: Dim, dtype: Optional[np.dtype] = None):
        self.capture, self.dtype_of_number = capture, dtype
        self._set(size._terms)

    @property
    def plain(self) -> Dim:
        """The size without the capture: what the graph holds."""
        made = Dim.__new__(Dim)
        made._set(self._terms)
        return made

    @property
    def number(self) -> Any:
        """The size as a symbolic number."""
        value, = self.capture.builder.add(OPS["dimension"], (), {"size": self.plain}, name="size")
        self.capture.dimensions[value] = self.plain
        number, dtype = self.capture.wrap(value), self.dtype_of_number
        if dtype is not None:
            number = self.capture.numpy.call(dtype.type, (number,), {})
            self.capture.dimensions[number.value] = self.plain
        return number

    @property
    def value(self) -> Any:
        """The size as a value of the graph."""
        return self.number.value

    @property
    def __class__(self) -> type:
        return int if self.dtype_of_number is None else self.dtype_of_number.type

    def __index__(self) -> int:
        self.capture.abort("something here depends on a size that is known at run time only", sizes=self.symbols)

    __int__ = __index__

    def __hash__(self) -> int:
        return hash(self.__index__())                   # equal numbers are equal keys

    def _text(self, *_: Any) -> str:
        return self.capture.abort("a string is made of a size that is known at run time only", sizes=self.symbols)

    __str__ = __repr__ = __format__ = _text

    @property
    def truth(self) -> Any:
        """Whether it is not 0: a bool, or the number if only the run knows."""
        is_zero = equal(self.plain, 0)
        return self.number if is_zero is None else not is_zero

    def __bool__(self) -> bool:
        return bool(self.truth)

    def __float__(self) -> float:
        return float(self.__index__())

    def __eq__(self, other: Any) -> Any:
        if _is_known(other):
            known = equal(self.plain, _plain(other))
            if known is not None:
                return known if type(_one(self)) is type(_one(other)) is int else np.bool_(known)
        if isinstance(other, (int, float, complex, np.number, np.bool_, Dim)):
            return self.number == _number(other)
        return NotImplemented

    def __ne__(self, other: Any) -> Any:
        same = self.__eq__(other)
        return not same if type(same) is bool else np.bool_(not same) if type(same) is np.bool_ else \
            same if same is NotImplemented else self.number != _number(other)


class Shape(tuple):
    """A shape with a size that is not known; another one of other length, or with a size that differs, is another."""

    __slots__ = ()
    __hash__ = tuple.__hash__

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, tuple) or len(self) != len(other):
            return False
        answers = [a == b for a, b in zip(self, other)]
        unknown = [answer for answer in answers if not isinstance(answer, (bool, np.bool_)) or type(answer) not in _TRUTHS]
        if any(type(answer) in _TRUTHS and not answer for answer in answers):
            return False
        return all(map(bool, unknown))

    def __ne__(self, other: Any) -> Any:
        return not self == other


#: Shifts by more bits are left to numbers, and larger masks.
_MOST_BITS = 31

stands_for(Size, int)
stands_for(Shape, tuple)
_TRUTHS = (bool, np.bool_)


def as_shape(item: Any) -> Any:
    """A tuple with sizes that are not known as a `Shape`, which Chainer's functions compare; anything else as it is."""
    return Shape(item) if type(item) is tuple and any([type(n) is Size for n in item]) else item


def sizes(capture: CaptureContext, shape: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """A shape with `Size` for what is not known."""
    if not any(isinstance(n, Dim) for n in shape):
        return shape
    return Shape([Size(capture, n) if isinstance(n, Dim) else n for n in shape])


def _is_known(other: Any) -> bool:
    """Whether this is a size or a whole number, and none that only the run knows, which says it is one."""
    return isinstance(other, Dim) or issubclass(type(other), (int, np.integer))


def _plain(other: Any) -> Any:
    return other.plain if isinstance(other, Dim) else int(other)


def _number(other: Any) -> Any:
    return other.number if type(other) is Size else other


def _one(operand: Any) -> Any:
    """One, as a number of the operand's type."""
    dtype = operand.dtype_of_number if isinstance(operand, Size) else getattr(operand, "dtype", None)
    return 1 if dtype is None else dtype.type(1)


def _arithmetic(name: str) -> Tuple[Callable, Callable]:
    function = getattr(operator, name)

    def made(self: Size, other: Any, function: Callable) -> Any:
        if type(other) in (int, np.int32, np.int64) or isinstance(other, Dim):
            result, dtype = function(self.plain, _plain(other)), None
            if isinstance(other, np.integer) or (self.dtype_of_number or getattr(other, "dtype_of_number", None)) is not None:
                dtype = function(_one(self), _one(other)).dtype
            return Size(self.capture, result, dtype) if isinstance(result, Dim) else result if dtype is None else dtype.type(result)
        if name == "mul" and isinstance(other, list):
            return self.capture.filled_lists.repeated(other, self)
        return function(self.number, other)

    def forward(self: Size, other: Any) -> Any:
        return made(self, other, function)

    def backward(self: Size, other: Any) -> Any:
        return made(self, other, lambda a, b: function(b, a))
    return forward, backward


def _division(name: str) -> Tuple[Callable, Callable]:
    """``//`` or ``%``, which the run computes where the divisor may be zero: then it raises, or, of NumPy's numbers, warns."""
    (forward, backward), (of_number, by_number) = _arithmetic(name), _delegated(name)

    def needs_run(self: Size, other: Any, divisor: Any) -> bool:
        is_whole = _is_known(other) and equal(_plain(divisor), 0) is not False
        return is_whole and (name == "mod" or type(_one(self)) is not int or type(_one(other)) is not int)
    return (lambda self, other: (of_number if needs_run(self, other, other) else forward)(self, other),
            lambda self, other: (by_number if needs_run(self, other, self) else backward)(self, other))


def _delegated(name: str) -> Tuple[Callable, Callable]:
    function = getattr(operator, name)
    return (lambda self, other: function(self.number, _number(other)),
            lambda self, other: function(_number(other), self.number))


def _comparison(name: str) -> Callable:
    function = getattr(operator, name)

    def compared(self: Size, other: Any) -> Any:
        if type(other) is int or isinstance(other, Dim):
            first, second = (self.plain, _plain(other)) if name in ("lt", "ge") else (_plain(other), self.plain)
            known = less(first, second)
            if known is not None:
                known = known if name in ("lt", "gt") else not known
                return known if self.dtype_of_number is None else np.bool_(known)
        return function(self.number, _number(other))
    return compared


def _shift(name: str) -> Tuple[Callable, Callable]:
    exact = {"lshift": operator.mul, "rshift": operator.floordiv}[name]
    forward, backward = _delegated(name)

    def shifted(self: Size, by: Any) -> Any:
        return exact(self, 1 << by) if type(by) is int and 0 <= by < _MOST_BITS else forward(self, by)
    return shifted, backward


def _and(self: Size, other: Any) -> Any:
    if type(other) is int and 0 <= other < 1 << _MOST_BITS and other & (other + 1) == 0:
        return self % (other + 1)                       # the last bits, also of numbers below zero
    return _delegated("and_")[0](self, other)


def _install_operators() -> None:
    made = {**{name: _arithmetic(name) for name in ("add", "sub", "mul")},
            **{name: _division(name) for name in ("floordiv", "mod")},
            **{name: _delegated(name) for name in ("truediv", "pow", "or_", "xor")},
            **{name: _shift(name) for name in ("lshift", "rshift")}, "and_": (_and, _and)}
    for name, (forward, backward) in made.items():
        setattr(Size, f"__{name.rstrip('_')}__", forward)
        setattr(Size, f"__r{name.rstrip('_')}__", backward)
    for name in ("lt", "le", "gt", "ge"):
        setattr(Size, f"__{name}__", _comparison(name))
    for name, unary in (("neg", lambda self: self * -1), ("pos", lambda self: self * 1), ("invert", lambda self: self * -1 - 1)):
        setattr(Size, f"__{name}__", unary)
    Size.real = Size.numerator = property(lambda self: self)    # type: ignore[attr-defined]


_install_operators()

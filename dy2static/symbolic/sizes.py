"""Sizes of arrays that only the run knows, as user code and Chainer get them."""
from __future__ import annotations

import operator
from typing import Any, Callable, Tuple

import numpy as np

from ..capture_context import CaptureContext
from ..heap.stand_ins import stands_for
from ..ir.dims import Dim, equal, less
from ..ir.op import OPS


class Size(Dim):
    """A size in the shape of a symbolic array.

    Sums and products with ints are sizes again; anything else is a number of the graph, and where Python needs the number itself,
    the capture stops.
    """

    __slots__ = ("capture",)

    #: Numbers of NumPy leave arithmetic to the size.
    __array_ufunc__ = None

    def __init__(self, capture: CaptureContext, size: Dim):
        self.capture = capture
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
        return self.capture.wrap(value)

    @property
    def value(self) -> Any:
        """The size as a value of the graph."""
        return self.number.value

    @property
    def __class__(self) -> type:
        return int

    def __index__(self) -> int:
        self.capture.abort("a size that is known at run time only decides something here", sizes=self.symbols)

    __int__ = __index__

    def __hash__(self) -> int:
        return hash(self.__index__())                   # equal numbers are equal keys

    def _text(self, *_: Any) -> str:
        return self.capture.abort("the text of a size that is known at run time only", sizes=self.symbols)

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
        if isinstance(other, (int, Dim)):
            known = equal(self.plain, _plain(other))
            return self.number == _number(other) if known is None else known
        return NotImplemented

    def __ne__(self, other: Any) -> Any:
        same = self.__eq__(other)
        return not same if isinstance(same, bool) and type(same) is bool else \
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
        if any(answer is False for answer in answers):
            return False
        return all(map(bool, unknown))

    def __ne__(self, other: Any) -> Any:
        return not self == other


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


def _plain(other: Any) -> Any:
    return other.plain if isinstance(other, Dim) else int(other)


def _number(other: Any) -> Any:
    return other.number if type(other) is Size else other


def _arithmetic(name: str) -> Tuple[Callable, Callable]:
    function = getattr(operator, name)

    def made(self: Size, other: Any, function: Callable) -> Any:
        if type(other) is int or isinstance(other, Dim):
            result = function(self.plain, _plain(other))
            return Size(self.capture, result) if isinstance(result, Dim) else result
        if type(other).__module__.startswith("numpy") and type(other).__name__.startswith(("int", "uint")):
            return made(self, int(other), function)
        return function(self.number, other)

    def forward(self: Size, other: Any) -> Any:
        return made(self, other, function)

    def backward(self: Size, other: Any) -> Any:
        return made(self, other, lambda a, b: function(b, a))
    return forward, backward


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
                return known if name in ("lt", "gt") else not known
        return function(self.number, _number(other))
    return compared


def _install_operators() -> None:
    for name in ("add", "sub", "mul", "floordiv", "mod"):
        forward, backward = _arithmetic(name)
        setattr(Size, f"__{name}__", forward)
        setattr(Size, f"__r{name}__", backward)
    for name in ("truediv", "pow"):
        forward, backward = _delegated(name)
        setattr(Size, f"__{name}__", forward)
        setattr(Size, f"__r{name}__", backward)
    for name in ("lt", "le", "gt", "ge"):
        setattr(Size, f"__{name}__", _comparison(name))
    Size.__neg__ = lambda self: self * -1     # type: ignore[method-assign]


_install_operators()

"""Sizes of arrays that only the run knows, as user code and Chainer get them."""
from __future__ import annotations

import operator
from typing import Any, Callable, Tuple

from ..ir.dims import Dim, equal
from ..ir.op import OPS


class Size(Dim):
    """A size in the shape of a symbolic array.  Sums and products with ints are sizes again; anything else is a number
    of the graph, and where Python needs the number itself, the capture stops."""

    __slots__ = ("capture",)

    def __init__(self, capture: Any, size: Dim):
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
        return self.capture.wrap(value)

    def __index__(self) -> int:
        self.capture.abort("a size that is known at run time only decides something here")

    __int__ = __index__
    __hash__ = Dim.__hash__

    def __bool__(self) -> bool:
        return bool(self.number)

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


def sizes(capture: Any, shape: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """A shape with `Size` for what is not known."""
    if not any(isinstance(n, Dim) for n in shape):
        return shape
    return tuple([Size(capture, n) if isinstance(n, Dim) else n for n in shape])


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
        setattr(Size, f"__{name}__", _delegated(name)[0])
    Size.__neg__ = lambda self: self * -1     # type: ignore[method-assign]


_install_operators()

"""The operators of Python on symbolic arrays and numbers: each stands for a call that the capture takes down."""
from __future__ import annotations

import operator
from typing import Any, Callable, Tuple

import chainer

from ..library_facts.python import symbols

_BINARY, _COMPARE, _UNARY = ([f.__name__ for f in symbols(kind)] for kind in ("binary", "comparison", "unary"))
#: How expressions write those that Python numbers have.
_SYMBOLS = {f.__name__: symbol for f, symbol in symbols("binary", "comparison").items() if f is not operator.matmul}


def _array_operator(name: str) -> Tuple[Callable, Callable]:
    function = getattr(operator, name)

    def forward(self: Any, other: Any) -> Any:
        if isinstance(other, chainer.Variable):
            return NotImplemented
        return self.capture.numpy.call(function, (self, other), {})

    def backward(self: Any, other: Any) -> Any:
        return self.capture.numpy.call(function, (other, self), {})
    return forward, backward


def _in_place_operator(name: str) -> Callable:
    function = getattr(operator, f"i{name.rstrip('_')}")

    def in_place(self: Any, other: Any) -> Any:
        if self.is_scalar or isinstance(other, chainer.Variable):   # of which NumPy's arrays leave it to the Variable, too
            return NotImplemented
        self.capture.array_writes.write(self, function, (other,), {})
        return self
    return in_place


def _scalar_operator(name: str, symbol: str, wider: type) -> Tuple[Callable, Callable]:
    function = getattr(operator, name)

    def forward(self: Any, other: Any) -> Any:
        if isinstance(other, (chainer.Variable, wider)):
            return NotImplemented
        return self.capture.expressions.operation(function, symbol, self, other)

    def backward(self: Any, other: Any) -> Any:
        return self.capture.expressions.operation(function, symbol, other, self)
    return forward, backward


def _contents_operator(name: str) -> Callable:
    function = {"__int__": int, "__float__": float, "__complex__": complex, "__str__": str,
                "__repr__": repr, "__format__": format, "__contains__": operator.contains}[name]

    def of_contents(self: Any, *args: Any) -> Any:
        return function(self.contents(), *args)
    return of_contents


def give_array_operators(cls: type) -> None:
    """Give the class of symbolic arrays the operators of arrays."""
    for name in ("__int__", "__float__", "__complex__", "__str__", "__repr__", "__format__", "__contains__"):
        setattr(cls, name, _contents_operator(name))
    for name in _BINARY + _COMPARE:
        plain = name.rstrip("_")
        forward, backward = _array_operator(name)
        setattr(cls, f"__{plain}__", forward)
        if name in _BINARY:
            setattr(cls, f"__r{plain}__", backward)
            setattr(cls, f"__i{plain}__", _in_place_operator(name))
    for name in (*_UNARY, "abs"):
        def array_unary(self: Any, function: Callable = getattr(operator, name)) -> Any:
            return self.capture.numpy.call(function, (self,), {})
        setattr(cls, f"__{name}__", array_unary)


def give_number_operators(cls: type, wider: type) -> None:
    """Give the class of symbolic numbers the operators of numbers.  wider: the class of arrays, whose own come first."""
    for name in _SYMBOLS:
        plain = name.rstrip("_")
        forward, backward = _scalar_operator(name, _SYMBOLS[name], wider)
        setattr(cls, f"__{plain}__", forward)
        if name in _BINARY:
            setattr(cls, f"__r{plain}__", backward)
    for name, symbol in (("neg", "-"), ("pos", "+"), ("invert", "~"), ("abs", "abs")):
        def scalar_unary(self: Any, function: Callable = getattr(operator, name), symbol: str = symbol) -> Any:
            return self.capture.expressions.operation(function, symbol, self)
        setattr(cls, f"__{name}__", scalar_unary)

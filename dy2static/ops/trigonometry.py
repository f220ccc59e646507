"""Trigonometric functions, their inverses, hyperbolic functions, logarithms and powers to other bases, and the cube root.

The derivatives read ``x``, and are Chainer's formulas.
"""
from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

from ..ir.graph import Value
from ..ir.op import OpDef, declare, sample
from .elementwise import number_by, power_const, sqrt, square
from .gradient_rules import by_rule
from .onnx_forms import arithmetic, functions
from .rules import elementwise
from .samples import AWAY_FROM_ZERO, ONE

sin = declare(
    "sin", "x", kind="elementwise", infer=elementwise(np.sin),
    vjp=lambda g, y, x: (by_rule(cos(x) * g, x, g, rule="sin_gradient"),),
    numpy="np.sin({x}, out={out})",
    c="sin_{s}({x})",
    onnx=arithmetic.of_result("Sin"),
    samples=ONE,
)

cos: OpDef = declare(
    "cos", "x", kind="elementwise", infer=elementwise(np.cos),
    vjp=lambda g, y, x: (by_rule(-(sin(x) * g), x, g, rule="cos_gradient"),),
    numpy="np.cos({x}, out={out})",
    c="cos_{s}({x})",
    onnx=arithmetic.of_result("Cos"),
    samples=ONE,
)

tan = declare(
    "tan", "x", kind="elementwise", infer=elementwise(np.tan),
    vjp=lambda g, y, x: (g / square(cos(x)),),
    numpy="np.tan({x}, out={out})",
    c="tan_{s}({x})",
    onnx=functions.tan,
    samples=ONE,
)


def _function(name: str, vjp: Callable[..., Any], low: float = -0.9, high: float = 0.9) -> OpDef:
    """An op for a NumPy function of one array, tried between two bounds."""
    shapes = ((4, 3), (), (0, 3), (1,))
    return declare(
        name, "x", kind="elementwise", infer=elementwise(getattr(np, name)), vjp=vjp,
        numpy=f"np.{name}({{x}}, out={{out}})", c=f"{name}_{{s}}({{x}})", onnx=getattr(functions, name),
        samples=tuple(sample(shape, low=low, high=high) for shape in shapes))


def _one_by(x):
    """As `np.reciprocal`, which NumPy's warnings name."""
    return power_const(x, exponent=-1)


def arcsin_gradient(x: Value, g: Value) -> Value:
    """The gradient of `arcsin`, given the one of its result."""
    return by_rule(_one_by(sqrt(1.0 - square(x))) * g, x, g, rule="arcsin_second")


def arccos_gradient(x: Value, g: Value) -> Value:
    """The gradient of `arccos`, given the one of its result."""
    return by_rule(-_one_by(sqrt(1.0 - square(x))) * g, x, g, rule="arccos_second")


arcsin = _function("arcsin", lambda g, y, x: (arcsin_gradient(x, g),))
arccos = _function("arccos", lambda g, y, x: (arccos_gradient(x, g),))
arctan = _function("arctan", lambda g, y, x: (by_rule(1.0 / (square(x) + 1.0) * g, x, g, rule="arctan_gradient"),))
arctanh = _function("arctanh", lambda g, y, x: (number_by(1.0, 1.0 - power_const(x, exponent=2)) * g,))
sinh: OpDef = _function("sinh", lambda g, y, x: (cosh(x) * g,))
cosh: OpDef = _function("cosh", lambda g, y, x: (sinh(x) * g,))
log2 = _function("log2", lambda g, y, x: (g / x * (1 / math.log(2)),), 0.5, 2.0)
log10 = _function("log10", lambda g, y, x: (g / x * (1 / math.log(10)),), 0.5, 2.0)
exp2 = _function("exp2", lambda g, y, x: (g * y * math.log(2),), -3.0, 3.0)
cbrt = _function("cbrt", lambda g, y, x: (g / (square(y) * 3.0),), -3.0, 3.0)


logaddexp = declare(
    "logaddexp", "a b", kind="elementwise", infer=elementwise(np.logaddexp),
    numpy="np.logaddexp({a}, {b}, out={out})",
    c="logaddexp_{s}({a}, {b})",
    onnx=functions.logaddexp,
    samples=AWAY_FROM_ZERO,
)


def _arctan2_vjp(g, y, a, b):
    norm = power_const(a, exponent=2) + power_const(b, exponent=2)
    return by_rule(b / norm * g, a, b, g, rule="arctan2_first"), by_rule(-a / norm * g, a, b, g, rule="arctan2_second")


arctan2 = declare(
    "arctan2", "a b", kind="elementwise", infer=elementwise(np.arctan2), vjp=_arctan2_vjp,
    numpy="np.arctan2({a}, {b}, out={out})",
    c="arctan2_{s}({a}, {b})",
    onnx=functions.arctan2,
    samples=AWAY_FROM_ZERO,
)

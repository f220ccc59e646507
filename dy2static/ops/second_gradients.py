"""Gradients of gradients, in the steps in which Chainer computes them.

The rules of `by_rule` for what the ``vjp`` of ops emit.  ``gy`` is the gradient that the first backward was given.
"""
from __future__ import annotations

from typing import Any, Optional, Tuple

from ..ir.graph import Value
from .activation import randomized_relu_gradient, softplus_gradient
from .comparison import less_equal, mask, where
from .elementwise import exp, log, power, power_const, square
from .gradient_rules import gradient_rule
from .reduction import sum_
from .trigonometry import arccos_gradient, arcsin_gradient, cos, sin

_Gradients = Tuple[Optional[Value], ...]


# Arithmetic -----------------------------------------------------------------------------------------------------


@gradient_rule
def div_dividend(g: Value, b: Value, gy: Value) -> _Gradients:
    """Of ``gy / b``."""
    return -g * gy / (b * b), g / b


@gradient_rule
def div_divisor(g: Value, a: Value, b: Value, gy: Value) -> _Gradients:
    """Of ``-gy / b * a / b``."""
    squared = b * b
    return -g * gy / squared, g * 2.0 * gy * a / (squared * b), -(g * a / squared)


@gradient_rule
def number_by_gradient(g: Value, x: Value, gy: Value, number: Value) -> _Gradients:
    """Of ``-number * gy / x ** 2``."""
    return g * 2.0 * number * gy / power_const(x, exponent=3), g * -number / power_const(x, exponent=2), None


@gradient_rule
def power_base(g: Value, a: Value, b: Value, gy: Value) -> _Gradients:
    """Of ``b * a ** (b - 1) * gy``."""
    lower = power(a, b - 1.0)
    return g * b * (b - 1.0) * power(a, b - 2.0) * gy, g * lower * (log(a) * b + 1.0) * gy, g * b * lower


@gradient_rule
def power_exponent(g: Value, a: Value, b: Value, gy: Value) -> _Gradients:
    """Of ``log(a) * a ** b * gy``."""
    logarithm, whole = log(a), power(a, b)
    return (g * power(a, b - 1.0) * (logarithm * b + 1.0) * gy, g * logarithm * logarithm * whole * gy, g * logarithm * whole)


@gradient_rule
def power_const_gradient(g: Value, x: Value, gy: Value, given: Any) -> _Gradients:
    """Of ``given * x ** (given - 1) * gy``."""
    gx = g * given * gy * (given - 1)
    return gx * power_const(x, exponent=given - 2), g * given * power_const(x, exponent=given - 1)


@gradient_rule
def const_power_gradient(g: Value, y: Value, gy: Value, given: float) -> _Gradients:
    """Of ``given * y * gy``, where ``given`` is the logarithm of the base."""
    scaled = g * given
    return scaled * gy, scaled * y


@gradient_rule
def minimum_first(g: Value, chosen: Value, gy: Value) -> _Gradients:
    """Of ``gy * chosen``."""
    return None, where(chosen, g, 0)


@gradient_rule
def minimum_second(g: Value, chosen: Value, gy: Value) -> _Gradients:
    """Of the gradient of the operand that is not chosen, which is zero for both if one is NaN."""
    return None, where(chosen, 0, g)


# Activations ----------------------------------------------------------------------------------------------------


@gradient_rule
def tanh_gradient(g: Value, y: Value, gy: Value) -> _Gradients:
    """Of ``gy * (1 - y * y)``."""
    product = y * g
    return gy * -2.0 * product, g - y * product


@gradient_rule
def sigmoid_gradient(g: Value, y: Value, gy: Value) -> _Gradients:
    """Of ``gy * y * (1 - y)``."""
    return g * gy * (1.0 - y * 2.0), g * y * (1.0 - y)


@gradient_rule
def elu_slope(g: Value, decides: Value, y: Value) -> _Gradients:
    """Of the slope of `elu`, which is ``y + alpha`` where the first operand is not positive."""
    return None, mask(g, less_equal(decides, 0))


@gradient_rule
def softplus_second(g: Value, x: Value, gy: Value, given: float) -> _Gradients:
    """Of ``(1 - 1 / (1 + exp(given * x))) * gy``."""
    raised = exp(x * given)
    return g * gy * given * raised / power_const(raised + 1.0, exponent=2), softplus_gradient(x, g, given)


@gradient_rule
def randomized_relu_second(g: Value, gy: Value, y: Value, r: Value) -> _Gradients:
    """Of ``gy``, times ``r`` where ``y`` is negative."""
    return randomized_relu_gradient(g, y, r), None, None


@gradient_rule
def softmax_gradient(g: Value, y: Value, gy: Value, given: int) -> _Gradients:
    """Of ``y * gy - y * sum(y * gy)`` along an axis."""
    rest = g - sum_(g * y, axis=given, keepdims=True)
    return rest * gy - g * sum_(y * gy, axis=given, keepdims=True), rest * y


@gradient_rule
def log_softmax_gradient(g: Value, y: Value, gy: Value, given: int) -> _Gradients:
    """Of ``gy - exp(y) * sum(gy)`` along an axis."""
    scores = exp(y)
    return -g * scores * sum_(gy, axis=given, keepdims=True), g - sum_(g * scores, axis=given, keepdims=True)


# Trigonometry ---------------------------------------------------------------------------------------------------


@gradient_rule
def sin_gradient(g: Value, x: Value, gy: Value) -> _Gradients:
    """Of ``cos(x) * gy``."""
    return -sin(x) * gy * g, cos(x) * g


@gradient_rule
def cos_gradient(g: Value, x: Value, gy: Value) -> _Gradients:
    """Of ``-sin(x) * gy``."""
    return -cos(x) * gy * g, -sin(x) * g


def _cubed_root(x: Value) -> Value:
    return power_const(1.0 - power_const(x, exponent=2), exponent=1.5)


@gradient_rule
def arcsin_second(g: Value, x: Value, gy: Value) -> _Gradients:
    """Of ``gy / sqrt(1 - x ** 2)``."""
    return g * gy * x / _cubed_root(x), arcsin_gradient(x, g)


@gradient_rule
def arccos_second(g: Value, x: Value, gy: Value) -> _Gradients:
    """Of ``-gy / sqrt(1 - x ** 2)``."""
    return -g * (gy * x) / _cubed_root(x), arccos_gradient(x, g)


@gradient_rule
def arctan_gradient(g: Value, x: Value, gy: Value) -> _Gradients:
    """Of ``gy / (x ** 2 + 1)``."""
    squared = square(x)
    return gy * -2.0 * x * g / (square(squared) + squared * 2.0 + 1.0), g / (squared + 1.0)


@gradient_rule
def arctan2_first(g: Value, a: Value, b: Value, gy: Value) -> _Gradients:
    """Of ``b / (a ** 2 + b ** 2) * gy``."""
    over, across, norm = power_const(a, exponent=2), power_const(b, exponent=2), _norm(a, b)
    fourth = power_const(norm, exponent=2)
    return -g * 2.0 * a * b * gy / fourth, g * (over - across) * gy / fourth, g * b / norm


@gradient_rule
def arctan2_second(g: Value, a: Value, b: Value, gy: Value) -> _Gradients:
    """Of ``-a / (a ** 2 + b ** 2) * gy``."""
    over, across, norm = power_const(a, exponent=2), power_const(b, exponent=2), _norm(a, b)
    fourth = power_const(norm, exponent=2)
    return g * (over - across) * gy / fourth, g * (a * 2.0 * b) * gy / fourth, -(g * a / norm)


def _norm(a: Value, b: Value) -> Value:
    return power_const(a, exponent=2) + power_const(b, exponent=2)

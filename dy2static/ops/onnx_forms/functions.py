"""Functions of each element that ONNX, or onnxruntime in this dtype, does not have: in terms of those that it has."""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, Sequence

import numpy as np

from ...ir.onnx_forms import Name, NotInOnnx, OnnxWriter
from ...ir.types import Type
from .arithmetic import Rule, is_negative, signed, where


def _rule(function: Callable[..., Name]) -> Rule:
    """A function of arrays of the result's dtype as a rule."""
    def rule(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], *operands: Name, **attrs: Any) -> Name:
        """Write the nodes of the function of this name."""
        return function(o, *(o.cast(x, results[0].dtype) for x in operands), **attrs)
    return rule


def either(operator: str, otherwise: Callable[..., Name]) -> Rule:
    """The operator where there is a kernel for the dtype, or else other steps."""
    def function(o: OnnxWriter, x: Name) -> Name:
        return o.node(operator, x) if o.takes(operator, o.dtype(x)) else otherwise(o, x)
    return _rule(function)


def _times(o: OnnxWriter, x: Name, number: float) -> Name:
    return o.node("Mul", x, o.like(number, x))


def _plus(o: OnnxWriter, x: Name, number: float) -> Name:
    return o.node("Add", x, o.like(number, x))


def _equals(o: OnnxWriter, x: Name, number: float) -> Name:
    return o.node("Equal", x, o.like(number, x))


# Exponentials and logarithms ------------------------------------------------------------------------------------


def _log1p(o: OnnxWriter, x: Name) -> Name:
    # Kahan: the rounding of 1 + x is made up for by the factor x / (u - 1)
    u = _plus(o, x, 1.0)
    y = o.node("Mul", o.node("Log", u), o.node("Div", x, _plus(o, u, -1.0)))
    return where(o, _equals(o, u, 1.0), x, where(o, _equals(o, u, math.inf), u, y))


def _expm1(o: OnnxWriter, x: Name) -> Name:
    u = o.node("Exp", x)
    less = _plus(o, u, -1.0)
    y = o.node("Mul", less, o.node("Div", x, o.node("Log", u)))
    plain = o.node("Or", _equals(o, less, -1.0), o.node("IsInf", u))
    return where(o, _equals(o, u, 1.0), x, where(o, plain, less, y))


log1p, expm1 = _rule(_log1p), _rule(_expm1)


def _logarithm(base: int) -> Rule:
    def function(o: OnnxWriter, x: Name) -> Name:
        wide = o.cast(x, np.float64)
        return o.cast(o.node("Div", o.node("Log", wide), o.like(math.log(base), wide)), o.dtype(x))
    return _rule(function)


log2, log10 = _logarithm(2), _logarithm(10)


def _exp2(o: OnnxWriter, x: Name) -> Name:
    return o.node("Pow", o.like(2.0, x), x)


def _cbrt(o: OnnxWriter, x: Name) -> Name:
    """The power is not exact, since 1 / 3 is not: what its cube leaves corrects it."""
    size = o.node("Abs", x)
    y = o.node("Pow", size, o.like(1 / 3, x))
    square = o.node("Mul", y, y)
    rest = o.node("Sub", o.node("Div", size, square), y)
    is_plain = o.node("And", o.node("Greater", y, o.like(0.0, y)), o.node("Not", o.node("IsInf", y)))
    return signed(o, where(o, is_plain, o.node("Add", y, _times(o, rest, 1 / 3)), y), x)


def _logaddexp(o: OnnxWriter, a: Name, b: Name) -> Name:
    apart = where(o, o.node("Equal", a, b), o.like(0.0, a), o.node("Sub", a, b))
    return o.node("Add", o.node("Max", a, b), _log1p(o, o.node("Exp", o.node("Neg", o.node("Abs", apart)))))


exp2, cbrt, logaddexp = _rule(_exp2), _rule(_cbrt), _rule(_logaddexp)


# Trigonometry ---------------------------------------------------------------------------------------------------


def _tan(o: OnnxWriter, x: Name) -> Name:
    return o.node("Div", o.node("Sin", x), o.node("Cos", x))


def _atan(o: OnnxWriter, x: Name) -> Name:
    """In double precision: one step from the value in single precision, of the smaller of x and 1 / x."""
    size = o.node("Abs", x)
    large = o.node("Greater", size, o.like(1.0, x))
    small = where(o, large, o.node("Div", o.like(1.0, x), size), size)
    start = o.cast(o.node("Atan", o.cast(small, np.float32)), np.float64)
    slope = _tan(o, start)
    rest = o.node("Div", o.node("Sub", small, slope), _plus(o, o.node("Mul", small, slope), 1.0))
    y = o.node("Add", start, rest)
    y = where(o, large, o.node("Sub", o.like(math.pi / 2, x), y), y)
    return signed(o, y, x)


def _any_atan(o: OnnxWriter, x: Name) -> Name:
    return o.node("Atan", x) if o.takes("Atan", o.dtype(x)) else _atan(o, x)


def _root_of(o: OnnxWriter, a: Name, b: Name) -> Name:
    return o.node("Sqrt", o.node("Mul", a, b))


def _asin(o: OnnxWriter, x: Name) -> Name:
    one = o.like(1.0, x)
    return _any_atan(o, o.node("Div", x, _root_of(o, o.node("Sub", one, x), o.node("Add", one, x))))


def _acos(o: OnnxWriter, x: Name) -> Name:
    one = o.like(1.0, x)
    half = _any_atan(o, o.node("Sqrt", o.node("Div", o.node("Sub", one, x), o.node("Add", one, x))))
    return _times(o, half, 2.0)


def _atanh(o: OnnxWriter, x: Name) -> Name:
    y = _log1p(o, o.node("Div", _times(o, x, 2.0), o.node("Sub", o.like(1.0, x), x)))
    return _times(o, y, 0.5)


def _sinh(o: OnnxWriter, x: Name) -> Name:
    u = _expm1(o, o.node("Abs", x))
    y = _times(o, o.node("Add", u, o.node("Div", u, _plus(o, u, 1.0))), 0.5)
    y = where(o, o.node("IsInf", u), u, y)
    return signed(o, y, x)


def _cosh(o: OnnxWriter, x: Name) -> Name:
    u = o.node("Exp", o.node("Abs", x))
    return _times(o, o.node("Add", u, o.node("Div", o.like(1.0, u), u)), 0.5)


tan, arctan = either("Tan", _tan), _rule(_any_atan)
arcsin, arccos, arctanh = either("Asin", _asin), either("Acos", _acos), either("Atanh", _atanh)
sinh, cosh = either("Sinh", _sinh), either("Cosh", _cosh)


def _atan2(o: OnnxWriter, a: Name, b: Name) -> Name:
    behind = is_negative(o, b)
    both_zero = o.node("And", _equals(o, a, 0.0), _equals(o, b, 0.0))
    y = where(o, both_zero, a, _any_atan(o, o.node("Div", a, b)))
    half_turn = where(o, is_negative(o, a), o.like(-math.pi, a), o.like(math.pi, a))
    y = where(o, behind, o.node("Add", y, half_turn), y)
    infinite = o.node("And", o.node("IsInf", a), o.node("IsInf", b))
    corner = where(o, behind, o.like(0.75 * math.pi, a), o.like(0.25 * math.pi, a))
    return where(o, infinite, o.node("Mul", o.node("Sign", a), corner), y)


arctan2 = _rule(_atan2)


# Activations ----------------------------------------------------------------------------------------------------


def _leaky_relu(o: OnnxWriter, x: Name, *, slope: float) -> Name:
    return where(o, o.node("Greater", x, o.like(0, x)), x, _times(o, x, slope))


def _elu(o: OnnxWriter, x: Name, *, alpha: float) -> Name:
    return where(o, o.node("Greater", x, o.like(0, x)), x, _times(o, _expm1(o, x), alpha))


def _softplus(o: OnnxWriter, x: Name, *, beta: float) -> Name:
    scaled = _times(o, x, beta)
    rest = _log1p(o, o.node("Exp", o.node("Neg", o.node("Abs", scaled))))
    return _times(o, o.node("Add", o.node("Relu", scaled), rest), 1.0 / beta)


def _clipped_relu(o: OnnxWriter, x: Name, *, cap: float) -> Name:
    return o.node("Min", o.node("Max", x, o.like(0, x)), o.like(cap, x))


def _hard_sigmoid(o: OnnxWriter, x: Name) -> Name:
    if o.dtype(x) == np.float32:
        return o.node("HardSigmoid", x, alpha=0.2, beta=0.5)
    return o.node("Clip", _plus(o, _times(o, x, 0.2), 0.5), o.like(0, x), o.like(1, x))


def _randomized_relu(o: OnnxWriter, x: Name, r: Name) -> Name:
    return where(o, o.node("GreaterOrEqual", x, o.like(0, x)), x, o.node("Mul", x, r))


def _huber(o: OnnxWriter, x: Name, *, delta: float) -> Name:
    squared, size = o.node("Mul", x, x), o.node("Abs", x)
    line = _plus(o, _times(o, size, 2 * delta), -delta * delta)
    return _times(o, where(o, o.node("LessOrEqual", size, o.like(delta, x)), squared, line), 0.5)


leaky_relu, elu, softplus = _rule(_leaky_relu), _rule(_elu), _rule(_softplus)
clipped_relu, hard_sigmoid, randomized_relu, huber = map(_rule, (_clipped_relu, _hard_sigmoid, _randomized_relu, _huber))
const_power = _rule(lambda o, x, *, base: o.node("Pow", o.like(base, x), x))
nonzero_factor = _rule(lambda o, x: o.cast(o.cast(x, bool), o.dtype(x)))
x_times_log = _rule(lambda o, x, log_x: where(o, _equals(o, x, 0.0), o.like(0.0, x), o.node("Mul", x, log_x)))


def relu(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name) -> Name:
    """``max(x, 0)``."""
    return o.node("Relu" if o.dtype(x).kind == "f" else "Max", x, *(() if o.dtype(x).kind == "f" else (o.like(0, x),)))


def log_likelihood(o: OnnxWriter, types: Sequence[Type], results: Sequence[Any], x: Name, t: Name) -> Name:
    """``t * log(sigmoid(x)) + (1 - t) * log(1 - sigmoid(x))``."""
    positive = o.cast(o.node("GreaterOrEqual", x, o.like(0, x)), o.dtype(t))
    wide = o.cast(x, results[0].dtype)
    term = o.node("Mul", wide, o.cast(o.node("Sub", t, positive), results[0].dtype))
    return o.node("Sub", term, o.cast(_log1p(o, o.node("Exp", o.node("Neg", o.node("Abs", x)))), results[0].dtype))


# Special functions ----------------------------------------------------------------------------------------------

#: Coefficients of erfc(z) = t * exp(-z * z + polynomial(t)), t = 1 / (1 + z / 2), z >= 0: Numerical Recipes, `erfcc`; 1.2e-7.
_ERFC = (-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223,
         0.17087277)


def _erfc(o: OnnxWriter, x: Name) -> Name:
    wide = o.cast(x, np.float64)
    size = o.node("Abs", wide)
    t = o.node("Div", o.like(1.0, wide), _plus(o, _times(o, size, 0.5), 1.0))
    y = o.like(_ERFC[-1], wide)
    for coefficient in reversed(_ERFC[:-1]):
        y = _plus(o, o.node("Mul", y, t), coefficient)
    y = o.node("Mul", t, o.node("Exp", o.node("Sub", y, o.node("Mul", size, size))))
    y = where(o, o.node("Less", wide, o.like(0.0, wide)), o.node("Sub", o.like(2.0, wide), y), y)
    return o.cast(y, o.dtype(x))


def _ndtr(o: OnnxWriter, x: Name) -> Name:
    wide = o.cast(x, np.float64)
    return o.cast(_times(o, _erfc(o, _times(o, wide, -math.sqrt(0.5))), 0.5), o.dtype(x))


_SPECIAL: Dict[str, Callable[[OnnxWriter, Name], Name]] = {
    "erf": lambda o, x: o.node("Erf", x), "erfc": _erfc, "ndtr": _ndtr}


def special(o: OnnxWriter, types: Sequence[Type], results: Sequence[Any], *xs: Name, function: str, order: Any) -> Name:
    """``erf``, ``erfc`` and ``ndtr`` in single and half precision."""
    if function not in _SPECIAL:
        raise NotInOnnx(f"ONNX has no {function}")
    if results[0].dtype == np.float64:
        raise NotInOnnx(f"there is no {function} in double precision")
    return _SPECIAL[function](o, xs[0])

"""Ops on each element: arithmetic, powers, rounding, limits, conversion.

Operands have one shape (operators on values insert ``broadcast_to``).  The derivatives read what Chainer's backward
reads: ``y`` for tanh, exp and sqrt, ``x`` for log and square, because that array may have been changed by the user
between forward and backward.
"""
from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence

import numpy as np

from ..ir.building import constant
from ..ir.graph import Value
from ..ir.op import OpDef, Sample, declare, sample
from ..ir.types import Tensor, Type
from .comparison import logical_and, mask, where
from .gradient_rules import by_rule
from .onnx_forms import arithmetic, functions
from .rules import c_by_kind, canonical_dtype, elementwise, one_shape, same_as_input
from .samples import AWAY_FROM_ZERO, ONE, PAIR

_POSITIVE = (sample((4, 3), low=0.5, high=2), sample((), low=0.5, high=2), sample((0, 3)),
             sample((1,), low=0.5, high=2))

add = declare(
    "add", "a b", kind="elementwise", infer=elementwise(np.add),
    vjp=lambda g, y, a, b: (g, g),
    numpy="np.add({a}, {b}, out={out})",
    c="{a} + {b}",
    onnx=arithmetic.by_kind("Add", "Add", "Or"),
    samples=PAIR + (sample(np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3)),),
)

sub = declare(
    "sub", "a b", kind="elementwise", infer=elementwise(np.subtract),
    vjp=lambda g, y, a, b: (g, -g),
    numpy="np.subtract({a}, {b}, out={out})",
    c="{a} - {b}",
    onnx="Sub",
    samples=PAIR,
)

mul = declare(
    "mul", "a b", kind="elementwise", infer=elementwise(np.multiply),
    vjp=lambda g, y, a, b: (g * b, g * a),
    numpy="np.multiply({a}, {b}, out={out})",
    c="{a} * {b}",
    onnx=arithmetic.by_kind("Mul", "Mul", "And"),
    samples=PAIR,
)


def _div_vjp(g, y, a, b):
    ga = g / b
    return by_rule(ga, b, g, rule="div_dividend"), by_rule(-ga * a / b, a, b, g, rule="div_divisor")


div = declare(
    "div", "a b", kind="elementwise", infer=elementwise(np.true_divide),
    vjp=_div_vjp,
    numpy="np.true_divide({a}, {b}, out={out})",
    c="({T}){a} / ({T}){b}",
    onnx=arithmetic.of_result("Div"),
    samples=AWAY_FROM_ZERO,
)


def number_by(number: Any, x: Value) -> Value:
    """``number / x``, with the gradient that Chainer computes where the dividend is a number."""
    number = number if isinstance(number, Value) else constant(number, x.dtype)
    return by_rule(number / x, x, number, rule="number_by")


neg = declare(
    "neg", "x", kind="elementwise", infer=elementwise(np.negative),
    vjp=lambda g, y, x: (-g,),
    numpy="np.negative({x}, out={out})",
    c="-{x}",
    onnx=arithmetic.negative,
    samples=ONE,
)

exp = declare(
    "exp", "x", kind="elementwise", infer=elementwise(np.exp),
    vjp=lambda g, y, x: (y * g,),
    numpy="np.exp({x}, out={out})",
    c="exp_{s}({x})",
    onnx=arithmetic.of_result("Exp"),
    samples=ONE,
)

log = declare(
    "log", "x", kind="elementwise", infer=elementwise(np.log),
    vjp=lambda g, y, x: (g / x,),
    numpy="np.log({x}, out={out})",
    c="log_{s}({x})",
    onnx=arithmetic.of_result("Log"),
    samples=_POSITIVE,
)

sqrt = declare(
    "sqrt", "x", kind="elementwise", infer=elementwise(np.sqrt),
    vjp=lambda g, y, x: (g / (y * 2.0),),
    numpy="np.sqrt({x}, out={out})",
    c="sqrt_{s}({x})",
    onnx=arithmetic.of_result("Sqrt"),
    samples=_POSITIVE,
)

square = declare(
    "square", "x", kind="elementwise", infer=elementwise(np.square),
    vjp=lambda g, y, x: (g * 2.0 * x,),
    numpy="np.square({x}, out={out})",
    c="({T}){x} * ({T}){x}",
    onnx=arithmetic.square,
    samples=ONE,
)

log1p = declare(
    "log1p", "x", kind="elementwise", infer=elementwise(np.log1p),
    vjp=lambda g, y, x: (g / (x + 1.0),),
    numpy="np.log1p({x}, out={out})",
    c="log1p_{s}({x})",
    onnx=functions.log1p,
    samples=_POSITIVE,
)

expm1 = declare(
    "expm1", "x", kind="elementwise", infer=elementwise(np.expm1),
    vjp=lambda g, y, x: ((y + 1.0) * g,),
    numpy="np.expm1({x}, out={out})",
    c="expm1_{s}({x})",
    onnx=functions.expm1,
    samples=ONE,
)

tanh = declare(
    "tanh", "x", kind="elementwise", infer=elementwise(np.tanh),
    vjp=lambda g, y, x: (by_rule(g * (1.0 - y * y), y, g, rule="tanh_gradient"),),
    numpy="np.tanh({x}, out={out})",
    c="tanh_{s}({x})",
    onnx=arithmetic.of_result("Tanh"),
    samples=ONE,
)


def _clip_vjp(g, y, x, *, x_min, x_max):
    if x_min is None:
        return (mask(g, x <= x_max),)
    above = x >= x_min
    return (mask(g, above if x_max is None else logical_and(above, x <= x_max)),)


def _clip_c(types: Sequence[Type], result: Tensor, attrs: Mapping[str, Any]) -> Optional[str]:
    low, high = attrs["x_min"], attrs["x_max"]
    if result.dtype.kind == "b" or not all(bound is None or isinstance(bound, (int, float)) for bound in (low, high)):
        return None
    if result.dtype.kind == "f":
        text = "{x}" if low is None else "maximum_{s}({x}, {x_min})"
        return text if high is None else f"minimum_{{s}}({text}, {{x_max}})"
    text = "{x}" if low is None else "({x} < {x_min} ? {x_min} : {x})"
    return text if high is None else f"{text} > {{x_max}} ? {{x_max}} : {text}"


clip = declare(
    "clip", "x", {"x_min": None, "x_max": None}, kind="elementwise", infer=same_as_input,
    vjp=_clip_vjp,
    numpy="np.clip({x}, {x_min}, {x_max}, out={out})",
    c=_clip_c,
    onnx=arithmetic.clip,
    samples=tuple(sample(shape, x_min=-0.5, x_max=0.5) for shape in ((4, 3), (), (0, 3)))
    + (sample((5,), x_min=0), sample((5,), x_max=0.25)),
)

#: ``value``, whose gradient is that of ``x``: the gradient times ``inside``.
gradient_inside = declare(
    "gradient_inside", "value x inside", kind="view", view=True, numpy="{value}",
    infer=lambda value, x, inside: one_shape(value, x, inside) or value,
    vjp=lambda g, y, value, x, inside: (None, mask(g, inside), None),
    onnx=arithmetic.first,
)

abs_ = declare(
    "abs", "x", kind="elementwise", infer=elementwise(np.absolute),
    vjp=lambda g, y, x: (sign(x) * g,),
    numpy="np.absolute({x}, out={out})",
    c=c_by_kind("fabs_{s}({x})", "{x} < 0 ? -{x} : {x}", "{x}"),
    onnx=arithmetic.by_kind("Abs", "Abs", arithmetic.first),
    samples=ONE,
)

sign: OpDef = declare(
    "sign", "x", kind="elementwise", infer=elementwise(np.sign),
    numpy="np.sign({x}, out={out})",
    c=c_by_kind("sign_{s}({x})", "({x} > 0) - ({x} < 0)"),
    onnx=arithmetic.sign,
    samples=ONE,
)

floor = declare(
    "floor", "x", kind="elementwise", infer=elementwise(np.floor),
    numpy="np.floor({x}, out={out})",
    c=lambda types, result, attrs: "floor_{s}({x})" if result.dtype.kind == "f" else "{x}",
    onnx=arithmetic.of_result(arithmetic.by_kind("Floor", arithmetic.first, arithmetic.first)),
    samples=ONE,
)

ceil = declare(
    "ceil", "x", kind="elementwise", infer=elementwise(np.ceil),
    numpy="np.ceil({x}, out={out})",
    c=lambda types, result, attrs: "ceil_{s}({x})" if result.dtype.kind == "f" else "{x}",
    onnx=arithmetic.of_result(arithmetic.by_kind("Ceil", arithmetic.first, arithmetic.first)),
    samples=ONE,
)

#: The nearest whole number; of two, the even one.
rint = declare(
    "rint", "x", kind="elementwise", infer=elementwise(np.rint),
    numpy="np.rint({x}, out={out})",
    c=c_by_kind("rint_{s}({x})"),
    onnx=arithmetic.of_result("Round"),
    samples=ONE + (sample(np.array([-2.5, -0.5, 0.4, 0.5, 1.5])),),
)

floor_divide = declare(
    "floor_divide", "a b", kind="elementwise", infer=elementwise(np.floor_divide),
    numpy="np.floor_divide({a}, {b}, out={out})",
    c="floor_divide_{s}({a}, {b})",
    onnx=arithmetic.floor_divide,
    samples=AWAY_FROM_ZERO,
)

remainder = declare(
    "remainder", "a b", kind="elementwise", infer=elementwise(np.remainder),
    numpy="np.remainder({a}, {b}, out={out})",
    c="remainder_{s}({a}, {b})",
    onnx=arithmetic.remainder,
    samples=AWAY_FROM_ZERO,
)

#: The whole part: towards zero.
trunc = declare(
    "trunc", "x", kind="elementwise", infer=same_as_input,
    numpy="np.trunc({x}, out={out})",
    c=c_by_kind("trunc_{s}({x})"),
    onnx=arithmetic.trunc,
    samples=(sample((4, 3), low=-3, high=3), sample(()), sample((0, 3))),
)

#: The remainder with the sign of ``a``.
fmod = declare(
    "fmod", "a b", kind="elementwise", infer=elementwise(np.fmod),
    vjp=lambda g, y, a, b: (g, -trunc(a / b) * g),
    numpy="np.fmod({a}, {b}, out={out})",
    c="fmod_{s}({a}, {b})",
    onnx=arithmetic.fmod,
    samples=AWAY_FROM_ZERO,
)


def _maximum_vjp(g, y, a, b):
    first = a >= b                                        # of equal elements the first gets the gradient
    return where(first, g, 0), where(first, 0, g)


maximum = declare(
    "maximum", "a b", kind="elementwise", infer=elementwise(np.maximum),
    vjp=_maximum_vjp,
    numpy="np.maximum({a}, {b}, out={out})",
    c=c_by_kind("maximum_{s}({a}, {b})", "{a} > {b} ? {a} : {b}", "{a} || {b}"),
    onnx=arithmetic.by_kind("Max", "Max", "Or"),
    samples=PAIR,
)


def _minimum_vjp(g, y, a, b):
    first = a <= b
    return by_rule(mask(g, first), first, g, rule="minimum_first"), by_rule(mask(g, a > b), first, g, rule="minimum_second")


minimum = declare(
    "minimum", "a b", kind="elementwise", infer=elementwise(np.minimum),
    vjp=_minimum_vjp,
    numpy="np.minimum({a}, {b}, out={out})",
    c=c_by_kind("minimum_{s}({a}, {b})", "{a} < {b} ? {a} : {b}", "{a} && {b}"),
    onnx=arithmetic.by_kind("Min", "Min", "And"),
    samples=PAIR,
)


def _power_vjp(g, y, a, b):
    return (by_rule(b * power(a, b - 1.0) * g, a, b, g, rule="power_base"),
            by_rule(log(a) * y * g, a, b, g, rule="power_exponent"))


power: OpDef = declare(
    "power", "a b", kind="elementwise", infer=elementwise(np.power),
    vjp=_power_vjp,
    numpy="np.power({a}, {b}, out={out})",
    c="power_{s}({a}, {b})",
    onnx=arithmetic.power,
    samples=(sample((4, 3), (4, 3), low=0.5, high=2), sample((), (), low=0.5, high=2), sample((0, 3), (0, 3))),
)


#: The functions NumPy's own ``x ** exponent`` takes for these exponents.
_POWERS = {2: "square", 1: "positive", 0.5: "sqrt", -1: "reciprocal"}


def _power_holes(x: Tensor, *, exponent: Any) -> Dict[str, str]:
    if x.dtype.kind == "f" and exponent in _POWERS:
        return {"function": _POWERS[exponent], "arguments": "{x}"}
    return {"function": "power", "arguments": "{x}, {T}({exponent})" if x.dtype.kind == "f" else "{x}, {exponent}"}


#: Products, quotients and roots for the exponents where they are nearly as exact as a power.  (The root of -0.0 is -0.0.)
_POWERS_C = {2: "{x} * {x}", 1: "{x}", 0.5: "sqrt_{s}({x})", -1: "1 / {x}", 3: "{x} * {x} * {x}", 4: "({x} * {x}) * ({x} * {x})",
             1.5: "{x} * sqrt_{s}({x})", 2.5: "{x} * {x} * sqrt_{s}({x} + 0)", -0.5: "1 / sqrt_{s}({x})",
             -2: "(1 / {x}) * (1 / {x})"}
#: Powers of ints as products.
_INT_POWERS_C = {2: "({T}){x} * ({T}){x}", 3: "({T}){x} * ({T}){x} * ({T}){x}"}


def _power_const_c(types: Sequence[Type], result: Tensor, attrs: Mapping[str, Any]) -> Optional[str]:
    exponent = attrs["exponent"]
    if not isinstance(exponent, (int, float)):
        return None
    if result.dtype.kind == "f":
        return _POWERS_C.get(exponent if types[0].dtype.kind == "f" else None, "power_{s}({x}, {exponent})")
    return _INT_POWERS_C.get(exponent, "power_{s}({x}, {exponent})") if isinstance(exponent, int) and exponent >= 0 else None


def _power_const_vjp(g, y, x, *, exponent):
    return (by_rule(exponent * power_const(x, exponent=exponent - 1) * g, x, g, rule="power_const_gradient", given=exponent),)


power_const: OpDef = declare(
    "power_const", "x", {"exponent": 2}, kind="elementwise",
    infer=lambda x, *, exponent: Tensor(x.shape, x.dtype if x.dtype.kind == "f" else
                                        (np.ones(1, x.dtype) ** exponent).dtype),
    vjp=_power_const_vjp,
    numpy="np.{function}({arguments}, out={out})",
    c=_power_const_c,
    holes=_power_holes,
    onnx=arithmetic.power_const,
    samples=tuple(sample((3, 2), low=0.5, high=2, exponent=e) for e in (2, 3, 0.5, -1, 1.0, -2.5)) + (sample(()),),
)


def _cast_vjp(g, y, x, *, dtype):
    return (cast(g, dtype=x.dtype),) if x.dtype.kind == "f" else (None,)


#: Floats become ints as NumPy's loops do it: by way of an int that the processor converts to.
_FROM_FLOAT_C = {"i1": "(int32_t){x}", "i2": "(int32_t){x}", "i4": "(int32_t){x}", "i8": "(int64_t){x}",
                 "u1": "(int32_t){x}", "u2": "(int32_t){x}", "u4": "(int64_t){x}", "u8": "(uint64_t){x}"}


def _cast_c(types: Sequence[Type], result: Tensor, attrs: Mapping[str, Any]) -> Optional[str]:
    if result.dtype.kind == "b":
        return "{x} != 0"
    if types[0].dtype.kind == "b" and result.dtype.kind == "f":     # type: ignore[union-attr]
        return "d2s_pick_{s}({x}, 1, 0)"
    return _FROM_FLOAT_C.get(result.dtype.str[1:], "{x}") if types[0].dtype.kind == "f" else "{x}"


cast = declare(
    "cast", "x", {"dtype": np.dtype("float32")}, kind="elementwise", canonical=canonical_dtype,
    infer=lambda x, *, dtype: Tensor(x.shape, dtype),
    vjp=_cast_vjp,
    numpy='np.copyto({out}, {x}, casting="unsafe")',
    c=_cast_c,
    onnx=arithmetic.cast,
    samples=tuple(Sample((shape,), {"dtype": to}, dtype) for shape, dtype, to in (
        ((2, 3), "float32", "float64"), ((), "float64", "float32"), ((0,), "float64", "float16"),
        ((5,), "float32", "int32"))) + (sample(np.arange(4)),),
)

copy = declare(
    "copy", "x", kind="elementwise", infer=same_as_input,
    vjp=lambda g, y, x: (g,),
    numpy="np.copyto({out}, {x})",
    c="{x}",
    onnx=arithmetic.first,
    samples=ONE,
)

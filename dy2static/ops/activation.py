"""Activations, and elementwise functions whose gradient rule Chainer decides by itself."""
from __future__ import annotations

import math
from typing import Any, Mapping, Optional, Sequence

import numpy as np

from ..ir.c_forms import c_constant
from ..ir.graph import Value
from ..ir.op import declare, sample
from ..ir.types import Tensor, Type
from .comparison import greater_equal, less, logical_and, mask, where
from .elementwise import exp
from .gradient_rules import by_rule
from .onnx_forms import arithmetic, functions
from .rules import c_by_kind, elementwise, same_as_input
from .samples import ONE


def _sigmoid_vjp(g, y, x, *, gate):
    return (g * (y * (1.0 - y)) if gate else by_rule(g * y * (1.0 - y), y, g, rule="sigmoid_gradient"),)


#: gate: its gradient is rounded as Chainer does it for the gates of an LSTM, not as for `F.sigmoid`.
sigmoid = declare(
    "sigmoid", "x", {"gate": False}, kind="elementwise", infer=elementwise(np.tanh), inplace_ok=True,
    vjp=_sigmoid_vjp,
    numpy="np.multiply({x}, 0.5, out={out})\nnp.tanh({out}, out={out})\n"
          "np.multiply({out}, 0.5, out={out})\nnp.add({out}, 0.5, out={out})",
    c="sigmoid_{s}({x})",
    onnx=arithmetic.of_result("Sigmoid"),
    samples=ONE,
)

relu = declare(
    "relu", "x", kind="elementwise", infer=same_as_input,
    vjp=lambda g, y, x: (mask(g, y > 0),),
    numpy="np.maximum({x}, 0, out={out})",
    c=c_by_kind("relu_{s}({x})", "{x} > 0 ? {x} : 0"),
    onnx=functions.relu,
    samples=ONE,
)


def _leaky_relu_vjp(g, y, x, *, slope):
    return (where((y if slope >= 0 else x) <= 0, g * slope, g),)


leaky_relu = declare(
    "leaky_relu", "x", {"slope": 0.2}, kind="elementwise", infer=same_as_input,
    vjp=_leaky_relu_vjp,
    numpy="np.multiply({x}, {slope}, out={out})\nnp.copyto({out}, {x}, where={x} > 0)",
    c=c_by_kind("d2s_pick_{s}(positive_{s}({x}), {x}, {x} * {slope})"),
    onnx=functions.leaky_relu,
    samples=ONE + (sample((3,), slope=-0.5),),
)


def _elu_vjp(g, y, x, *, alpha):
    decides = y if alpha >= 0 else x
    return (by_rule(where(decides > 0, 1.0, y + alpha), decides, y, rule="elu_slope") * g,)


elu = declare(
    "elu", "x", {"alpha": 1.0}, kind="elementwise", infer=same_as_input,
    vjp=_elu_vjp,
    numpy="np.copyto({out}, {x})\nnp.expm1({out}, out={out}, where={out} <= 0)\n"
          "np.multiply({out}, {alpha}, out={out}, where={out} <= 0)",
    cupy="np.copyto({out}, np.where({x} > 0, {x}, np.expm1(np.minimum({x}, 0)) * {alpha}))",
    c=c_by_kind("relu_{s}({x}) + expm1_{s}(below_zero_{s}({x})) * {alpha}"),
    onnx=functions.elu,
    samples=ONE + (sample((3,), alpha=0.3),),
)


def softplus_gradient(x: Value, g: Value, beta: float) -> Value:
    """The gradient of `softplus`, given the one of its result."""
    return by_rule((1.0 - 1.0 / (1.0 + exp(x * beta))) * g, x, g, rule="softplus_second", given=beta)


def softplus_as_chainer(x: Any, beta: float, out: np.ndarray) -> None:
    """``log(1 + exp(beta * x)) / beta`` in the steps of Chainer, which warn where its own do; ``out`` may be ``x``."""
    np.multiply(x, beta, out=out)
    positive = np.fmax(out, 0)
    np.negative(np.fabs(out, out=out), out=out)
    np.log1p(np.exp(out, out=out), out=out)
    np.multiply(np.add(positive, out, out=out), 1.0 / beta, out=out)


def _softplus_c(types: Sequence[Type], result: Tensor, attrs: Mapping[str, Any]) -> Optional[str]:
    if result.dtype.kind != "f":
        return None
    return "softplus_{s}({x} * {beta}) * " + c_constant(1.0 / attrs["beta"], result.dtype)


#: ``log(1 + exp(beta * x)) / beta``
softplus = declare(
    "softplus", "x", {"beta": 1.0}, kind="elementwise", infer=same_as_input, inplace_ok=True,
    vjp=lambda g, y, x, *, beta: (softplus_gradient(x, g, beta),),
    numpy="softplus_as_chainer({x}, {beta}, {out})", calls=(softplus_as_chainer,),
    c=_softplus_c,
    onnx=functions.softplus,
    samples=ONE + (sample((3,), beta=2.0),),
)

#: ``min(max(0, x), cap)``; the gradient is zero at the bounds.
clipped_relu = declare(
    "clipped_relu", "x", {"cap": 20.0}, kind="elementwise", infer=same_as_input, inplace_ok=True,
    vjp=lambda g, y, x, *, cap: (mask(mask(g, less(0, x)), less(x, cap)),),
    numpy="np.maximum(0, {x}, out={out})\nnp.minimum({out}, {cap}, out={out})",
    c=c_by_kind("minimum_{s}(maximum_{s}(0, {x}), {cap})"),
    onnx=functions.clipped_relu,
    samples=ONE + (sample((4, 3), cap=0.5),),
)

#: ``clip(0.2 * x + 0.5, 0, 1)``; the gradient is 0.2 where ``-2.5 < x < 2.5``.
hard_sigmoid = declare(
    "hard_sigmoid", "x", kind="elementwise", infer=same_as_input, inplace_ok=True,
    vjp=lambda g, y, x: (mask(g, logical_and(less(-2.5, x), less(x, 2.5))) * 0.2,),
    numpy="np.multiply({x}, 0.2, out={out})\nnp.add({out}, 0.5, out={out})\nnp.clip({out}, 0.0, 1.0, out={out})",
    c=c_by_kind("minimum_{s}(maximum_{s}({x} * ({T})0.2 + ({T})0.5, 0), 1)"),
    onnx=functions.hard_sigmoid,
    samples=ONE,
)

#: ``base ** x`` for a number; a base that is not positive has a value, but no gradient.
const_power = declare(
    "const_power", "x", {"base": 2.0}, kind="elementwise", infer=same_as_input,
    vjp=lambda g, y, x, *, base: (by_rule(y * math.log(base) * g, y, g, rule="const_power_gradient", given=math.log(base)),),
    numpy="np.power({T}({base}), {x}, out={out})",
    c=c_by_kind("power_{s}({base}, {x})"),
    onnx=functions.const_power,
    samples=ONE + (sample((3,), base=0.5),),
)


def randomized_relu_gradient(g: Value, y: Value, r: Value) -> Value:
    """The gradient of `randomized_relu`, given the one of its result ``y``."""
    return by_rule(where(greater_equal(y, 0), g, g * r), g, y, r, rule="randomized_relu_second")


#: ``x`` where it is not negative, else ``x * r``; the gradient is decided by the sign of the result.
randomized_relu = declare(
    "randomized_relu", "x r", kind="elementwise", infer=elementwise(np.multiply), inplace_ok=False,
    vjp=lambda g, y, x, r: (randomized_relu_gradient(g, y, r), None),
    numpy="np.multiply({x}, {r}, out={out})\nnp.copyto({out}, {x}, where={x} >= 0)",
    c=c_by_kind("d2s_pick_{s}(isgreaterequal({x}, 0), {x}, {x} * {r})"),
    onnx=functions.randomized_relu,
)

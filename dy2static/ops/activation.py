"""Activations and elementwise functions whose gradient rule Chainer decides by itself."""
from __future__ import annotations

import math

import numpy as np

from ..ir.op import declare, sample
from .elementwise import greater_equal, less, logical_and, mask, where
from .rules import c_by_kind, elementwise, same_as_input

_ONE = (sample((4, 3)), sample(()), sample((0, 3)), sample((1,)), sample((2, 1, 5)))

#: ``min(max(0, x), cap)``; the gradient is zero at the bounds.
clipped_relu = declare(
    "clipped_relu", "x", {"cap": 20.0}, kind="elementwise", infer=same_as_input, inplace_ok=True,
    vjp=lambda g, y, x, *, cap: (mask(mask(g, less(0, x)), less(x, cap)),),
    numpy="np.maximum(0, {x}, out={out})\nnp.minimum({out}, {cap}, out={out})",
    c=c_by_kind("minimum_{s}(maximum_{s}(0, {x}), {cap})"),
    samples=_ONE + (sample((4, 3), cap=0.5),),
)

#: ``clip(0.2 * x + 0.5, 0, 1)``; the gradient is 0.2 where ``-2.5 < x < 2.5``.
hard_sigmoid = declare(
    "hard_sigmoid", "x", kind="elementwise", infer=same_as_input, inplace_ok=True,
    vjp=lambda g, y, x: (mask(g, logical_and(less(-2.5, x), less(x, 2.5))) * 0.2,),
    numpy="np.multiply({x}, 0.2, out={out})\nnp.add({out}, 0.5, out={out})\nnp.clip({out}, 0.0, 1.0, out={out})",
    c=c_by_kind("minimum_{s}(maximum_{s}({x} * ({T})0.2 + ({T})0.5, 0), 1)"),
    samples=_ONE,
)

#: ``base ** x`` for a number; a base that is not positive has a value, but no gradient.
const_power = declare(
    "const_power", "x", {"base": 2.0}, kind="elementwise", infer=same_as_input,
    vjp=lambda g, y, x, *, base: (y * math.log(base) * g,),
    numpy="np.power({T}({base}), {x}, out={out})",
    c=c_by_kind("power_{s}({base}, {x})"),
    samples=_ONE + (sample((3,), base=0.5),),
)

#: ``x`` where it is not negative, else ``x * r``; the gradient is decided by the sign of the result.
randomized_relu = declare(
    "randomized_relu", "x r", kind="elementwise", infer=elementwise(np.multiply), inplace_ok=False,
    vjp=lambda g, y, x, r: (where(greater_equal(y, 0), g, g * r), None),
    numpy="np.multiply({x}, {r}, out={out})\nnp.copyto({out}, {x}, where={x} >= 0)",
    c=c_by_kind("d2s_pick_{s}(isgreaterequal({x}, 0), {x}, {x} * {r})"),
)

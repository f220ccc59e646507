"""Losses whose gradient rule Chainer decides by itself."""
from __future__ import annotations

import numpy as np

from ..ir.op import declare, sample
from ..ir.types import Tensor
from .broadcasting import broadcast_to
from .elementwise import cast, clip, sigmoid
from .rules import need_dtype, one_shape, same_as_input


def _sum_of_squares_infer(x: Tensor) -> Tensor:
    need_dtype(x, "f", "the operand")
    return Tensor((), x.dtype)


#: The sum of the squares of all elements, as a dot product: half precision is summed in single precision.
sum_of_squares = declare(
    "sum_of_squares", "x", kind="reduction", infer=_sum_of_squares_infer,
    vjp=lambda g, y, x: (broadcast_to(g * 2.0, shape=x.shape) * x,),
    numpy="np.dot({x}.ravel(), {x}.ravel(), out={out})",
    samples=(sample((4, 3)), sample(()), sample((1,)), sample((0, 3)), sample((2, 1, 5))),
)


#: ``x ** 2 / 2`` up to ``delta``, a line from there on.
huber = declare(
    "huber", "x", {"delta": 1.0}, kind="elementwise", infer=same_as_input, inplace_ok=True,
    vjp=lambda g, y, x, *, delta: (g * clip(x, x_min=-delta, x_max=delta),),
    numpy="np.minimum(np.square({x}), np.maximum(np.abs({x}) * ({T}({delta}) * 2) - {square}, {square}), out={out})\n"
          "np.multiply({out}, 0.5, out={out})",
    holes=lambda x, *, delta: {"square": "{T}({delta}) * {T}({delta})"},
    samples=(sample((4, 3), low=-3, high=3), sample(()), sample((0, 3)), sample((5,), delta=0.4)),
)


def _sigmoid_terms_infer(x: Tensor, t: Tensor) -> Tensor:
    one_shape(x, t)
    need_dtype(x, "f", "the score")
    need_dtype(t, "i", "the label")
    return Tensor(x.shape, np.result_type(x.dtype, t.dtype))


def _sigmoid_terms_vjp(g, y, x, t):
    difference = cast(t, dtype=y.dtype) - cast(sigmoid(x), dtype=y.dtype)
    return cast(g * difference, dtype=x.dtype), None


_LABELS = np.array([[1, 0, 1], [0, -1, 1]], np.int32)

#: ``t * log(sigmoid(x)) + (1 - t) * log(1 - sigmoid(x))`` for labels, in the dtype that NumPy gives for ``x * t``.
log_likelihood = declare(
    "log_likelihood", "x t", kind="elementwise", infer=_sigmoid_terms_infer, inplace_ok=False,
    vjp=_sigmoid_terms_vjp,
    numpy="np.multiply({x}, {t} - ({x} >= 0), out={out})\n"
          "np.subtract({out}, np.log1p(np.exp(-np.abs({x}))), out={out})",
    samples=(sample((2, 3), _LABELS), sample((), np.array(1)), sample((0, 3), np.zeros((0, 3), np.int32))),
)


def _refuse(x: np.ndarray, *, message: str, error: type) -> np.ndarray:
    raise error(*[message] if message else [])


_REFUSAL = {"message": "", "error": RuntimeError}

#: Raises the error with this message when it runs.
refuse = declare(
    "refuse", "x", _REFUSAL, kind="effect", may_raise=True, infer=same_as_input,
    vjp=lambda g, y, x, **refusal: (g,), numpy=_refuse,
)

#: The same value, the gradient of something that has no second derivative: to differentiate it is to `refuse`.
last_gradient = declare(
    "last_gradient", "x", _REFUSAL, kind="view", view=True, infer=same_as_input,
    vjp=lambda g, y, x, **refusal: (refuse(g, **refusal),), numpy="{x}",
)

#: The same value; its gradient cannot be differentiated.
once_differentiable = declare(
    "once_differentiable", "x", _REFUSAL, kind="view", view=True, infer=same_as_input,
    vjp=lambda g, y, x, **refusal: (last_gradient(g, **refusal),), numpy="{x}",
)

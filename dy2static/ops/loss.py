"""Losses whose gradient rule Chainer decides by itself."""
from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence, Tuple

import numpy as np

from ..ir.c_forms import c_suffix
from ..ir.graph import Value
from ..ir.op import ON_HOST, Decomposition, declare, sample
from ..ir.types import Tensor, Type
from .activation import sigmoid
from .broadcasting import broadcast_to
from .elementwise import cast, clip, log, maximum, power_const, sqrt, square
from .movement import reshape
from .onnx_forms import arithmetic, functions, reductions
from .reduction import spread, sum_
from .rules import c_by_kind, need_dtype, of_filled_floats, one_dtype, one_shape, same_as_input


def _sum_of_squares_infer(x: Tensor) -> Tensor:
    need_dtype(x, "f", "the operand")
    return Tensor((), x.dtype)


#: The sum of the squares of all elements, as a dot product: half precision is summed in single precision.
sum_of_squares = declare(
    "sum_of_squares", "x", kind="reduction", infer=_sum_of_squares_infer,
    vjp=lambda g, y, x: (broadcast_to(g * 2.0, shape=x.shape) * x,),
    numpy="np.dot({x}.ravel(), {x}.ravel(), out={out})",
    decompose=Decomposition(lambda x: sum_(square(x)), of_filled_floats),
    onnx=reductions.sum_of_squares,
    samples=(sample((4, 3)), sample(()), sample((1,)), sample((0, 3)), sample((2, 1, 5))),
)


#: ``x ** 2 / 2`` up to ``delta``, a line from there on.
huber = declare(
    "huber", "x", {"delta": 1.0}, kind="elementwise", infer=same_as_input, inplace_ok=True,
    vjp=lambda g, y, x, *, delta: (g * clip(x, x_min=-delta, x_max=delta),),
    numpy="np.minimum(np.square({x}), np.maximum(np.abs({x}) * ({T}({delta}) * 2) - {square}, {square}), out={out})\n"
          "np.multiply({out}, 0.5, out={out})",
    c=c_by_kind("huber_{s}({x}, {delta})"),
    holes=lambda x, *, delta: {"square": "{T}({delta}) * {T}({delta})"},
    onnx=functions.huber,
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


def _log_likelihood_c(types: Sequence[Type], result: Tensor, attrs: Mapping[str, Any]) -> Optional[str]:
    s = c_suffix(types[0].dtype)                          # type: ignore[union-attr]
    return f"({{T}}){{x}} * ({{T}})({{t}} - (isgreaterequal({{x}}, 0) ? 1 : 0)) - ({{T}})log1p_{s}(exp_{s}(-fabs_{s}({{x}})))"


_LABELS = np.array([[1, 0, 1], [0, -1, 1]], np.int32)

#: ``t * log(sigmoid(x)) + (1 - t) * log(1 - sigmoid(x))`` for labels, in the dtype that NumPy gives for ``x * t``.
log_likelihood = declare(
    "log_likelihood", "x t", kind="elementwise", infer=_sigmoid_terms_infer, inplace_ok=False,
    vjp=_sigmoid_terms_vjp,
    numpy="np.multiply({x}, {t} - ({x} >= 0), out={out})\n"
          "np.subtract({out}, np.log1p(np.exp(-np.abs({x}))), out={out})",
    c=_log_likelihood_c,
    onnx=functions.log_likelihood,
    samples=(sample((2, 3), _LABELS), sample((), np.array(1)), sample((0, 3), np.zeros((0, 3), np.int32))),
)


def _rows(x: Tensor, *_: Tensor, **attrs: Any) -> Tensor:
    return Tensor(x.shape[:1] + x.shape[2:], x.dtype)


def _soft_labels_steps(log_y: Value, t: Value, *, eps: Optional[float]) -> Value:
    if eps is None:
        return -sum_(t * log_y, axis=1)
    return sum_(t * (log(t + eps) - log_y), axis=1)


#: ``-sum(t * log_y)`` over axis 1, or with ``eps`` ``sum(t * (log(t + eps) - log_y))``, for logarithms of scores and targets
#: that are probabilities.  The gradient is that of `cross_entropy`.
soft_labels = declare(
    "soft_labels", "log_y t", {"eps": None}, kind="reduction", infer=lambda log_y, t, **attrs: one_shape(log_y, t) or _rows(log_y),
    decompose=Decomposition(_soft_labels_steps, of_filled_floats),
    numpy="{terms}",
    holes=lambda *_, eps: {"terms": "-np.sum({t} * {log_y}, axis=1)" if eps is None else
                           "np.sum({t} * (np.log({t} + {eps}) - {log_y}), axis=1)"},
)


def _contrast(difference: np.ndarray, y: np.ndarray, margin: np.ndarray) -> np.ndarray:
    squared = np.sum(difference ** 2, axis=1)
    rest = np.maximum(margin - np.sqrt(squared), 0)
    return (y * squared + (1 - y) * rest * rest) * 0.5


def _contrast_vjp(g, y, difference, labels, margin):
    dtype = difference.dtype
    far = sqrt(sum_(power_const(difference, exponent=2), axis=1, keepdims=True))
    rest, same = maximum(margin - far, 0), reshape(cast(labels, dtype=dtype), shape=far.shape)
    alpha = reshape(cast(g, dtype=dtype), shape=far.shape)
    direction = difference / maximum(far, 5e-3 if dtype == np.float16 else 1e-7)
    return alpha * same * difference + alpha * (1 - same) * rest * -direction, None, None


def _contrast_infer(difference: Tensor, labels: Tensor, margin: Tensor) -> Tensor:
    one_shape(Tensor(difference.shape[:1], labels.dtype), labels)
    if difference.ndim != 2:
        raise ValueError(f"there are no rows of {difference.ndim} axes")
    return Tensor(labels.shape, np.result_type(difference.dtype, labels.dtype))


def _contrast_steps(difference: Value, labels: Value, margin: Value) -> Value:
    squared = sum_(square(difference), axis=1)
    rest = maximum(margin - sqrt(squared), 0.0)
    dtype = np.result_type(difference.dtype, labels.dtype)
    squared, rest, same = (v if v.dtype == dtype else cast(v, dtype=dtype) for v in (squared, rest, labels))
    return (same * squared + (1.0 - same) * rest * rest) * 0.5


def _contrast_holds(difference: Tensor, labels: Tensor, margin: Tensor) -> bool:
    return of_filled_floats(difference) and labels.dtype.kind in "if"


#: Per row half the square of the distance where the label is 1, of what it lacks to ``margin`` where it is 0.
contrast = declare(
    "contrast", "difference labels margin", kind="reduction", numpy=_contrast, vjp=_contrast_vjp,
    infer=_contrast_infer, decompose=Decomposition(_contrast_steps, _contrast_holds),
)


def _triplet_infer(*xs: Tensor) -> Tensor:
    one_dtype(*xs)
    one_shape(*xs)
    return _rows(xs[0])


def _triplet_vjp(g, y, anchor, positive, negative):
    twice = spread(g * 2.0, anchor, (1,), False)
    return twice * (negative - positive), twice * (positive - anchor), twice * (anchor - negative)


def _triplet_steps(anchor: Value, positive: Value, negative: Value) -> Value:
    return sum_(square(anchor - positive) - square(anchor - negative), axis=1)


#: The square of the distance to ``positive`` less that to ``negative``, along axis 1.
triplet_distance = declare(
    "triplet_distance", "anchor positive negative", kind="reduction", infer=_triplet_infer, vjp=_triplet_vjp,
    decompose=Decomposition(_triplet_steps, of_filled_floats),
    numpy="np.sum(({anchor} - {positive}) ** 2 - ({anchor} - {negative}) ** 2, axis=1, out={out})",
    onnx=reductions.triplet_distance,
    samples=(sample((4, 3), (4, 3), (4, 3)), sample((2, 3, 2), (2, 3, 2), (2, 3, 2)), sample((1, 1), (1, 1), (1, 1))),
)


def _refuse(x: np.ndarray, *, message: str, error: type) -> np.ndarray:
    raise error(*[message] if message else [])


_REFUSAL = {"message": "", "error": RuntimeError}

#: Raises the error with this message when it runs.
refuse = declare(
    "refuse", "x", _REFUSAL, kind="effect", may_raise=True, infer=same_as_input,
    vjp=lambda g, y, x, **refusal: (g,), numpy=_refuse,
)


def never(g: Any, y: Any, *xs: Value, **attrs: Any) -> Tuple[Optional[Value], ...]:
    """Of what is differentiated behind a `last_gradient` only, which raises: anything that needs ``g``."""
    first = next(part for part in (g if isinstance(g, tuple) else (g,)) if part is not None)
    return tuple(broadcast_to(cast(sum_(first), dtype=x.dtype), shape=x.shape) if x.dtype.kind == "f" else None for x in xs)


def _last_gradient_vjp(g, y, x, of, **refusal):
    refused = refuse(g, **refusal)
    return refused, refused if of.type == x.type else never(refused, y, of)[0]


#: The same value, the gradient of ``of``, which has no second derivative: to differentiate it is to `refuse`.
last_gradient = declare(
    "last_gradient", "x of", _REFUSAL, kind="view", view=True, infer=same_as_input, vjp=_last_gradient_vjp, numpy="{x}",
    onnx=arithmetic.first,
)

#: The same value; its gradient cannot be differentiated.
once_differentiable = declare(
    "once_differentiable", "x", _REFUSAL, kind="view", view=True, infer=same_as_input,
    vjp=lambda g, y, x, **refusal: (last_gradient(g, x, **refusal),), numpy="{x}",
    onnx=arithmetic.first,
)


# The paths through a tree -------------------------------------------------------------------------------------------


def _steps(t: np.ndarray, paths: np.ndarray, codes: np.ndarray, begins: np.ndarray) -> Tuple[np.ndarray, ...]:
    """For each step of each label: the row it belongs to, the node of the tree, and the direction taken."""
    begin = begins[t]
    lengths = np.maximum(begins[t + 1] - begin, 0)
    rows = np.repeat(np.arange(len(t)), lengths)
    steps = np.arange(len(rows)) + np.repeat(begin - np.cumsum(lengths) + lengths, lengths)
    return rows, paths[steps], codes[steps]


def _tree_loss(x: np.ndarray, W: np.ndarray, t: np.ndarray, *tree: np.ndarray) -> np.ndarray:
    rows, nodes, signs = _steps(t, *tree)
    return np.asarray(np.logaddexp(0.0, -np.einsum("ij,ij->i", W[nodes], x[rows]) * signs).sum(), x.dtype)


def _tree_loss_grad(g: np.ndarray, x: np.ndarray, W: np.ndarray, t: np.ndarray, *tree: np.ndarray) -> Tuple[np.ndarray, ...]:
    rows, nodes, signs = _steps(t, *tree)
    gx, gW, near, there = np.zeros_like(x), np.zeros_like(W), x[rows], W[nodes]
    share = (-g * signs / (1.0 + np.exp(np.einsum("ij,ij->i", there, near) * signs)))[:, None]
    np.add.at(gx, rows, share * there)
    np.add.at(gW, nodes, share * near)
    return gx, gW


def _tree_loss_infer(x: Tensor, W: Tensor, *tree: Tensor) -> Tensor:
    one_dtype(x, W, tree[2])
    return Tensor((), x.dtype)


#: The negative logarithm of how likely the leaves ``t`` of a tree are, with a decision ``sigmoid(±x @ W[node])`` at each node on
#: the way to one.  paths, codes: the nodes and directions, those of leaf ``i`` from ``begins[i]`` to ``begins[i + 1]``.
tree_loss = declare(
    "tree_loss", "x W t paths codes begins", kind="reduction", may_raise=True, infer=_tree_loss_infer, numpy=_tree_loss,
    cupy=ON_HOST,
    vjp=lambda g, y, *xs: (*tree_loss_grad(g, *xs), None, None, None, None),
)

tree_loss_grad = declare(
    "tree_loss_grad", "g x W t paths codes begins", kind="reduction", may_raise=True, infer=lambda g, x, W, *_: (x, W),
    numpy=_tree_loss_grad, cupy=ON_HOST, vjp=never,
)

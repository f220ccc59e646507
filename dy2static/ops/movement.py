"""Ops that move whole arrays: views of other shapes, and joins."""
from __future__ import annotations

from typing import Any, Dict, Tuple

import numpy as np

from ..ir.dims import equal
from ..ir.op import OpDef, declare, sample
from ..ir.shapes import same_shape, show
from ..ir.types import Tensor
from .creation import zeros_like
from .onnx_forms import arithmetic, movement
from .rules import canonical_axis, normal_axis, one_dtype, same_as_input, sizes
from .slicing import getitem

# Views ----------------------------------------------------------------------------------------------------------


def _transpose_canonical(x: Tensor, *, axes: Any) -> Dict[str, Any]:
    if axes is None:
        return {"axes": tuple(reversed(range(x.ndim)))}
    normal = tuple(normal_axis(a, x.ndim) for a in axes)
    if sorted(normal) != list(range(x.ndim)):
        raise ValueError("axes don't match array")
    return {"axes": normal}


def _transpose_vjp(g, y, x, *, axes):
    return (transpose(g, axes=tuple(int(a) for a in np.argsort(axes))),)


transpose: OpDef = declare(
    "transpose", "x", {"axes": None}, kind="view", view=True, canonical=_transpose_canonical,
    infer=lambda x, *, axes: Tensor(tuple(x.shape[a] for a in axes), x.dtype),
    vjp=_transpose_vjp,
    numpy="{x}.transpose({axes})",
    onnx=movement.transpose,
    samples=(sample((2, 3)), sample((2, 3, 4), axes=(1, 2, 0)), sample(()), sample((0, 3)),
             sample((2, 1, 3), axes=(0, -1, 1))),
)


def _reshape_canonical(x: Tensor, *, shape: Any) -> Dict[str, Any]:
    shape = tuple([-1 if isinstance(n, int) and n < 0 else n for n in sizes(shape)])       # NumPy takes any negative number
    if -1 not in shape:
        return {"shape": shape}
    known: Any = 1
    for n in shape:
        known = known * (1 if isinstance(n, int) and n == -1 else n)
    if shape.count(-1) > 1 or known == 0 or equal(x.size % known, 0) is False:
        raise ValueError(f"cannot reshape array of size {x.size} into shape {show(shape)}")
    return {"shape": tuple(x.size // known if isinstance(n, int) and n == -1 else n for n in shape)}


def _reshape_infer(x: Tensor, *, shape: Tuple[Any, ...]) -> Tensor:
    result = Tensor(shape, x.dtype)
    if equal(result.size, x.size) is False:
        raise ValueError(f"cannot reshape array of size {x.size} into shape {show(shape)}")
    return result


reshape: OpDef = declare(
    "reshape", "x", {"shape": ()}, kind="view", view=True, canonical=_reshape_canonical, infer=_reshape_infer,
    vjp=lambda g, y, x, *, shape: (reshape(g, shape=x.shape),),
    numpy="{x}.reshape({shape})",
    onnx=movement.reshape,
    samples=(sample((2, 6), shape=(3, 4)), sample((2, 6), shape=(-1, 2)), sample((), shape=(1, 1)),
             sample((1,), shape=()), sample((0, 3), shape=(3, 0)), sample((4, 3), shape=(4, -1))),
)


#: The same value; as the result of one, an array is a view of its operand.
identity = declare(
    "identity", "x", kind="view", view=True, infer=same_as_input,
    vjp=lambda g, y, x: (g,),
    numpy="{x}",
    onnx=arithmetic.first,
    samples=(sample((2, 3)), sample(()), sample((0,))),
)

#: The same value, for which no gradient is asked.
stop_gradient = declare(
    "stop_gradient", "x", kind="view", view=True, infer=same_as_input,
    numpy="{x}",
    onnx=arithmetic.first,
    samples=(sample((2, 3)), sample(()), sample((0,))),
)

#: ``x``, which is a gradient: differentiated, it gives zeros to ``of``, which it does not depend on.
gradient_of = declare(
    "gradient_of", "x of", kind="view", view=True, infer=same_as_input, numpy="{x}",
    vjp=lambda g, y, x, of: (g, zeros_like(of)),
    onnx=arithmetic.first,
)

#: ``x``; its gradient is a `gradient_of` ``on``, as where Chainer's backward is one function that reads it.
attached = declare(
    "attached", "x on", kind="view", view=True, infer=same_as_input, numpy="{x}",
    vjp=lambda g, y, x, on: (gradient_of(g, on), None),
    onnx=arithmetic.first,
)


# Joins ----------------------------------------------------------------------------------------------------------


def _concat_infer(*xs: Tensor, axis: int) -> Tensor:
    if not xs:
        raise ValueError("need at least one array to concatenate")
    one_dtype(*xs)
    total: Any = 0
    for x in xs:
        others = [equal(n, m) for a, (n, m) in enumerate(zip(x.shape, xs[0].shape)) if a != axis]
        if x.ndim != xs[0].ndim or not all(others):
            raise ValueError("all the input array dimensions except for the concatenation axis must match exactly")
        total = total + x.shape[axis]
    return Tensor(xs[0].shape[:axis] + (total,) + xs[0].shape[axis + 1:], xs[0].dtype)


def _concat_vjp(g, y, *xs, axis):
    gradients, start = [], 0
    for x in xs:
        stop = start + x.shape[axis]
        gradients.append(getitem(g, index=(slice(None),) * axis + (slice(start, stop),)))
        start = stop
    return tuple(gradients)


concat = declare(
    "concat", "*xs", {"axis": 1}, kind="movement", canonical=canonical_axis, infer=_concat_infer,
    vjp=_concat_vjp,
    numpy="np.concatenate(({xs},), axis={axis}, out={out})",
    onnx=movement.concat,
    samples=(sample((2, 3), (2, 1), (2, 0)), sample((2,), (3,), axis=0), sample((1, 2, 3), axis=-1),
             sample((0, 2), (0, 3))),
)


def _stack_infer(*xs: Tensor, axis: int) -> Tensor:
    if not xs:
        raise ValueError("need at least one array to stack")
    one_dtype(*xs)
    if not all(same_shape(x.shape, xs[0].shape) for x in xs):
        raise ValueError("all input arrays must have the same shape")
    return Tensor(xs[0].shape[:axis] + (len(xs),) + xs[0].shape[axis:], xs[0].dtype)


def _stack_vjp(g, y, *xs, axis):
    return tuple(getitem(g, index=(slice(None),) * axis + (i,)) for i in range(len(xs)))


stack = declare(
    "stack", "*xs", {"axis": 0}, kind="movement",
    canonical=lambda *xs, axis: {"axis": normal_axis(axis, xs[0].ndim + 1) if xs else axis},
    infer=_stack_infer,
    vjp=_stack_vjp,
    numpy="np.stack(({xs},), axis={axis}, out={out})",
    onnx=movement.stack,
    samples=(sample((2, 3), (2, 3)), sample((), ()), sample((2, 3), (2, 3), (2, 3), axis=-1),
             sample((0,), (0,), axis=1)),
)

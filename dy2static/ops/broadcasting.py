"""Repeating along axes, and its derivative: summing what was repeated."""
from __future__ import annotations

from typing import Any, Dict, Tuple

from ..ir.graph import Value
from ..ir.op import OPS, Decomposition, OpDef, declare, sample
from ..ir.shapes import show
from ..ir.types import Tensor
from .onnx_forms import movement
from .rules import canonical_shape, of_floats, sum_axes


def _broadcast_to_infer(x: Tensor, *, shape: Tuple[Any, ...]) -> Tensor:
    if sum_axes(shape, x.shape) is None:
        raise ValueError(f"cannot broadcast shape {show(x.shape)} to {show(shape)}")
    return Tensor(shape, x.dtype)


broadcast_to = declare(
    "broadcast_to", "x", {"shape": ()}, kind="view", view=True, canonical=canonical_shape, infer=_broadcast_to_infer,
    vjp=lambda g, y, x, *, shape: (sum_to(g, shape=x.shape),),
    numpy="np.broadcast_to({x}, {shape})",
    onnx=movement.broadcast_to,
    samples=(sample((3,), shape=(4, 3)), sample((4, 1), shape=(4, 3)), sample((), shape=(2,)),
             sample((1, 3), shape=(2, 0, 3)), sample((2, 3), shape=(2, 3)), sample((1,), shape=(1,))),
)


def _sum_to_infer(x: Tensor, *, shape: Tuple[Any, ...]) -> Tensor:
    if sum_axes(x.shape, shape) is None:
        raise ValueError(f"cannot sum an array of shape {show(x.shape)} to {show(shape)}")
    return Tensor(shape, x.dtype)


def _sum_to_holes(x: Tensor, *, shape: Tuple[Any, ...]) -> Dict[str, str]:
    """The result without its kept axes is a view of ``out``, so one reduction fills it."""
    axes = sum_axes(x.shape, shape) or ()
    lead = x.ndim - len(shape)
    picks = ["0" if i in axes else ":" for i in range(lead, x.ndim)]
    return {"axes": str(axes), "kept": f"[..., {', '.join(picks)}]" if "0" in picks else ""}


def _sum_to_steps(x: Value, *, shape: Tuple[Any, ...]) -> Value:
    return OPS["reshape"](OPS["sum"](x, axis=sum_axes(x.shape, shape)), shape=shape)     # they are declared later


#: Sum away what a broadcast from ``shape`` repeated: the derivative of `broadcast_to`.
sum_to: OpDef = declare(
    "sum_to", "x", {"shape": ()}, kind="reduction", canonical=canonical_shape, infer=_sum_to_infer,
    vjp=lambda g, y, x, *, shape: (broadcast_to(g, shape=x.shape),), decompose=Decomposition(_sum_to_steps, of_floats),
    numpy="np.add.reduce({x}, axis={axes}, out={out}{kept})", holes=_sum_to_holes,
    samples=(sample((4, 3), shape=(3,)), sample((4, 3), shape=(4, 1)), sample((2, 4, 3), shape=(1, 3)),
             sample((5,), shape=()), sample((5,), shape=(1,)), sample((0, 3), shape=(3,)),
             sample((2, 3), shape=(2, 3))),
)

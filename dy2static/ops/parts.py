"""Taking an array apart along one axis, into views; the derivative joins all parts at once."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Tuple

from ..ir.graph import Value
from ..ir.op import declare, sample
from ..ir.types import Tensor
from .creation import zeros_like
from .movement import concat, stack
from .onnx_forms import movement
from .rules import canonical_axis


def _split_infer(x: Tensor, *, sizes: Tuple[Any, ...], axis: int) -> Tuple[Tensor, ...]:
    total: Any = 0
    for size in sizes:
        total = total + size
    if total != x.shape[axis]:
        raise ValueError(f"parts of sizes {sizes} are not an axis of size {x.shape[axis]}")
    return tuple(Tensor(x.shape[:axis] + (size,) + x.shape[axis + 1:], x.dtype) for size in sizes)


def _pick(entries: Sequence[str], axis: int) -> Dict[str, str]:
    return {"parts": ", ".join("{x}[" + ":, " * axis + entry + "]" for entry in entries)}


def _split_holes(x: Tensor, *, sizes: Tuple[Any, ...], axis: int) -> Dict[str, str]:
    entries: List[str] = []
    start: Any = 0
    for size in sizes:
        entries.append(f"{start}:{start + size}")
        start = start + size
    return _pick(entries, axis)


def _joined(join: Callable[..., Value]) -> Callable[..., Tuple[Value]]:
    def vjp(g: Any, y: Any, x: Value, *, axis: int, **_: Any) -> Tuple[Value]:
        # of several outputs, those that are not differentiated have no gradient; of one, g is its gradient
        pairs = zip(g, y) if isinstance(y, tuple) else ((g, y),)
        return (join(*[zeros_like(part) if gradient is None else gradient for gradient, part in pairs], axis=axis),)
    return vjp


#: Consecutive parts of ``x`` along ``axis``.
split = declare(
    "split", "x", {"sizes": (), "axis": 0}, kind="view", view=True, canonical=canonical_axis, infer=_split_infer,
    vjp=_joined(concat), numpy="{parts}", holes=_split_holes,
    onnx=movement.split,
    samples=(sample((4, 3), sizes=(1, 3)), sample((2, 5), sizes=(2, 0, 3), axis=-1), sample((3, 2), sizes=(3,)),
             sample((0, 2), sizes=(0, 0))),
)

#: Every ``x[..., i, ...]`` along ``axis``, which goes.
unstack = declare(
    "unstack", "x", {"axis": 0}, kind="view", view=True, canonical=canonical_axis,
    infer=lambda x, *, axis: tuple(Tensor(x.shape[:axis] + x.shape[axis + 1:], x.dtype) for _ in range(x.shape[axis])),
    vjp=_joined(stack), numpy="{parts}",
    holes=lambda x, *, axis: _pick([f"{i}, ..." for i in range(x.shape[axis])], axis),
    onnx=movement.unstack,
    samples=(sample((4, 3)), sample((2, 3, 4), axis=1), sample((1, 2)), sample((1, 0))),
)

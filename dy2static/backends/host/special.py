"""Faster texts for ops in special cases, in place of their own templates."""
from __future__ import annotations

import math
from typing import Callable, Dict, Optional, Sequence

from ...ir.dims import Dim
from ...ir.graph import Node


def _matmul(node: Node, operands: Sequence[str], out: str) -> Optional[str]:
    """Two matrices: the method has the least overhead, and is what Chainer calls."""
    if node.inputs[0].ndim != 2:
        return None
    left, right = (f"{text}.T" if node.attrs[turn] else text for text, turn in zip(operands, ("transa", "transb")))
    return f"{left}.dot({right}, out={out})"


def _transpose(node: Node, operands: Sequence[str], out: str) -> Optional[str]:
    axes = node.attrs["axes"]
    return f"{operands[0]}.T" if axes == tuple(reversed(range(len(axes)))) else None


def _sum(node: Node, operands: Sequence[str], out: str) -> Optional[str]:
    (x,), axis = node.inputs, node.attrs["axis"]
    axis = None if len(axis) == x.ndim else axis
    keepdims = ", keepdims=True" if node.attrs["keepdims"] else ""
    return f"np.add.reduce({operands[0]}, axis={axis}{keepdims}, out={out})"


def _mean(node: Node, operands: Sequence[str], out: str) -> Optional[str]:
    """What `numpy.mean` does, without its detours; float16 needs them."""
    (x,), axis = node.inputs, node.attrs["axis"]
    count = math.prod(x.shape[a] for a in axis)
    if x.dtype.char not in "fd" or isinstance(count, Dim) or count == 0:
        return None
    return f"{_sum(node, operands, out)}\nnp.true_divide({out}, {count}, out={out})"


#: Ops with a faster text in special cases: (node, operands, out) gives it, or None for the op's own template.
SPECIAL: Dict[str, Callable[[Node, Sequence[str], str], Optional[str]]] = {
    "matmul": _matmul, "transpose": _transpose, "mean": _mean, "sum": _sum}

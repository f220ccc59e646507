"""The order of elements.  NumPy does not say in which order its functions leave what is equal: these do not, either."""
from __future__ import annotations

import numpy as np

from ..ir.op import declare, sample
from ..ir.types import Tensor
from .onnx_forms import reductions


def _argsort_infer(x: Tensor, *, stable: bool) -> Tensor:
    if x.ndim == 0:
        raise ValueError("there is no axis to sort along")
    return Tensor(x.shape, np.dtype(np.int64))


def _sort_infer(x: Tensor) -> Tensor:
    if x.ndim == 0:
        raise ValueError("there is no axis to sort along")
    return x


#: The elements along the last axis, from the smallest to the largest.
sort = declare(
    "sort", "x", kind="movement", infer=_sort_infer, numpy="np.sort({x})",
    onnx=reductions.sort,
    samples=(sample(np.array([[3, 1, 2], [0, 5, -4]], "f")), sample(np.array([0.5, np.inf, -1.5])), sample((4, 1)), sample((0, 3)),
             sample(np.array([2, 1, 2, 0]))),
)

#: The order of the elements along the last axis.
argsort = declare(
    "argsort", "x", {"stable": False}, kind="movement", infer=_argsort_infer,
    numpy="np.argsort({x}, kind={kind})", holes=lambda x, *, stable: {"kind": '"stable"' if stable else "None"},
    onnx=reductions.argsort,
    samples=(sample(np.array([[3, 1, 2], [0, 5, -4]], "f")), sample(np.array([0.5, np.inf, -1.5])), sample((4, 1)),
             sample(np.array([2, 1, 2, 0]), stable=True)),
)

#: An array of ints whose part from ``begin`` to ``end``, one of which is an end of ``x``, holds where the smallest, or largest,
#: elements are, in any order; the rest is undefined.
select = declare(
    "select", "x", {"begin": 0, "end": 0}, kind="movement", infer=lambda x, *, begin, end: Tensor(x.shape, np.dtype(np.int64)),
    numpy="np.argpartition({x}, {place})", holes=lambda x, *, begin, end: {"place": str(begin or end - 1)},
    onnx=reductions.argsort,
)

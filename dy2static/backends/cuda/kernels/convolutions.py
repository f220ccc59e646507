"""Convolutions by cuDNN, as steps of a region."""
from __future__ import annotations

import itertools
from typing import Callable, Iterable, List, Optional

import numpy as np

from ....ir.graph import Node, Value
from ....native.cudnn import Convolution, Plan, in_order
from ..program.steps import Convolve, LatePlan, Scattered, Step
from ..text.function import FunctionText
from ..text.operands import whole

#: Where arrays for cuDNN have to begin: its algorithms may load this many bytes at a time.
ALIGNMENT = 16


def convolved(function: FunctionText, kind: int, node: Node, image: Value, filters: Value, result: Value,
              otherwise: Callable[[], None]) -> None:
    """Add the step of a convolution, or of one of its gradients, by cuDNN; where that does not compute it, those of `otherwise`.

    image, filters, result: of the convolution.  Two of them are operands of the node, and one is what it computes, by its kind.
    """
    attrs, first, second, out = node.attrs, *in_order(kind, image, filters, result)
    ends = [0, *itertools.accumulate(value.ndim for value in (image, filters, result))]

    def plan_of(*sizes: int) -> Optional[Plan]:
        shapes = [sizes[begin:end] for begin, end in zip(ends, ends[1:])]
        return function.plan(Convolution(kind, image.dtype, shapes[0], shapes[1], shapes[2], attrs["stride"], attrs["pad"],
                                         attrs["dilate"], attrs["groups"]))

    def workspace_of(*sizes: int) -> int:
        found = plan_of(*sizes)
        return 0 if found is None else found.workspace

    def by_cudnn() -> None:
        known = tuple([size for size in sizes if isinstance(size, int)])
        plan = plan_of(*known) if len(known) == len(sizes) else LatePlan(plan_of, sizes)
        assert plan is not None, "cuDNN computes it"
        workspace = function.piece(function.late(workspace_of, *sizes), np.dtype(np.uint8))
        function.add(Convolve(plan, whole(function, first), whole(function, second), function.pointer(out), workspace))

    sizes = (*image.shape, *filters.shape, *result.shape)
    function.either(function.late(lambda *sizes: plan_of(*sizes) is not None, *sizes), by_cudnn, otherwise)


def aligned_inputs(steps: Iterable[Step], count: int) -> List[int]:
    """Which of the inputs of these steps have to be aligned for libraries; all other memory is.  count: how many inputs."""
    read = [number for step in steps if isinstance(step, Convolve) for number in (step.first, step.second)]
    read += [one.pointer for step in steps if isinstance(step, Scattered) for one in (step.product.left, step.product.right)]
    return sorted({number for number in read if number < count})

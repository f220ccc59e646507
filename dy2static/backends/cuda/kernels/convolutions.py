"""Convolutions by cuDNN, as steps of a region."""
from __future__ import annotations

from typing import Iterable, List

import numpy as np

from ....ir.graph import Node, Value
from ....native.cudnn import Convolution, in_order
from ..program.steps import Convolve, Step
from ..text.function import FunctionText
from ..text.operands import whole

#: Where arrays for cuDNN have to begin: its algorithms may load this many bytes at a time.
ALIGNMENT = 16


def convolved(function: FunctionText, kind: int, node: Node, image: Value, filters: Value, result: Value) -> bool:
    """Add the step of a convolution, or of one of its gradients; whether cuDNN computes it.

    image, filters, result: of the convolution.  Two of them are operands of the node, and one is what it computes, by its kind.
    """
    attrs = node.attrs
    plan = function.plan(Convolution(kind, image.dtype, image.shape, filters.shape, result.shape, attrs["stride"], attrs["pad"],
                                     attrs["dilate"], attrs["groups"]))
    if plan is None:
        return False
    first, second, out = in_order(kind, image, filters, result)
    workspace = function.piece(plan.workspace, np.dtype(np.uint8))
    function.add(Convolve(plan, whole(function, first), whole(function, second), function.pointer(out), workspace))
    return True


def aligned_inputs(steps: Iterable[Step], count: int) -> List[int]:
    """Which of the inputs of these steps cuDNN reads; all other memory that it is given is aligned.  count: how many inputs."""
    read = [number for step in steps if isinstance(step, Convolve) for number in (step.first, step.second)]
    return sorted({number for number in read if number < count})

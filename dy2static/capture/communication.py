"""Communicators of ChainerMN: one call on the host averages gradients, between what computes them and the update."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from ..runtime.communication import mean_of
from ..runtime.host_calls import LEAF
from ..symbolic.host_objects import BoundHostMethod

if TYPE_CHECKING:
    from .calls import Calls


def is_average(function: Any) -> bool:
    """Whether this is the method of ChainerMN's communicator for arrays of NumPy that averages gradients where they are."""
    return type(function) is BoundHostMethod and function.name == "multi_node_mean_grad" and \
        type(function.owner.real).__module__ == "chainermn.communicators.naive_communicator"


def average(calls: Calls, function: BoundHostMethod) -> Callable[..., None]:
    """What to call for it: what it does, with the arrays as values of the graph; captures do not communicate."""
    def averaged(target: Any, zero_fill: bool = False) -> None:
        named = sorted(calls.callee(target.namedparams)(), key=lambda pair: pair[0])
        params = [param for _, param in named if param.array is not None]
        for param in params if zero_fill else ():
            if param.grad is None:
                param.grad = calls.callee(np.zeros_like)(param.array)
        gradients = [param.grad for param in params if param.grad is not None]
        types = tuple([gradient.now().type for gradient in gradients])
        calls.capture.effects.store_writes()
        means = calls.capture.host.call(mean_of, (function, zero_fill, *gradients), {}, types, (LEAF,) * len(types))
        for gradient, mean in zip(gradients, means):
            gradient[...] = mean
    return averaged

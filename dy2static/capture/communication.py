"""ChainerMN: gradients are averaged by a host node; functions and links that communicate run between compiled parts."""
from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, Callable, NoReturn

import chainer
import numpy as np

from ..runtime.communication import mean_of
from ..runtime.host_calls import LEAF
from ..symbolic.host_objects import BoundHostMethod

if TYPE_CHECKING:
    from .protocols import Calls

_COMMUNICATING = ("chainermn.functions.", "chainermn.links.")

#: What exchanges nothing where ``chainer.config.train`` is false.
_SILENT_IN_EVALUATION = ("MultiNodeBatchNormalization.forward", "MultiNodeBatchNormalization.__call__")


def communicates(function: Any) -> bool:
    """Whether this is a function of `chainermn.functions`, or a method of a Link of `chainermn.links`."""
    function = function.__func__ if type(function) is types.MethodType else function
    if type(function) is not types.FunctionType or not (function.__module__ or "").startswith(_COMMUNICATING):
        return False
    return chainer.config.train or function.__qualname__ not in _SILENT_IN_EVALUATION


def refuse(calls: Calls, function: Any) -> Callable[..., NoReturn]:
    """Stop the capture: all processes have to communicate in the same order, forward and backward, compiled or not."""
    name = function.__qualname__.partition(".")[0]
    return lambda *args, **kwargs: calls.capture.abort(
        f"{name} of ChainerMN exchanges arrays with other processes", hint="the code before and after it is compiled")


def is_average(function: Any) -> bool:
    """Whether this is the method of ChainerMN's communicator for arrays of NumPy that averages gradients where they are."""
    return type(function) is BoundHostMethod and function.method == "multi_node_mean_grad" and \
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

"""CUDA kernels of Chainer's optimizers, their hooks, and its sampler: in the graph they are the arithmetic that the host does."""
from __future__ import annotations

import functools
import operator
import types
from typing import TYPE_CHECKING, Any, Callable, Dict

import numpy as np
from chainer.backends import cuda
from chainer.optimizers import (
    ada_delta,
    ada_grad,
    adam,
    corrected_momentum_sgd,
    momentum_sgd,
    nesterov_ag,
    rmsprop,
    rmsprop_graves,
    sgd,
)
from chainer.utils.walker_alias import WalkerAlias

from ..runtime.devices import KERNELS
from ..symbolic.values import SymbolicArray
from .half_updates import HALF

if TYPE_CHECKING:
    from .protocols import Calls

#: Rules whose two updates do the same, but for rounding and the order of operations, and write the same arrays.
_RULES = (sgd.SGDRule, momentum_sgd.MomentumSGDRule, corrected_momentum_sgd.CorrectedMomentumSGDRule, nesterov_ag.NesterovAGRule,
          adam.AdamRule, ada_grad.AdaGradRule, ada_delta.AdaDeltaRule, rmsprop.RMSpropRule, rmsprop_graves.RMSpropGravesRule)

#: What kernels of hooks do, by the text of their operation.  What they write comes last, and is changed in place.
_OPERATIONS: Dict[str, Callable[..., Any]] = {
    "g += decay * p": lambda p, decay, g: g.__iadd__(decay * p),
    "g += decay * s": lambda s, decay, g: g.__iadd__(decay * s),
    "g += noise": lambda noise, g: g.__iadd__(noise),
}


def _update(calls: Calls, function: Callable, rule: Any, param: Any) -> Any:
    """An update on a GPU, as the same rule computes it on the host; of float16 as its kernel does."""
    if function is rmsprop.RMSpropRule.update_core_gpu and param.dtype.type(rule.hyperparam.eps) == 0:
        calls.capture.abort("RMSprop on a GPU refuses an eps of 0")
    instead = _HALF[function] if param.dtype == np.float16 else _ON_HOST[function]
    return calls.callee(types.MethodType(instead, rule))(param)


_ON_HOST = {rule.update_core_gpu: rule.update_core_cpu for rule in _RULES}
_HALF = {rule.update_core_gpu: HALF[rule] for rule in _RULES}


def _sample(calls: Calls, function: Callable, sampler: Any, shape: Any) -> Any:
    """What negative sampling draws on a GPU, as Chainer's kernel ``walker_alias_sample`` computes it."""
    xp, count = cuda.cupy, len(sampler.threshold)
    drawn = calls.callee(xp.random.uniform)(size=shape, dtype=np.float32) * np.float32(count)
    floor = calls.callee(xp.floor)(drawn).astype(np.int32)
    index = calls.callee(xp.where)(floor >= count, np.int32(0), floor)               # CuPy draws 1.0, too
    is_right = calls.callee(operator.getitem)(sampler.threshold, index) < drawn - index.astype(np.float32)
    return calls.callee(operator.getitem)(sampler.values, index * np.int32(2) + is_right.astype(np.int32))


class KnownKernel:
    """A kernel of which it is known what it computes.  compute: does it, on symbolic arrays."""

    def __init__(self, calls: Calls, compute: Callable[..., Any], name: str):
        self._calls, self._compute, self.name = calls, compute, name

    def __call__(self, *args: Any) -> None:
        if type(args[-1]) is not SymbolicArray:
            self._calls.capture.abort(f"the CUDA kernel {self.name!r} is called for what is no array")
        self._compute(*args)


def _made(calls: Calls, in_params: str, out_params: str, operation: str, name: str, *rest: Any, **options: Any) -> KnownKernel:
    """The kernel of an operation that is known; the capture stops for others."""
    compute = _OPERATIONS.get(operation)
    if compute is None or rest or options:
        calls.capture.abort(f"the CUDA kernel {name!r} is made inside the compiled function")
    return KnownKernel(calls, compute, name)


def is_kernel(calls: Calls, function: Any) -> bool:
    """Whether a function is a kernel, or makes one."""
    return function is cuda.elementwise or isinstance(function, (*KERNELS, KnownKernel))


def kernel(calls: Calls, function: Any) -> Callable[..., Any]:
    """What to call for a kernel: the capture stops at one that was made before, which may write into any of its operands."""
    if isinstance(function, KnownKernel):
        return function
    if function is cuda.elementwise:                     # with CuPy, this is no function of Python's
        return functools.partial(_made, calls)
    return lambda *args, **kwargs: calls.capture.abort(f"the CUDA kernel {getattr(function, 'name', '')!r} is called")


#: Functions of Chainer's that a capture replaces.
KERNEL_HANDLERS: Dict[Any, Callable] = {**dict.fromkeys(_ON_HOST, _update), WalkerAlias.sample_gpu: _sample}

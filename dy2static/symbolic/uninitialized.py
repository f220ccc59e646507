"""Parameters of the user's that have no array yet, as a Link has that is never called: what trains a model passes over them."""
from __future__ import annotations

from typing import Any, Callable

import chainer
import numpy as np
from chainer._backend import Device

from ..capture_context import CaptureContext
from ..heap.stand_ins import stands_for
from ..record.paths import Attribute, Source
from .variables import SymbolicParameter

_WITHOUT = ("array", "_grad_initializer", "_loss_scale")


def _has_no_array(self: "UninitializedParameter", *_: Any) -> Any:
    """Stop the capture: the next call finds the array that this one makes."""
    self.capture.abort(f"parameter {self.described} is not initialized yet", again=True)


def _guarded(name: str) -> Callable:
    return lambda self: self.capture.heap.shadow(getattr(self.real, name), self.capture.heap.source(Attribute, self.source, name))


class UninitializedParameter(SymbolicParameter):
    """One whose gradient has been cleared: `cleargrad` has nothing to do, and rules do not change it.

    All else that needs its array ends the capture.
    """

    def __init__(self, capture: CaptureContext, real: chainer.Parameter, source: Source):
        # not that of symbolic Variables: there is no array
        self.__dict__.update(capture=capture, real=real, source=source, described=real.name or source.describe(), connected=False,
                             _layout=None, _has_chainerx_array=False, depth=capture.staging.depth)
        self.__dict__["_requires_grad"] = _guarded("_requires_grad")(self)
        for name in _WITHOUT:
            if _guarded(name)(self) is not None:
                _has_no_array(self)

    def cleargrad(self) -> None:
        """Its gradient is cleared already."""

    @property
    def dtype(self) -> np.dtype:
        """That of its initializer; raises RuntimeError where it has none."""
        dtype = _guarded("dtype")(self)
        if dtype == np.float16:                         # rules with `use_fp32_update` make a Parameter for it
            _has_no_array(self)
        return dtype        # type: ignore[no-any-return]

    @property
    def device(self) -> Device:
        """That on which its array will be."""
        return _guarded("device")(self)         # type: ignore[no-any-return]

    array = data = grad = grad_var = _loss_scale = property(lambda self: None, _has_no_array)
    is_initialized = property(lambda self: False)
    _data = value = xp = shape = ndim = size = node = _node = creator = creator_node = property(_has_no_array, _has_no_array)
    backward = zerograd = _set_grad = copydata = addgrad = unchain = unchain_backward = to_device = initialize = _has_no_array
    __copy__ = __deepcopy__ = __setattr__ = _has_no_array


stands_for(UninitializedParameter, chainer.Parameter)

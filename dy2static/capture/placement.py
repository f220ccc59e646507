"""On which device the arrays of one capture are, and which library computes with them."""
from __future__ import annotations

import contextlib
import operator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Optional, Sequence, Tuple

import numpy as np

from ..ir.devices import HOST, common, is_gpu
from ..ir.graph import Value
from ..ir.types import Scalar, Tensor, Type, placed
from ..runtime.devices import array_module
from ..runtime.host_calls import Attribute, Method

if TYPE_CHECKING:
    from .calls import Calls
    from .capture import Capture

#: Where functions of NumPy and of CuPy have the same names and do the same.
_NAMESPACES = ("", "linalg", "fft")

_FOR_DEVICES: Dict[int, Tuple[Callable[..., Any], Callable[..., Any]]] = {}
_FOR_HOST: Dict[int, Tuple[Callable[..., Any], Callable[..., Any]]] = {}


class Placement:
    """Where the arrays of one capture are.

    device: the GPU that it is captured for; "" for the host alone.  found: the GPU whose arrays it has met: where that is not
    ``device``, the call is captured again, for that one.
    """

    def __init__(self, capture: Capture, device: str):
        self.capture, self.device, self.found = capture, device, device
        self._is_called = False                         # whether the library of the device is called, not NumPy

    def entered(self, device: str) -> str:
        """The device of an array of the caller's in the graph.  Stops the capture if it was not captured for that."""
        if not is_gpu(device):
            return HOST if self.device else ""
        if device != self.device:
            self.found = device
            self.capture.abort(f"arrays on {self.device} and on {device} are used in one call" if self.device else
                               "an array on a GPU is met", again=not self.device)
        return device

    @contextlib.contextmanager
    def calling(self) -> Iterator[None]:
        """In its block, what NumPy is asked for is a call of the library of the device."""
        before, self._is_called = self._is_called, True
        try:
            yield
        finally:
            self._is_called = before

    def of_call(self, operands: Sequence[Value]) -> str:
        """The device of what a call on arrays gives.  Stops the capture if they are on several."""
        if not self.device:
            return ""
        try:
            device = common([v.type.device for v in operands if isinstance(v.type, Tensor)])
        except TypeError:
            self.capture.abort("arrays of the host and of a GPU are used together", hint="send one to the device of the other")
        if self._is_called and device == HOST:
            self.capture.abort("an array of the host is given to a function of CuPy", hint="send it to the device")
        return device or (self.device if self._is_called else HOST)

    def function(self, function: Callable[..., Any], shown: str, device: str) -> Callable[..., Any]:
        """What a run calls for a function of NumPy on arrays of a device.  Stops the capture if there is no such function."""
        if not is_gpu(device) or isinstance(function, (Method, Attribute)) or _is_operator(function) or function in _GENERIC:
            return function
        found = _functions(device)[1].get(id(function))
        if found is None:
            self.capture.abort(f"{shown} is called on an array on a GPU")
        return found[1]

    def typing(self, function: Callable[..., Any], types: Sequence[Any], device: str) -> Sequence[Any]:
        """The types of the operands that NumPy is tried with.

        On a GPU an array without axes has a say in the dtype of a result as any other array has, which not every NumPy gives it.
        """
        by_dtype = isinstance(function, np.ufunc) or _is_operator(function) and function is not operator.getitem
        if not by_dtype or not is_gpu(device) or not any(type(t) is Tensor and t.shape for t in types):
            return types
        return [replace(t, shape=(1,)) if type(t) is Tensor and not t.shape else t for t in types]

    def types(self, types: Sequence[Type], device: str) -> Tuple[Type, ...]:
        """The types of what a call gives, learned on the host: on a GPU, NumPy's scalars are arrays without axes."""
        if not device:
            return tuple(types)
        if is_gpu(device):
            types = [Tensor((), t.dtype) if type(t) is Scalar and t.kind == "numpy" else t for t in types]
        return tuple([placed(t, device) for t in types])


def _is_operator(function: Any) -> bool:
    return getattr(function, "__module__", "") == "_operator"


#: What works on arrays of any library.
_GENERIC = (round, divmod, operator.getitem)


def _functions(device: str) -> Tuple[Dict[int, Any], Dict[int, Any]]:
    """By the id of a function of CuPy, it and NumPy's function of the same name; and the other way round."""
    if not _FOR_HOST:
        for space in _NAMESPACES:
            ours, theirs = (module if not space else getattr(module, space, None) for module in (np, array_module(device)))
            for name in dir(ours):
                first, second = getattr(ours, name), getattr(theirs, name, None)
                if callable(first) and callable(second) and first is not second and not isinstance(first, type):
                    _FOR_HOST.setdefault(id(second), (second, first))
                    _FOR_DEVICES.setdefault(id(first), (first, second))
    return _FOR_HOST, _FOR_DEVICES


def function_of_numpy(calls: Calls, function: Any) -> Optional[Callable[..., Any]]:
    """NumPy's function of the name that a function of CuPy has; None for other functions."""
    device = calls.capture.placement.device
    found = _functions(device)[0].get(id(function)) if device else None
    return None if found is None else found[1]


def of_device(calls: Calls, function: Any) -> Callable[..., Any]:
    """Let a function of CuPy compute at every run; what it gives is learned from that of NumPy."""
    known = function_of_numpy(calls, function)
    assert known is not None
    native, capture = calls.native(known), calls.capture

    def call(*args: Any, **kwargs: Any) -> Any:
        with capture.placement.calling():
            if any(capture.operands.holds_symbolic(x) for x in (*args, *kwargs.values())):
                return native(*args, **kwargs)
            made = known(*args, **kwargs)
            return capture.numpy.call(known, args, kwargs) if isinstance(made, (np.ndarray, np.generic)) else made
    return call

"""On which device the arrays of one capture are, and which library computes with them."""
from __future__ import annotations

import contextlib
import operator
import types
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Optional, Sequence, Tuple

import numpy as np

from ..ir.devices import HOST, common, is_gpu
from ..ir.gpus import gpus_of
from ..ir.graph import Graph, Value
from ..ir.op import OPS
from ..ir.types import Scalar, Tensor, Type, placed
from ..library_facts import numpy as numpy_facts
from ..library_facts.table import named
from ..runtime.array_writes import Into, write_at, write_at_checked
from ..runtime.devices import array_module, current_device
from ..runtime.host_calls import Attribute, Method
from ..symbolic.values import SymbolicArray

if TYPE_CHECKING:
    from .protocols import Calls, Capture

#: Where functions of NumPy and of CuPy have the same names and do the same.
_NAMESPACES = ("", "linalg", "fft")

_FOR_DEVICES: Dict[int, Tuple[Callable[..., Any], Callable[..., Any]]] = {}
_FOR_HOST: Dict[int, Tuple[Callable[..., Any], Callable[..., Any]]] = {}


class Placement:
    """Where the arrays of one capture are.

    device: the first GPU whose arrays are met; "" for the host alone.  found: such a GPU: where that is not ``device``, the call
    is captured again, for that one.  current: the number of the GPU that is relied on being the current one when a call begins; -1
    for none.
    """

    def __init__(self, capture: Capture, device: str):
        self.capture, self.device, self.found = capture, device, device
        self.current = -1
        self._first = current_device() if device else -1
        self._inside = ""                               # the GPU of the function of Chainer that computes
        self._is_called = False                         # whether the library of the device is called, not NumPy

    def entered(self, device: str) -> str:
        """The device of an array of the caller's in the graph.  Stops the capture if it was not captured for that."""
        if not is_gpu(device):
            return HOST if self.device else ""
        if not self.device:
            self.found = device
            self.capture.abort("an array on a GPU is used", again=True)
        return device

    def on_current(self) -> str:
        """The current GPU.  From now on, a guard checks that later calls begin with the same one."""
        if self._inside:
            return self._inside
        self.current = self._first
        return f"cupy:{current_device()}"

    def called_on(self, device: str) -> None:
        """Stop the capture where CuPy is called on arrays of another device than the current one, but for functions of Chainer."""
        if self.on_current() != device:
            self.capture.abort(f"arrays are on {device}, and the current device is another one",
                               hint=f'call `chainer.get_device("@{device}").use()` before', final=True, whole=True)

    def check(self, graph: Graph) -> None:
        """Stop the capture where a graph for several GPUs has branches or loops."""
        if self.device and len(gpus_of(graph)) > 1 and any(node.regions for node in graph.nodes):
            self.capture.abort("arrays are on several GPUs, and a branch or loop depends on array values",
                               hint="let the part on each GPU be a compiled function of its own", final=True, whole=True)

    @contextlib.contextmanager
    def inside(self, device: str) -> Iterator[None]:
        """In its block, a function of Chainer on arrays of this device computes: it makes a GPU the current one itself."""
        before = self._inside
        self._inside = device if is_gpu(device) else before
        try:
            yield
        finally:
            self._inside = before

    @contextlib.contextmanager
    def calling(self) -> Iterator[None]:
        """In its block, what NumPy is asked for is a call of the library of the device."""
        before, self._is_called = self._is_called, True
        try:
            yield
        finally:
            self._is_called = before

    def sent(self, array: SymbolicArray, device: str) -> SymbolicArray:
        """An array on a device, where it stays the same array if it is there already."""
        capture = self.capture
        if (array.place or HOST) == device:
            return array
        if is_gpu(device):
            self.entered(device)
        value = array.now()
        capture.event("staged", "to_device")
        value = OPS["to_device"](OPS["stop_gradient"](value) if value in capture.gradients.variables else value, device=device)
        made = SymbolicArray(capture, value)
        capture.array_writes.filled(made)
        return made

    def got(self, array: SymbolicArray, *args: Any, **kwargs: Any) -> SymbolicArray:
        """``array.get()`` of an array on a GPU: what waits for the device in eager mode does so at every run."""
        if args or kwargs:
            self.capture.abort("`.get()` of an array is called with arguments")
        return self.sent(array, HOST)

    def of_call(self, operands: Sequence[Value]) -> str:
        """The device of what a call on arrays gives.  Stops the capture if they are on several."""
        if not self.device:
            return ""
        devices = {v.type.device for v in operands if isinstance(v.type, Tensor)}
        try:
            device = common(devices)
        except TypeError:
            found = "the host and of a GPU" if HOST in devices else " and of ".join(sorted(filter(None, devices)))
            self.capture.abort(f"arrays of {found} are used together", hint="send one to the device of the other")
        if self._is_called and device == HOST:
            self.capture.abort("an array of the host is given to a function of CuPy", hint="send it to the device")
        return device or (self.on_current() if self._is_called else HOST)

    def dispatched(self, function: Callable[..., Any], shown: str) -> None:
        """Stop the capture if NumPy itself is called on arrays of a GPU, and does not leave them to CuPy: `np.asarray` does not."""
        if not self._is_called and id(function) in _functions(self.device)[1] \
                and not isinstance(function, np.ufunc) and not hasattr(function, "_implementation"):
            self.capture.abort(f"{shown} is called on an array on a GPU")

    def function(self, function: Callable[..., Any], shown: str, device: str) -> Callable[..., Any]:
        """What a run calls for a function of NumPy on arrays of a device.  Stops the capture if there is no such function."""
        if not is_gpu(device) or isinstance(function, (Method, Attribute)) or _is_operator(function) or function in _GENERIC:
            return function
        found = _functions(device)[1].get(id(function))
        if found is None:
            self.capture.abort(f"{shown} is called on an array on a GPU")
        return found[1]

    def written(self, function: Callable[..., Any], args: Tuple[Any, ...], shown: str, device: str) -> Tuple[Any, ...]:
        """The arguments of a call, in which the function that writes into an array on a GPU is that of CuPy."""
        if not is_gpu(device) or function not in (write_at, write_at_checked):
            return args
        contents, steps, write, *rest = args
        if type(write) is Into:
            write = Into(self.function(write.function, shown, device))
        elif type(write) is types.FunctionType or isinstance(write, np.ufunc):
            write = self.function(write, shown, device)
        return (contents, steps, write, *rest)

    def typing(self, function: Callable[..., Any], types: Sequence[Any], device: str) -> Sequence[Any]:
        """The types of the operands that NumPy is tried with.

        On a GPU an array without axes has a say in the dtype of a result as any other array has, which not every NumPy gives it.
        """
        by_dtype = isinstance(function, np.ufunc) or _is_operator(function) and function is not operator.getitem
        if not by_dtype or not is_gpu(device):
            return types
        return [replace(t, shape=(1,)) if type(t) is Tensor and not t.shape else t for t in types]

    def types(self, found: Sequence[Type], operands: Sequence[Any], tried: Sequence[Any], device: str) -> Tuple[Type, ...]:
        """The types of what a call gives, learned on the host: on a GPU, NumPy's scalars are arrays without axes.

        operands: the types of the operands.  tried: those that NumPy was tried with.
        """
        if not device:
            return tuple(found)
        if is_gpu(device):
            is_small = tried is not operands and not any(t.shape for t in operands if isinstance(t, Tensor))
            found = [Tensor((), t.dtype) if is_small and type(t) is Tensor or type(t) is Scalar and t.kind == "numpy" else t
                     for t in found]
        return tuple([placed(t, device) for t in found])


def _is_operator(function: Any) -> bool:
    return getattr(function, "__module__", "") == "_operator"


_SENDING = named("sends", numpy_facts.FUNCTIONS)

#: What works on arrays of any library.
_GENERIC = (round, divmod, operator.getitem, write_at, write_at_checked)


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


def draws_on_gpu(calls: Calls, function: Any) -> bool:
    """Whether this is a function of ``cupy.random``, called where arrays are on a GPU."""
    return bool(calls.capture.placement.device) and isinstance(function, types.FunctionType) and \
        (function.__module__ or "").startswith("cupy.random")


def of_device(calls: Calls, function: Any) -> Callable[..., Any]:
    """Let a function of CuPy compute at every run; what it gives is learned from that of NumPy."""
    known = function_of_numpy(calls, function)
    assert known is not None
    native, capture = calls.native(known), calls.capture

    def call(*args: Any, **kwargs: Any) -> Any:
        is_copied = known.__name__ in _SENDING and len(args) == 1 and not kwargs and type(args[0]) is SymbolicArray
        if is_copied and not is_gpu(args[0].place):
            return capture.placement.sent(args[0], capture.placement.on_current())
        with capture.placement.calling():
            if any(capture.operands.holds_symbolic(x) for x in (*args, *kwargs.values())):
                return native(*args, **kwargs)
            made = known(*args, **kwargs)
            return capture.numpy.call(known, args, kwargs) if isinstance(made, (np.ndarray, np.generic)) else made
    return call

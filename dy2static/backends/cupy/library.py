"""CuPy as the library that a generated function calls: its names, its arrays, and the ops that it computes another way."""
from __future__ import annotations

import functools
import re
from typing import Any, Callable, Hashable, Tuple, Union

import numpy as np
from chainer.backends import cuda

from ...ir.devices import HOST, is_gpu, number_of
from ...ir.gpus import gpus_of
from ...ir.graph import Graph, Value
from ...ir.op import ON_HOST, OpDef
from ...ir.types import place_of
from ...runtime.devices import current_stream
from ..host.library import NUMPY_CALLS, Library
from ..names import Names
from .functions import on_cupy, on_host
from .memory import Retrying, copied, empty
from .special import SPECIAL

#: CuPy's functions for methods of NumPy's ufuncs that it lacks.
_METHODS = {
    "np.add.reduce(": "cp.sum(", "np.multiply.reduce(": "cp.prod(", "np.maximum.reduce(": "cp.amax(",
    "np.minimum.reduce(": "cp.amin(", "np.logical_or.reduce(": "cp.any(", "np.logical_and.reduce(": "cp.all(",
    "np.add.accumulate(": "cp.cumsum(", "np.multiply.accumulate(": "cp.cumprod(", "np.add.at(": "cupyx.scatter_add("}

_METHOD = re.compile("|".join(map(re.escape, _METHODS)))
_EMPTY = re.compile(r"\bnp\.empty\(")
_OF_NUMPY = re.compile(r"\bnp\.(?=[A-Za-z_])")


class _Events:
    """Points of CuPy's current stream: CUDA events.  device: the device, as a manager."""

    def __init__(self, device: Callable[[], Any]):
        self._device = device

    def stamp(self) -> Any:
        """As `Stamps.stamp`."""
        with self._device():
            event = cuda.cupy.cuda.Event()
            event.record()
            return event

    def between(self, first: Any, second: Any) -> int:
        """As `Stamps.between`: the device measures to about half a microsecond."""
        second.synchronize()
        return int(cuda.cupy.cuda.get_elapsed_time(first, second) * 1e6)


class CupyCalls(Library):
    """CuPy on one device.

    number: that of the device, -1: the one that is current when a function is called.  others: those of further devices, whose
    arrays are in the same graph.
    """

    titles = "CuPy", "CUDA"
    warns = False
    gives_numbers = False
    shares_work = plans_sizes = False
    special = SPECIAL
    reserved = ("cp", "cupyx")

    def __init__(self, number: int = -1, others: Tuple[int, ...] = ()):
        self.number, self.others = number, others
        self.stamps = _Events(self._device)

    def place(self) -> Hashable:                        # type: ignore[override]
        """As `Library.place`: the current stream of each device."""
        return tuple(map(current_stream, (self.number, *self.others))) if self.others else current_stream(self.number)

    def form(self, op: OpDef) -> Union[str, Callable[..., Any], None]:
        """As `Library.form`: the form for CuPy, or NumPy's."""
        return op.numpy if op.cupy in (None, ON_HOST) else op.cupy

    def text(self, code: str, names: Names) -> str:
        """As `Library.text`: ``cp`` is CuPy, and new memory is that of `memory.empty`."""
        code = _EMPTY.sub(lambda found: f"{names.bind('empty', empty)}(", code)
        code = _OF_NUMPY.sub("cp.", _METHOD.sub(lambda found: _METHODS[found.group()], code))
        if "cp." in code:
            names.namespace["cp"] = cuda.cupy
        if "cupyx." in code:
            names.namespace["cupyx"] = cuda.cupyx
        return code

    def function(self, function: Callable[..., Any], op: OpDef) -> Callable[..., Any]:
        """As `Library.function`."""
        return on_host(function) if op.cupy == ON_HOST else on_cupy(function)

    def constant(self, array: np.ndarray) -> Any:
        """As `Library.constant`: in the memory of the device."""
        with self._device():
            return copied(array)

    def empty(self, nbytes: int) -> Any:
        """As `Library.empty`."""
        with self._device():
            return empty((nbytes,), np.dtype(np.uint8))

    def address(self, memory: Any) -> int:
        """As `Library.address`."""
        return int(memory.data.ptr)

    def called(self, function: Callable[..., Any], graph: Graph) -> Callable[..., Any]:
        """As `Library.called`: a function that does nothing but compute is called once more where memory is short."""
        return function if any(node.op.effect for node in graph.walk()) else Retrying(function)

    def around(self, names: Names) -> str:
        """As `Library.around`: the device."""
        return "" if self.number < 0 else self.text(f"cp.cuda.Device({self.number})", names)

    def placed(self, graph: Graph) -> CupyCalls:
        """As `Library.placed`."""
        numbers = gpus_of(graph)
        return _on(*numbers[:1], others=tuple(numbers[1:]))

    def beside(self, *values: Value) -> str:
        """As `Library.beside`."""
        device = next(filter(is_gpu, [place_of(v.type) for v in values]), "")
        return device if device and number_of(device) != self.number else ""

    def on(self, number: int) -> CupyCalls:
        """CuPy on one of the devices."""
        return _on(number) if self.others else self

    def at(self, device: str) -> Library:
        """As `Library.at`."""
        return _on(number_of(device)) if device else self

    def of(self, *values: Value) -> Library:
        """As `Library.of`."""
        devices = {place_of(v.type) for v in values}
        return NUMPY_CALLS if HOST in devices and not any(map(is_gpu, devices)) else self.at(self.beside(*values))

    def _device(self) -> Any:
        return cuda.Device() if self.number < 0 else cuda.Device(self.number)


@functools.lru_cache(maxsize=None)
def _on(number: int = -1, others: Tuple[int, ...] = ()) -> CupyCalls:
    return CupyCalls(number, others)

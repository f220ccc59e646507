"""Regions of a graph on a device at run time: what launches their kernels."""
from __future__ import annotations

from typing import Any, Callable, ContextManager, Mapping, Optional, Protocol, Sequence

import numpy as np

from ...ir.graph import Graph
from ...native.cudnn import Convolution, Plan
from ...runtime.clocks import Clock
from ..compiled_calls import Conversion
from .convolutions import ALIGNMENT, aligned_inputs
from .emit import write
from .function import Planner, no_plan
from .launching import LaunchingDevice, Run, runs
from .program import with_pieces


class Device(LaunchingDevice, Protocol):
    """What runs kernels.  Arrays are those that the programs compute with; they enter kernels by their addresses."""

    def prepare(self, text: str) -> Preparation:
        """Begin to compile kernels in the background, so that `load` need not wait."""

    def load(self, text: str, names: Sequence[str]) -> Mapping[str, Any]:
        """The functions of these kernels.  Raises `BackendError` where the text cannot be compiled."""

    def current(self) -> ContextManager[Any]:
        """In its block, this is the current device."""

    def plan(self, convolution: Convolution) -> Optional[Plan]:
        """How cuDNN computes a convolution on the device; None where it does not."""

    def address(self, array: Any) -> int:
        """Where the elements of an array are."""

    def contiguous(self, array: Any) -> Any:
        """The array, or a copy whose elements stand in the order of memory."""

    def upload(self, array: np.ndarray) -> Any:
        """A copy of an array on the device."""


class Preparation(Protocol):
    """Kernels while they are compiled."""

    def done(self) -> bool:
        """Whether `result` has nothing to wait for."""

    def result(self) -> Any:
        """Wait for them.  Raises `BackendError`."""


class DeviceRegion:
    """One group of nodes on a device: ``call(inputs..., arrays of outputs..., scratch)``, as `CompiledCall` wants it.

    tables: the bytes of further pieces of scratch memory.  defer: what takes the addresses, and the arrays there, in the place of
    the last run; None where that is launched.
    """

    given: Mapping[int, Optional[Conversion]] = {}

    def __init__(self, graph: Graph, number: int, plan: Planner = no_plan, tables: Sequence[int] = ()):
        self.graph = graph
        self.function = with_pieces(write(graph, f"region_{number}", plan), tables)
        self.defer: Optional[Callable[[Sequence[int], Sequence[Any]], None]] = None
        self._aligned = aligned_inputs(self.function, len(graph.inputs))
        self.entering: Sequence[Optional[Conversion]] = (None,) * len(graph.inputs)

    @property
    def scratch(self) -> int:
        """As `CompiledRegion.scratch`."""
        return self.function.scratch

    def load(self, device: Device, module: Mapping[str, Any], clock: Optional[Clock] = None) -> None:
        """Let the kernels be launched on a device.  module: their functions there.  clock: what is told when each step has run."""
        self._device = device
        self.runs = runs(self.function, device, module, alone=clock is not None)
        if clock is not None:
            self.runs = [_timed(run, clock, clock.part(nodes, native=True))
                          for run, nodes in zip(self.runs, self.function.origins)]

    def call(self, *arrays: Any) -> None:
        """Launch all steps, in their order."""
        device = self._device
        count = len(self.graph.inputs)                                 # copies live until the last step is launched
        held = [*map(device.contiguous, arrays[:count]), *arrays[count:]]
        addresses = [*map(device.address, held)]
        for k in self._aligned:
            if addresses[k] % ALIGNMENT:
                held[k] = held[k].copy()
                addresses[k] = device.address(held[k])
        for run in self.runs if self.defer is None else self.runs[:-1]:
            run(addresses)
        if self.defer is not None:
            self.defer(addresses, held)


def _timed(run: Run, clock: Clock, number: int) -> Run:
    def timed(addresses: Sequence[int]) -> None:
        run(addresses)
        clock.tick(number)
    return timed

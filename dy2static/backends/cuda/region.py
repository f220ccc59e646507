"""Regions of a graph on a device at run time: what launches their kernels."""
from __future__ import annotations

from typing import Any, Callable, ContextManager, List, Mapping, Optional, Protocol, Sequence, Tuple

import numpy as np

from ...ir.graph import Graph
from ...native.cudnn import Convolution, Plan
from ...runtime.clocks import Clock
from ..compiled_calls import Conversion
from .emit import write
from .function import Planner, no_plan
from .program import Convolve, Launch, Matrices, Step


class Device(Protocol):
    """What runs kernels.  Arrays are those that the programs compute with; they enter kernels by their addresses."""

    def prepare(self, text: str) -> Preparation:
        """Begin to compile kernels in the background, so that `load` need not wait."""

    def load(self, text: str, names: Sequence[str]) -> Mapping[str, Any]:
        """The functions of these kernels.  Raises `BackendError` where the text cannot be compiled."""

    def launch(self, function: Any, blocks: int, threads: int, addresses: Sequence[int]) -> None:
        """Launch a kernel whose arguments are pointers."""

    def current(self) -> ContextManager[Any]:
        """In its block, this is the current device."""

    def view(self, address: int, shape: Tuple[int, ...], strides: Tuple[int, ...], dtype: Any) -> Any:
        """An array on memory that is there.  strides: in elements."""

    def multiply(self, left: Any, right: Any, out: Any) -> None:
        """Write a product of matrices, or stacks of them."""

    def plan(self, convolution: Convolution) -> Optional[Plan]:
        """How cuDNN computes a convolution on the device; None where it does not."""

    def convolve(self, plan: Plan, operands: Sequence[int], workspace: int) -> None:
        """Compute a convolution.  operands: the addresses of the two operands and of the result.  Raises `CudnnError`."""

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
    """One group of nodes on a device: ``call(inputs..., arrays of outputs..., scratch)``, as `CompiledCall` wants it."""

    given: Mapping[int, Optional[Conversion]] = {}

    def __init__(self, graph: Graph, number: int, plan: Planner = no_plan):
        self.graph = graph
        self.function = write(graph, f"region_{number}", plan)
        self.entering: Sequence[Optional[Conversion]] = (None,) * len(graph.inputs)

    @property
    def scratch(self) -> int:
        """As `CompiledRegion.scratch`."""
        return self.function.scratch

    def load(self, device: Device, module: Mapping[str, Any], clock: Optional[Clock] = None) -> None:
        """Let the kernels be launched on a device.  module: their functions there.  clock: what is told when each step has run."""
        self._device = device
        self._steps = [_on(device, module, step) for step in self.function.steps]
        if clock is not None:
            self._steps = [_timed(step, clock, clock.part(nodes, native=True))
                           for step, nodes in zip(self._steps, self.function.origins)]

    def call(self, *arrays: Any) -> None:
        """Launch all steps, in their order."""
        device, function = self._device, self.function
        count = len(self.graph.inputs)                                 # copies live until the last step is launched
        held = [*map(device.contiguous, arrays[:count]), *arrays[count:]]
        addresses = [*map(device.address, held)]
        if function.scratch:
            scratch = addresses.pop()
            addresses += [scratch + begin for begin in function.pieces]
        for step in self._steps:
            step(addresses)


def _on(device: Device, module: Mapping[str, Any], step: Step) -> Callable[[List[int]], None]:
    """A step as a function of the addresses of its region."""
    if isinstance(step, Launch):
        kernel, blocks, threads, pointers = module[step.kernel], step.blocks, step.threads, step.pointers
        return lambda addresses: device.launch(kernel, blocks, threads, [addresses[number] for number in pointers])
    if isinstance(step, Convolve):
        plan, pointers, workspace = step.plan, (step.first, step.second, step.out), step.workspace
        return lambda addresses: device.convolve(plan, [addresses[number] for number in pointers], addresses[workspace])
    operands = step.left, step.right, step.out
    return lambda addresses: device.multiply(*[_view(device, matrices, addresses) for matrices in operands])


def _timed(step: Callable[[List[int]], None], clock: Clock, number: int) -> Callable[[List[int]], None]:
    def timed(addresses: List[int]) -> None:
        step(addresses)
        clock.tick(number)
    return timed


def _view(device: Device, matrices: Matrices, addresses: Sequence[int]) -> Any:
    begin = addresses[matrices.pointer] + matrices.offset * matrices.dtype.itemsize
    return device.view(begin, matrices.shape, matrices.strides, matrices.dtype)

"""The backend that makes CUDA kernels of the parts of a graph that it supports, and calls of the array library of the rest."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Collection, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple

import numpy as np

from ...errors import InternalError
from ...ir.graph import Graph, Node, Value
from ...ir.types import Tensor
from ...passes import TOGETHER, Pass, Pipeline, Setting, run
from ...passes.in_place import Update
from ...runtime.clocks import Clock
from ..base import Backend, Done
from ..compiled_calls import Conversion, is_native
from ..host.backend import NUMPY, executable
from ..host.emit import emit
from .emit import REGION, supported, write
from .partition import divide
from .program import Launch, Matrices, text_of


class Device(Protocol):
    """What runs kernels.  Arrays are those that the programs compute with; they enter kernels by their addresses."""

    def load(self, text: str, names: Sequence[str]) -> Mapping[str, Any]:
        """The functions of these kernels.  Raises `BackendError` where the text cannot be compiled."""

    def launch(self, function: Any, blocks: int, threads: int, addresses: Sequence[int]) -> None:
        """Launch a kernel whose arguments are pointers."""

    def view(self, address: int, shape: Tuple[int, ...], strides: Tuple[int, ...], dtype: Any) -> Any:
        """An array on memory that is there.  strides: in elements."""

    def multiply(self, left: Any, right: Any, out: Any) -> None:
        """Write a product of matrices, or stacks of them."""

    def address(self, array: Any) -> int:
        """Where the elements of an array are."""

    def contiguous(self, array: Any) -> Any:
        """The array, or a copy whose elements stand in the order of memory."""

    def upload(self, array: np.ndarray) -> Any:
        """A copy of an array on the device."""

    def download(self, array: Any) -> np.ndarray:
        """A copy of an array of the device, when all that was launched before is done."""


class CudaBackend(Backend):
    """Kernels on a device.  `to_static` does not choose it yet: functions on CuPy arrays run as CuPy calls."""

    name = "cuda"
    passes = Pipeline("cuda", "a graph that is about to be run on a GPU, in parts as kernels", (
        *TOGETHER, Pass(divide, reads=("saved",), is_verified=False)))
    inner = (REGION,)

    def __init__(self, device: Device):
        self.device = device

    def supports(self, node: Node) -> bool:
        """Whether kernels compute a node."""
        return supported(node)

    def start(self, graph: Graph, *, name: str, escaping: Collection[Value], saved: Tuple[Value, ...] = (),
              recomputes: bool = False, clock: Optional[Clock] = None, updates: Sequence[Update] = ()) -> Done:
        """As `Backend.start`; kernels are compiled at once."""
        if updates:
            raise InternalError("the CUDA backend makes no functions of updates")
        divided = run(self.passes, graph, Setting(recomputes=recomputes, saved=saved))
        regions: List[DeviceRegion] = []
        divided = _with_calls(divided, regions)
        if not regions:
            return NUMPY.start(graph, name=name, escaping=escaping, saved=saved, recomputes=recomputes, clock=clock)
        kernels = [kernel for region in regions for kernel in region.function.kernels]
        text = text_of(kernels)
        module = self.device.load(text, [kernel.name for kernel in kernels])
        for region in regions:
            region.load(self.device, module)
        function = emit(divided, name=name, escaping=escaping, saved=saved, clock=clock)
        return Done(executable(function, divided, text, sum(len(list(region.graph.walk())) for region in regions)))


class DeviceRegion:
    """One group of nodes on a device: ``call(inputs..., arrays of outputs..., scratch)``, as `CompiledCall` wants it."""

    given: Mapping[int, Optional[Conversion]] = {}

    def __init__(self, graph: Graph, number: int):
        self.graph = graph
        self.function = write(graph, f"region_{number}")
        self.entering: Sequence[Optional[Conversion]] = (None,) * len(graph.inputs)

    def load(self, device: Device, module: Mapping[str, Any]) -> None:
        """Let the kernels be launched on a device.  module: their functions there."""
        self.device, self.module = device, module

    def call(self, *arrays: Any) -> None:
        """Launch all steps, in their order."""
        device, function = self.device, self.function
        count = len(self.graph.inputs)                                 # copies live until the last step is launched
        held = [*[device.contiguous(array) for array in arrays[:count]], *arrays[count:]]
        addresses = [device.address(array) for array in held]
        if function.scratch:
            scratch = addresses.pop()
            addresses += [scratch + begin for begin in function.pieces]
        for step in function.steps:
            if isinstance(step, Launch):
                device.launch(self.module[step.kernel], step.blocks, step.threads, [addresses[number] for number in step.pointers])
            else:
                device.multiply(*[_view(device, matrices, addresses) for matrices in (step.left, step.right, step.out)])


def _view(device: Device, matrices: Matrices, addresses: Sequence[int]) -> Any:
    begin = addresses[matrices.pointer] + matrices.offset * matrices.dtype.itemsize
    return device.view(begin, matrices.shape, matrices.strides, matrices.dtype)


def _with_calls(graph: Graph, regions: List[DeviceRegion]) -> Graph:
    return graph.with_(nodes=tuple(
        _called(node, regions) if is_native(node) else
        replace(node, regions=tuple(_with_calls(region, regions) for region in node.regions)) if node.regions else node
        for node in graph.nodes))


def _called(node: Node, regions: List[DeviceRegion]) -> Node:
    region = DeviceRegion(node.attrs["region"], len(regions))
    regions.append(region)
    scratch = Value(Tensor((region.function.scratch,), np.dtype(np.uint8)), "scratch")
    outputs = node.outputs + ((scratch,) if region.function.scratch else ())
    attrs: Dict[str, Any] = {**node.attrs, "call": region}
    return replace(node, outputs=outputs, attrs=attrs)

"""The backend that makes CUDA kernels of the parts of a graph that it supports, and calls of CuPy of the rest."""
from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, Callable, Collection, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ...errors import BackendError
from ...ir.graph import Graph, Node, Value
from ...ir.types import Tensor
from ...native import compiler
from ...native.announce import announce
from ...native.device import CupyDevice
from ...passes import TOGETHER, Pass, Pipeline, Setting, run
from ...passes.in_place import Update
from ...runtime.clocks import Clock
from ..base import Compilation, Executable
from ..compiled_calls import is_native
from ..cupy.backend import CUPY, CupyBackend
from ..cupy.library import CupyCalls
from ..host.backend import executable, with_updates
from ..host.emit import emit
from ..host.updates import update_calls
from .emit import REGION, supported
from .partition import divide
from .program import text_of
from .region import Device, DeviceRegion


class CudaBackend(CupyBackend):
    """Kernels on GPUs; CuPy calls where kernels cannot be compiled.

    make_device: makes the device of a number, once for each.  Raises `BackendError` where there are no kernels for it.
    """

    name = "cuda"
    passes = Pipeline("cuda", "a graph that is about to be run on a GPU, in parts as kernels", (
        *TOGETHER, Pass(divide, reads=("saved",), is_verified=False)))
    inner = (*CupyBackend.inner, REGION)
    is_compiled = True

    def __init__(self, make_device: Callable[[int], Device]):
        self.device = functools.lru_cache(maxsize=None)(make_device)

    def supports(self, node: Node) -> bool:
        """Whether kernels compute a node."""
        return supported(node)

    def start(self, graph: Graph, *, name: str, escaping: Collection[Value], saved: Tuple[Value, ...] = (),
              recomputes: bool = False, clock: Optional[Clock] = None, updates: Sequence[Update] = ()) -> Compilation:
        """As `Backend.start`: begins to compile the kernels."""
        library = self.library.placed(graph)
        if library.number < 0:                                          # nothing in it is on a GPU
            return super().start(graph, name=name, escaping=escaping, saved=saved, recomputes=recomputes, clock=clock,
                                 updates=updates)
        divided = run(self.passes, graph, Setting(recomputes=recomputes, saved=saved))
        return _Compilation(self.device, library, graph, divided, name=name, escaping=escaping, saved=saved, recomputes=recomputes,
                            clock=clock, updates=updates)


class _Compilation:
    """The kernels of a divided graph while they are compiled.

    graph: as it was before; that is what runs where they cannot be.  options: those of `Backend.start`.
    """

    def __init__(self, device: Callable[[int], Device], library: CupyCalls, graph: Graph, divided: Graph, **options: Any):
        self._graph, self._options, self._library = graph, options, library
        self._regions: List[DeviceRegion] = []
        self._divided = _with_calls(divided, self._regions)
        self._text = text_of([kernel for region in self._regions for kernel in region.function.kernels])
        self._guarded(lambda: self._prepare(device))

    def ready(self) -> bool:
        """As `Compilation.ready`."""
        return not self._regions or self._preparation.done()

    def finish(self) -> Executable:
        """As `Compilation.finish`; a function of CuPy calls only where the kernels cannot be compiled."""
        self._guarded(self._load)
        if not self._regions:
            return CUPY.compile(self._graph, **self._options)
        name, escaping, saved, clock, updates = (self._options[key] for key in ("name", "escaping", "saved", "clock", "updates"))
        function = emit(self._divided, name=name, escaping=escaping, saved=saved, clock=clock, library=self._library)
        made = executable(function, self._divided, self._text, sum(len(list(region.graph.walk())) for region in self._regions))
        return with_updates(made, update_calls(updates, range(len(updates)), self._library))

    def _prepare(self, device: Callable[[int], Device]) -> None:
        self._device = device(self._library.number)
        self._preparation = self._device.prepare(self._text)

    def _load(self) -> None:
        self._preparation.result()
        module = self._device.load(self._text, [kernel.name for region in self._regions for kernel in region.function.kernels])
        for region in self._regions:
            region.load(self._device, module)

    def _guarded(self, step: Callable[[], None]) -> None:
        """Do a step of compiling; where it fails, there are no regions."""
        try:
            if self._regions:
                step()
        except BackendError as reason:
            if compiler.Refused.stands(reason):
                raise
            announce("kernels", f"programs on GPUs run as calls of CuPy, without kernels of their own: {reason}")
            self._regions.clear()


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


#: The one there is.
CUDA = CudaBackend(CupyDevice)

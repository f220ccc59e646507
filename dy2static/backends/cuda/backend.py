"""The backend that makes CUDA kernels of the parts of a graph that it supports, and calls of CuPy of the rest."""
from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, Callable, Collection, List, Mapping, Optional, Sequence, Tuple, Union

import chainer

from ...errors import BackendError
from ...ir.gpus import gpus_of
from ...ir.graph import Graph, Node, Value
from ...native.announce import announce
from ...native.cudnn import Convolution, Plan
from ...native.device import CupyDevice
from ...native.device_kernels import Kernel, text_of
from ...native.failures import Refused
from ...passes import TOGETHER, Pass, Pipeline, Setting, run
from ...passes.in_place import Update
from ...runtime.clocks import Clock
from ..base import Compilation, Executable, Text
from ..compiled_calls import with_calls
from ..cupy.backend import CUPY, CupyBackend
from ..cupy.library import CupyCalls
from ..cupy.several_gpus import with_devices
from ..host.backend import numpy_text
from ..host.emit import emit
from ..host.function import NumpyFunction
from ..host.updates import update_texts
from ..updates import UpdateCall, alike, form
from .counts import with_counts
from .draws import draws_in_kernels
from .emit import REGION, supported
from .launches.ending import ending_of, ends_with
from .launches.launching import InC
from .launches.loops import LoopRegion, loops_on_device, parts_of
from .launches.region import Device, DeviceRegion, Preparation
from .launches.updates import STORE, UpdateRegion, takes
from .partition import divide
from .program.steps import DeviceFunction
from .text.function import Planner


class CudaBackend(CupyBackend):
    """Kernels on GPUs; CuPy calls where kernels cannot be compiled.

    make_device: makes the device of a number, once for each.  Raises `BackendError` where there are no kernels for it.
    """

    name = "cuda"
    passes = Pipeline("cuda", "a graph that is about to be run on a GPU, in parts as kernels", (
        *TOGETHER, Pass(draws_in_kernels, is_verified=False), Pass(with_counts, is_verified=False),
        Pass(with_devices, is_verified=False), Pass(divide, reads=("saved",), is_verified=False)))
    inner = (*CupyBackend.inner, REGION)
    is_compiled = has_native_calls = True

    def __init__(self, make_device: Callable[[int], Device]):
        self.device = functools.lru_cache(maxsize=None)(make_device)

    def supports(self, node: Node) -> bool:
        """Whether kernels compute a node."""
        return supported(node)

    def start(self, graph: Graph, *, name: str, escaping: Collection[Value], saved: Tuple[Value, ...] = (),
              recomputes: bool = False, clock: Optional[Clock] = None, updates: Sequence[Update] = ()) -> Compilation:
        """As `Backend.start`: begins to compile the kernels."""
        library = self.library.placed(graph)
        if library.others and (clock is not None or any(node.regions for node in graph.nodes)):     # a clock is one GPU's
            return CUPY.start(graph, name=name, escaping=escaping, saved=saved, recomputes=recomputes, clock=clock, updates=updates)
        if library.number < 0:                                          # nothing in it is on a GPU
            return super().start(graph, name=name, escaping=escaping, saved=saved, recomputes=recomputes, clock=clock,
                                 updates=updates)
        divided = run(self.passes, graph, Setting(recomputes=recomputes, saved=saved))
        return _Compilation(self.device, library, graph, divided, name=name, escaping=escaping, saved=saved, recomputes=recomputes,
                            clock=clock, updates=updates)


class _Gpu:
    """What a program has on one GPU.  library: CuPy there.  plan: how cuDNN computes a convolution there.

    device, preparation, module: the device, its kernels while they are compiled, and their functions.
    """

    device: Device
    preparation: Preparation
    module: Mapping[str, Any]

    def __init__(self, number: int, library: CupyCalls, plan: Planner):
        self.number, self.library, self.plan = number, library, plan
        self.regions: List[DeviceRegion] = []
        self.kernels: List[Kernel] = []


class _Compilation:
    """The kernels of a divided graph while they are compiled.

    graph: as it was before; that is what runs where they cannot be.  options: those of `Backend.start`.
    """

    text: Optional[Text] = None

    def __init__(self, device: Callable[[int], Device], library: CupyCalls, graph: Graph, divided: Graph, **options: Any):
        self._graph, self._options, self._library = graph, options, library
        self._gpus = {number: _Gpu(number, library.on(number), _planner(device, number))
                      for number in (library.number, *library.others)}
        self._updates = _regions_of(options["updates"])
        is_whole = options["clock"] is None and not library.others      # else loops and updates are launched alone
        self._ending = ending_of(divided, options["updates"], self._updates) if is_whole else None
        self._loops: List[LoopRegion] = []
        self._divided = with_calls(loops_on_device(divided) if is_whole else divided, self._region)
        for update in self._updates:
            self._gpu(update.graph).kernels.append(update.kernel)
        if self._ending is not None:
            self._gpus[library.number].kernels.append(STORE)
        self._kernels = [kernel for gpu in self._gpus.values() for kernel in gpu.kernels]
        self._text = text_of(self._kernels)
        self._guarded(lambda: self._prepare(device))

    def ready(self) -> bool:
        """As `Compilation.ready`."""
        return not self._kernels or all(gpu.preparation.done() for gpu in self._gpus.values())

    def finish(self) -> Executable:
        """As `Compilation.finish`; a function of CuPy calls only where the kernels cannot be compiled."""
        self._guarded(self._load)
        if not self._kernels:
            return CUPY.compile(self._graph, **self._options)
        name, escaping, saved, clock, updates = (self._options[key] for key in ("name", "escaping", "saved", "clock", "updates"))
        function = emit(self._divided, name=name, escaping=escaping, saved=saved, clock=clock, library=self._library)
        calls = [update.bind(self._gpu(update.graph).device, self._gpu(update.graph).module) for update in self._updates]
        others = set(range(len(updates))).difference(*[call.members for call in calls])
        text = numpy_text(function, self._divided, update_texts(updates, sorted(others), self._library))
        count = sum(len(list(region.graph.walk())) for gpu in self._gpus.values() for region in gpu.regions)
        count += sum(len(updates[k].graph.nodes) for region in self._updates for k in region.members)
        calls, settle = self._joined(function, calls)
        made = text.executable(self._library.called(function.bind(), self._divided), lambda: self._text, count, tuple(calls))
        return replace(made, settle=settle)

    def _region(self, graph: Graph) -> Union[DeviceRegion, LoopRegion]:
        parts = [self._new_region(part) for part in parts_of(graph)]
        if not parts:
            return self._new_region(graph)
        self._loops.append(LoopRegion(graph, *parts))
        return self._loops[-1]

    def _new_region(self, graph: Graph) -> DeviceRegion:
        is_last = self._ending is not None and graph is self._ending.graph
        tables = self._ending.tables if self._ending is not None and is_last else ()
        gpu = self._gpu(graph)
        gpu.regions.append(DeviceRegion(graph, gpu.plan, tables, _Around(gpu.library)))
        gpu.kernels += gpu.regions[-1].function.kernels
        return gpu.regions[-1]

    def _gpu(self, graph: Graph) -> _Gpu:
        """The GPU of a region, or of an update; what says nothing is on the first one."""
        return self._gpus[(*gpus_of(graph), self._library.number)[0]]

    def _joined(self, function: NumpyFunction, calls: List[UpdateCall]) -> Tuple[List[UpdateCall], Optional[Callable[[], None]]]:
        """These updates as one that is launched together with the last region, where that is possible; what launches that alone."""
        ending, gpu = self._ending, self._gpus[self._library.number]
        region = next((region for region in gpu.regions if ending is not None and region.graph is ending.graph), None)
        last = region.runs[-1] if region is not None and region.runs else None
        if (ending is None or region is None or not isinstance(region.function, DeviceFunction) or not isinstance(last, InC)
                or not ends_with(function, self._divided, region)):
            return calls, None
        ending.join(gpu.device, region.function, last, [call.call for call in calls])
        region.defer = ending.defer
        return [UpdateCall(ending.update, tuple([k for call in calls for k in call.members]))], ending.settle

    def _prepare(self, device: Callable[[int], Device]) -> None:
        for gpu in self._gpus.values():
            gpu.device = device(gpu.number)
            gpu.preparation = gpu.device.prepare(gpu.kernels)

    def _load(self) -> None:
        for gpu in self._gpus.values():
            gpu.preparation.result()
            gpu.module = gpu.device.load(gpu.kernels)
            for region in gpu.regions:
                region.load(gpu.device, gpu.module, self._options["clock"])
        for loop in self._loops:
            gpu = self._gpus[self._library.number]
            loop.load(gpu.device, gpu.module)

    def _guarded(self, step: Callable[[], None]) -> None:
        """Do a step of compiling; where it fails, there are no kernels."""
        try:
            if self._kernels:
                step()
        except BackendError as reason:
            if Refused.stands(reason):
                raise
            announce("kernels", f"programs on GPUs run as calls of CuPy, without kernels of their own: {reason}")
            self._kernels.clear()


class _Around:
    """What regions use of CuPy.  library: CuPy on their device."""

    def __init__(self, library: CupyCalls):
        self.empty = library.empty

    def calls(self, graph: Graph) -> Callable[..., Sequence[Any]]:
        """As `Around.calls`."""
        made = CUPY.compile(graph, name="region", escaping=set(graph.outputs))
        return lambda *arguments: made.call(None if made.make_arena is None else made.make_arena(), *arguments)


def _planner(device: Callable[[int], Device], number: int) -> Planner:
    """How cuDNN computes convolutions on a device.  It is asked for the device when there is a convolution.

    With ``chainer.config.use_cudnn = "never"``, it computes none.
    """
    def plan(convolution: Convolution) -> Optional[Plan]:
        if chainer.config.use_cudnn == "never":
            return None
        try:
            return device(number).plan(convolution)
        except BackendError:                                            # there will be no kernels either, which is announced
            return None
    return plan


def _regions_of(updates: Sequence[Update]) -> List[UpdateRegion]:
    """The kernels of updates, one for each form."""
    taken = [k for k, update in enumerate(updates) if takes(update)]
    return [UpdateRegion(updates[taken[members[0]]], tuple([taken[k] for k in members]))
            for members in alike([updates[k] for k in taken], form)]


#: The one there is.
CUDA = CudaBackend(CupyDevice)

"""The backend that makes CUDA kernels of the parts of a graph that it supports, and calls of CuPy of the rest."""
from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, Callable, Collection, List, Optional, Sequence, Tuple, Union

import chainer

from ...errors import BackendError
from ...ir.graph import Graph, Node, Value
from ...native import compiler
from ...native.announce import announce
from ...native.cudnn import Convolution, Plan
from ...native.device import CupyDevice
from ...native.device_kernels import text_of
from ...passes import TOGETHER, Pass, Pipeline, Setting, run
from ...passes.in_place import Update
from ...runtime.clocks import Clock
from ..base import Compilation, Executable, Text
from ..compiled_calls import with_calls
from ..cupy.backend import CUPY, CupyBackend
from ..cupy.library import CupyCalls
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
from .launches.region import Device, DeviceRegion
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
        Pass(divide, reads=("saved",), is_verified=False)))
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
        if library.others:
            return CUPY.start(graph, name=name, escaping=escaping, saved=saved, recomputes=recomputes, clock=clock, updates=updates)
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

    text: Optional[Text] = None

    def __init__(self, device: Callable[[int], Device], library: CupyCalls, graph: Graph, divided: Graph, **options: Any):
        self._graph, self._options, self._library = graph, options, library
        self._regions: List[DeviceRegion] = []
        self._plan = _planner(device, library.number)
        self._updates = _regions_of(options["updates"])
        timed = options["clock"] is not None                            # then each step is launched alone
        self._ending = None if timed else ending_of(divided, options["updates"], self._updates)
        self._loops: List[LoopRegion] = []
        self._divided = with_calls(divided if timed else loops_on_device(divided), self._region)
        self._kernels = list(dict.fromkeys([
            *[kernel for region in self._regions for kernel in region.function.kernels],
            *[region.kernel for region in self._updates], *([] if self._ending is None else [STORE])]))
        self._text = text_of(self._kernels)
        self._guarded(lambda: self._prepare(device))

    def ready(self) -> bool:
        """As `Compilation.ready`."""
        return not self._kernels or self._preparation.done()

    def finish(self) -> Executable:
        """As `Compilation.finish`; a function of CuPy calls only where the kernels cannot be compiled."""
        self._guarded(self._load)
        if not self._kernels:
            return CUPY.compile(self._graph, **self._options)
        name, escaping, saved, clock, updates = (self._options[key] for key in ("name", "escaping", "saved", "clock", "updates"))
        function = emit(self._divided, name=name, escaping=escaping, saved=saved, clock=clock, library=self._library)
        calls = [region.bind(self._device, self._module) for region in self._updates]
        others = set(range(len(updates))).difference(*[call.members for call in calls])
        text = numpy_text(function, self._divided, update_texts(updates, sorted(others), self._library))
        count = sum(len(list(region.graph.walk())) for region in self._regions)
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
        self._regions.append(DeviceRegion(graph, self._plan, tables, _Around(self._library)))
        return self._regions[-1]

    def _joined(self, function: NumpyFunction, calls: List[UpdateCall]) -> Tuple[List[UpdateCall], Optional[Callable[[], None]]]:
        """These updates as one that is launched together with the last region, where that is possible; what launches that alone."""
        ending = self._ending
        region = next((region for region in self._regions if ending is not None and region.graph is ending.graph), None)
        last = region.runs[-1] if region is not None and region.runs else None
        if (ending is None or region is None or not isinstance(region.function, DeviceFunction) or not isinstance(last, InC)
                or not ends_with(function, self._divided, region)):
            return calls, None
        ending.join(self._device, region.function, last, [call.call for call in calls])
        region.defer = ending.defer
        return [UpdateCall(ending.update, tuple([k for call in calls for k in call.members]))], ending.settle

    def _prepare(self, device: Callable[[int], Device]) -> None:
        self._device = device(self._library.number)
        self._preparation = self._device.prepare(self._kernels)

    def _load(self) -> None:
        self._preparation.result()
        self._module = self._device.load(self._kernels)
        for region in self._regions:
            region.load(self._device, self._module, self._options["clock"])
        for loop in self._loops:
            loop.load(self._device, self._module)

    def _guarded(self, step: Callable[[], None]) -> None:
        """Do a step of compiling; where it fails, there are no kernels."""
        try:
            if self._kernels:
                step()
        except BackendError as reason:
            if compiler.Refused.stands(reason):
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

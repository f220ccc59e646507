"""Regions of a graph on a device at run time: what launches their kernels."""
from __future__ import annotations

import functools
from typing import Any, Callable, ContextManager, Dict, List, Mapping, NamedTuple, Optional, Protocol, Sequence, Tuple

import numpy as np

from ....errors import BackendError
from ....ir.graph import Graph, Node
from ....ir.types import Extent, Tensor
from ....native.announce import announce
from ....native.cudnn import Convolution, Plan
from ....native.device_kernels import Kernel
from ....native.launcher import Operand
from ....runtime.clocks import Clock
from ...compiled_calls import Conversion
from ..emit import write
from ..kernels.convolutions import ALIGNMENT, aligned_inputs
from ..program.sizes import Sizes
from ..program.steps import DeviceFunction, OpenFunction, with_pieces
from ..text.function import Planner, no_plan
from .launching import InC, LaunchingDevice, Run, runs

#: Latest sizes for which a region remembers what launches it, with the CUDA graphs that have been made.
_REMEMBERED = 32


class Device(LaunchingDevice, Protocol):
    """What runs kernels.  Arrays are those that the programs compute with; they enter kernels by their addresses."""

    def prepare(self, kernels: Sequence[Kernel]) -> Preparation:
        """Begin to compile kernels in the background, so that `load` need not wait."""

    def load(self, kernels: Sequence[Kernel]) -> Mapping[str, Any]:
        """The functions of these kernels by their names.  Raises `BackendError` where they cannot be compiled."""

    def current(self) -> ContextManager[Any]:
        """In its block, this is the current device."""

    def plan(self, convolution: Convolution) -> Optional[Plan]:
        """How cuDNN computes a convolution on the device; None where it does not."""

    def address(self, array: Any) -> int:
        """Where the elements of an array are."""

    def contiguous(self, array: Any) -> Any:
        """The array, or a copy whose elements stand in the order of memory."""

    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        """A copy of an array on the device."""

    def download(self, array: Any) -> np.ndarray[Any, Any]:
        """The array on the host, when all that was launched before is done."""


class Preparation(Protocol):
    """Kernels while they are compiled."""

    def done(self) -> bool:
        """Whether `result` has nothing to wait for."""

    def result(self) -> Any:
        """Wait for them.  Raises `BackendError`."""


class Around(Protocol):
    """What regions use of the program that they are part of, where only the run knows sizes."""

    def empty(self, nbytes: int) -> Any:
        """New memory on the device, an array of bytes."""

    def calls(self, graph: Graph) -> Callable[..., Sequence[Any]]:
        """A function of the array library that computes a graph."""


class Ready(NamedTuple):
    """What launches a region, and the bytes of scratch memory that it needs."""

    runs: Sequence[Run]
    scratch: int


class DeviceRegion:
    """One group of nodes on a device: ``call(inputs..., sizes..., arrays of outputs..., scratch)``, as `CompiledCall` wants it.

    If there are sizes that only the run knows, the region has a list of launches for each of the latest ones, and takes its scratch
    memory itself.  If an array has no elements then, the array library computes the region.  Kernels for very large arrays are
    compiled when they are needed.

    tables: the bytes of further pieces of scratch memory, if all sizes are known.  defer: what takes the operands, of which scratch
    memory is the last one, and the arrays that they are, in the place of the last run; None where that is launched.
    """

    given: Mapping[int, Optional[Conversion]] = {}

    def __init__(self, graph: Graph, plan: Planner = no_plan, tables: Sequence[int] = (), around: Optional[Around] = None):
        self.graph = graph
        function = write(graph, plan)
        self.function = with_pieces(function, tables) if isinstance(function, DeviceFunction) else function
        self.defer: Optional[Callable[[Sequence[Operand], Sequence[Any]], None]] = None
        self._wide = functools.partial(write, graph, plan, wide=True)
        self._around = around
        self._arrays = [k for k, value in enumerate(graph.inputs) if isinstance(value.type, Tensor)]
        self._symbols = [value.type.symbol for value in graph.inputs if isinstance(value.type, Extent)]
        self._aligned = aligned_inputs(self.function.steps, len(self._arrays))
        self.entering: Sequence[Optional[Conversion]] = (None,) * len(graph.inputs)

    @property
    def scratch(self) -> int:
        """As `CompiledRegion.scratch`."""
        return self.function.scratch if isinstance(self.function, DeviceFunction) else 0

    def load(self, device: Device, module: Mapping[str, Any], clock: Optional[Clock] = None) -> None:
        """Let the kernels be launched on a device.  module: their functions there.  clock: what is told when each step has run."""
        self._device, self._module, self._clock = device, module, clock
        self.runs: Sequence[Run] = ()
        self._parts: Dict[Tuple[Node, ...], int] = {}                   # numbers of the clock's parts
        if isinstance(self.function, DeviceFunction):
            self.runs = self._runs(self.function, module)
        else:
            assert self._around is not None
            self.ready = functools.lru_cache(maxsize=_REMEMBERED)(self._ready)
            self._by_calls = functools.lru_cache(maxsize=None)(functools.partial(self._around.calls, self.graph))
            self._very_large = functools.lru_cache(maxsize=None)(self._load_wide)

    def call(self, *arguments: Any) -> None:
        """Launch all steps, in their order."""
        count, runs, memory = len(self.graph.inputs), self.runs, None
        if isinstance(self.function, OpenFunction):
            assert self._around is not None
            ready = self.ready(*map(int, arguments[len(self._arrays):count]))
            if ready is None:
                for result, array in zip(self._by_calls()(*arguments[:count]), arguments[count:]):
                    array[...] = result
                return
            runs, memory = ready.runs, self._around.empty(ready.scratch) if ready.scratch else None
        self._launch(runs, arguments[:len(self._arrays)], [*arguments[count:], *(() if memory is None else (memory,))])

    def _launch(self, runs: Sequence[Run], inputs: Sequence[Any], others: Sequence[Any]) -> None:
        held = [*inputs, *others]
        if not self._aligned and len(runs) == 1 and isinstance(runs[0], InC) and self._is_launched(runs[0], held):
            return
        device = self._device                                          # copies live until the last step is launched
        held = [*map(device.contiguous, inputs), *others]
        addresses = [*map(device.address, held)]
        for k in self._aligned:
            if addresses[k] % ALIGNMENT:
                held[k] = held[k].copy()
                addresses[k] = device.address(held[k])
        for run in runs if self.defer is None else runs[:-1]:
            run(addresses)
        if self.defer is not None:
            self.defer(addresses, held)

    def _is_launched(self, run: InC, held: Sequence[Any]) -> bool:
        """Launch, or defer, the only run with arrays as they are, if all are contiguous; whether that was done."""
        if self.defer is None:
            return run.launched(held)
        packed = run.launcher.pack(*held[:-1])
        if packed is not None:
            self.defer((packed, held[-1]), held)
        return packed is not None

    def _ready(self, *numbers: int) -> Optional[Ready]:
        """What launches the region for these sizes; None where kernels do not compute it."""
        sizes, function, module = Sizes(dict(zip(self._symbols, numbers))), self.function, self._module
        assert isinstance(function, OpenFunction)
        if not function.has_elements(sizes):
            return None
        if not function.fits(sizes):
            try:
                function, module = self._very_large()
            except BackendError as reason:
                announce("kernels", f"arrays of so many elements are computed by calls of CuPy: {reason}")
                return None
        closed = function.at(sizes)
        return Ready(self._runs(closed, module), closed.scratch)

    def _load_wide(self) -> Tuple[OpenFunction, Mapping[str, Any]]:
        function = self._wide()
        assert isinstance(function, OpenFunction)
        return function, self._device.load(function.kernels)

    def _runs(self, function: DeviceFunction, module: Mapping[str, Any]) -> List[Run]:
        clock, is_fixed = self._clock, isinstance(self.function, DeviceFunction)            # fresh sizes come in each call, perhaps
        found = runs(function, self._device, module, alone=clock is not None, measured=is_fixed)
        if clock is None:
            return found
        return [_timed(run, clock, self._part(clock, nodes)) for run, nodes in zip(found, function.origins)]

    def _part(self, clock: Clock, nodes: Tuple[Node, ...]) -> int:
        if nodes not in self._parts:
            self._parts[nodes] = clock.part(nodes, native=True)
        return self._parts[nodes]


def _timed(run: Run, clock: Clock, number: int) -> Run:
    def timed(addresses: Sequence[int]) -> None:
        run(addresses)
        clock.tick(number)
    return timed

"""The steps of a region as calls: runs of steps in C, and steps that Python has to do between them.

To add a kind of step: a class in `program`, its words in `words`, its function in ``native/launch*.c`` (and its name in
`launcher.KINDS`), and what it does in Python in `by_python`, which is used where the launcher cannot do it.
"""
from __future__ import annotations

import itertools
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Protocol, Sequence, Tuple, Union

import numpy as np

from .... import config
from ....ir.graph import Node
from ....native.cudnn import Plan
from ....native.launcher import KINDS, OF_LIBRARIES, STRIDED, Failure, Launcher, Place, Region
from ..program.products import words_of, words_of_scattered
from ..program.sizes import Number, settled
from ..program.steps import Clear, Convolve, Copy, DeviceFunction, Finished, Launch, Loop, Matrices, Scattered, Step, Table


class LaunchingDevice(Protocol):
    """What launching asks of a device; see `region.Device`."""

    def handle(self, function: Any) -> int:
        """The CUfunction of a kernel."""

    def launcher(self) -> Optional[Launcher]:
        """What launches regions; None where everything is launched from Python."""

    def place(self, products: bool) -> Place:
        """Where a run takes place.  products: whether it needs what products need."""

    def error(self, failure: Failure) -> Exception:
        """What is raised for a failure."""

    def launch(self, function: Any, blocks: int, threads: int, arguments: Sequence[int]) -> None:
        """Launch a kernel whose arguments are pointers, and numbers behind them."""

    def view(self, address: int, shape: Tuple[int, ...], strides: Tuple[int, ...], dtype: Any) -> Any:
        """An array on memory that is there.  strides: in elements."""

    def multiply(self, left: Any, right: Any, out: Any) -> None:
        """Write a product of matrices, or stacks of them."""

    def convolve(self, plan: Plan, operands: Sequence[int], workspace: int) -> None:
        """Compute a convolution.  operands: the addresses of the two operands and of the result.  Raises `CudnnError`."""


#: Launches some steps: takes the addresses of inputs, outputs, and scratch memory where there is some.
Run = Callable[[Sequence[int]], None]


class Words(NamedTuple):
    """A step as ``launch.c`` wants it: its kind, the numbers of the pointers that it uses, and further words."""

    kind: str
    pointers: Sequence[int]
    others: Sequence[int]

    def behind(self, arrays: int, more: int) -> Words:
        """The same where a run is given so many more words behind its arrays."""
        return self._replace(pointers=[number if number < arrays else number + more for number in self.pointers])

    def flat(self) -> List[int]:
        """The step as it stands in a region."""
        return [KINDS.index(self.kind), len(self.pointers) + len(self.others), len(self.pointers), *self.pointers, *self.others]


#: A step that the launcher does, with its words.
Known = Tuple[Union[Step, Table, Loop], Words]


def known_words(step: Union[Launch, Table], device: LaunchingDevice, module: Mapping[str, Any]) -> Words:
    """A kernel for the launcher, also one that stores a table."""
    handle = device.handle(module[step.kernel])
    if isinstance(step, Launch):
        return Words("kernel", step.pointers, (handle, *map(settled, (step.blocks, step.threads, *step.numbers))))
    return Words("table", (step.pointer, *step.words), (handle, step.begin, len(step.constants), *step.constants))


def words(step: Step, device: LaunchingDevice, module: Mapping[str, Any]) -> Optional[Words]:
    """A step for the launcher; None where it cannot do it."""
    if isinstance(step, Launch):
        return known_words(step, device, module)
    if isinstance(step, Clear):
        return Words("clear", (step.pointer,), (settled(step.nbytes),))
    if isinstance(step, Copy):
        return Words("copy", (step.target, step.source), [*map(settled, (step.target_begin, step.source_begin, step.nbytes))])
    if isinstance(step, Convolve):
        assert isinstance(step.plan, Plan)
        return Words("convolution", (step.first, step.second, step.out, step.workspace), step.plan.words())
    if isinstance(step, Finished):
        return _finished(step, device, module)
    if isinstance(step, Scattered):
        found = words_of_scattered(step.product)
        return None if found is None else Words("scattered", (step.table,), found)
    found = words_of(step)
    return None if found is None else Words("product", (step.right.pointer, step.left.pointer, step.out.pointer), found)


def _finished(step: Finished, device: LaunchingDevice, module: Mapping[str, Any]) -> Optional[Words]:
    product, kernel = words_of(step.product), step.instead
    if product is None:
        return None
    pointers = (step.product.right.pointer, step.product.left.pointer, step.product.out.pointer, step.bias, *kernel.pointers)
    launch = device.handle(module[kernel.kernel]), *map(settled, (kernel.blocks, kernel.threads, *kernel.numbers))
    return Words("finished", pointers, (*product, int(step.relu), settled(step.begin), 0, *launch))


def by_python(step: Step, device: LaunchingDevice, module: Mapping[str, Any], addresses: Sequence[int]) -> None:
    """Do a step by calls of Python.  addresses: all of its region, those of pieces of scratch memory, too."""
    if isinstance(step, Launch):
        arguments = [*[addresses[number] for number in step.pointers], *map(settled, step.numbers)]
        device.launch(module[step.kernel], settled(step.blocks), settled(step.threads), arguments)
    elif isinstance(step, Clear):
        _bytes(device, addresses[step.pointer], 0, step.nbytes)[...] = 0
    elif isinstance(step, Copy):
        source = _bytes(device, addresses[step.source], step.source_begin, step.nbytes)
        _bytes(device, addresses[step.target], step.target_begin, step.nbytes)[...] = source
    elif isinstance(step, Convolve):
        assert isinstance(step.plan, Plan)
        operands = [addresses[number] for number in (step.first, step.second, step.out)]
        device.convolve(step.plan, operands, addresses[step.workspace])
    elif isinstance(step, Finished):
        by_python(step.product, device, module, addresses)
        by_python(step.instead, device, module, addresses)
    elif isinstance(step, Scattered):
        by_python(step.product, device, module, addresses)
    else:
        device.multiply(*[_view(device, matrices, addresses) for matrices in (step.left, step.right, step.out)])


def runs(function: DeviceFunction, device: LaunchingDevice, module: Mapping[str, Any], alone: bool = False,
         measured: bool = True) -> List[Run]:
    """What launches the steps of a region, in their order.

    module: the kernels there.  alone: one run for each step.  measured: whether algorithms of products may be measured.
    """
    found: List[Run] = []
    launcher = device.launcher()
    unknown = [()] * (len(function.steps) - len(function.origins))
    steps = [(step, None if launcher is None else words(step, device, module), nodes)
             for step, nodes in zip(function.steps, [*function.origins, *unknown])]
    for is_known, group in itertools.groupby(
            steps, lambda one: launcher is not None and one[1] is not None and one[1].kind in launcher.kinds):
        for part in ([one] for one in group) if alone or not is_known else [list(group)]:
            if is_known:
                assert launcher is not None
                known = [(step, found_words) for step, found_words, _ in part if found_words is not None]
                found.append(InC(function.arrays, function.pieces, device, launcher, module, known, measured,
                                 origins=[nodes for _, _, nodes in part]))
            else:
                found.append(_InPython(function, device, module, part[0][0]))
    return found


class InC:
    """Steps that the launcher does in one call.

    given: how many addresses, or other words, a run is given first.  pieces: where pieces of scratch memory begin.
    steps: with their words.  measured: as for `runs`.  origins: the nodes that the first steps compute.
    """

    def __init__(self, given: int, pieces: Sequence[int], device: LaunchingDevice, launcher: Launcher, module: Mapping[str, Any],
                 steps: Sequence[Known], measured: bool = True, origins: Sequence[Tuple[Node, ...]] = ()):
        self.origins = origins
        self.device, self.launcher, self.module, self.steps = device, launcher, module, steps          # the kernels stay loaded
        self.needs_products = any(one.kind in OF_LIBRARIES for _, one in steps)
        all_words = [given, len(pieces), *pieces]
        for _, found in steps:
            all_words += found.flat()
        self.region: Region = launcher.region(all_words, graphs=config.gpu_graphs(), measured=measured)

    def __call__(self, addresses: Sequence[int]) -> None:
        failure = self.region(self.device.place(self.needs_products), addresses)
        if failure is not None:
            raise self.error(failure)

    def launched(self, arrays: Sequence[Any]) -> bool:
        """Launch with arrays, where all of them are contiguous; whether that was done."""
        failure = self.region(self.device.place(self.needs_products), arrays)
        if failure is not None and failure is not STRIDED:
            raise self.error(failure)
        return failure is None

    def error(self, failure: Failure) -> Exception:
        """What is raised for a failure."""
        error = self.device.error(failure)
        nodes = self.origins[failure.step] if failure.step < len(self.origins) else ()
        error.__cause__ = LaunchError(failure, self.steps[failure.step][0], nodes)
        return error


class _InPython:
    """A step that Python does."""

    def __init__(self, function: DeviceFunction, device: LaunchingDevice, module: Mapping[str, Any], step: Step):
        self._function, self._device, self._module, self._step = function, device, module, step

    def __call__(self, addresses: Sequence[int]) -> None:
        function = self._function
        if function.scratch:
            *arrays, scratch = addresses
            addresses = [*arrays, *[scratch + begin for begin in function.pieces]]
        by_python(self._step, self._device, self._module, addresses)


class LaunchError(Exception):
    """Which step of a region could not be launched, and the user's lines that it computes."""

    def __init__(self, failure: Failure, step: Union[Step, Table, Loop], nodes: Sequence[Node] = ()):
        what = step.kernel if isinstance(step, Launch) else type(step).__name__.lower()
        lines = {str(node.loc): f"\n  {node.loc}: {node.loc.text().strip()}" for node in nodes if node.loc is not None}
        super().__init__(f"step {failure.step} of a region on a GPU, {what}: {failure.library} reports error {failure.status}"
                         + "".join(lines.values()))


def _bytes(device: LaunchingDevice, address: int, begin: Number, count: Number) -> Any:
    return device.view(address + settled(begin), (settled(count),), (1,), np.dtype(np.uint8))


def _view(device: LaunchingDevice, matrices: Matrices, addresses: Sequence[int]) -> Any:
    begin = addresses[matrices.pointer] + settled(matrices.offset) * matrices.dtype.itemsize
    shape, strides = (tuple([settled(n) for n in numbers]) for numbers in (matrices.shape, matrices.strides))
    return device.view(begin, shape, strides, matrices.dtype)

"""What a region is on a device, as data: kernels, and what is launched one after the other.  Everything is frozen."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

from ....ir.graph import Node
from ....native.cudnn import Plan
from ....native.device_kernels import Kernel
from ...memory_planner import Buffer, aligned, arranged
from .sizes import Late, Number, Sizes


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel.

    pointers: the numbers of its arguments among the pointers of the region.  numbers: the arguments behind these.
    """

    kernel: str
    blocks: Number
    threads: Number
    pointers: Tuple[int, ...]
    numbers: Tuple[Number, ...] = ()


@dataclass(frozen=True)
class Matrices:
    """A matrix, or a stack of them, in memory: the number of its pointer, and where its elements are, in elements."""

    pointer: int
    offset: Number
    shape: Tuple[Number, ...]
    strides: Tuple[Number, ...]
    dtype: Any


@dataclass(frozen=True)
class Product:
    """``out[...] = left @ right``, for each pair of matrices."""

    left: Matrices
    right: Matrices
    out: Matrices


@dataclass(frozen=True)
class Scattered:
    """A product of stacks whose matrices are not equally far apart.

    table: the number of the pointer to their addresses, which a step before has written: those of all right operands, of all
    left ones, and of all results.
    """

    product: Product
    table: int


@dataclass(frozen=True)
class LatePlan:
    """How cuDNN computes a convolution some of whose sizes only the run knows: what gives the plan, and the sizes that it takes."""

    function: Callable[..., Optional[Plan]]
    sizes: Tuple[Number, ...]


@dataclass(frozen=True)
class Convolve:
    """A convolution by cuDNN.  first, second, out, workspace: the numbers of their pointers."""

    plan: Union[Plan, LatePlan]
    first: int
    second: int
    out: int
    workspace: int


@dataclass(frozen=True)
class Clear:
    """Zeros in all bytes of a pointer's memory."""

    pointer: int
    nbytes: Number


@dataclass(frozen=True)
class Copy:
    """Bytes copied from the memory of one pointer to that of another; ``begin``: how many bytes from there."""

    target: int
    target_begin: Number
    source: int
    source_begin: Number
    nbytes: Number


@dataclass(frozen=True)
class Finished:
    """A product of one matrix, to each row of which a vector is added; ``relu``: and then what is negative is zero.

    bias: the number of a pointer; begin: how many bytes from there.  instead: the kernel that does this in place, behind a plain
    product.
    """

    product: Product
    bias: int
    begin: Number
    relu: bool
    instead: Launch


@dataclass(frozen=True)
class Table:
    """Words of 64 bits that a kernel stores in the memory of a pointer: constants, and then words that each run is given.

    begin: how many words are before them.  words: the numbers of those that a run is given, counted like pointers.
    """

    kernel: str
    pointer: int
    begin: int
    constants: Tuple[int, ...]
    words: Tuple[int, ...]


@dataclass(frozen=True)
class Loop:
    """A loop whose condition is a value of the device, or a step of it."""


#: `launching` says what a further kind needs.
Step = Union[Launch, Product, Scattered, Convolve, Clear, Copy, Finished]


@dataclass(frozen=True)
class DeviceFunction:
    """The kernels of a region, and the steps that compute its outputs.

    Pointers are numbered: first the inputs, then the outputs, then pieces of scratch memory, which begin at ``pieces`` (bytes).
    arrays: how many inputs and outputs there are.  scratch: bytes that the pieces need.  origins: for each step, the nodes that it
    computes.
    """

    kernels: Tuple[Kernel, ...]
    steps: Tuple[Step, ...]
    arrays: int
    pieces: Tuple[int, ...] = ()
    scratch: int = 0
    origins: Tuple[Tuple[Node, ...], ...] = ()

    @property
    def launches(self) -> List[Launch]:
        """The steps that are kernels."""
        return [step for step in self.steps if isinstance(step, Launch)]


def with_pieces(function: DeviceFunction, sizes: Sequence[int]) -> DeviceFunction:
    """The function with further pieces of scratch memory of so many bytes, behind the others."""
    begins, end = list(function.pieces), aligned(function.scratch)
    for size in sizes:
        begins.append(end)
        end = aligned(end + size)
    return replace(function, pieces=tuple(begins), scratch=end) if sizes else function


@dataclass(frozen=True)
class OpenFunction:
    """A function with sizes that only the run knows: `at` gives it for those of a call.

    steps: those of `DeviceFunction`, with a `Number` where it has a number.  wanted: for each, whether it is a step; None: it
    always is.  buffers: the pieces of scratch memory; their bytes are `Number`s.  shapes: the sizes that are axes of arrays.
    limits: numbers, how large each may be, since kernels rely on it, and whether that kernel is wanted.
    """

    kernels: Tuple[Kernel, ...]
    steps: Tuple[Step, ...]
    wanted: Tuple[Optional[Late], ...]
    arrays: int
    buffers: Tuple[Buffer, ...]
    origins: Tuple[Tuple[Node, ...], ...]
    shapes: Tuple[Number, ...]
    limits: Tuple[Tuple[Number, int, Optional[Late]], ...]

    def has_elements(self, sizes: Sizes) -> bool:
        """Whether each array has an element: kernels are for these."""
        return all(sizes.of(size) > 0 for size in self.shapes)

    def fits(self, sizes: Sizes) -> bool:
        """Whether the kernels are for such sizes."""
        return all(wanted is not None and not sizes.of(wanted) or sizes.of(number) <= most for number, most, wanted in self.limits)

    def at(self, sizes: Sizes) -> DeviceFunction:
        """The function for sizes that fit."""
        taken = [k for k, wanted in enumerate(self.wanted) if wanted is None or sizes.of(wanted)]
        scratch, pieces = arranged([replace(buffer, nbytes=sizes.of(buffer.nbytes)) for buffer in self.buffers])
        return DeviceFunction(self.kernels, tuple([self._step(k, sizes) for k in taken]), self.arrays, tuple(pieces), scratch,
                              tuple([self.origins[k] for k in taken]))

    def _step(self, k: int, sizes: Sizes) -> Step:
        step = self.steps[k]
        if isinstance(step, Launch):                                   # there are many of these
            return Launch(step.kernel, sizes.of(step.blocks), sizes.of(step.threads), step.pointers,
                          tuple([sizes.of(number) for number in step.numbers]))
        if isinstance(step, Convolve) and isinstance(step.plan, LatePlan):
            plan = step.plan.function(*map(sizes.of, step.plan.sizes))
            assert plan is not None, "a step that is wanted has a plan"
            return replace(step, plan=plan)
        found: Step = sizes.all(step)
        return found

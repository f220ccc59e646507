"""What a region is on a device, as data: kernels, and what is launched one after the other.  Everything is frozen."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Iterable, List, Sequence, Tuple, Union

from ...ir.graph import Node
from ...native.cudnn import Plan
from ..memory_planner import aligned


@dataclass(frozen=True)
class Kernel:
    """A kernel, all of whose parameters are pointers."""

    name: str
    text: str


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel.  pointers: the numbers of its arguments among the pointers of the region."""

    kernel: str
    blocks: int
    threads: int
    pointers: Tuple[int, ...]


@dataclass(frozen=True)
class Matrices:
    """A matrix, or a stack of them, in memory: the number of its pointer, and where its elements are, in elements."""

    pointer: int
    offset: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    dtype: Any


@dataclass(frozen=True)
class Product:
    """``out[...] = left @ right``, for each pair of matrices."""

    left: Matrices
    right: Matrices
    out: Matrices


@dataclass(frozen=True)
class Convolve:
    """A convolution by cuDNN.  first, second, out, workspace: the numbers of their pointers."""

    plan: Plan
    first: int
    second: int
    out: int
    workspace: int


@dataclass(frozen=True)
class Clear:
    """Zeros in all bytes of a pointer's memory."""

    pointer: int
    nbytes: int


@dataclass(frozen=True)
class Copy:
    """Bytes copied from the memory of one pointer to that of another; ``begin``: how many bytes from there."""

    target: int
    target_begin: int
    source: int
    source_begin: int
    nbytes: int


@dataclass(frozen=True)
class Finished:
    """A product of one matrix, to each row of which a vector is added; ``relu``: and then what is negative is zero.

    bias: the number of a pointer; begin: how many bytes from there.  instead: the kernel that does this in place, behind a plain
    product.
    """

    product: Product
    bias: int
    begin: int
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


#: `launching` says what a further kind needs.
Step = Union[Launch, Product, Convolve, Clear, Copy, Finished]


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


def text_of(kernels: Iterable[Kernel]) -> str:
    """The CUDA C of kernels."""
    return '#include "dy2static_math.h"\n#include "dy2static_philox.h"\n\n' + "\n".join(kernel.text for kernel in kernels)

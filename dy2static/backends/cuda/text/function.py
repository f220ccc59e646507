"""A device function while it is written: its memory, its kernels, and what is launched."""
from __future__ import annotations

import contextlib
import math
import re
from typing import AbstractSet, Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from ....ir.c_forms import c_suffix
from ....ir.dims import Dim, Size
from ....ir.graph import Graph, Node, Value
from ....ir.sizes_read import dims_of
from ....ir.types import Tensor, dims_in
from ....native.cudnn import Convolution, Plan
from ....native.device_kernels import Kernel, kernel_of
from ...loops.layout import Place, Places, merged_axes, place_of
from ...memory_planner import Buffer, arranged
from ...run_sizes import name_of
from ..program.sizes import Late, Number, ceiling
from ..program.steps import Clear, Copy, DeviceFunction, Launch, OpenFunction, Step
from .dtypes import constant, loaded, memory_type, register_type
from .indices import OFFSET, TILE_THREADS, address, offset_text, split_index, turned_axis, write_tiles

#: Threads of a block in kernels that compute one element per thread.
ELEMENTS = 256

#: Indices are ints of 32 bits for fewer elements: what threads add to an index beyond the last element is no overflow.
INT = 2 ** 30


#: Names of numbers that launches are given: of sizes, of what is computed from them, and of offsets.
_NUMBER = re.compile(rf"\b(?:{name_of('')}|late_|{OFFSET})\w+")

#: Says how cuDNN computes a convolution; None where it does not.
Planner = Callable[[Convolution], Optional[Plan]]


def no_plan(convolution: Convolution) -> Optional[Plan]:
    """There is no cuDNN."""
    return None


class KernelText:
    """The lines of one kernel.

    Parameters and local variables are numbered in the order of their use, so that kernels that do the same have one text.
    index: the C type of indices, which lines call ``dy_index``.
    """

    def __init__(self, function: "FunctionText"):
        self.function = function
        self.lines: List[str] = []
        self.depth = 1
        self.index = "int"
        self._parameters: Dict[int, str] = {}                # number of the pointer -> name
        self._written: Dict[int, bool] = {}
        self._types: Dict[int, str] = {}
        self._locals: Dict[Value, str] = {}
        self._count = 0

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("    " * self.depth + text)

    def open(self, head: str) -> None:
        """Add a line that opens a block."""
        self.line(head)
        self.depth += 1

    def close(self, behind: str = "") -> None:
        """End a block.  behind: what follows on the line."""
        self.depth -= 1
        self.line("}" + behind)

    def variable(self) -> str:
        """A new name."""
        self._count += 1
        return f"v{self._count - 1}"

    def local(self, value: Value) -> str:
        """The variable of a value that this kernel computes."""
        if value not in self._locals:
            self._locals[value] = self.variable()
        return self._locals[value]

    def is_local(self, value: Value) -> bool:
        """Whether this kernel has computed a value."""
        return value in self._locals

    def pointer(self, number: int, type: str, writes: bool = False) -> str:
        """The name of a pointer of the function in this kernel."""
        self._written[number] = self._written.get(number, False) or writes
        self._types[number] = type
        return self._parameters.setdefault(number, f"p{len(self._parameters)}")

    def reaches(self, count: Number) -> None:
        """Indices are below this count of elements."""
        if self.function.exceeds(count, INT - 1):
            self.index = "int64_t"

    def memory(self, value: Value, writes: bool = False) -> str:
        """The name of the pointer to the elements of a value."""
        self.reaches(self.function.extent(value))
        return self.pointer(self.function.pointer(value), memory_type(value.dtype) or "", writes)

    def read(self, value: Value, address: str) -> str:
        """An element of a value in memory, or of one that this kernel computes, as a number in a register."""
        node = self.function.inline.get(value)
        if node is not None:
            return self.drawn(node, address) if node.op.name == "philox" else self.counted(node, address)
        return loaded(f"{self.memory(value)}[{address}]", value.dtype)

    def drawn(self, node: Node, address: str) -> str:
        """An element of a draw."""
        attrs, (key,), (value,) = node.attrs, node.inputs, node.outputs
        return f"dy_{attrs['function']}_{c_suffix(value.dtype)}({self.memory(key)}, {attrs['number']}, {address})"

    def counted(self, node: Node, address: str) -> str:
        """An element of a range."""
        attrs, type = node.attrs, register_type(node.outputs[0].dtype)
        return f"({type})({attrs['start']} + ({type})({address}) * ({attrs['step']}))"

    def number(self, value: Value) -> str:
        """A value of no dimensions: a constant, what the kernel has computed, or what is in memory."""
        constants = self.function.places.constants
        if isinstance(constants.get(value), Dim):
            text = f"({register_type(value.dtype)}){constants[value]}"
            return f"dy_rounded({text})" if value.dtype == np.float16 else f"({text})"
        if value in constants:
            return constant(constants[value], value.dtype)
        return self.local(value) if self.is_local(value) else self.read(value, "0")

    def launch(self, blocks: Number, threads: Number, most: int = 0) -> None:
        """Have the kernel launched as the next step.  most: threads, if only the run knows how many."""
        heads: List[str] = []
        names: Dict[str, str] = {}

        def parameter(found: "re.Match[str]") -> str:
            return names.setdefault(found.group(), f"size{len(names)}")
        lines = [_NUMBER.sub(parameter, line) for line in self.lines]
        for number, name in self._parameters.items():
            const = "" if self._written[number] else "const "
            heads.append(f"{const}{self._types[number]} *{'__restrict__ ' if const else ''}{name}")
        heads += [f"const dy_index {name}" for name in names.values()]         # of 32 bits: the lower half of the argument
        text = f"({', '.join(heads)})\n{{\n" + "\n".join(lines) + "\n}\n"
        numbers = tuple([self.function.number(name) for name in names])
        self.function.launch(text.replace("dy_index", self.index), blocks, threads, tuple(self._parameters), numbers,
                             threads if isinstance(threads, int) else most)


class Joined(NamedTuple):
    """Where a value is made as a part of another one: how many bytes from where that begins, and how far its elements are apart."""

    whole: Value
    begin: int
    strides: Tuple[Size, ...]


class _Part(NamedTuple):
    """Memory that is a part of a piece: the number of that pointer, and how many bytes from there it begins."""

    whole: int
    begin: int


class FunctionText:
    """The steps of one function while they are written.

    plan: how cuDNN computes a convolution, None where it does not.  needed: the values that must be in memory at present.
    nodes: what the steps compute that are added at present.  inline: what each kernel that reads it computes itself, from the place
    of an element: draws, and ranges.
    joined: values that are made as parts of other ones.  is_open: whether only the run knows some sizes; wide: then also for very
    large arrays.  wanted: whether the steps that are added at present are taken.
    """

    def __init__(self, graph: Graph, plan: Planner = no_plan, wide: bool = False):
        self.graph, self.plan, self.wide = graph, plan, wide
        inputs = [value for value in graph.inputs if isinstance(value.type, Tensor)]
        self.is_open = any(True for node in graph.nodes for _ in dims_of(node))
        self.lates: Dict[str, Late] = {}
        self.wanted: Optional[Late] = None
        self._wanted: List[Optional[Late]] = []
        self._limits: Dict[Tuple[Number, int, Optional[Late]], None] = {}
        self.places = Places(lambda: "")
        self.kernels: Dict[str, Kernel] = {}
        self.steps: List[Step] = []
        self.needed: AbstractSet[Value] = frozenset()
        self.inline: Dict[Value, Node] = {}
        self.joined: Dict[Value, Joined] = {}
        self.clock = 0
        self.nodes: Tuple[Node, ...] = ()
        self._origins: List[Tuple[Node, ...]] = []
        self._pointers: Dict[Value, int] = {value: number for number, value in enumerate(inputs)}
        self._pieces: List[Union[Buffer, _Part]] = []
        self.first_output = len(inputs)
        self._first_piece = len(inputs) + len(graph.outputs)

    # Sizes that only the run knows

    def late(self, function: Callable[..., int], *arguments: Number) -> Any:
        """What a function gives for numbers: a number, or `Late` where not all of them are known."""
        if all(isinstance(number, int) for number in arguments):
            return function(*arguments)
        name = f"late_{len(self.lates)}"
        return self.lates.setdefault(name, Late(name, function, arguments))

    def number(self, name: str) -> Number:
        """What an argument is that is no pointer."""
        if name.startswith(OFFSET):
            return int(name[len(OFFSET):])
        return self.lates.get(name) or Dim(name[len(name_of("")):])

    def exceeds(self, count: Number, most: int) -> bool:
        """Whether a number is above a limit.

        If only the run knows the number, this function is for sizes within the limit, or is wide.
        """
        if isinstance(count, int):
            return count > most
        if not self.wide:
            self._limits[count, most, self.wanted] = None
        return self.wide

    def either(self, condition: Union[bool, Late], first: Callable[[], None], second: Callable[[], None]) -> None:
        """Add steps in the first way if a condition holds, else in the second; in both where only the run can say which."""
        if not isinstance(condition, Late):
            (first if condition else second)()
            return
        with self._where(condition):
            first()
        with self._where(self.late(lambda holds: not holds, condition)):
            second()

    @contextlib.contextmanager
    def _where(self, condition: Late) -> Iterator[None]:
        """Steps and pieces that are added inside are wanted only if a condition holds."""
        before = self.wanted
        self.wanted = condition if before is None else self.late(lambda *hold: all(hold), before, condition)
        yield
        self.wanted = before

    # Memory

    def pointer(self, value: Value) -> int:
        """The number of the pointer to the elements of a value, which gets memory now if it has none."""
        if value not in self._pointers:
            self._pointers[value] = self._part(self.joined[value]) if value in self.joined else self._piece(
                math.prod(value.shape), value.dtype.itemsize)
        number = self._pointers[value]
        self.used(number)
        return number

    def target(self, value: Value) -> Place:
        """Where the elements of a value are that this function makes, from its pointer on."""
        joined = self.joined.get(value)
        return place_of(value) if joined is None else Place(value, value.shape, joined.strides)

    def extent(self, value: Value) -> Size:
        """How many elements from the first to the last one of a value there may be in memory."""
        joined = self.joined.get(value)
        return math.prod(value.shape) if joined is None else self.extent(joined.whole)

    def put_at(self, value: Value, number: int) -> None:
        """Let a value be made where this pointer points."""
        self._pointers[value] = number

    def has_memory(self, value: Value) -> bool:
        """Whether it is settled where a value is."""
        return value in self._pointers

    def stored(self, value: Value) -> bool:
        """Whether a value must be in memory."""
        return value in self.needed or value in self._pointers

    def piece(self, count: Number, dtype: Any) -> int:
        """The number of a pointer to scratch memory for so many elements, in use now."""
        return self._piece(count if self.wanted is None else self.late(lambda n, is_wanted: n * is_wanted, count, self.wanted),
                           dtype.itemsize)

    def _piece(self, count: Number, itemsize: int) -> int:
        self._pieces.append(Buffer("", "", self.late(lambda n: max(n, 1) * itemsize, count), self.clock, self.clock))
        return self._first_piece + len(self._pieces) - 1

    def _part(self, joined: Joined) -> int:
        """The number of a pointer to memory that is a part of that of another value."""
        self._pieces.append(_Part(self.pointer(joined.whole), joined.begin))
        return self._first_piece + len(self._pieces) - 1

    def used(self, number: int) -> None:
        """The memory behind a pointer is in use now."""
        if number >= self._first_piece:
            piece = self._pieces[number - self._first_piece]
            if isinstance(piece, _Part):
                self.used(piece.whole)
            else:
                piece.last = max(piece.last, self.clock)

    # Steps

    def kernel(self) -> KernelText:
        """A new kernel."""
        return KernelText(self)

    def launch(self, text: str, blocks: Number, threads: Number, pointers: Tuple[int, ...], numbers: Tuple[Number, ...],
               most: int) -> None:
        """Add a launch of at most so many threads for each block; kernels of one text are one kernel."""
        kernel = kernel_of("kernel", most, text)
        self.kernels[kernel.name] = kernel
        self.add(Launch(kernel.name, blocks, threads, pointers, numbers))

    def add(self, step: Step) -> None:
        """Add a step."""
        self.steps.append(step)
        self._origins.append(self.nodes)
        self._wanted.append(self.wanted)

    def merge(self, first: int, step: Step, nodes: Tuple[Node, ...]) -> None:
        """Put one step in place of those from a number on.  nodes: what it computes."""
        self.steps[first:], self._origins[first:], self._wanted[first:] = [step], [nodes], [self.wanted]

    def elements(self, count: Number, shape: Sequence[Size] = (), names: Sequence[str] = ()) -> KernelText:
        """A kernel with one thread for each of so many elements; names: the index along each axis of their shape.

        If no index is divided, the count is an argument: arrays of all sizes have one kernel then.
        """
        kernel = self.kernel()
        kernel.reaches(count)
        kernel.line("const dy_index k = (dy_index)blockIdx.x * blockDim.x + threadIdx.x;")
        kernel.line(f"if (k >= {offset_text(count) if len(shape) < 2 else count}) return;")
        split_index(kernel, "k", shape, names)
        return kernel

    def launch_elements(self, kernel: KernelText, count: Number) -> None:
        """Launch such a kernel."""
        kernel.launch(self.late(ceiling, count, ELEMENTS), ELEMENTS)

    def clear(self, value: Value) -> None:
        """Write zeros to the memory of a value."""
        self.add(Clear(self.pointer(value), math.prod(value.shape) * value.dtype.itemsize))

    def copy(self, target: Place, source: Place, number: int) -> None:
        """Write the elements of one place to another of the same shape; number: the pointer of the base of the target."""
        if source.base.ndim and target.compact and source.compact and source.base.dtype == target.base.dtype:
            size, count = target.base.dtype.itemsize, math.prod(target.shape)
            self.add(Copy(number, target.offset * size, self.pointer(source.base), source.offset * size, count * size))
            return
        axes = merged_axes(target.shape, (target, source))
        sizes, names = [math.prod(target.shape[a] for a in part) for part in axes], [f"k{n}" for n in range(len(axes))]
        steps = [[place.strides[part[-1]] for part in axes] for place in (target, source)]
        to, of = (address(place.offset, zip(names, apart)) for place, apart in zip((target, source), steps))
        base, count, type = source.base, math.prod(sizes), memory_type(target.base.dtype) or ""
        axis = turned_axis(sizes, steps[1:]) if base.ndim and axes else -1
        kernel = self.kernel() if axis >= 0 else self.elements(count, sizes, names)
        kernel.reaches(self.extent(target.base))
        to = f"{kernel.pointer(number, type, True)}[{to}]"
        if axis >= 0:
            blocks = write_tiles(kernel, sizes, names, axis, [(memory_type(base.dtype) or "", f"{kernel.memory(base)}[{of}]")],
                                 lambda texts: kernel.line(f"{to} = {texts[0]};"))
            kernel.launch(blocks, TILE_THREADS)
            return
        kernel.line(f"{to} = {f'{kernel.memory(base)}[{of}]' if base.ndim else kernel.number(base)};")
        self.launch_elements(kernel, count)

    def compact(self, value: Value) -> Place:
        """The elements of a value in the order of memory: a copy of them where they do not stand so."""
        place = self.places.of(value)
        if place.base.ndim and place.compact:
            return place
        own = Value(value.type, value.name)
        self.copy(place_of(own), place, self.pointer(own))
        return place_of(own)

    def finish(self) -> Union[DeviceFunction, OpenFunction]:
        """The function."""
        buffers = [piece for piece in self._pieces if isinstance(piece, Buffer)]
        if self.is_open:
            shapes = {size: None for node in self.graph.nodes for value in (*node.inputs, *node.outputs)
                      for size in dims_in(value.type)}
            return OpenFunction(tuple(self.kernels.values()), tuple(self.steps), tuple(self._wanted), self._first_piece,
                                tuple(buffers), tuple(self._origins), tuple(shapes), tuple(self._limits))
        scratch, begins = arranged(buffers)
        pieces: List[int] = []
        rest = iter(begins)
        for piece in self._pieces:                                      # a whole comes before its parts
            pieces.append(pieces[piece.whole - self._first_piece] + piece.begin if isinstance(piece, _Part) else next(rest))
        return DeviceFunction(tuple(self.kernels.values()), tuple(self.steps), self._first_piece, tuple(pieces), scratch,
                              tuple(self._origins))


def size_of(value: Optional[Value]) -> Size:
    """The number of elements of a value."""
    return 0 if value is None else math.prod(value.shape)

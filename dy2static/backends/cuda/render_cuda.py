"""A loop nest as kernels: all that is said in CUDA, and how loops become blocks and threads.

A nest is one of four kinds of kernels:

- *elements*: nothing is reduced.  One thread computes one element.
- *rows*: reductions that are ready at the end of each row.  A row belongs to one warp, or to one block where it is long; each
  thread goes over elements of the row, and what threads have summed is added up in one fixed tree.
- *one long row*: blocks share it; a second kernel adds up what they have summed, in their order.
- *totals*: other reductions.  Each block takes some rows one after the other and has sums of its own; a second kernel adds these
  up in their order.

No sum depends on the order in which threads or blocks run.
"""
from __future__ import annotations

from typing import Dict, Sequence, Tuple

from ...ir.graph import Node, Value
from ..loops.ir import Axis, LoopNest, Reduction, Sweep
from .dtypes import computed, memory_type, register_type
from .function import FunctionText, size_of, split_index
from .nest_text import NestText, address_of, combined, count_of, sizes_and_names, start_of, tested, type_of

WARP = 32

#: A row of so many elements is one warp's.  So many warps are in a block then.
_SHORT, _WARPS = 256, 4

#: Threads for a row that is not short, and for one of at least so many elements.
_THREADS, _LONG, _MOST_THREADS = 256, 16384, 1024

#: Elements of a row that several blocks share, and those of each block.
_SHARED_ROW, _OWN = 32768, 8192

#: Blocks that share the rows of a nest with totals, and elements for each one of a sum of its own.
_BLOCKS, _SUMMED = 264, 4

#: Bytes of rows that a block keeps in its own memory, of 48 KiB that every GPU has.
_SHARED = 40960

#: Sums of more elements by one block are in double precision.
_WIDE = 1 << 20


def render(nest: LoopNest, function: FunctionText) -> None:
    """Write the kernels of a nest, and launch them."""
    if nest.totals:
        _Totals(nest, function).write()
    elif nest.split is not None and not nest.outer and len(nest.sweeps) == 1 and count_of(nest.inner) >= _SHARED_ROW:
        _LongRow(nest, function).write()
    elif nest.split is not None:
        _Rows(nest, function).write()
    else:
        _Elements(nest, function).write()


class _Elements(NestText):
    """One thread computes one element."""

    def write(self) -> None:
        axes = (*self.nest.outer, *self.nest.inner)
        count = count_of(axes)
        self.kernel = self.function.elements(count, *sizes_and_names(axes))
        for sweep in self.nest.sweeps:
            self.statements(sweep.body)
        self.function.launch_elements(self.kernel, count)


class _Rows(NestText):
    """A warp or a block computes one row."""

    def write(self) -> None:
        nest, kernel = self.nest, self.kernel
        rows, self.size = count_of(nest.outer), count_of(nest.inner)
        self.short = self.size <= _SHORT
        threads = WARP * _WARPS if self.short else _THREADS if self.size < _LONG else _MOST_THREADS
        blocks = -(-rows // _WARPS) if self.short else rows
        if self.short:
            kernel.line(f"const dy_index row = (dy_index)blockIdx.x * {_WARPS} + threadIdx.x / {WARP};")
            kernel.line(f"const int lane = threadIdx.x % {WARP};")
        else:
            kernel.line("const dy_index row = blockIdx.x;")
            kernel.line("const int lane = threadIdx.x;")
        self.buffers(rows)
        if self.short and rows % _WARPS:
            kernel.line(f"if (row >= {rows}) return;")
        split_index(kernel, "row", *sizes_and_names(nest.outer))
        self.once = "if (lane == 0) "
        for sweep in nest.sweeps:
            self.again = {}
            self.statements(sweep.before, self.once)
            if sweep.body:
                self.sweep(sweep)
        self.again = {}
        self.statements(nest.after, self.once)
        kernel.launch(blocks, threads)

    def buffers(self, rows: int) -> None:
        """Memory for rows that later sweeps read: each thread reads what it has written itself."""
        nest, kernel = self.nest, self.kernel
        count = self.size * (_WARPS if self.short else 1)
        left = _SHARED
        for value in nest.kept:
            type, left = memory_type(value.dtype) or "", left - count * value.dtype.itemsize
            name = kernel.variable()
            if left >= 0:
                kernel.line(f"DY_SHARED({type}, {name}, {count});")
                self.kept[value] = f"{name}[threadIdx.x / {WARP} * {self.size} + k]" if self.short else f"{name}[k]"
            else:
                number = self.function.piece(rows * self.size, value.dtype)
                self.kept[value] = f"{kernel.pointer(number, type, True)}[row * {self.size} + k]"

    def sweep(self, sweep: Sweep) -> None:
        kernel, wide = self.kernel, self.size > _WIDE
        for reduction in sweep.reductions:
            self.declare(reduction, wide)
        kernel.open(f"for (dy_index k = lane; k < {self.size}; k += {'%d' % WARP if self.short else 'blockDim.x'}) {{")
        split_index(kernel, "k", *sizes_and_names(self.nest.inner))
        self.statements(sweep.body)
        kernel.close()
        for reduction in sweep.reductions:
            function = "dy_reduced_in_warp" if self.short else "dy_reduced"
            self.finish(reduction, function)


class _LongRow(NestText):
    """Blocks share the only row."""

    once = "if (threadIdx.x == 0) "

    def write(self) -> None:
        nest, kernel, function = self.nest, self.kernel, self.function
        (sweep,), size = nest.sweeps, count_of(nest.inner)
        step = max(_OWN, -(-size // _BLOCKS))
        blocks = -(-size // step)
        for reduction in sweep.reductions:
            self.declare(reduction, step > _WIDE)
        kernel.line(f"const dy_index begin = (dy_index)blockIdx.x * {step};")
        kernel.line(f"const dy_index end = begin + {step} < {size} ? begin + {step} : {size};")
        kernel.open("for (dy_index k = begin + threadIdx.x; k < end; k += blockDim.x) {")
        split_index(kernel, "k", *sizes_and_names(nest.inner))
        self.statements(sweep.body)
        kernel.close()
        parts = {reduction: function.piece(blocks, computed(reduction.value.dtype)) for reduction in sweep.reductions}
        for reduction, number in parts.items():
            pointer, whole = kernel.pointer(number, register_type(reduction.value.dtype), True), kernel.variable()
            kernel.line(f"const {type_of(reduction)} {whole} = {self.reduced(reduction, 'dy_reduced')};")
            kernel.line(f"{self.once}{pointer}[blockIdx.x] = {whole};")
        kernel.launch(blocks, _THREADS)
        self.join(parts, blocks)

    def join(self, parts: Dict[Reduction, int], blocks: int) -> None:
        """One more kernel: what the blocks have summed, added up in their order, and what follows from it."""
        kernel = self.kernel = self.function.kernel()
        for reduction, number in parts.items():
            self.declare(reduction)
            pointer, name = kernel.pointer(number, register_type(reduction.value.dtype)), self.sums[reduction]
            kernel.line(f"for (int b = threadIdx.x; b < {blocks}; b += blockDim.x) {name} = "
                        f"{combined(reduction, name, f'{pointer}[b]')};")
        for reduction in parts:
            self.finish(reduction, "dy_reduced")
        self.again = {}
        self.statements(self.nest.after, self.once)
        kernel.launch(1, _THREADS)


class _Totals(NestText):
    """Blocks go over rows and have sums of their own."""

    def write(self) -> None:
        nest, kernel = self.nest, self.kernel
        self.rows, self.serial, self.last = self.loops()
        rows, last = count_of(self.rows), self.last.size
        elements = rows * count_of(self.serial) * last
        summed = sum(size_of(total.value) for total in nest.totals)
        blocks = max(1, min(rows, _BLOCKS, elements // (_SUMMED * summed)))
        step = -(-rows // blocks)
        self.blocks = -(-rows // step)
        threads = WARP
        while threads < min(last, _THREADS):
            threads *= 2
        self.once = "if (threadIdx.x == 0) "
        self.start_totals()
        self.buffers()
        kernel.line(f"const dy_index begin = (dy_index)blockIdx.x * {step};")
        kernel.line(f"const dy_index end = begin + {step} < {rows} ? begin + {step} : {rows};")
        kernel.open("for (dy_index row = begin; row < end; ++row) {")
        split_index(kernel, "row", *sizes_and_names(self.rows))
        for sweep in nest.sweeps:
            self.again = {}
            self.statements(sweep.before, self.once)
            if sweep.body:
                self.sweep(sweep)
        self.again = {}
        self.statements(nest.after, self.once)
        kernel.close()
        kernel.launch(self.blocks, threads)
        for total in nest.totals:
            if self.is_joined(total.value):
                self.join(total)

    def loops(self) -> Tuple[Sequence[Axis], Sequence[Axis], Axis]:
        """The loops over rows, those that each thread of a block runs, and the one that is shared by threads."""
        nest = self.nest
        inner = nest.inner or (Axis("j", 1, ()),)
        if nest.outer or nest.split is not None:
            return nest.outer, inner[:-1], inner[-1]
        return inner[:-1], (), inner[-1]

    def is_joined(self, value: Value) -> bool:
        """Whether a kernel of its own writes a result: of several blocks, or in another dtype than sums grow in."""
        return self.blocks > 1 or computed(value.dtype) != value.dtype

    def start_totals(self) -> None:
        """Where each block sums: in memory that only its threads see, else in that of the result."""
        kernel, function = self.kernel, self.function
        self.private: Dict[Value, int] = {}
        self.mine: Dict[Value, str] = {}
        for total in self.nest.totals:
            value, size, type = total.value, size_of(total.value), register_type(total.value.dtype)
            number = self.private[value] = function.piece(size * self.blocks, computed(value.dtype)) if self.is_joined(
                value) else function.pointer(value)
            name = self.mine[value] = kernel.variable()
            kernel.line(f"{type} *const {name} = {kernel.pointer(number, type, True)} + (dy_index)blockIdx.x * {size};")
            kernel.line(f"for (dy_index k = threadIdx.x; k < {size}; k += blockDim.x) {name}[k] = {start_of(total)};")
        kernel.line("__syncthreads();")

    def buffers(self) -> None:
        """Memory for rows that later sweeps read: each thread reads what it has written itself."""
        kernel, left = self.kernel, _SHARED
        count = count_of(self.serial) * self.last.size
        at = " + ".join([*[f"{axis.name} * {count_of((*self.serial[n + 1:], self.last))}" for n, axis in enumerate(self.serial)],
                         self.last.name])
        for value in self.nest.kept:
            type, left = memory_type(value.dtype) or "", left - count * value.dtype.itemsize
            name = kernel.variable()
            if left >= 0:
                kernel.line(f"DY_SHARED({type}, {name}, {count});")
                self.kept[value] = f"{name}[{at}]"
            else:
                number = self.function.piece(count * self.blocks, value.dtype)
                self.kept[value] = f"{kernel.pointer(number, type, True)}[(dy_index)blockIdx.x * {count} + {at}]"

    def sweep(self, sweep: Sweep) -> None:
        kernel, near = self.kernel, sweep.totals_in_register
        for reduction in sweep.of_rows:
            self.declare(reduction, count_of(self.serial) * self.last.size > _WIDE)
        for axis in self.serial:
            kernel.open(f"for (dy_index {axis.name} = 0; {axis.name} < {axis.size}; ++{axis.name}) {{")
        for reduction in near:
            self.declare(reduction, self.last.size > _WIDE)
        name = self.last.name
        kernel.open(f"for (dy_index {name} = threadIdx.x; {name} < {self.last.size}; {name} += blockDim.x) {{")
        self.statements(sweep.body)
        kernel.close()
        for reduction in near:
            whole, target = kernel.variable(), self.target(reduction)
            kernel.line(f"const {type_of(reduction)} {whole} = {self.reduced(reduction, 'dy_reduced')};")
            kernel.line(f"{self.once}{target} = {combined(reduction, target, whole)};")
        for _ in self.serial:
            kernel.close()
        for reduction in sweep.of_rows:
            self.finish(reduction, "dy_reduced")

    def accumulate(self, reduction: Reduction, operand: str) -> None:
        if reduction in self.sums:
            super().accumulate(reduction, operand)
        else:                                               # the same thread comes to the same element each time
            target = self.target(reduction)
            self.kernel.line(f"{target} = {combined(reduction, target, tested(reduction, operand))};")

    def target(self, reduction: Reduction) -> str:
        """The element in which a total grows."""
        return f"{self.mine[reduction.value]}[{address_of(reduction.address)}]"

    def join(self, total: Reduction) -> None:
        """One more kernel: what the blocks have summed, added up in their order."""
        value, size, type = total.value, size_of(total.value), register_type(total.value.dtype)
        kernel = self.function.elements(size)
        sums = kernel.pointer(self.private[value], type)
        self.function.used(self.private[value])
        kernel.line(f"{type} all = {sums}[k];")
        more = combined(total, "all", f"{sums}[(dy_index)b * {size} + k]")
        kernel.line(f"for (int b = 1; b < {self.blocks}; ++b) all = {more};")
        kernel.line(f"{kernel.memory(value, True)}[k] = all;")
        self.function.launch_elements(kernel, size)


def reduces(node: Node) -> bool:
    """Whether kernels compute a reduction: of floats to floats, of ints, and tests."""
    kind = node.outputs[0].dtype.kind
    return node.op.name in ("any", "all") or kind in "iu" or kind == "f" and node.inputs[0].dtype.kind == "f"

"""Kernels of nests with rows: a warp, a block, or several blocks compute each row."""
from __future__ import annotations

from typing import Dict

from ..loops.ir import LoopNest, Reduction, Sweep
from .dtypes import computed, memory_type, register_type
from .function import split_index
from .nest_text import NestText, combined, count_of, sizes_and_names, type_of

WARP = 32

#: A row of so many elements is one warp's.  So many warps are in a block then.
_SHORT, _WARPS = 256, 4

#: Threads for a row that is not short, and for one of at least so many elements.
_THREADS, _LONG, _MOST_THREADS = 256, 16384, 1024

#: Elements of a row that several blocks share, and those of each block.
_SHARED_ROW, _OWN = 32768, 8192

#: Blocks that share rows.
_BLOCKS = 264

#: Bytes of rows that a block keeps in its own memory, of 48 KiB that every GPU has.
_SHARED = 40960

#: Sums of more elements by one block are in double precision.
_WIDE = 1 << 20


def is_long_row(nest: LoopNest) -> bool:
    """Whether a nest is one row that several blocks share."""
    return nest.split is not None and not nest.outer and len(nest.sweeps) == 1 and count_of(nest.inner) >= _SHARED_ROW


class Rows(NestText):
    """A warp or a block computes one row."""

    def write(self) -> None:
        """Write the kernels, and launch them."""
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
        """One run over a row."""
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


class LongRow(NestText):
    """Blocks share the only row."""

    once = "if (threadIdx.x == 0) "

    def write(self) -> None:
        """Write the kernels, and launch them."""
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

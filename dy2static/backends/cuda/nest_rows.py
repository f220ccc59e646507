"""Kernels of nests with rows: a warp, a block, or several blocks compute each row."""
from __future__ import annotations

from dataclasses import replace
from typing import Dict, Set, Union

from ...ir.dims import Size, not_below
from ...ir.graph import Value
from ..loops.ir import Define, LoopNest, Reduction, Sweep
from .dtypes import computed, memory_type, register_type
from .function import FunctionText, split_index
from .nest_text import NestText, combined, count_of, sizes_and_names, type_of
from .sizes import Late, ceiling, product

WARP = 32

#: A row of so many elements is one warp's.  So many warps are in a block then.
_SHORT, _WARPS = 256, 4

#: Threads for a row that is not short, and for one of at least so many elements.
_THREADS, _LONG, _MOST_THREADS = 256, 16384, 1024

#: Several blocks share rows of so many elements where there are few rows: as many blocks in all, of so many elements at least.
SHARED_ROW, OWN = 32768, 8192
_BLOCKS, _FEW = 264, 66

#: Bytes of rows that a block keeps in its own memory, of 48 KiB that every GPU has.
_SHARED = 40960

#: Sums of more elements by one block are in double precision.
_WIDE = 1 << 20


def are_cut(nest: LoopNest, function: FunctionText) -> Union[bool, Late]:
    """Whether several blocks share each row of a nest with rows: rows are long, and few."""
    rows, size = count_of(nest.outer), count_of(nest.inner)
    if isinstance(size, int) and size < SHARED_ROW or isinstance(rows, int) and rows > _FEW:
        return False
    found: Union[bool, Late] = function.late(lambda rows, size: size >= SHARED_ROW and rows <= _FEW, rows, size)
    return found


def _step(rows: int, size: int) -> int:
    """How many elements of a row are one block's."""
    return ceiling(ceiling(size, max(1, min(ceiling(size, OWN), _BLOCKS // rows))), _THREADS) * _THREADS


def _threads(size: int) -> int:
    """How many threads go over a row."""
    return WARP if size <= _SHORT else _THREADS if size < _LONG else _MOST_THREADS


class Rows(NestText):
    """A warp or a block computes one row."""

    def write(self) -> None:
        """Write the kernels, and launch them."""
        nest, kernel = self.nest, self.kernel
        rows, self.size = count_of(nest.outer), count_of(nest.inner)
        self.short = isinstance(self.size, int) and self.size <= _SHORT
        threads = WARP * _WARPS if self.short else self.function.late(_threads, self.size)
        blocks = self.function.late(ceiling, rows, _WARPS) if self.short else rows
        if self.short:
            kernel.line(f"const dy_index row = (dy_index)blockIdx.x * {_WARPS} + threadIdx.x / {WARP};")
            kernel.line(f"const int lane = threadIdx.x % {WARP};")
        else:
            kernel.line("const dy_index row = blockIdx.x;")
            kernel.line("const int lane = threadIdx.x;")
        self.buffers(rows)
        if self.short and not (isinstance(rows, int) and rows % _WARPS == 0):
            kernel.line(f"if (row >= {rows}) return;")
        split_index(kernel, "row", *sizes_and_names(nest.outer))
        self.once = "if (lane == 0) "
        self.row(self.sweep)
        kernel.launch(blocks, threads, _MOST_THREADS)

    def buffers(self, rows: Size) -> None:
        """Memory for rows that later sweeps read: each thread reads what it has written itself."""
        nest, kernel = self.nest, self.kernel
        count = self.size * (_WARPS if self.short else 1)
        left: Size = _SHARED
        for value in nest.kept:
            type, left = memory_type(value.dtype) or "", left - count * value.dtype.itemsize
            name = kernel.variable()
            if not_below(left, 0):
                kernel.line(f"DY_SHARED({type}, {name}, {count});")
                self.kept[value] = f"{name}[threadIdx.x / {WARP} * {self.size} + k]" if self.short else f"{name}[k]"
            else:
                number = self.function.piece(rows * self.size, value.dtype)
                self.kept[value] = f"{kernel.pointer(number, type, True)}[row * {self.size} + k]"

    def sweep(self, sweep: Sweep) -> None:
        """One run over a row."""
        kernel, wide = self.kernel, self.function.exceeds(self.size, _WIDE)
        for reduction in sweep.reductions:
            self.declare(reduction, wide)
        kernel.open(f"for (dy_index k = lane; k < {self.size}; k += {'%d' % WARP if self.short else 'blockDim.x'}) {{")
        split_index(kernel, "k", *sizes_and_names(self.nest.inner))
        self.statements(sweep.body)
        kernel.close()
        for reduction in sweep.reductions:
            function = "dy_reduced_in_warp" if self.short else "dy_reduced"
            self.finish(reduction, function)


class CutRows(NestText):
    """Several blocks share each row: a kernel for each sweep, and one for what follows the last.

    Each block leaves what it has reduced in memory.  The kernels after it add that up once more in each block, in one fixed tree,
    and compute again what follows from it for the row.
    """

    once = "if (cut == 0 && threadIdx.x == 0) "

    def write(self) -> None:
        """Write the kernels, and launch them."""
        nest, function = self.nest, self.function
        self.rows, self.size = count_of(nest.outer), count_of(nest.inner)
        self.step = function.late(_step, self.rows, self.size)
        self.cuts = function.late(ceiling, self.size, self.step)
        self.buffers = {value: function.piece(self.rows * self.size, value.dtype) for value in nest.kept}
        self.parts: Dict[Reduction, int] = {}
        self.stored: Set[Value] = set()
        for number, sweep in enumerate(nest.sweeps):
            if sweep.body:
                self.start(f"(dy_index)blockIdx.x / {self.cuts}", f"blockIdx.x % {self.cuts}")
                self.results(number)
                self.sweep(sweep)
        if nest.after or nest.sweeps[-1].reductions:
            self.start("blockIdx.x", "0")
            self.results(len(nest.sweeps))
            self.kernel.launch(self.rows, _THREADS)

    def start(self, row: str, cut: str) -> None:
        """Begin a kernel."""
        kernel = self.kernel = self.new_kernel()
        kernel.line(f"const dy_index row = {row};")
        kernel.line(f"const int cut = {cut};")
        split_index(kernel, "row", *sizes_and_names(self.nest.outer))
        self.kept = {value: f"{kernel.pointer(number, memory_type(value.dtype) or '', True)}[row * {self.size} + k]"
                     for value, number in self.buffers.items()}

    def results(self, count: int) -> None:
        """What so many sweeps have given for a row, and what follows from it."""
        nest = self.nest
        for number in range(count + 1):
            self.again = {}
            for reduction in nest.sweeps[number - 1].reductions if number else ():
                self.join(reduction)
            self.statements(nest.sweeps[number].before if number < len(nest.sweeps) else nest.after, self.once)

    def join(self, reduction: Reduction) -> None:
        """Add up what the blocks of a row have reduced."""
        self.declare(reduction)
        pointer, name = self.kernel.pointer(self.parts[reduction], register_type(reduction.value.dtype)), self.sums[reduction]
        self.kernel.line(f"for (int b = threadIdx.x; b < {self.cuts}; b += blockDim.x) {name} = "
                         f"{combined(reduction, name, f'{pointer}[row * {self.cuts} + b]')};")
        self.finish(reduction, "dy_reduced")

    def define(self, value: Value, text: str, statement: Define, once: str) -> None:
        """Compute a value; that of a row is stored by the first kernel that has it."""
        if once and value in self.stored:
            statement = replace(statement, store=None)
        elif once:
            self.stored.add(value)
        super().define(value, text, statement, once)

    def sweep(self, sweep: Sweep) -> None:
        """The part of a block in one run over its row."""
        kernel, function, blocks = self.kernel, self.function, self.function.late(product, self.rows, self.cuts)
        self.again = {}
        for reduction in sweep.reductions:
            self.declare(reduction, function.exceeds(self.step, _WIDE))
        kernel.line(f"const dy_index begin = (dy_index)cut * {self.step};")
        kernel.line(f"const dy_index end = begin + {self.step} < {self.size} ? begin + {self.step} : {self.size};")
        kernel.open("for (dy_index k = begin + threadIdx.x; k < end; k += blockDim.x) {")
        split_index(kernel, "k", *sizes_and_names(self.nest.inner))
        self.statements(sweep.body)
        kernel.close()
        for reduction in sweep.reductions:
            dtype = computed(reduction.value.dtype)
            number = self.parts[reduction] = function.piece(blocks, dtype)
            pointer, whole = kernel.pointer(number, register_type(dtype), True), kernel.variable()
            kernel.line(f"const {type_of(reduction)} {whole} = {self.reduced(reduction, 'dy_reduced')};")
            kernel.line(f"if (threadIdx.x == 0) {pointer}[blockIdx.x] = {whole};")
        kernel.launch(blocks, _THREADS)

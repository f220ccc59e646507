"""Kernels of nests with rows: a warp, a block, or several blocks compute each row."""
from __future__ import annotations

from dataclasses import replace
from typing import Dict, Set, Union

from ....ir.dims import Size
from ....ir.graph import Value
from ....ir.size_bounds import not_below
from ...loops.ir import Define, LoopNest, Reduction, Sweep
from ..program.sizes import Late, ceiling, product
from ..text.dtypes import computed, memory_type, register_type
from ..text.function import FunctionText
from ..text.indices import split_index
from .lines import LineText
from .statements import combined, count_of, sizes_and_names, type_of
from .vectors import VectorText, is_multiple

WARP = 32

#: A row of so many elements is one warp's, a longer one where there are many rows.  So many warps are in a block then.
_SHORT, _SHORT_OF_MANY, _MANY, _WARPS = 256, 1024, 4096, 4

#: Fewest and most threads for a row that is not short.
_THREADS, _MOST_THREADS = 256, 1024

#: Elements of a row that a thread has, if there are threads enough.
_HELD = 16

#: A row of so many elements is long: nothing of it is kept, and several blocks share it where there are few rows.  So many blocks
#: share all of them, each with so many elements at least.
SHARED_ROW, _FEW = 32768, 66
_BLOCKS, OWN = 264, 8192

#: Bytes of rows that a block keeps in its own memory, of 48 KiB that every GPU has.
_SHARED = 40960

#: Sums of more elements by one block are in double precision.
_WIDE = 1 << 20


def are_long(nest: LoopNest, function: FunctionText) -> Union[bool, Late]:
    """Whether the rows of a nest are long."""
    found: Union[bool, Late] = function.late(lambda size: size >= SHARED_ROW, count_of(nest.inner))
    return found


def are_few(nest: LoopNest, function: FunctionText) -> Union[bool, Late]:
    """Whether there are so few rows that several blocks share each one, if they are long."""
    found: Union[bool, Late] = function.late(lambda rows: rows <= _FEW, count_of(nest.outer))
    return found


def _step(rows: int, size: int) -> int:
    """How many elements of a row are one block's."""
    return ceiling(ceiling(size, max(1, min(ceiling(size, OWN), _BLOCKS // rows))), _THREADS) * _THREADS


def _are_short(rows: int, size: int) -> int:
    """Whether a row is one warp's: if it is short, or if there are so many rows that warps fill a GPU."""
    return size <= _SHORT or size <= _SHORT_OF_MANY and rows >= _MANY


def _threads(rows: int, size: int) -> int:
    """How many threads go over a row."""
    if _are_short(rows, size):
        return WARP
    threads = _THREADS
    while threads < _MOST_THREADS and size > threads * _HELD:
        threads *= 2
    return threads


def threads_for(rows: int, size: int) -> int:
    """About how many threads compute so many rows of a size."""
    return _BLOCKS * _THREADS if size >= SHARED_ROW and rows <= _FEW else rows * _threads(rows, size)


class Rows(LineText):
    """A warp or a block computes one row.  is_long: nothing of a row is kept but in registers, which hold its first part."""

    def __init__(self, nest: LoopNest, function: FunctionText, width: int, is_long: bool = False):
        self.rows = count_of(nest.outer)
        threads = function.late(_threads, self.rows, count_of(nest.inner))
        self.short = threads == WARP
        super().__init__(nest, function, width, nest.inner, threads, "lane")
        if is_long:
            self.hold_first_turns()

    def write(self) -> None:
        """Write the kernels, and launch them."""
        nest, kernel, rows = self.nest, self.kernel, self.rows
        threads = WARP * _WARPS if self.short else self.threads
        blocks = self.function.late(ceiling, rows, _WARPS) if self.short else rows
        if self.short:
            kernel.line(f"const dy_index row = (dy_index)blockIdx.x * {_WARPS} + threadIdx.x / {WARP};")
            kernel.line(f"const int lane = threadIdx.x % {WARP};")
        else:
            kernel.line("const dy_index row = blockIdx.x;")
            kernel.line("const int lane = threadIdx.x;")
        self.buffers()
        if self.short and not is_multiple(rows, _WARPS):
            kernel.line(f"if (row >= {rows}) return;")
        split_index(kernel, "row", *sizes_and_names(nest.outer))
        self.once = "if (lane == 0) "
        self.row(self.sweep)
        kernel.launch(blocks, threads, _MOST_THREADS)

    def buffers(self) -> None:
        """What holds rows that later sweeps read: each thread reads what it has written itself."""
        nest, kernel = self.nest, self.kernel
        count = self.size * (_WARPS if self.short else 1)
        left: Size = _SHARED
        for value in nest.kept:
            name = kernel.variable()
            if self.turns:
                self.kept[value] = self.hold(name, value.dtype)
                continue
            type, left = memory_type(value.dtype) or "", left - count * value.dtype.itemsize
            if not_below(left, 0):
                kernel.line(f"DY_SHARED({type}, {name}, {count});")
                self.kept[value] = f"{name}[threadIdx.x / {WARP} * {self.size} + {self.at}]" if self.short else f"{name}[{self.at}]"
            else:
                number = self.function.piece(self.rows * self.size, value.dtype)
                self.kept[value] = f"{kernel.pointer(number, type, True)}[row * {self.size} + {self.at}]"

    def sweep(self, sweep: Sweep) -> None:
        """One run over a row."""
        wide = self.function.exceeds(self.size, _WIDE)
        for reduction in sweep.reductions:
            self.declare(reduction, wide)
        self.line(sweep)
        for reduction in sweep.reductions:
            function = "dy_reduced_in_warp" if self.short else "dy_reduced"
            self.finish(reduction, function)


class CutRows(VectorText):
    """Several blocks share each row: a kernel for each sweep, and one for what follows the last.

    Each block leaves what it has reduced in memory.  The kernels after it add that up once more in each block, in one fixed tree,
    and compute again what follows from it for the row.
    """

    once = "if (cut == 0 && threadIdx.x == 0) "

    def __init__(self, nest: LoopNest, function: FunctionText, width: int):
        super().__init__(nest, function, width, nest.inner[-1])
        self.count = str(width)

    def write(self) -> None:
        """Write the kernels, and launch them."""
        nest, function = self.nest, self.function
        self.rows, self.size = count_of(nest.outer), count_of(nest.inner)
        self.step = function.late(_step, self.rows, self.size)
        self.cuts = function.late(ceiling, self.size, self.step)
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
        scale = f" * {self.width}" if self.width > 1 else ""
        kernel.open(f"for (dy_index k = begin + threadIdx.x{scale}; k < end; k += blockDim.x{scale}) {{")
        split_index(kernel, "k", *sizes_and_names(self.nest.inner))
        self.elements(sweep.body)
        kernel.close()
        for reduction in sweep.reductions:
            dtype = computed(reduction.value.dtype)
            number = self.parts[reduction] = function.piece(blocks, dtype)
            pointer, whole = kernel.pointer(number, register_type(dtype), True), kernel.variable()
            kernel.line(f"const {type_of(reduction)} {whole} = {self.reduced(reduction, 'dy_reduced')};")
            kernel.line(f"if (threadIdx.x == 0) {pointer}[blockIdx.x] = {whole};")
        kernel.launch(blocks, _THREADS)

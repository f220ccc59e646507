"""Kernels of nests all of whose reductions add up over the same loops, which are not those of rows: sums of columns, of channels.

Sums grow in registers.  How the loops are cut follows from their sizes alone.
"""
from __future__ import annotations

from typing import Dict, Optional, Sequence, Tuple

from ....ir.dims import Size
from ...loops.ir import Axis, LoopNest, Part, Reduction
from ..program.sizes import Number, ceiling, product
from ..text.dtypes import computed, register_type
from ..text.function import FunctionText, size_of
from ..text.indices import split_index
from .statements import address_of, count_of, sizes_and_names, type_of
from .totals import join
from .vectors import VectorText, width_of

#: Threads of a block, and blocks of a kernel that is cut.
_THREADS, _BLOCKS = 256, 1024

#: Columns of a block, if there are so many.
_COLUMNS = 32

#: Elements that a thread adds up, at least, before more blocks share a result.
_SUMMED = 16

#: Sums of so few elements belong to one thread each: where results stand side by side, and where elements of a sum do.
_FEW_ACROSS, _FEW_ALONG = 32, 8

#: Sums of more elements by one block are in double precision.
_WIDE = 1 << 20


def summed_axes(nest: LoopNest) -> Optional[Tuple[Axis, ...]]:
    """The loops over which every reduction of a nest adds up; None where there are rows, or reductions over different loops."""
    if nest.split is not None or len(nest.sweeps) != 1 or nest.kept or nest.after or nest.sweeps[0].before:
        return None
    terms = [total.address.terms for total in nest.totals]
    if any(isinstance(index, Part) for term in terms for index, _ in term):
        return None
    kept = {frozenset(index for index, _ in term) for term in terms}
    if len(kept) != 1:
        return None
    (names,) = kept
    return tuple([axis for axis in (*nest.outer, *nest.inner) if axis.name not in names])


def threads_for(results: int, count: int, across: bool) -> int:
    """About how many threads compute so many results.

    count: the elements of each sum.  across: results stand side by side in memory, not the elements of a sum.
    """
    return results if _are_short(count, results, across) else max(results, min(results * count // _SUMMED, _BLOCKS * _THREADS))


def _are_short(count: int, results: int, across: bool) -> bool:
    """Whether a sum of so many elements is one thread's."""
    return count <= (_FEW_ACROSS if across else _FEW_ALONG) or across and results >= _THREADS * _BLOCKS


def _columns(size: int) -> int:
    """How many columns of so many are one block's: a power of two."""
    columns = 1
    while columns < min(size, _COLUMNS):
        columns *= 2
    return columns


def _step(count: int, blocks: int, rows: int, width: int) -> int:
    """How many elements of each sum are one block's.

    blocks: how many there are if one adds up all.  rows: threads of a column, each of which takes so many elements at a time.
    """
    return ceiling(ceiling(count, max(1, min(_BLOCKS // blocks, ceiling(count, rows * _SUMMED)))), width) * width


def sums_width(nest: LoopNest, gone: Sequence[Axis], function: FunctionText) -> int:
    """How many elements of a sum a thread takes at a time, where the last loop over them is a multiple of that."""
    is_along = bool(gone) and gone[-1] is (*nest.outer, *nest.inner)[-1]
    return width_of(nest, gone[-1], function) if is_along else 1


class Sums(VectorText):
    """Each result belongs to one thread, or to threads of a block, or to several blocks.

    gone: the loops over which is added up.  width: the elements that a thread adds up at a time, where elements of a sum stand
    side by side.
    """

    def __init__(self, nest: LoopNest, function: FunctionText, gone: Sequence[Axis], width: int):
        super().__init__(nest, function, width, gone[-1] if width > 1 else None)
        self.gone = tuple(gone)
        self.count = str(width)
        self.left = tuple([axis for axis in (*nest.outer, *nest.inner) if axis not in self.gone])
        self.summed = count_of(self.gone)
        self.across = bool(self.left) and self.left[-1] is (*nest.outer, *nest.inner)[-1]
        (self.sweep,) = nest.sweeps

    def write(self) -> None:
        """Write the kernels, and launch them."""
        results = count_of(self.left)
        are_short = self.function.late(lambda count, results: _are_short(count, results, self.across), self.summed, results)
        self.function.either(are_short, lambda: self.by_threads(results), self.by_blocks)

    def by_threads(self, results: Size) -> None:
        """One thread for each result."""
        kernel = self.kernel = self.function.elements(results, *sizes_and_names(self.left))
        kernel.index = self.new_kernel().index
        self.start(self.summed)
        self.loop("0", str(self.summed), self.width)
        for total in self.nest.totals:
            kernel.line(f"{kernel.memory(total.value, True)}[{address_of(total.address)}] = {self.sums[total]};")
        self.function.launch_elements(kernel, results)

    def by_blocks(self) -> None:
        """Blocks of so many columns and as many threads for each as there is place for, or of one result each."""
        kernel = self.kernel = self.new_kernel()
        late = self.function.late
        groups, last = (self.left[:-1], self.left[-1]) if self.across else (self.left, None)
        columns, tiles = 1, 1
        if last is not None:
            columns = late(_columns, last.size)
            tiles = late(ceiling, last.size, columns)
        rows = late(lambda columns: _THREADS // columns, columns)
        blocks = late(product, count_of(groups), tiles)
        step = late(_step, self.summed, blocks, rows, self.width)
        cuts = late(ceiling, self.summed, step)
        both = late(product, cuts, tiles)
        kernel.line(f"const dy_index cut = (dy_index)blockIdx.x % {cuts}, group = (dy_index)blockIdx.x / {both};")
        split_index(kernel, "group", *sizes_and_names(groups))
        if last is not None:
            kernel.line(f"const dy_index tile = (dy_index)blockIdx.x / {cuts} % {tiles};")
            kernel.line(f"const dy_index {last.name} = tile * {columns} + threadIdx.x % {columns};")
        is_even = last is None or isinstance(last.size, int) and last.size % columns == 0
        inside = "" if last is None or is_even else f"{last.name} < {last.size}"
        kernel.line(f"const dy_index end = (cut + 1) * {step} < {self.summed} ? (cut + 1) * {step} : {self.summed};")
        self.start(step)
        if inside:
            kernel.open(f"if ({inside}) {{")
        at = "threadIdx.x" if columns == 1 else f"threadIdx.x / {columns}"
        self.loop(f"cut * {step} + {at}{f' * {self.width}' if self.width > 1 else ''}", "end", late(product, rows, self.width))
        if inside:
            kernel.close()
        parts = self.store(cuts, columns, inside)
        kernel.launch(late(product, blocks, cuts), _THREADS)
        join(self.function, parts, cuts)

    def start(self, summed: Number) -> None:
        """Registers for the sums.  summed: elements of each sum of a block."""
        for total in self.nest.totals:
            self.declare(total, self.function.exceeds(summed, _WIDE))

    def loop(self, begin: str, end: str, step: Number) -> None:
        """The loop of a thread over elements of its sums."""
        kernel = self.kernel
        kernel.open(f"for (dy_index g = {begin}; g < {end}; g += {step}) {{")
        split_index(kernel, "g", *sizes_and_names(self.gone))
        self.elements(self.sweep.body)
        kernel.close()

    def store(self, cuts: Number, columns: Number, inside: str) -> Dict[Reduction, int]:
        """Add up what the threads of a block have summed, and store it; gives the pointers to sums of several blocks."""
        kernel, function, parts = self.kernel, self.function, {}
        once = f"threadIdx.x < {columns}" + (f" && {inside}" if inside else "")
        for total in self.nest.totals:
            whole, at, type = kernel.variable(), address_of(total.address), type_of(total)
            text = self.reduced(total, "dy_reduced")
            if columns != 1:
                text = f"dy_reduced_in_columns<dy_{total.op}>({self.sums[total]}, {columns})"
            kernel.line(f"const {type} {whole} = {text};")
            if cuts == 1:
                target = kernel.memory(total.value, True)
            else:
                sums = function.late(product, cuts, size_of(total.value))
                number = parts[total] = function.piece(sums, computed(total.value.dtype))
                target = kernel.pointer(number, register_type(total.value.dtype), True)
                at = f"cut * {size_of(total.value)} + {at}"
            kernel.line(f"if ({once}) {target}[{at}] = {whole};")
        return parts

"""Kernels of nests with reductions that are ready when the whole nest is over."""
from __future__ import annotations

import functools
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ....ir.dims import Size
from ....ir.graph import Value
from ....ir.size_bounds import not_below
from ...loops.ir import Axis, LoopNest, Reduction, Sweep
from ..program.sizes import Number, ceiling, product, settled
from ..text.dtypes import computed, memory_type, register_type
from ..text.function import FunctionText, size_of
from ..text.indices import offset_text, split_index
from .lines import LineText
from .statements import address_of, combined, count_of, sizes_and_names, start_of, tested, type_of
from .vectors import step_of, width_of

WARP = 32

#: Most threads of a row, and of a block: several teams of threads may each have a row, but no more than there are barriers for.
_THREADS, _MOST_THREADS, _TEAMS = 256, 512, 8

#: Blocks that share the rows of a nest with totals, and elements for each one of a sum of its own.
_BLOCKS, _SUMMED = 528, 4

#: Bytes of rows that a block keeps in its own memory, of 48 KiB that every GPU has.
_SHARED = 40960

#: Sums of more elements by one block are in double precision.
_WIDE = 1 << 20


def _step(rows: int, elements: int, summed: int, teams: int) -> int:
    """How many rows are one block's: the same number for each of its teams.  summed: the elements of all sums."""
    return ceiling(ceiling(rows, max(1, min(rows, _BLOCKS, elements // (_SUMMED * summed)))), teams) * teams


def _threads(size: int, width: int) -> int:
    """How many threads go over a row, each of which takes so many elements at a time: a power of two."""
    threads = WARP
    while threads < min(ceiling(size, width), _THREADS):
        threads *= 2
    return threads


def threads_for(rows: int, size: int, width: int) -> int:
    """About how many threads there are for so many rows of a size.  width: the elements that one takes at a time."""
    return min(rows, _BLOCKS) * _threads(size, width)


def loops_of(nest: LoopNest) -> Tuple[Sequence[Axis], Sequence[Axis], Axis]:
    """The loops over rows, those that each thread of a block runs, and the one that is shared by threads."""
    inner = nest.inner or (Axis("j", 1, ()),)
    if nest.outer or nest.split is not None:
        return nest.outer, inner[:-1], inner[-1]
    return inner[:-1], (), inner[-1]


def totals_width(nest: LoopNest, function: FunctionText) -> int:
    """How many elements of a row a thread takes at a time, where the length of rows is a multiple of that."""
    last = loops_of(nest)[-1]
    if any(step_of(total.address, last.name) is None for total in nest.totals):
        return 1
    return width_of(nest, last, function)


class Totals(LineText):
    """Blocks go over rows and have sums of their own.

    If a thread has few elements of a row, the sums of these elements grow in registers.  If all sums do, a block has several teams
    of threads, each of which goes over rows of its own: while one waits for memory or at a barrier, others compute.
    """

    def __init__(self, nest: LoopNest, function: FunctionText, width: int):
        self.rows, self.serial, self.along = loops_of(nest)
        self.grown: Dict[Reduction, str] = {}               # registers of totals: one for each element of a thread
        super().__init__(nest, function, width, (self.along,), function.late(_threads, self.along.size, width), "threadIdx.x")
        if self.turns and len(self._apart()) == len(nest.totals):
            self.teams = min(_TEAMS, _MOST_THREADS // settled(self.threads))
            self.lane = f"threadIdx.x % {self.threads}"
        else:
            self.teams = 1

    def _words_lasting(self, turns: int) -> int:
        """The registers that a thread needs for what it reads again and what it sums."""
        return super()._words_lasting(turns) + sum(
            self._words(turns, computed(total.value.dtype).itemsize) for total in self._apart())

    def _turns(self) -> int:
        return 0 if self.serial else super()._turns()

    def _apart(self) -> List[Reduction]:
        """The totals that have an element for each element of a row."""
        return [total for total in self.nest.totals if total.address.terms and all(
            index == self.along.name for index, _ in total.address.terms)]

    def write(self) -> None:
        """Write the kernels, and launch them."""
        nest, kernel = self.nest, self.kernel
        rows, late = count_of(self.rows), self.function.late
        summed = late(lambda *sizes: sum(sizes), *[size_of(total.value) for total in nest.totals])
        step = late(_step, rows, rows * count_of(self.serial) * self.along.size, summed, self.teams)
        self.blocks = late(ceiling, rows, step)
        self.once = f"if ({self.lane} == 0) "
        self.start_totals()
        self.buffers()
        first, by = (f"begin + threadIdx.x / {self.threads}", f"row += {self.teams}") if self.teams > 1 else ("begin", "++row")
        kernel.line(f"const dy_index begin = (dy_index)blockIdx.x * {step};")
        kernel.line(f"const dy_index end = begin + {step} < {rows} ? begin + {step} : {rows};")
        kernel.open(f"for (dy_index row = {first}; row < end; {by}) {{")
        split_index(kernel, "row", *sizes_and_names(self.rows))
        self.row(self.sweep)
        kernel.close()
        self.store_grown()
        kernel.launch(self.blocks, late(product, self.threads, self.teams), _THREADS)
        join(self.function, {total: self.private[total.value] for total in nest.totals if self.is_joined(total.value)}, self.blocks)

    def is_joined(self, value: Value) -> bool:
        """Whether a kernel of its own writes a result: of several blocks, or in another dtype than sums grow in."""
        return bool(self.blocks != 1 or computed(value.dtype) != value.dtype)

    def start_totals(self) -> None:
        """Where each block sums: in memory that only its threads see, else in that of the result."""
        kernel, function = self.kernel, self.function
        self.private: Dict[Value, int] = {}
        self.mine: Dict[Value, str] = {}
        for total in self.nest.totals:
            value, size, type = total.value, size_of(total.value), register_type(total.value.dtype)
            sums = function.late(product, size, self.blocks)
            number = self.private[value] = function.piece(sums, computed(value.dtype)) if self.is_joined(
                value) else function.pointer(value)
            name = self.mine[value] = kernel.variable()
            kernel.line(f"{type} *const {name} = {kernel.pointer(number, type, True)} + (dy_index)blockIdx.x * {size};")
            if self.turns and total in self._apart():
                self.grow(total)
                continue
            kernel.line(f"for (dy_index k = threadIdx.x; k < {size}; k += blockDim.x) {name}[k] = {start_of(total)};")
        if len(self.grown) < len(self.nest.totals):
            kernel.line("__syncthreads();")

    def grow(self, total: Reduction) -> None:
        """Registers for the elements of a total that belong to a thread."""
        kernel, name = self.kernel, self.kernel.variable()
        self.grown[total] = name
        self.hold(name, total.value.dtype)
        kernel.line("#pragma unroll")
        first = f"{name}[k / {self.width}][k % {self.width}]"
        kernel.line(f"for (int k = 0; k < {self.turns * self.width}; ++k) {first} = {start_of(total)};")

    def store_grown(self) -> None:
        """Store the totals that have grown in registers."""
        if not self.grown:
            return
        kernel = self.kernel
        if self.teams > 1:
            kernel.line("#pragma unroll")
            kernel.open(f"for (int t = 0; t < {self.turns}; ++t) {{")
            for total, name in self.grown.items():
                kernel.line(f"dy_reduce_over_teams<dy_{total.op}, {self.threads}>({name}[t]);")
            kernel.close()
            kernel.line(f"if (threadIdx.x >= {self.threads}) return;")
        self.turn()
        kernel.line("#pragma unroll")
        kernel.open(f"for (int e = 0; e < {self.width}; ++e) {{")
        kernel.line(f"const dy_index {self.along.name} = k + e;")
        for total, name in self.grown.items():
            kernel.line(f"{self.target(total)} = {name}[t][e];")
        kernel.close()
        kernel.close()

    def buffers(self) -> None:
        """Memory for rows that later sweeps read: each thread reads what it has written itself."""
        kernel = self.kernel
        left: Size = _SHARED
        count = count_of(self.serial) * self.along.size
        at = " + ".join([*[f"{axis.name} * {count_of((*self.serial[n + 1:], self.along))}" for n, axis in enumerate(self.serial)],
                         self.at])
        for value in self.nest.kept:
            if self.turns:
                self.kept[value] = self.hold(kernel.variable(), value.dtype)
                continue
            type, left = memory_type(value.dtype) or "", left - count * value.dtype.itemsize
            name = kernel.variable()
            if not_below(left, 0):
                kernel.line(f"DY_SHARED({type}, {name}, {count});")
                self.kept[value] = f"{name}[{at}]"
            else:
                number = self.function.piece(self.function.late(product, count, self.blocks), value.dtype)
                self.kept[value] = f"{kernel.pointer(number, type, True)}[(dy_index)blockIdx.x * {count} + {at}]"

    def sweep(self, sweep: Sweep) -> None:
        """One run over a row."""
        kernel, near = self.kernel, sweep.totals_in_register
        for reduction in sweep.of_rows:
            self.declare(reduction, self.function.exceeds(count_of(self.serial) * self.along.size, _WIDE))
        for axis in self.serial:
            kernel.open(f"for (dy_index {axis.name} = 0; {axis.name} < {axis.size}; ++{axis.name}) {{")
        for reduction in near:
            self.declare(reduction, self.function.exceeds(self.along.size, _WIDE))
        self.line(sweep)
        for reduction in near:
            whole, target = kernel.variable(), self.target(reduction)
            kernel.line(f"const {type_of(reduction)} {whole} = {self.reduced(reduction, 'dy_reduced')};")
            kernel.line(f"{self.once}{target} = {combined(reduction, target, whole)};")
        for _ in self.serial:
            kernel.close()
        for reduction in sweep.of_rows:
            self.finish(reduction, "dy_reduced")

    def reduced(self, reduction: Reduction, function: str) -> str:
        if self.teams == 1:
            return super().reduced(reduction, function)
        name = self.sums[reduction]
        return f"{function}_in_team<dy_{reduction.op}, {self.threads}>({name}, (decltype({name})){start_of(reduction)})"

    def accumulate(self, reduction: Reduction, operand: str) -> None:
        if reduction in self.sums:
            super().accumulate(reduction, operand)
        elif reduction in self.grown:
            name = f"{self.grown[reduction]}[t][{self.element}]"
            self.kernel.line(f"{name} = {combined(reduction, name, tested(reduction, operand))};")
        else:                                               # the same thread comes to the same element each time
            target = self.target(reduction)
            self.kernel.line(f"{target} = {combined(reduction, target, tested(reduction, operand))};")

    def target(self, reduction: Reduction) -> str:
        """The element in which a total grows."""
        step = step_of(reduction.address, self.along.name) if self.width > 1 else 0
        more = f" + e * {step}" if step and reduction not in self.grown else ""
        return f"{self.mine[reduction.value]}[{address_of(reduction.address)}{more}]"


def join(function: FunctionText, totals: Mapping[Reduction, int], count: Number) -> None:
    """Add up what so many blocks have summed, in a fixed order; sums of one kind and size are one more kernel.

    totals: with the pointer to the sums of the blocks.  A warp adds up what one thread would read for long.
    """
    alike: Dict[Tuple[str, Size, Any], Dict[Reduction, int]] = {}
    for total, number in totals.items():
        alike.setdefault((total.op, size_of(total.value), total.value.dtype), {})[total] = number
    for together in alike.values():
        function.either(function.late(lambda count: count >= WARP, count),
                        functools.partial(_join, function, together, count, True),
                        functools.partial(_join, function, together, count, False))


def _join(function: FunctionText, totals: Mapping[Reduction, int], count: Number, are_many: bool) -> None:
    first, size = next(iter(totals)), size_of(next(iter(totals)).value)
    type, each = register_type(first.value.dtype), size * WARP if are_many else size
    kernel = function.elements(each * len(totals))
    sums = []
    for number in totals.values():
        sums.append(kernel.pointer(number, type))
        function.used(number)
    results = [kernel.memory(total.value, True) for total in totals]
    begin, step, at = (f"k % {WARP}", WARP, f"k / {WARP}") if are_many else ("0", 1, "k")
    if len(totals) > 1:
        kernel.line(f"const int which = (int)(k / {offset_text(each)});")
        at = f"{at} - which * {offset_text(size)}"
    kernel.line(f"const dy_index at = {at};")
    kernel.line(f"const {type} *const sums = {_chosen(sums)};")
    kernel.line(f"{type} all = {start_of(first)};")
    more = combined(first, "all", f"sums[(dy_index)b * {size} + at]")
    kernel.line(f"for (int b = {begin}; b < {count}; b += {step}) all = {more};")
    if are_many:
        kernel.line(f"all = dy_reduced_in_warp<dy_{first.op}>(all, all);")
    kernel.line(f"{f'if (k % {WARP} == 0) ' if are_many else ''}({_chosen(results)})[at] = all;")
    function.launch_elements(kernel, each * len(totals))


def _chosen(names: Sequence[str]) -> str:
    """The one of these pointers whose number is ``which``."""
    return "".join([f"which == {k} ? {name} : " for k, name in enumerate(names[:-1])]) + names[-1]

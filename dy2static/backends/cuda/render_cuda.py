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

import math
from typing import Dict, List, Sequence, Tuple

import numpy as np

from ...ir.c_forms import c_constant, c_type
from ...ir.graph import Node, Value
from ..loops.ir import (
    Accumulate,
    Address,
    Axis,
    Define,
    Expression,
    Kept,
    Load,
    Local,
    LoopNest,
    Part,
    Recall,
    Reduction,
    Statement,
    Sweep,
)
from .function import INT, FunctionText, expression, size_of, split_index

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
    elif nest.split is not None and not nest.outer and len(nest.sweeps) == 1 and _count(nest.inner) >= _SHARED_ROW:
        _LongRow(nest, function).write()
    elif nest.split is not None:
        _Rows(nest, function).write()
    else:
        _Elements(nest, function).write()


class _Renderer:
    """What all kinds have in common: statements and expressions."""

    once = ""                                               # the condition of the one thread that stores results of rows

    def __init__(self, nest: LoopNest, function: FunctionText):
        self.nest, self.function = nest, function
        self.kernel = function.kernel()
        self.again: Dict[Value, str] = {}                   # elements that the sweep at hand has got again
        self.kept: Dict[Value, str] = {}                    # the element of a row buffer that a thread is at
        self.sums: Dict[Reduction, str] = {}                # what grows in registers
        if math.prod(nest.shape) >= INT:
            self.kernel.index = "int64_t"

    def statements(self, statements: Sequence[Statement], once: str = "") -> None:
        """Statements of one element, or with ``once`` of a row."""
        kernel = self.kernel
        for statement in statements:
            if isinstance(statement, Accumulate):
                self.accumulate(statement.reduction, self.text(statement.operand))
            elif isinstance(statement, Recall):
                text = self.text(statement.expression)
                name = self.again[statement.value] = kernel.variable()
                kernel.line(f"const {c_type(statement.value.dtype)} {name} = {text};")
            else:
                self.define(statement.value, self.text(statement.expression), statement, once)

    def define(self, value: Value, text: str, statement: Define, once: str) -> None:
        """Compute a value, and put it where it goes."""
        kernel = self.kernel
        local = kernel.local(value)
        kernel.line(f"const {c_type(value.dtype)} {local} = {text};")
        if statement.store is not None:
            kernel.line(f"{once}{kernel.memory(value, True)}[{_address(statement.store)}] = {local};")
        if statement.keep is not None:
            kernel.line(f"{self.kept[value]} = {local};")

    def accumulate(self, reduction: Reduction, operand: str) -> None:
        """One element more for a reduction."""
        name = self.sums[reduction]
        self.kernel.line(f"{name} = {_combined(reduction, name, _operand(reduction, operand))};")

    def text(self, expression_: Expression) -> str:
        """An expression in CUDA."""
        if isinstance(expression_, Local):
            value = expression_.value
            return self.again.get(value) or (self.kernel.number(value) if value.ndim == 0 else self.kernel.local(value))
        if isinstance(expression_, Load):
            return self.kernel.read(expression_.array, _address(expression_.address))
        if isinstance(expression_, Kept):
            return self.kept[expression_.value]
        return expression(expression_.node, [self.text(operand) for operand in expression_.operands])

    def declare(self, reduction: Reduction, wide: bool = False) -> None:
        """A register in which a reduction grows."""
        name = self.sums[reduction] = self.kernel.variable()
        type = "double" if wide and reduction.op == "sum" and reduction.value.dtype.kind == "f" else _type(reduction)
        self.kernel.line(f"{type} {name} = {_start(reduction)};")

    def finish(self, reduction: Reduction, function: str) -> None:
        """Define the result of a row."""
        value, store = reduction.value, reduction.address if reduction.stored else None
        self.define(value, self.reduced(reduction, function), Define(value, Local(value), store), self.once)

    def reduced(self, reduction: Reduction, function: str) -> str:
        """What the registers of all threads come to."""
        return f"{function}<dy_{reduction.op}>({self.sums[reduction]}, (decltype({self.sums[reduction]})){_start(reduction)})"


class _Elements(_Renderer):
    """One thread computes one element."""

    def write(self) -> None:
        axes = (*self.nest.outer, *self.nest.inner)
        count = _count(axes)
        self.kernel = self.function.elements(count, *_sizes_and_names(axes))
        for sweep in self.nest.sweeps:
            self.statements(sweep.body)
        self.function.launch_elements(self.kernel, count)


class _Rows(_Renderer):
    """A warp or a block computes one row."""

    def write(self) -> None:
        nest, kernel = self.nest, self.kernel
        rows, self.size = _count(nest.outer), _count(nest.inner)
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
        split_index(kernel, "row", *_sizes_and_names(nest.outer))
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
            type, left = c_type(value.dtype), left - count * value.dtype.itemsize
            name = kernel.variable()
            if left >= 0:
                kernel.line(f"DY_SHARED({type}, {name}, {count});")
                self.kept[value] = f"{name}[threadIdx.x / {WARP} * {self.size} + k]" if self.short else f"{name}[k]"
            else:
                number = self.function.piece(rows * self.size, value.dtype)
                self.kept[value] = f"{kernel.pointer(number, type or '', True)}[row * {self.size} + k]"

    def sweep(self, sweep: Sweep) -> None:
        kernel, wide = self.kernel, self.size > _WIDE
        for reduction in sweep.reductions:
            self.declare(reduction, wide)
        kernel.open(f"for (dy_index k = lane; k < {self.size}; k += {'%d' % WARP if self.short else 'blockDim.x'}) {{")
        split_index(kernel, "k", *_sizes_and_names(self.nest.inner))
        self.statements(sweep.body)
        kernel.close()
        for reduction in sweep.reductions:
            function = "dy_reduced_in_warp" if self.short else "dy_reduced"
            self.finish(reduction, function)


class _LongRow(_Renderer):
    """Blocks share the only row."""

    once = "if (threadIdx.x == 0) "

    def write(self) -> None:
        nest, kernel, function = self.nest, self.kernel, self.function
        (sweep,), size = nest.sweeps, _count(nest.inner)
        step = max(_OWN, -(-size // _BLOCKS))
        blocks = -(-size // step)
        for reduction in sweep.reductions:
            self.declare(reduction, step > _WIDE)
        kernel.line(f"const dy_index begin = (dy_index)blockIdx.x * {step};")
        kernel.line(f"const dy_index end = begin + {step} < {size} ? begin + {step} : {size};")
        kernel.open("for (dy_index k = begin + threadIdx.x; k < end; k += blockDim.x) {")
        split_index(kernel, "k", *_sizes_and_names(nest.inner))
        self.statements(sweep.body)
        kernel.close()
        parts = {reduction: function.piece(blocks, reduction.value.dtype) for reduction in sweep.reductions}
        for reduction, number in parts.items():
            pointer, whole = kernel.pointer(number, c_type(reduction.value.dtype) or "", True), kernel.variable()
            kernel.line(f"const {_type(reduction)} {whole} = {self.reduced(reduction, 'dy_reduced')};")
            kernel.line(f"{self.once}{pointer}[blockIdx.x] = {whole};")
        kernel.launch(blocks, _THREADS)
        self.join(parts, blocks)

    def join(self, parts: Dict[Reduction, int], blocks: int) -> None:
        """One more kernel: what the blocks have summed, added up in their order, and what follows from it."""
        kernel = self.kernel = self.function.kernel()
        for reduction, number in parts.items():
            self.declare(reduction)
            pointer, name = kernel.pointer(number, c_type(reduction.value.dtype) or ""), self.sums[reduction]
            kernel.line(f"for (int b = threadIdx.x; b < {blocks}; b += blockDim.x) {name} = "
                        f"{_combined(reduction, name, f'{pointer}[b]')};")
        for reduction in parts:
            self.finish(reduction, "dy_reduced")
        self.again = {}
        self.statements(self.nest.after, self.once)
        kernel.launch(1, _THREADS)


class _Totals(_Renderer):
    """Blocks go over rows and have sums of their own."""

    def write(self) -> None:
        nest, kernel = self.nest, self.kernel
        self.rows, self.serial, self.last = self.loops()
        rows, last = _count(self.rows), self.last.size
        elements = rows * _count(self.serial) * last
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
        split_index(kernel, "row", *_sizes_and_names(self.rows))
        for sweep in nest.sweeps:
            self.again = {}
            self.statements(sweep.before, self.once)
            if sweep.body:
                self.sweep(sweep)
        self.again = {}
        self.statements(nest.after, self.once)
        kernel.close()
        kernel.launch(self.blocks, threads)
        if self.blocks > 1:
            for total in nest.totals:
                self.join(total)

    def loops(self) -> Tuple[Sequence[Axis], Sequence[Axis], Axis]:
        """The loops over rows, those that each thread of a block runs, and the one that is shared by threads."""
        nest = self.nest
        inner = nest.inner or (Axis("j", 1, ()),)
        if nest.outer or nest.split is not None:
            return nest.outer, inner[:-1], inner[-1]
        return inner[:-1], (), inner[-1]

    def start_totals(self) -> None:
        """Where each block sums: in memory that only its threads see, else in that of the result."""
        kernel, function = self.kernel, self.function
        self.private: Dict[Value, int] = {}
        self.mine: Dict[Value, str] = {}
        for total in self.nest.totals:
            value, size, type = total.value, size_of(total.value), c_type(total.value.dtype) or ""
            number = self.private[value] = function.pointer(value) if self.blocks == 1 else function.piece(
                size * self.blocks, value.dtype)
            name = self.mine[value] = kernel.variable()
            kernel.line(f"{type} *const {name} = {kernel.pointer(number, type, True)} + (dy_index)blockIdx.x * {size};")
            kernel.line(f"for (dy_index k = threadIdx.x; k < {size}; k += blockDim.x) {name}[k] = {_start(total)};")
        kernel.line("__syncthreads();")

    def buffers(self) -> None:
        """Memory for rows that later sweeps read: each thread reads what it has written itself."""
        kernel, left = self.kernel, _SHARED
        count = _count(self.serial) * self.last.size
        at = " + ".join([*[f"{axis.name} * {_count((*self.serial[n + 1:], self.last))}" for n, axis in enumerate(self.serial)],
                         self.last.name])
        for value in self.nest.kept:
            type, left = c_type(value.dtype), left - count * value.dtype.itemsize
            name = kernel.variable()
            if left >= 0:
                kernel.line(f"DY_SHARED({type}, {name}, {count});")
                self.kept[value] = f"{name}[{at}]"
            else:
                number = self.function.piece(count * self.blocks, value.dtype)
                self.kept[value] = f"{kernel.pointer(number, type or '', True)}[(dy_index)blockIdx.x * {count} + {at}]"

    def sweep(self, sweep: Sweep) -> None:
        kernel, near = self.kernel, sweep.totals_in_register
        for reduction in sweep.of_rows:
            self.declare(reduction, _count(self.serial) * self.last.size > _WIDE)
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
            kernel.line(f"const {_type(reduction)} {whole} = {self.reduced(reduction, 'dy_reduced')};")
            kernel.line(f"{self.once}{target} = {_combined(reduction, target, whole)};")
        for _ in self.serial:
            kernel.close()
        for reduction in sweep.of_rows:
            self.finish(reduction, "dy_reduced")

    def accumulate(self, reduction: Reduction, operand: str) -> None:
        if reduction in self.sums:
            super().accumulate(reduction, operand)
        else:                                               # the same thread comes to the same element each time
            target = self.target(reduction)
            self.kernel.line(f"{target} = {_combined(reduction, target, _operand(reduction, operand))};")

    def target(self, reduction: Reduction) -> str:
        """The element in which a total grows."""
        return f"{self.mine[reduction.value]}[{_address(reduction.address)}]"

    def join(self, total: Reduction) -> None:
        """One more kernel: what the blocks have summed, added up in their order."""
        value, size, type = total.value, size_of(total.value), c_type(total.value.dtype) or ""
        kernel = self.function.elements(size)
        sums = kernel.pointer(self.private[value], type)
        self.function.used(self.private[value])
        kernel.line(f"{type} all = {sums}[k];")
        more = _combined(total, "all", f"{sums}[(dy_index)b * {size} + k]")
        kernel.line(f"for (int b = 1; b < {self.blocks}; ++b) all = {more};")
        kernel.line(f"{kernel.memory(value, True)}[k] = all;")
        self.function.launch_elements(kernel, size)


def _count(axes: Sequence[Axis]) -> int:
    return math.prod(axis.size for axis in axes)


def _sizes_and_names(axes: Sequence[Axis]) -> Tuple[List[int], List[str]]:
    return [axis.size for axis in axes], [axis.name for axis in axes]


def _address(address: Address) -> str:
    texts = [str(address.offset)] if address.offset else []
    for index, stride in address.terms:
        text = f"({_part(index)})" if isinstance(index, Part) else index
        texts.append(f"{text} * {stride}" if stride != 1 else text)
    return " + ".join(texts) or "0"


def _part(part: Part) -> str:
    text = part.loop if part.divisor == 1 else f"{part.loop} / {part.divisor}"
    return text if part.modulus is None else f"({text}) % {part.modulus}"


def _type(reduction: Reduction) -> str:
    """The C type of what a reduction grows in."""
    return "int" if reduction.op in ("any", "all") else c_type(reduction.value.dtype) or ""


def _operand(reduction: Reduction, operand: str) -> str:
    return f"({operand} != 0)" if reduction.op in ("any", "all") else operand


def _combined(reduction: Reduction, a: str, b: str) -> str:
    """Both of two numbers in one; the type of the first decides."""
    return f"dy_combined<dy_{reduction.op}>({a}, {b})"


def _start(reduction: Reduction) -> str:
    """What a reduction begins with."""
    dtype = reduction.value.dtype
    if reduction.op in ("sum", "any"):
        return "0"
    if reduction.op in ("prod", "all"):
        return "1"
    if dtype.kind == "f":
        return "-INFINITY" if reduction.op == "max" else "INFINITY"
    if dtype.kind == "b":
        return "0" if reduction.op == "max" else "1"
    limits = np.iinfo(dtype)
    return c_constant(limits.min if reduction.op == "max" else limits.max, dtype)


def reduces(node: Node) -> bool:
    """Whether kernels compute a reduction: of floats to floats, of ints, and tests."""
    kind = node.outputs[0].dtype.kind
    return node.op.name in ("any", "all") or kind in "iu" or kind == "f" and node.inputs[0].dtype.kind == "f"

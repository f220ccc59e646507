"""The text of one loop nest in CUDA: statements, expressions, and what reductions grow in."""
from __future__ import annotations

import math
from typing import Callable, Dict, List, Sequence, Tuple

import numpy as np

from ....ir.c_forms import c_constant
from ....ir.dims import Size
from ....ir.graph import Value
from ...loops.ir import (
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
from ..text.dtypes import expression, loaded, register_type
from ..text.function import FunctionText, KernelText
from ..text.indices import offset_text


class NestText:
    """What all kinds have in common: statements and expressions."""

    once = ""                                               # the condition of the one thread that stores results of rows

    def __init__(self, nest: LoopNest, function: FunctionText):
        self.nest, self.function = nest, function
        self.kernel = self.new_kernel()
        self.again: Dict[Value, str] = {}                   # elements that the sweep at hand has got again
        self.kept: Dict[Value, str] = {}                    # the element of a row buffer that a thread is at
        self.sums: Dict[Reduction, str] = {}                # what grows in registers

    def new_kernel(self) -> KernelText:
        """A kernel whose indices may be those of all elements."""
        kernel = self.function.kernel()
        kernel.reaches(math.prod(self.nest.shape))
        return kernel

    def statements(self, statements: Sequence[Statement], once: str = "") -> None:
        """Statements of one element, or with ``once`` of a row."""
        kernel = self.kernel
        for statement in statements:
            if isinstance(statement, Accumulate):
                self.accumulate(statement.reduction, self.text(statement.operand))
            elif isinstance(statement, Recall):
                text = self.text(statement.expression)
                name = self.again[statement.value] = kernel.variable()
                kernel.line(f"const {register_type(statement.value.dtype)} {name} = {text};")
            else:
                self.define(statement.value, self.text(statement.expression), statement, once)

    def define(self, value: Value, text: str, statement: Define, once: str) -> None:
        """Compute a value, and put it where it goes."""
        kernel = self.kernel
        local = kernel.local(value)
        kernel.line(f"const {register_type(value.dtype)} {local} = {text};")
        if statement.store is not None:
            kernel.line(f"{once}{kernel.memory(value, True)}[{address_of(statement.store)}] = {local};")
        if statement.keep is not None:
            kernel.line(f"{self.kept[value]} = {local};")

    def accumulate(self, reduction: Reduction, operand: str) -> None:
        """One element more for a reduction."""
        name = self.sums[reduction]
        self.kernel.line(f"{name} = {combined(reduction, name, tested(reduction, operand))};")

    def text(self, expression_: Expression) -> str:
        """An expression in CUDA."""
        if isinstance(expression_, Local):
            value = expression_.value
            return self.again.get(value) or (self.kernel.number(value) if value.ndim == 0 else self.kernel.local(value))
        if isinstance(expression_, Load):
            return self.kernel.read(expression_.array, address_of(expression_.address))
        if isinstance(expression_, Kept):
            return loaded(self.kept[expression_.value], expression_.value.dtype)
        text = expression(expression_.node, [self.text(operand) for operand in expression_.operands])
        assert text is not None, f"{expression_.node} has no form in C"
        return text

    def row(self, sweep_over: Callable[[Sweep], None]) -> None:
        """The sweeps over a row, and what is done before and behind them.  sweep_over: writes the loop of a sweep."""
        for sweep in self.nest.sweeps:
            self.again = {}
            self.statements(sweep.before, self.once)
            if sweep.body:
                sweep_over(sweep)
        self.again = {}
        self.statements(self.nest.after, self.once)

    def declare(self, reduction: Reduction, wide: bool = False) -> None:
        """A register in which a reduction grows."""
        name = self.sums[reduction] = self.kernel.variable()
        type = "double" if wide and reduction.op == "sum" and reduction.value.dtype.kind == "f" else type_of(reduction)
        self.kernel.line(f"{type} {name} = {start_of(reduction)};")

    def finish(self, reduction: Reduction, function: str) -> None:
        """Define the result of a row."""
        value, store = reduction.value, reduction.address if reduction.stored else None
        self.define(value, self.reduced(reduction, function), Define(value, Local(value), store), self.once)

    def reduced(self, reduction: Reduction, function: str) -> str:
        """What the registers of all threads come to."""
        return f"{function}<dy_{reduction.op}>({self.sums[reduction]}, (decltype({self.sums[reduction]})){start_of(reduction)})"


def count_of(axes: Sequence[Axis]) -> Size:
    """The turns of all these loops."""
    return math.prod(axis.size for axis in axes)


def sizes_and_names(axes: Sequence[Axis]) -> Tuple[List[Size], List[str]]:
    """The turns of each loop, and its variable."""
    return [axis.size for axis in axes], [axis.name for axis in axes]


def address_of(address: Address) -> str:
    """The index of an element in memory."""
    texts = [offset_text(address.offset)] if address.offset else []
    for index, stride in address.terms:
        text = f"({_part(index)})" if isinstance(index, Part) else index
        texts.append(f"{text} * {stride}" if stride != 1 else text)
    return " + ".join(texts) or "0"


def _part(part: Part) -> str:
    text = part.loop if part.divisor == 1 else f"{part.loop} / {part.divisor}"
    return text if part.modulus is None else f"({text}) % {part.modulus}"


def type_of(reduction: Reduction) -> str:
    """The C type of what a reduction grows in."""
    return "int" if reduction.op in ("any", "all") else register_type(reduction.value.dtype)


def tested(reduction: Reduction, operand: str) -> str:
    """An operand of a reduction, as a test where it is one of tests."""
    return f"({operand} != 0)" if reduction.op in ("any", "all") else operand


def combined(reduction: Reduction, a: str, b: str) -> str:
    """Both of two numbers in one; the type of the first decides."""
    return f"dy_combined<dy_{reduction.op}>({a}, {b})"


def start_of(reduction: Reduction) -> str:
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

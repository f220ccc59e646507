"""Kernels of nests without reductions: a thread computes one element, or several that stand side by side."""
from __future__ import annotations

import math
from typing import Dict, Iterator, List, Optional, Tuple, Union

from ...ir.dims import Size, is_known
from ...ir.graph import Value
from ..loops.ir import Address, Apply, Axis, Define, Expression, Load, LoopNest, Part, Recall, Statement
from .dtypes import loaded, memory_type, register_type
from .function import ELEMENTS, FunctionText, split_index
from .nest_text import NestText, address_of, count_of, sizes_and_names
from .sizes import Late, ceiling

#: A thread computes several elements where there are at least so many: fewer of them do not fill a GPU then.
VECTORS = 1 << 18

#: Bytes of one load, and most elements of a thread.
_BYTES, _MOST = 16, 8


class Elements(NestText):
    """One thread computes one element."""

    def write(self) -> None:
        """Write the kernel, and launch it."""
        axes = (*self.nest.outer, *self.nest.inner)
        count = count_of(axes)
        self.kernel = self.function.elements(count, *sizes_and_names(axes))
        for sweep in self.nest.sweeps:
            self.statements(sweep.body)
        self.function.launch_elements(self.kernel, count)


class Vectors(NestText):
    """One thread computes ``width`` elements, which it loads and stores together where they are aligned: the kernel tests that.

    The statements of an element are those of `Elements`, so that the results have the same bits.
    """

    def __init__(self, nest: LoopNest, function: FunctionText, width: int):
        super().__init__(nest, function)
        self.width, self.last = width, _axes(nest)[-1]
        self.loads: Dict[Tuple[Value, Address], str] = {}
        self.stores: List[Tuple[Value, Address, str]] = []

    def write(self) -> None:
        """Write the kernel, and launch it."""
        kernel, axes, width = self.kernel, _axes(self.nest), self.width
        count = count_of(axes)
        kernel.line(f"const dy_index k = ((dy_index)blockIdx.x * blockDim.x + threadIdx.x) * {width};")
        kernel.line(f"if (k >= {count}) return;")
        split_index(kernel, "k", *sizes_and_names(axes))
        left = str(width) if _is_multiple(self.last.size, width) else f"{count} - k"
        before, kernel.lines = kernel.lines, []
        kernel.depth += 1
        for sweep in self.nest.sweeps:
            self.statements(sweep.body)
        kernel.depth -= 1
        body, kernel.lines = kernel.lines, before
        for (value, address), name in self.loads.items():
            kernel.line(f"{memory_type(value.dtype)} {name}[{width}];")
            kernel.line(f"dy_load({name}, {kernel.memory(value)} + {address_of(address)}, {left});")
        for value, _, name in self.stores:
            kernel.line(f"{memory_type(value.dtype)} {name}[{width}];")
        kernel.line("#pragma unroll")
        kernel.open(f"for (int e = 0; e < {width}; ++e) {{")
        kernel.lines += body
        kernel.close()
        for value, address, name in self.stores:
            kernel.line(f"dy_store({kernel.memory(value, True)} + {address_of(address)}, {name}, {left});")
        kernel.launch(self.function.late(ceiling, count, width * ELEMENTS), ELEMENTS)

    def define(self, value: Value, text: str, statement: Define, once: str) -> None:
        """Compute a value, and put it where the thread collects what it stores."""
        local = self.kernel.local(value)
        self.kernel.line(f"const {register_type(value.dtype)} {local} = {text};")
        if statement.store is not None:
            name = self.kernel.variable()
            self.stores.append((value, statement.store, name))
            self.kernel.line(f"{name}[e] = {local};")

    def text(self, expression: Expression) -> str:
        """An expression in CUDA: what is loaded is at hand."""
        if not isinstance(expression, Load):
            return super().text(expression)
        step = _step(expression.address, self.last.name)
        if step == 1 and expression.array not in self.function.draws:
            key = expression.array, expression.address
            if key not in self.loads:
                self.loads[key] = self.kernel.variable()
            return loaded(f"{self.loads[key]}[e]", expression.array.dtype)
        more = f" + e * {step}" if step else ""
        return self.kernel.read(expression.array, address_of(expression.address) + more)


def vector_width(nest: LoopNest, function: FunctionText) -> int:
    """How many elements a thread computes, if there are many; 1 where they do not stand side by side."""
    axes = _axes(nest)
    if not axes:
        return 1
    last, widest, accesses = axes[-1].name, 0, list(_accesses(nest))
    for value, address, is_store in accesses:
        step = _step(address, last)
        if step is None or is_store and step != 1:
            return 1
        if step == 1 and value not in function.draws:
            widest = max(widest, value.dtype.itemsize)
    if not widest:
        return 1
    width = min(_MOST, _BYTES // widest)
    return width if len(axes) == 1 or _is_multiple(axes[-1].size, width) else 1


def are_many(nest: LoopNest, function: FunctionText) -> Union[bool, Late]:
    """Whether there are so many elements that a thread computes several."""
    found: Union[bool, Late] = function.late(lambda count: count >= VECTORS, math.prod(nest.shape))
    return found


def _is_multiple(size: Size, width: int) -> bool:
    return isinstance(size, int) and size % width == 0


def _axes(nest: LoopNest) -> Tuple[Axis, ...]:
    return (*nest.outer, *nest.inner)


def _step(address: Address, name: str) -> Optional[int]:
    """How far apart in memory neighbours along a loop are; None where no stride says it."""
    if any(isinstance(index, Part) and index.loop == name for index, _ in address.terms):
        return None
    strides = [stride for index, stride in address.terms if index == name]
    return sum(map(int, strides)) if all(map(is_known, strides)) else None


def _accesses(nest: LoopNest) -> Iterator[Tuple[Value, Address, bool]]:
    """What a nest without reductions loads and stores: arrays, where, and whether it stores."""
    for sweep in nest.sweeps:
        for statement in sweep.body:
            yield from _of_statement(statement)


def _of_statement(statement: Statement) -> Iterator[Tuple[Value, Address, bool]]:
    assert isinstance(statement, (Define, Recall))
    for expression in _loads(statement.expression):
        yield expression.array, expression.address, False
    if isinstance(statement, Define) and statement.store is not None:
        yield statement.value, statement.store, True


def _loads(expression: Expression) -> Iterator[Load]:
    if isinstance(expression, Load):
        yield expression
    elif isinstance(expression, Apply):
        for operand in expression.operands:
            yield from _loads(operand)

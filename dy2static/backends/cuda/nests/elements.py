"""Kernels of nests without reductions: a thread computes one element, or several that stand side by side."""
from __future__ import annotations

import math
from typing import Dict, List, Sequence, Tuple, Union

from ...loops.ir import Axis, Expression, Load, LoopNest
from ..program.sizes import Late, ceiling
from ..text.dtypes import loaded, memory_type
from ..text.function import ELEMENTS, FunctionText
from ..text.indices import TILE_THREADS, offset_text, split_index, turned_axis, write_tiles
from .statements import NestText, address_of, count_of, sizes_and_names
from .vectors import Key, VectorText, accesses, is_multiple, step_of, width_of

#: A thread computes several elements where there are at least so many: fewer of them do not fill a GPU then.
VECTORS = 1 << 18

#: Arrays that a block turns at most: each takes 4 KiB of its memory, or 8 KiB.
_MOST_TURNED = 4


class Elements(NestText):
    """One thread computes one element."""

    def write(self) -> None:
        """Write the kernel, and launch it."""
        axes = _axes(self.nest)
        count = count_of(axes)
        self.kernel = self.function.elements(count, *sizes_and_names(axes))
        for sweep in self.nest.sweeps:
            self.statements(sweep.body)
        self.function.launch_elements(self.kernel, count)


class Vectors(VectorText):
    """One thread computes ``width`` elements; the results have the bits of `Elements`."""

    def __init__(self, nest: LoopNest, function: FunctionText, width: int):
        super().__init__(nest, function, width, _axes(nest)[-1])

    def write(self) -> None:
        """Write the kernel, and launch it."""
        kernel, axes, width = self.kernel, _axes(self.nest), self.width
        count = count_of(axes)
        limit = offset_text(count) if len(axes) < 2 else str(count)
        kernel.line(f"const dy_index k = ((dy_index)blockIdx.x * blockDim.x + threadIdx.x) * {width};")
        kernel.line(f"if (k >= {limit}) return;")
        split_index(kernel, "k", *sizes_and_names(axes))
        self.count = str(width) if is_multiple(axes[-1].size, width) else f"{limit} - k"
        self.elements([statement for sweep in self.nest.sweeps for statement in sweep.body])
        kernel.launch(self.function.late(ceiling, count, width * ELEMENTS), ELEMENTS)


class Tiles(NestText):
    """A block computes a tile: arrays that stand side by side along another loop than the last are turned in its memory.

    axis: the number of that loop.
    """

    def __init__(self, nest: LoopNest, function: FunctionText, axis: int):
        super().__init__(nest, function)
        self.axis, self.turned = axis, _turned(nest, axis)
        self.tiles: Dict[Key, str] = {}

    def write(self) -> None:
        """Write the kernel, and launch it."""
        sizes, names = sizes_and_names(_axes(self.nest))
        loads = [(memory_type(array.dtype) or "", f"{self.kernel.memory(array)}[{address_of(address)}]")
                 for array, address in self.turned]
        self.kernel.launch(write_tiles(self.kernel, sizes, names, self.axis, loads, self.tile), TILE_THREADS)

    def tile(self, texts: Sequence[str]) -> None:
        """Write what is done for an element.  texts: what has been turned."""
        self.tiles.update(zip(self.turned, texts))
        for sweep in self.nest.sweeps:
            self.statements(sweep.body)

    def text(self, expression: Expression) -> str:
        """An expression in CUDA: what has been turned is in the memory of the block."""
        if isinstance(expression, Load) and (expression.array, expression.address) in self.tiles:
            return loaded(self.tiles[expression.array, expression.address], expression.array.dtype)
        return super().text(expression)


def tiled_axis(nest: LoopNest, function: FunctionText) -> int:
    """The loop along which arrays stand side by side, if tiles help; else -1."""
    axes = _axes(nest)
    if not axes:
        return -1
    found = [(address, is_store) for value, address, is_store in accesses(nest) if value not in function.inline]
    steps = [[step_of(address, axis.name) for axis in axes] for address, _ in found]
    if any(is_store and apart[-1] != 1 for (_, is_store), apart in zip(found, steps)):
        return -1
    axis = turned_axis([one.size for one in axes], [apart for (_, is_store), apart in zip(found, steps) if not is_store])
    return axis if axis < 0 or len(_turned(nest, axis)) <= _MOST_TURNED else -1


def _turned(nest: LoopNest, axis: int) -> List[Key]:
    """What is loaded side by side along a loop that is not the last one."""
    axes = _axes(nest)
    return list(dict.fromkeys([
        (value, address) for value, address, is_store in accesses(nest) if not is_store and step_of(address, axes[axis].name) == 1
        and step_of(address, axes[-1].name) not in (0, 1)]))


def vector_width(nest: LoopNest, function: FunctionText) -> int:
    """How many elements a thread computes, if there are many; 1 where they do not stand side by side."""
    axes = _axes(nest)
    width = width_of(nest, axes[-1], function) if axes else 1
    return width if len(axes) == 1 or axes and is_multiple(axes[-1].size, width) else 1


def are_many(nest: LoopNest, function: FunctionText) -> Union[bool, Late]:
    """Whether there are so many elements that a thread computes several."""
    found: Union[bool, Late] = function.late(lambda count: count >= VECTORS, math.prod(nest.shape))
    return found


def _axes(nest: LoopNest) -> Tuple[Axis, ...]:
    return (*nest.outer, *nest.inner)

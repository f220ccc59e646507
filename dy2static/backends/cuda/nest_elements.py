"""Kernels of nests without reductions: a thread computes one element, or several that stand side by side."""
from __future__ import annotations

import math
from typing import Tuple, Union

from ..loops.ir import Axis, LoopNest
from .function import ELEMENTS, FunctionText, split_index
from .nest_text import NestText, count_of, sizes_and_names
from .nest_vectors import VectorText, is_multiple, width_of
from .sizes import Late, ceiling

#: A thread computes several elements where there are at least so many: fewer of them do not fill a GPU then.
VECTORS = 1 << 18


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
        kernel.line(f"const dy_index k = ((dy_index)blockIdx.x * blockDim.x + threadIdx.x) * {width};")
        kernel.line(f"if (k >= {count}) return;")
        split_index(kernel, "k", *sizes_and_names(axes))
        self.count = str(width) if is_multiple(axes[-1].size, width) else f"{count} - k"
        self.elements([statement for sweep in self.nest.sweeps for statement in sweep.body])
        kernel.launch(self.function.late(ceiling, count, width * ELEMENTS), ELEMENTS)


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

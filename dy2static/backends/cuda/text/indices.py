"""The indices of elements in the text of kernels: along each axis, in memory, and in tiles that a block turns."""
from __future__ import annotations

import math
from typing import Any, Callable, Iterable, List, Protocol, Sequence, Tuple

import numpy as np

from ....ir.dims import Size
from ...loops.layout import compact_strides
from ..program.sizes import Number, ceiling, settled

#: How names of arguments that are offsets begin; the number follows.
OFFSET = "offset_"

#: The sides of a tile, and the threads for it.
TILE, TILE_THREADS = 32, 256

#: An axis of fewer elements is not worth tiles.
_SHORTEST = 16

#: Fewer elements are not worth them either.
FEWEST_IN_TILES = 1 << 14


class Text(Protocol):
    """Where lines go."""

    def line(self, text: str) -> None:
        """Add a line."""

    def open(self, head: str) -> None:
        """Add a line that opens a block."""

    def close(self) -> None:
        """End a block."""

    def variable(self) -> str:
        """A new name."""


def split_index(kernel: Text, index: str, sizes: Sequence[Size], names: Sequence[str]) -> None:
    """Define the index along each of several axes, from that of an element in the order of memory."""
    for name, size, after in zip(names, sizes, compact_strides(sizes)):
        text = index if after == 1 else f"{index} / {after}"
        kernel.line(f"const dy_index {name} = {text if name == names[0] else f'{text} % {size}'};")


def offset_text(offset: Number) -> str:
    """An offset, or a count, as an argument of the kernel: kernels for other parts of an array, or other sizes, have one text."""
    return f"{OFFSET}{offset}" if isinstance(offset, (int, np.integer)) and offset > 0 else str(offset)


def address(offset: Size, terms: Any) -> str:
    """The sum of indices times strides."""
    texts = [offset_text(offset)] if offset else []
    return " + ".join(texts + [name if stride == 1 else f"{name} * {stride}" for name, stride in terms if stride]) or "0"


def turned_axis(sizes: Sequence[Size], steps: Iterable[Sequence[Any]]) -> int:
    """The axis along which loads stand side by side that do not do so along the last axis; -1 if tiles do not help.

    steps: how far apart neighbours along each axis are, for each load.
    """
    count = math.prod(sizes)
    if not isinstance(count, int) or count < FEWEST_IN_TILES:
        return -1
    for apart in steps:
        if apart[-1] not in (0, 1):
            for axis, step in enumerate(apart[:-1]):
                if step == 1 and all(isinstance(n, int) and n >= _SHORTEST for n in (sizes[axis], sizes[-1])):
                    return axis
    return -1


def write_tiles(kernel: Text, sizes: Sequence[Size], names: Sequence[str], axis: int, loads: Sequence[Tuple[str, str]],
                body: Callable[[List[str]], None]) -> int:
    """Write what is done for each element, in tiles over the last axis and another one; gives the number of blocks.

    sizes, names: of all axes; the sizes are known, and the indices are defined where the texts of loads stand.  loads: the type and
    the text of what stands side by side along the other axis: a block reads it so, and turns it in its own memory.  body: writes
    what is done, given the texts of what was loaded.
    """
    others = [n for n in range(len(sizes) - 1) if n != axis]
    sides_of = [settled(sizes[n]) for n in (axis, len(sizes) - 1)]
    tiles = [ceiling(size, TILE) for size in sides_of]
    kernel.line(f"const dy_index tile = blockIdx.x, rest = tile / {tiles[0] * tiles[1]};")
    split_index(kernel, "rest", [sizes[n] for n in others], [names[n] for n in others])
    kernel.line(f"const dy_index first = tile / {tiles[1]} % {tiles[0]} * {TILE}, second = tile % {tiles[1]} * {TILE};")
    kernel.line(f"const int lane = threadIdx.x % {TILE};")
    held = [kernel.variable() for _ in loads]
    for name, (type, _) in zip(held, loads):
        kernel.line(f"DY_SHARED({type}, {name}, {TILE * (TILE + 1)});")
    sides = (names[axis], names[-1])
    even = all(size % TILE == 0 for size in sides_of)
    inside = "{" if even else f"if ({sides[0]} < {sides_of[0]} && {sides[1]} < {sides_of[1]}) {{"

    def loop(indices: Tuple[str, str]) -> None:
        kernel.line("#pragma unroll")
        kernel.open(f"for (int line = threadIdx.x / {TILE}; line < {TILE}; line += {TILE_THREADS // TILE}) {{")
        kernel.line(f"const dy_index {sides[0]} = first + {indices[0]}, {sides[1]} = second + {indices[1]};")
        kernel.open(inside)
    loop(("lane", "line"))
    for name, (_, text) in zip(held, loads):
        kernel.line(f"{name}[line * {TILE + 1} + lane] = {text};")
    kernel.close()
    kernel.close()
    kernel.line("__syncthreads();")
    loop(("line", "lane"))
    body([f"{name}[lane * {TILE + 1} + line]" for name in held])
    kernel.close()
    kernel.close()
    return math.prod([*[settled(sizes[n]) for n in others], *tiles])

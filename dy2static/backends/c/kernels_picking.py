"""Elements that arrays of indices pick, read or added to: one writer of loops for all ops of this kind."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable, Dict, List, Sequence, Tuple, Union

import numpy as np

from ...ir.dims import Size, is_known
from ...ir.graph import Node, Value
from ...ir.shapes import broadcast_shapes
from ...ir.template import AT
from ..loops.layout import broadcast, compact_strides, place_of
from ..loops.parallelize import Level, cut
from .emitter import Emitter, Rule
from .nests import along, at, block, checked_index, loop, loops, zeros
from .scalars import scalar_type

#: Nanoseconds of a look-up, and of one element that it finds.
_LOOK_UP, _ELEMENT = 2, 0.3

#: Where results of several indices may meet, each thread takes at least so many neighbouring elements of all of them.
_COLUMNS = 32

#: From so many rows and indices on, indices are looked at once for all rows.
_ROWS, _PICKED = 4, 16

#: The size and the stride of an axis.
_Axis = Tuple[Size, Size]

#: A line of C, from the address in the part and that in the whole.
_Statement = Callable[[str, str], str]


@dataclass(frozen=True)
class Part:
    """The part of an array that an index picks: axes in front, those that arrays of indices make, axes behind.

    numbers: the arrays of indices.  chosen: for each, the axis that it is about.  together: the shape that they make.
    offset: where the part begins.
    """

    front: Tuple[_Axis, ...]
    behind: Tuple[_Axis, ...]
    numbers: Tuple[Value, ...]
    chosen: Tuple[_Axis, ...]
    together: Tuple[Size, ...]
    offset: Size = 0

    @classmethod
    def along(cls, shape: Sequence[Size], indices: Value, axis: int) -> "Part":
        """The rows of an array of this shape that the indices pick along an axis."""
        outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1:])
        return cls(((outer, shape[axis] * inner),), ((inner, 1),), (indices,), ((shape[axis], inner),), indices.shape)

    @classmethod
    def of(cls, shape: Sequence[Size], numbers: Sequence[Value], index: Sequence) -> "Part":
        """What a canonical index picks of an array of this shape.  Sizes that only the run knows are cut in steps of one."""
        axes: List[_Axis] = []
        chosen: List[_Axis] = []
        whole, axis, offset = compact_strides(shape), 0, 0
        for entry in index:
            if entry is None or isinstance(entry, tuple):
                start, stop, step = entry or (0, 1, 1)
                known = is_known(start) and is_known(stop)
                count = len(range(start, -1 if stop is None else stop, step)) if known else stop - start
                axes.append((count, 0 if entry is None else step * whole[axis]))
                offset += start * whole[axis] if entry is not None and (not known or count) else 0
            elif entry == AT:
                chosen.append((shape[axis], whole[axis]))
            else:
                offset += entry * whole[axis]
            axis += entry is not None
        together: Tuple[Size, ...] = ()
        for array in numbers:
            together = broadcast_shapes(together, array.shape)
        places = [p for p, entry in enumerate(index) if not (entry is None or isinstance(entry, tuple))]
        before = places[0] if places and places[-1] - places[0] < len(places) else 0
        return cls(_merged(axes[:before]), _merged(axes[before:]), tuple(numbers), tuple(chosen), together, offset)

    def write(self, emitter: Emitter, statement: _Statement, apart: bool = False) -> None:
        """Loops around a statement.  apart: what it writes for one index, it writes for no other."""
        pointers = [emitter.pointer(array) if array.ndim else "" for array in self.numbers]
        inner = math.prod(size for size, _ in self.behind)
        turn = _LOOK_UP * len(self.numbers) + inner * _ELEMENT if is_known(inner) else 0
        if not apart and self._write_columns(emitter, statement, pointers, turn):
            return
        front = [size for size, _ in self.front]
        if apart:
            if self._write_gathered(emitter, statement, turn, pointers):
                return
            with emitter.alone():
                self.write_here(emitter, statement, turn, pointers)
            return
        count = math.prod(self.together)
        with emitter.alone(), loops(emitter, "a", front, turn * count if is_known(count) else 0) as first:
            with loops(emitter, "c", self.together) as middle:
                self._write_one(emitter, statement, pointers, (*first, *middle))

    def write_here(self, emitter: Emitter, statement: _Statement, turn: float, pointers: Sequence[str]) -> None:
        """The loops around a statement that writes for one index what it writes for no other.

        turn: nanoseconds of one turn.  pointers: to the arrays of indices.
        """
        with loops(emitter, "a", (*(size for size, _ in self.front), *self.together), turn) as names:
            self._write_one(emitter, statement, pointers, names)

    def _write_gathered(self, emitter: Emitter, statement: _Statement, turn: float, pointers: Sequence[str]) -> bool:
        """Whether all indices have been looked at once, in front of loops over the single elements that each row picks."""
        count, rows = math.prod(self.together), math.prod(size for size, _ in self.front)
        if len(self.numbers) != 1 or not all(is_known(n) for n in (count, rows, *self.chosen[0])) or any(
                size != 1 for size, _ in self.behind) or rows < _ROWS or count < _PICKED:
            return False
        size, step = self.chosen[0]
        places = emitter.scratch(count, np.dtype(np.int32 if size * step < 1 << 31 else np.int64))
        with emitter.alone(), loops(emitter, "c", self.together) as middle:
            here = along(middle, self.together)
            checked_index(emitter, "at_", f"{pointers[0]}[{here}]", size)
            emitter.line(f"{places}[{here}] = at_ * {step};")
        sizes, steps = zip(*self.front)
        with emitter.alone(), loops(emitter, "a", sizes, turn * count) as first:
            emitter.line("#pragma omp simd")
            emitter.line(loop("c_", 0, count)[:-2])
            emitter.line("    " + statement(along((*first, "c_"), (*sizes, count)),
                                            at((*first, f"{places}[c_]"), (*steps, 1), self.offset)))
        return True

    def _write_columns(self, emitter: Emitter, statement: _Statement, pointers: Sequence[str], turn: float) -> bool:
        """Whether threads share the elements behind all indices: where that pays, and nothing in front can be shared."""
        count = math.prod(self.together)
        width = self.behind[0][0] if len(self.behind) == 1 else 0
        if not (is_known(count) and is_known(width)) or any(size != 1 for size, _ in self.front):
            return False
        blocks = width // _COLUMNS
        share = cut([Level("columns", blocks)], count * width, count * turn)
        if share is None:
            return False
        with emitter.shared(share):
            emitter.line(f"const int64_t left = begin * {_COLUMNS}, right = end == {blocks} ? {width} : end * {_COLUMNS};")
            with loops(emitter, "c", self.together) as middle:
                self._write_one(emitter, statement, pointers, ("0",) * len(self.front) + tuple(middle), "left", "right")
        return True

    def _write_one(self, emitter: Emitter, statement: _Statement, pointers: Sequence[str], around: Sequence[str],
                   left: Union[Size, str] = 0, right: Union[Size, str] = 0) -> None:
        """What stands in the loops over indices.

        around: the names of the loops around it, in front and together.  left, right: the part of the last axis behind, if not all.
        """
        first, middle = around[:len(self.front)], around[len(self.front):]
        places = []
        for k, (array, pointer, (size, _)) in enumerate(zip(self.numbers, pointers, self.chosen)):
            where = broadcast(place_of(array), self.together)
            checked_index(emitter, f"at{k}_", f"{pointer}[{at(middle, where.strides)}]" if pointer else emitter.scalar(array), size)
            places.append(f"at{k}_")
        *outer, (size, _) = self.behind or ((1, 0),)
        last = "0" if size == 1 else "e_"
        with loops(emitter, "e", [n for n, _ in outer]) as names:
            behind = (*names, last)[:len(self.behind)]
            here = along((*around, *behind), (*(n for n, _ in self.front), *self.together, *(n for n, _ in self.behind)))
            there = at((*first, *behind, *places), [step for _, step in (*self.front, *self.behind, *self.chosen)], self.offset)
            if last == "0":
                emitter.line(statement(here, there))
                return
            emitter.line("#pragma omp simd")                    # no two elements behind one index are the same
            emitter.line(loop(last, left, right or size)[:-2])
            emitter.line("    " + statement(here, there))


def _merged(axes: Sequence[_Axis]) -> Tuple[_Axis, ...]:
    """The axes with neighbours together whose elements stand at one distance."""
    merged: List[_Axis] = []
    for size, step in axes:
        if size == 1:
            continue
        if merged and merged[-1][1] == size * step:
            merged[-1] = merged[-1][0] * size, step
        else:
            merged.append((size, step))
    return tuple(merged)


def _pick(emitter: Emitter, node: Node) -> None:
    (value,), (x, *numbers) = node.outputs, node.inputs
    _write_picked(emitter, value, x, Part.of(x.shape, numbers, node.attrs["index"]))


def _take(emitter: Emitter, node: Node) -> None:
    (value,), (x, indices) = node.outputs, node.inputs
    _write_picked(emitter, value, x, Part.along(x.shape, indices, node.attrs["axis"]))


def _write_picked(emitter: Emitter, value: Value, x: Value, part: Part) -> None:
    source = emitter.pointer(x)
    if value.ndim:
        target = emitter.name(value)
        part.write(emitter, lambda here, there: f"{target}[{here}] = {source}[{there}];", apart=True)
        return
    name = emitter.local(value)
    emitter.line(f"{scalar_type(value.type)} {name};")
    with block(emitter, "{"):
        part.write_here(emitter, lambda here, there: f"{name} = {source}[{there}];", 0, [""] * len(part.numbers))
    if emitter.stored(value):
        emitter.line(f"{emitter.name(value)}[0] = {name};")


def _add_at(emitter: Emitter, node: Node) -> None:
    (value,), (a, b, *numbers) = node.outputs, node.inputs
    target, source = emitter.name(value), emitter.pointer(b)
    emitter.copy(place_of(value), emitter.place(a), target)
    _write_added(emitter, target, source, Part.of(a.shape, numbers, node.attrs["index"]))


def _scatter_add(emitter: Emitter, node: Node) -> None:
    (value,), (x, indices) = node.outputs, node.inputs
    source, target = emitter.pointer(x), zeros(emitter, value)
    _write_added(emitter, target, source, Part.along(value.shape, indices, node.attrs["axis"]))


def _write_added(emitter: Emitter, target: str, source: str, part: Part) -> None:
    part.write(emitter, lambda here, there: f"{target}[{there}] += {source}[{here}];")


#: Ops by name.
PICKS: Dict[str, Rule] = {"pick": _pick, "take": _take, "add_at": _add_at, "scatter_add": _scatter_add}


def takes(node: Node) -> bool:
    """Whether the rule of a node fits it."""
    if node.op.name in ("take", "scatter_add"):
        return True
    is_number = node.outputs[0].dtype.kind in "fiu"
    size = node.inputs[0].type.size
    has_elements = not is_known(size) or size > 0               # NumPy also looks at the indices of nothing
    return has_elements and (node.op.name == "pick" or is_number)

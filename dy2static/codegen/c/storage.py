"""What the values of a C function are called, and where their elements are."""
from __future__ import annotations

import math
from typing import Any, List, Sequence, Tuple

from ...ir.c_forms import c_expression, c_type
from ...ir.graph import Node, Value
from ...ir.types import Stack, Tensor
from .extents import at_least_one, is_known
from .lists import is_list
from .memory import Buffer, merged_axes
from .places import Place, place_of
from .scalars import scalar_type
from .shares import Level, cut

#: Nanoseconds that it takes to copy one element.
_COPY = 0.4


class Storage:
    """Of a `Writer`: names, buffers, and texts for elements."""

    def at(self) -> str:
        """The name of an index that the run knows."""
        name = self.given.fresh("at")
        self.types[name] = "const int64_t"
        return name

    def local(self, value: Value) -> str:
        """The C variable of one element, or of a number."""
        if value in self.literals:
            return self.literals[value]
        if is_list(value) and value not in self.names:
            self.names[value] = self.given.fresh(value.name)
            self.lists.append(self.names[value])
        if not self.names.get(value):
            self.names[value] = self.given.fresh(f"{value.name}_" if value.ndim else value.name)
            if not value.ndim:
                self.types[self.names[value]] = f"const {scalar_type(value.type)}"
        return self.names[value]

    def name(self, value: Value) -> str:
        """The pointer to the elements of a value."""
        if value not in self.pointers:
            buffer = self.buffer(value.name, math.prod(value.shape), value.dtype)
            self.pointers[value] = buffer.name
            self.kept_by[buffer.name] = (buffer,)
        for buffer in self.kept_by.get(self.pointers[value], ()):
            buffer.last = max(buffer.last, self.clock)
        return self.pointers[value]

    def declaring(self, value: Value) -> str:
        """What stands in front of a variable where it is defined; lists are declared at the top."""
        return "" if is_list(value) else f"{scalar_type(value.type)} "

    def variable(self, hint: str) -> str:
        """A name for a variable of the part that is being written."""
        return self.given.fresh(hint)

    def scratch(self, count: int, dtype: Any) -> str:
        """Memory for the part that is being written."""
        return self.buffer("row", count, dtype).name

    def buffer(self, hint: str, count: Any, dtype: Any) -> Buffer:
        """Memory for so many elements; where only the run knows how many, it is asked for here."""
        buffer = Buffer(self.given.fresh(hint), c_type(dtype), at_least_one(count) * dtype.itemsize, self.clock, self.clock)
        self.types[buffer.name] = f"{buffer.type} *"
        if is_known(count):
            self.buffers.append(buffer)
        else:
            self.rooms.append(buffer)
            self.line(f"if (!({buffer.name} = dy_room_of(&{buffer.name}_room, {buffer.nbytes}))) goto bail;")
        return buffer

    def place(self, value: Value) -> Place:
        """Where the elements of a value are."""
        return Place(value, (), ()) if isinstance(value.type, Stack) else self.views.get(value) or place_of(value)

    def stored(self, value: Value) -> bool:
        """Whether a value must be in memory."""
        return value in self.needed and (value.ndim > 0 or value in self.pointers)

    def element(self, place: Place, terms: Sequence[str]) -> str:
        """One element of memory, or a number."""
        if place.base.ndim == 0:
            return self.local(place.base)
        offset = [str(place.offset)] if place.offset else []
        offset += [f"{name} * {stride}" if stride != 1 else name for name, stride in place.terms if stride]
        return self.read(place.base, " + ".join([*offset, *terms]) or "0")

    def read(self, value: Value, address: str) -> str:
        """An element of an array as an expression.  Loops that load C's bool stay scalar (gcc 12): it is loaded as a byte."""
        name = self.name(value)
        return f"(((const uint8_t *){name})[{address}] != 0)" if value.dtype.kind == "b" else f"{name}[{address}]"

    def scalar(self, value: Value) -> str:
        """A value of no dimensions as an expression."""
        return self.element(self.place(value), []) if isinstance(value.type, Tensor) else self.local(value)

    def expression(self, node: Node, operands: Sequence[str]) -> str:
        """The C form of an elementwise node."""
        return c_expression(node.op, operands, [v.type for v in node.inputs], node.outputs[0].type, node.attrs)

    # --- memory that other code than loops reads ------------------------------------------------------------------------

    def pointer(self, value: Value) -> str:
        """A pointer to all elements in the order of memory; a copy where they do not stand so."""
        place = self.place(value)
        if place.base.ndim and place.compact:
            offset = [str(place.offset)] if place.offset else []
            offset += [f"{name} * {stride}" for name, stride in place.terms if stride]
            return f"({' + '.join([self.name(place.base), *offset])})" if offset else self.name(place.base)
        copy = self.buffer(value.name, math.prod(value.shape), value.dtype)
        self.copy(place_of(value), place, copy.name)
        return copy.name

    def copy(self, target: Place, source: Place, pointer: str) -> None:
        """Loops that write the elements of one place to another of the same shape; pointer: the base of the target."""
        axes = merged_axes(target.shape, (target, source))
        sizes = [math.prod(target.shape[a] for a in part) for part in axes]
        terms: Tuple[List[str], List[str]] = ([], [])
        for k, part in enumerate(axes):
            for side, place in zip(terms, (target, source)):
                stride = place.strides[part[-1]]
                if stride:
                    side.append(f"k{k} * {stride}" if stride != 1 else f"k{k}")
        offset = [str(target.offset)] if target.offset else []
        offset += [f"{name} * {stride}" for name, stride in target.terms if stride]
        where = " + ".join([*offset, *terms[0]]) or "0"
        text = f"{pointer}[{where}] = {self.element(source, terms[1])};"
        if sizes:
            count = math.prod(sizes)
            share = cut([Level(f"k{k}", n, k == len(sizes) - 1) for k, n in enumerate(sizes)], count, count * _COPY) \
                if is_known(count) else None
            spans = [("begin", "end") if share is not None and share.name == f"k{k}" else ("0", str(n))
                     for k, n in enumerate(sizes)]
            lines = [f"{'    ' * (k + 1)}for (int64_t k{k} = {begin}; k{k} < {end}; ++k{k})"
                     for k, (begin, end) in enumerate(spans)]
            lines.insert(-1, "    " * len(sizes) + "#pragma omp simd")         # nobody writes where it reads
            self.part([*lines, "    " * (len(sizes) + 1) + text], share)
        else:
            self.line(text)

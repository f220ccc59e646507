"""The memory of a C function: which pointer each value has, and from when to when each buffer is in use."""
from __future__ import annotations

from typing import Any, Collection, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...ir.c_forms import c_type
from ...ir.dims import Size, is_known
from ...ir.graph import Value
from ...ir.size_bounds import at_least_one
from ..memory_planner import ALIGNMENT, Buffer, arranged, slots
from ..run_sizes import in_c
from .names import CNames
from .text import Text


class Block(NamedTuple):
    """Memory for several buffers: lines that take it, its room, and at most how many bytes there are."""

    lines: Sequence[str]
    room: str
    nbytes: Size


class Memory:
    """Buffers and pointers of one function while it is written.

    made: the symbols of sizes that the function finds out.
    clock: the present moment.
    buffers: scratch memory; sized: memory of sizes that are known when the function begins; rooms: that of sizes that it finds out.
    """

    def __init__(self, names: CNames, text: Text, made: Collection[str]):
        self.names, self.text, self.made = names, text, frozenset(made)
        self.clock = 0
        self.buffers: List[Buffer] = []
        self.sized: List[Buffer] = []
        self.rooms: List[Buffer] = []
        self._pointers: Dict[Value, str] = {}
        self._behind: Dict[str, Tuple[Buffer, ...]] = {}          # the buffers that a pointer may point into
        self._overwriting: List[Tuple[Buffer, Buffer]] = []

    def tick(self) -> int:
        """The next moment."""
        self.clock += 1
        return self.clock

    def buffer(self, hint: str, count: Size, dtype: Any) -> Buffer:
        """Memory for so many elements; where only the run knows how many, it is asked for here."""
        type = c_type(dtype)
        buffer = Buffer(self.names.fresh(hint, f"{type} *"), type, at_least_one(count) * dtype.itemsize, self.clock, self.clock)
        if is_known(count):
            self.buffers.append(buffer)
        elif self.made.isdisjoint(count.symbols):
            self.sized.append(buffer)
        else:
            self.rooms.append(buffer)
            self.text.line(f"if (!({buffer.name} = dy_room_of(&{buffer.name}_room, {buffer.nbytes}))) goto bail;")
        return buffer

    def pointer(self, value: Value) -> Optional[str]:
        """The pointer to the elements of a value, if it has memory."""
        return self._pointers.get(value)

    def put(self, value: Value, pointer: str, *buffers: Buffer) -> None:
        """Let a value be where this pointer points; buffers: those that it may point into, if they are not known."""
        self._pointers[value] = pointer
        if buffers:
            self.lie_behind(pointer, *buffers)

    def lie_behind(self, pointer: str, *buffers: Buffer) -> None:
        """Say which buffers a pointer may point into."""
        self._behind[pointer] = buffers

    def used(self, *pointers: str) -> None:
        """What is behind these pointers is in use now."""
        for pointer in pointers:
            for buffer in self._behind.get(pointer, ()):
                buffer.last = max(buffer.last, self.clock)

    def behind(self, *pointers: Optional[str]) -> Tuple[Buffer, ...]:
        """The buffers that these pointers may point into."""
        found = tuple(buffer for pointer in pointers for buffer in self._behind.get(pointer or "", ()))
        return found + tuple(buffer for buffer in (*self.buffers, *self.sized) if buffer.name in pointers)

    def own_buffer(self, value: Value) -> Optional[Buffer]:
        """The only buffer that a value can be in."""
        found = self._behind.get(self._pointers.get(value, ""), ())
        return found[0] if len(found) == 1 else None

    def may_overwrite(self, before: Buffer, after: Buffer) -> None:
        """The second buffer may stand where the first one stands, if that is in use until the second one begins."""
        self._overwriting.append((before, after))

    def loop_ends(self, begin: int) -> None:
        """What is read in a loop and made before it is in use until the loop ends.  begin: the moment when it began."""
        self.tick()
        for buffer in (*self.buffers, *self.sized):
            if buffer.first < begin <= buffer.last:
                buffer.last = self.clock

    def arranged(self) -> Tuple[int, Sequence[int]]:
        """How many bytes of scratch memory there are, and where each buffer begins."""
        return arranged(self.buffers, self._overwriting)

    def block(self, is_shared: bool) -> Block:
        """One block for all memory of sizes that are known when the function begins.

        is_shared: it waits for the next function when this one is over; else it is a piece of the arena of the caller's.
        """
        if not self.sized:
            return Block((), "", 0)
        sizes, numbers = slots(self.sized, self._overwriting)
        room, begin = self.names.fresh("block"), self.names.fresh("begin")
        ends = [self.names.fresh("end") for _ in sizes]
        kind, take = ("dy_working", "dy_working_take") if is_shared else ("dy_room", "dy_room_of")
        lines = [f"{kind} {room} = {'{0}' if is_shared else '{.heap = heap}'};"]
        for end, before, size in zip(ends, ["0", *ends], sizes):
            lines.append(f"const int64_t {end} = {before} + ({in_c(size)} + {ALIGNMENT - 1}) / {ALIGNMENT} * {ALIGNMENT};")
        lines += [f"char *const {begin} = {take}(&{room}, {ends[-1]});", f"if (!{begin}) goto bail;"]
        lines += [f"{buffer.type} *const {buffer.name} = ({buffer.type} *)({begin} + {['0', *ends][number]});"
                  for buffer, number in zip(self.sized, numbers)]
        return Block(lines, room, in_c(sum([size + ALIGNMENT for size in sizes])))

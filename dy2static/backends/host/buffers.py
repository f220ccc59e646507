"""The arena of a program: which values live in planned buffers, and which buffers share memory."""
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Callable, Collection, Dict, FrozenSet, List, Mapping, Optional, Set, Tuple

import numpy as np

from ...ir.dims import Dim, Size
from ...ir.graph import Node, Value
from ...passes.memory.aliases import aliased_operands
from ..flatten import Block, Step
from ..memory_planner import ALIGNMENT, Storages, aligned
from .buffer_coalescing import Placement
from .library import NUMPY_CALLS, Library


@dataclass(frozen=True)
class Slot:
    """One array of the arena.

    shape, dtype: what the generated function sees.
    storage: the piece of memory it stands at the beginning of; slots with the same storage are never alive together.
    view: None, or (slot, method, arguments) for an array that is a view of another slot, made once with the arena.
    """

    shape: Tuple[Size, ...]
    dtype: np.dtype
    storage: int
    view: Optional[Tuple[int, str, Tuple[Any, ...]]] = None

    @property
    def nbytes(self) -> Size:
        """The bytes of its array."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class BufferPlan:
    """Where values live in the arena.

    slots: in the order of the arena.  sizes: of the storages, in bytes.  devices: where each storage is, "" for the device of the
    program.  places: the slot of each value.
    partners: the second slot of a loop variable that has two; its next value is made there.
    kept: the storages that hold something when the function is over.
    """

    slots: Tuple[Slot, ...]
    sizes: Tuple[Size, ...]
    devices: Tuple[str, ...]
    places: Mapping[Value, int]
    partners: Mapping[Value, int]
    kept: FrozenSet[int] = frozenset()

    def __reduce__(self) -> Tuple[Any, ...]:
        return BufferPlan, (self.slots, self.sizes, self.devices, {}, {}, self.kept)      # what is written has no graph beside it

    @property
    def nbytes(self) -> int:
        """Bytes of one arena, as far as sizes are known."""
        return sum([aligned(size) for size in self.sizes if isinstance(size, int)])

    @property
    def symbols(self) -> Tuple[str, ...]:
        """Those that the sizes are made of."""
        found = [*self.sizes, *[size for slot in self.slots for size in slot.shape]]
        return tuple(sorted({symbol for size in found if isinstance(size, Dim) for symbol in size.symbols}))

    def make_arena(self, library: Library = NUMPY_CALLS, block: Optional[Any] = None) -> Tuple[Any, ...]:
        """Memory for one call, where all sizes are known: an array per slot, all in one aligned block per device.

        block: that of the only device, of `block_bytes`; else there are new ones.
        """
        blocks = {device: library.at(device).empty(self._bytes_on(device) + ALIGNMENT) if block is None else block
                  for device in dict.fromkeys(self.devices)}
        ends = {device: -library.address(found) % ALIGNMENT for device, found in blocks.items()}
        begins = []
        for size, device in zip(self.sizes, self.devices):
            begins.append(ends[device])
            ends[device] += aligned(size)
        arrays: List[Any] = []
        for slot in self.slots:
            if slot.view is None:
                begin, memory = begins[slot.storage], blocks[self.devices[slot.storage]]
                arrays.append(memory[begin:begin + slot.nbytes].view(slot.dtype).reshape(slot.shape))
            else:
                base, method, args = slot.view
                arrays.append(getattr(arrays[base], method)(*args))
        return tuple(arrays)

    def _bytes_on(self, device: str) -> int:
        return sum([aligned(size) for size, its in zip(self.sizes, self.devices) if its == device])

    @property
    def block_bytes(self) -> int:
        """The size of a block for `make_arena`, wherever it begins."""
        return self.nbytes + ALIGNMENT

    def parted(self) -> Tuple["BufferPlan", "BufferPlan"]:
        """The plan of what is kept when the function is over, and that of what it needs only while it runs."""
        return self._part(self.kept), self._part(set(range(len(self.sizes))) - self.kept)

    def _part(self, storages: Collection[int]) -> "BufferPlan":
        number = {storage: k for k, storage in enumerate(sorted(storages))}
        at = {old: new for new, old in enumerate(k for k, slot in enumerate(self.slots) if slot.storage in number)}
        slots = tuple(replace(slot, storage=number[slot.storage],
                              view=None if slot.view is None else (at[slot.view[0]], *slot.view[1:]))
                      for slot in self.slots if slot.storage in number)
        sizes, devices = (tuple(each[storage] for storage in sorted(storages)) for each in (self.sizes, self.devices))
        return BufferPlan(slots, sizes, devices,
                          {value: at[k] for value, k in self.places.items() if k in at}, self.partners, frozenset(number.values()))


def last_uses(block: Block, kept: Collection[Value] = (), placement: Optional[Placement] = None) -> Dict[Value, int]:
    """The position of the last step that reads each value or a view of it; that of the end if it outlives them all.

    A value that nothing reads dies at the step that makes it.  What a loop reads from outside lives to the end of the
    loop, its variables too.  Linear in steps.
    """
    return _Lifetimes(block, kept, placement).last


class _Lifetimes:
    """Walks backwards over the steps."""

    def __init__(self, block: Block, kept: Collection[Value], placement: Optional[Placement]):
        self.buffered = placement.buffered if placement is not None else frozenset()
        self.depth: Dict[Value, int] = {}                      # in how many loops a value is made
        self._measure(block, 0)
        self.last: Dict[Value, int] = {value: block.end for value in (*block.results, *kept)}
        self._block(block, ())

    def _measure(self, block: Block, depth: int) -> None:
        for step in block.steps:
            self.depth.update(dict.fromkeys((*step.node.outputs, *step.variables), depth))
            inside = depth + (step.node.op.name != "if_")
            self.depth.update(dict.fromkeys(step.items, inside))
            for inner in step.blocks:
                self._measure(inner, inside)

    def _read(self, value: Value, position: int, loops: Tuple[Step, ...]) -> None:
        depth = self.depth.get(value, 0)
        until = loops[depth].end if len(loops) > depth else position
        self.last[value] = max(self.last.get(value, 0), until)

    def _extend(self, value: Value, until: int) -> None:
        self.last[value] = max(self.last.get(value, 0), until)

    def _block(self, block: Block, loops: Tuple[Step, ...]) -> None:
        for step in reversed(block.steps):
            for value in step.node.outputs:
                self._extend(value, step.position)
            if step.node.op.name == "if_":
                self._branch(step, loops)
            elif step.blocks:
                self._loop(step, loops)
            else:
                for value in step.node.inputs:
                    self._read(value, step.position, loops)
                until = max((self.last[value] for value in step.node.outputs), default=step.position)
                for value in aliased_operands(step.node):
                    self._extend(value, until)

    def _branch(self, step: Step, loops: Tuple[Step, ...]) -> None:
        for value in step.node.outputs:
            self._extend(value, step.end)
        for block in reversed(step.blocks):
            for result, value in zip(step.node.outputs, block.results):
                self._read(value, block.end, loops)
                self._extend(value, self.last[result])
            self._block(block, loops)
        self._read(step.node.inputs[0], step.position, loops)

    def _loop(self, step: Step, loops: Tuple[Step, ...]) -> None:
        loop = step.loop
        for variable, begin, result in zip(step.variables, loop.state, loop.last):
            self._extend(variable, max(step.end, self.last[result]))
            self._read(begin, step.position, loops)
            if variable not in self.buffered:
                self._extend(begin, self.last[variable])
        for block in reversed(step.blocks):
            for value in block.results:
                self._read(value, block.end, (*loops, step))
            self._block(block, (*loops, step))


def plan(block: Block, placement: Placement, kept: Collection[Value],
         overwritable: Callable[[Node], Tuple[Value, ...]],
         as_view: Callable[[Node], Optional[Tuple[str, Tuple[Any, ...]]]], library: Library = NUMPY_CALLS) -> BufferPlan:
    """Give each value that `placement` puts into a buffer a slot; memory is used again as soon as nothing can read it.

    kept: values that must stay as they are until the end, and never share.
    overwritable: the operands a node may write its result over, if they die there.
    as_view: (method, arguments) for a node whose result can be a view made once, with the arena.
    library: tells on which devices arrays are.

    Linear in steps, times the number of storages that are free at a time.
    """
    planner = _Planner(last_uses(block, kept, placement), placement, block.end, library)
    planner.walk(block, overwritable, as_view)
    return BufferPlan(tuple(planner.slots), tuple(planner.pieces.sizes), tuple(planner.pieces.devices), planner.places,
                      planner.partners, frozenset(planner.kept))


class _Planner:
    """The state of a plan while it walks over the nodes."""

    def __init__(self, last: Mapping[Value, int], placement: Placement, end: int, library: Library):
        self.last, self.placement, self.end, self.library = last, placement, end, library
        self.kept: Set[int] = set()
        self.partners: Dict[Value, int] = {}
        self.slots: Dict[Slot, int] = {}
        self.pieces = Storages()
        self.places: Dict[Value, int] = {}
        self.owner: Dict[int, Value] = {}              # storage -> the value that lives there now
        self.storages: Dict[Value, int] = {}           # the storage of every placed value that is not a view
        self.view_storages: Dict[Value, int] = {}
        self.dying: Dict[int, List[Value]] = {}

    def walk(self, block: Block, overwritable: Callable[[Node], Tuple[Value, ...]],
             as_view: Callable[[Node], Optional[Tuple[str, Tuple[Any, ...]]]]) -> None:
        placement = self.placement
        for step in block.steps:
            view = as_view(step.node)
            if view is not None and placement.is_sized(step.node.outputs[0]) and self._stays(step.node.inputs[0]):
                self.place_view(step.node.outputs[0], step.node.inputs[0], *view)
            for value in step.node.outputs:
                if value in placement.homes:
                    self.place_at_home(value)
                elif value in placement.results or placement.is_placed(value, step.node):
                    self.place(value, step.position, overwritable(step.node))
            for variable, begin in zip(step.variables, step.loop.state if step.variables else ()):
                if variable in placement.turns:
                    self.place_pair(variable)
                elif variable in placement.buffered:
                    self.place(variable, step.position, (begin,))
            self.release(step.position)
            for inner in step.blocks:
                self.walk(inner, overwritable, as_view)
                self.release(inner.end)

    def _stays(self, value: Value) -> bool:
        """Whether a value is always in the same buffer."""
        return value in self.places and self.placement.root(value) not in self.placement.turns

    def place_at_home(self, value: Value) -> None:
        home = self.placement.root(value)
        self.places[value] = self.partners[home] if home in self.partners else self.places[home]
        if home not in self.partners:
            self.storages[value] = self.storages[home]

    def place_pair(self, variable: Value) -> None:
        """Two buffers that take turns, which nothing else ever uses: their names do not stay with their memory."""
        for places in (self.places, self.partners):
            piece = self.pieces.new(Slot(variable.shape, variable.dtype, 0).nbytes, self.library.beside(variable))
            self.kept.add(piece)                           # either may hold the last value
            places[variable] = self.slots.setdefault(Slot(variable.shape, variable.dtype, piece), len(self.slots))

    def place(self, value: Value, index: int, candidates: Tuple[Value, ...]) -> None:
        operand = next((v for v in candidates if self._dies_at(v, index) and v.type == value.type), None)
        nbytes = Slot(value.shape, value.dtype, 0).nbytes
        storage = self.pieces.take(nbytes, self.library.beside(value)) if operand is None else self.storages[operand]
        self._put(value, Slot(value.shape, value.dtype, storage))
        self.owner[storage], self.storages[value] = value, storage
        if self.last[value] >= self.end:
            self.kept.add(storage)
        self.dying.setdefault(self.last[value], []).append(value)

    def place_view(self, value: Value, base: Value, method: str, args: Tuple[Any, ...]) -> None:
        storage = self.view_storages[base] if base in self.view_storages else self.storages[base]
        self.view_storages[value] = storage
        self._put(value, Slot(value.shape, value.dtype, storage, (self.places[base], method, args)))

    def release(self, index: int) -> None:
        for value in self.dying.pop(index, ()):
            storage = self.storages[value]
            if self.owner[storage] is value:
                self.pieces.give(storage)

    def _dies_at(self, value: Value, index: int) -> bool:
        storage = self.storages.get(value)
        return storage is not None and self.last[value] == index and self.owner[storage] is value

    def _put(self, value: Value, slot: Slot) -> None:
        self.places[value] = self.slots.setdefault(slot, len(self.slots))

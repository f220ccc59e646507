"""The arena of a straight-line program: which values live in planned buffers, and which buffers share memory."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Collection, Dict, List, Mapping, Optional, Tuple

import numpy as np

from ..ir.graph import Graph, Node, Value
from ..passes.aliases import aliased_operands

#: Buffers begin at multiples of this many bytes: a cache line, and the widest vector register.
ALIGNMENT = 64


@dataclass(frozen=True)
class Slot:
    """One array of the arena.

    shape, dtype: what the generated function sees.
    storage: the piece of memory it stands at the beginning of; slots with the same storage are never alive together.
    view: None, or (slot, method, arguments) for an array that is a view of another slot, made once with the arena.
    """

    shape: Tuple[int, ...]
    dtype: np.dtype
    storage: int
    view: Optional[Tuple[int, str, Tuple[Any, ...]]] = None

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


@dataclass(frozen=True)
class BufferPlan:
    """Where values live: ``slots`` in the order of the arena, ``sizes`` of the storages in bytes, slot per value."""

    slots: Tuple[Slot, ...]
    sizes: Tuple[int, ...]
    places: Mapping[Value, int]

    @property
    def nbytes(self) -> int:
        """Bytes of one arena."""
        return sum(map(_aligned, self.sizes))

    def make_arena(self) -> Tuple[np.ndarray, ...]:
        """New memory for one call: an array per slot, all in one aligned block."""
        block = np.empty(self.nbytes + ALIGNMENT, np.uint8)
        start = -block.ctypes.data % ALIGNMENT
        begins = []
        for size in self.sizes:
            begins.append(start)
            start += _aligned(size)
        arrays: List[np.ndarray] = []
        for slot in self.slots:
            if slot.view is None:
                begin = begins[slot.storage]
                arrays.append(block[begin:begin + slot.nbytes].view(slot.dtype).reshape(slot.shape))
            else:
                base, method, args = slot.view
                arrays.append(getattr(arrays[base], method)(*args))
        return tuple(arrays)


def last_uses(graph: Graph, kept: Collection[Value]) -> Dict[Value, int]:
    """The index of the last node that reads each value or a view of it; ``len(graph.nodes)`` if it outlives them all.

    A value that nothing reads dies at the node that makes it.  Linear in nodes + edges.
    """
    end = len(graph.nodes)
    last = {value: end for value in (*graph.outputs, *kept)}
    for index in range(end - 1, -1, -1):
        node = graph.nodes[index]
        for value in node.outputs:
            last.setdefault(value, index)
        for value in node.inputs:
            last.setdefault(value, index)
        until = max((last[value] for value in node.outputs), default=index)
        for value in aliased_operands(node):
            last[value] = max(last[value], until)
    return last


def plan(graph: Graph, placed: Collection[Value], kept: Collection[Value],
         overwritable: Callable[[Node], Tuple[Value, ...]],
         as_view: Callable[[Node], Optional[Tuple[str, Tuple[Any, ...]]]]) -> BufferPlan:
    """Give each value of ``placed`` a slot; memory is used again as soon as nothing can read it any more.

    kept: values that must stay as they are until the end, and never share.
    overwritable: the operands a node may write its result over, if they die there.
    as_view: (method, arguments) for a node whose result can be a view made once, with the arena.

    Linear in nodes, times the number of storages that are free at a time.
    """
    planner = _Planner(last_uses(graph, kept))
    for index, node in enumerate(graph.nodes):
        view = as_view(node)
        if view is not None and node.inputs[0] in planner.places:
            planner.place_view(node.outputs[0], node.inputs[0], *view)
        for value in node.outputs:
            if value in placed:
                planner.place(value, index, overwritable(node))
        planner.release(index)
    return BufferPlan(tuple(planner.slots), tuple(planner.sizes), planner.places)


class _Planner:
    """The state of a plan while it walks over the nodes."""

    def __init__(self, last: Mapping[Value, int]):
        self.last = last
        self.slots: Dict[Slot, int] = {}
        self.sizes: List[int] = []
        self.places: Dict[Value, int] = {}
        self.owner: Dict[int, Value] = {}              # storage -> the value that lives there now
        self.storages: Dict[Value, int] = {}           # the storage of every placed value that is not a view
        self.view_storages: Dict[Value, int] = {}
        self.free: List[int] = []
        self.dying: Dict[int, List[Value]] = {}

    def place(self, value: Value, index: int, candidates: Tuple[Value, ...]) -> None:
        operand = next((v for v in candidates if self._dies_at(v, index) and v.type == value.type), None)
        nbytes = Slot(value.shape, value.dtype, 0).nbytes
        storage = self._take(nbytes) if operand is None else self.storages[operand]
        self._put(value, Slot(value.shape, value.dtype, storage))
        self.owner[storage], self.storages[value] = value, storage
        self.dying.setdefault(self.last[value], []).append(value)

    def place_view(self, value: Value, base: Value, method: str, args: Tuple[Any, ...]) -> None:
        storage = self.view_storages[base] if base in self.view_storages else self.storages[base]
        self.view_storages[value] = storage
        self._put(value, Slot(value.shape, value.dtype, storage, (self.places[base], method, args)))

    def release(self, index: int) -> None:
        for value in self.dying.pop(index, ()):
            storage = self.storages[value]
            if self.owner[storage] is value:
                self.free.append(storage)

    def _dies_at(self, value: Value, index: int) -> bool:
        storage = self.storages.get(value)
        return storage is not None and self.last[value] == index and self.owner[storage] is value

    def _put(self, value: Value, slot: Slot) -> None:
        self.places[value] = self.slots.setdefault(slot, len(self.slots))

    def _take(self, nbytes: int) -> int:
        """A storage of at least this size: the smallest free one that fits, or the largest one, grown, or a new one."""
        fitting = [s for s in self.free if self.sizes[s] >= nbytes]
        if fitting:
            storage = min(fitting, key=self.sizes.__getitem__)
        elif self.free:
            storage = max(self.free, key=self.sizes.__getitem__)
            self.sizes[storage] = nbytes
        else:
            self.sizes.append(nbytes)
            return len(self.sizes) - 1
        self.free.remove(storage)
        return storage


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT

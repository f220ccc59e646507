"""Memory by lifetimes: which buffers share memory, for scratch memory of C functions and for arenas of NumPy calls.

`arranged` knows all lifetimes and finds offsets in one block.  `Storages` hands out pieces while a program is walked
through, because there a value may take over the piece of one that dies, and pieces are told apart afterwards by what lives on.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Sequence, Tuple

import numpy as np

from ..ir.dims import Size
from ..ir.size_bounds import not_below

#: Buffers begin at multiples of this many bytes: a cache line, and the widest vector register.
ALIGNMENT = 64


def aligned(nbytes: int) -> int:
    """A number of bytes, rounded up to a multiple of the alignment of buffers."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


@dataclass(eq=False)
class Buffer:
    """A piece of memory of a C type, and the moments from the first to the last at which it is in use."""

    name: str
    type: str
    nbytes: Size
    first: int
    last: int


def arranged(buffers: Sequence[Buffer], overwriting: Sequence[Tuple[Buffer, Buffer]] = ()) -> Tuple[int, List[int]]:
    """How many bytes, and where each buffer begins: those that are in use at one time do not overlap.

    overwriting: pairs of buffers of one size.  The second may use the memory of the first, because it is written element by
    element while the first is read for the last time.

    Quadratic in buffers.
    """
    heads, last = _chains(buffers, overwriting)
    chains = [buffer for buffer in buffers if heads[id(buffer)] is buffer]
    #: Of what is placed, in the order of memory: begin, end, first and last moment.
    placed, count, where = np.empty((4, len(chains)), np.int64), 0, {}
    for buffer in sorted(chains, key=lambda b: -b.nbytes):
        size = aligned(buffer.nbytes)
        begins, ends, firsts, lasts = placed[:, :count]
        beside = (firsts <= last[id(buffer)]) & (buffer.first <= lasts)
        before = np.concatenate([[0], np.maximum.accumulate(ends[beside])])      # where each gap begins
        fits = before[:-1] + size <= begins[beside]
        at = int(before[fits.argmax()] if fits.any() else before[-1])
        number = int(begins.searchsorted(at, "right"))
        placed[:, number + 1:count + 1] = placed[:, number:count]
        placed[:, number] = at, at + size, buffer.first, last[id(buffer)]
        where[id(buffer)], count = at, count + 1
    total = int(placed[1].max(initial=0))
    return total, [where[id(heads[id(buffer)])] for buffer in buffers]


def slots(buffers: Sequence[Buffer], overwriting: Sequence[Tuple[Buffer, Buffer]] = ()) -> Tuple[List[Size], List[int]]:
    """The sizes of pieces of memory, and the number of the piece of each buffer, for sizes that only the run knows.

    Buffers share a piece that are not in use at one time and of which one is known not to be smaller.
    overwriting: as of `arranged`.
    """
    heads, last = _chains(buffers, overwriting)
    sizes: List[Size] = []
    until: List[int] = []                               # when a piece is no longer in use
    where: Dict[int, int] = {}
    for buffer in sorted([b for b in buffers if heads[id(b)] is b], key=lambda b: b.first):
        free = [k for k, moment in enumerate(until) if moment < buffer.first and (
            not_below(sizes[k], buffer.nbytes) or not_below(buffer.nbytes, sizes[k]))]
        number = next((k for k in free if sizes[k] == buffer.nbytes), free[0] if free else len(sizes))
        if number == len(sizes):
            sizes.append(buffer.nbytes)
            until.append(0)
        sizes[number] = buffer.nbytes if not_below(buffer.nbytes, sizes[number]) else sizes[number]
        until[number] = last[id(buffer)]
        where[id(buffer)] = number
    return sizes, [where[id(heads[id(buffer)])] for buffer in buffers]


def _chains(buffers: Sequence[Buffer], overwriting: Sequence[Tuple[Buffer, Buffer]]) -> Tuple[Dict[int, Buffer], Dict[int, int]]:
    """For each buffer the first of those that stand in one place, one after the other, and when the last of these is in use."""
    heads, last = _heads(buffers, overwriting), {}          # type: Dict[int, Buffer], Dict[int, int]
    for buffer in buffers:
        head = heads[id(buffer)]
        last[id(head)] = max(last.get(id(head), head.last), buffer.last)
    return heads, last


def _heads(buffers: Sequence[Buffer], overwriting: Sequence[Tuple[Buffer, Buffer]]) -> Dict[int, Buffer]:
    """For each buffer the first of those that stand in one place, one after the other."""
    before: Dict[int, Buffer] = {}
    followed = set()
    for first, second in overwriting:
        if first.last == second.first and id(first) not in followed and id(second) not in before:
            before[id(second)] = first
            followed.add(id(first))
    heads: Dict[int, Buffer] = {}
    for buffer in buffers:
        head, passed = buffer, [id(buffer)]
        while id(head) in before and id(head) not in heads:
            head = before[id(head)]
            passed.append(id(head))
        heads.update(dict.fromkeys(passed, heads.get(id(head), head)))
    return heads


class Storages:
    """Pieces of memory that are used again as soon as they are given back.

    sizes: the bytes of each.  devices: where each is.
    """

    def __init__(self) -> None:
        self.sizes: List[Size] = []
        self.devices: List[str] = []
        self._free: Dict[str, Dict[Size, List[int]]] = {}      # by device and size: a long program has many pieces of few sizes

    def new(self, nbytes: Size, device: str = "") -> int:
        """A piece on a device that nothing has used, by its number."""
        self.sizes.append(nbytes)
        self.devices.append(device)
        return len(self.sizes) - 1

    def take(self, nbytes: Size, device: str = "") -> int:
        """A piece of at least this size: the smallest free one that fits, or the largest one, grown, or a new one.

        Where only the run knows which of two is larger, neither takes the place of the other.
        """
        free = self._free.get(device, {})
        fitting = [size for size in free if not_below(size, nbytes)]
        less = [] if fitting else [size for size in free if not_below(nbytes, size)]
        if not fitting and not less:
            return self.new(nbytes, device)
        best = (fitting or less)[0]
        for other in (fitting or less)[1:]:
            if not_below(best, other) if fitting else not_below(other, best):
                best = other
        piece = free[best].pop(0)
        if not free[best]:
            del free[best]
        if less:
            self.sizes[piece] = nbytes
        return piece

    def give(self, piece: int) -> None:
        """A piece is free again."""
        self._free.setdefault(self.devices[piece], {}).setdefault(self.sizes[piece], []).append(piece)

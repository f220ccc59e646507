"""Scratch memory of a C function: who lives where, and how places of one shape are run through."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Sequence, Tuple

from .places import Place

#: Buffers begin at multiples of this many bytes: a cache line, and the widest vector register.
ALIGNMENT = 64


@dataclass(eq=False)
class Buffer:
    """A piece of scratch memory, and from when to when it is in use."""

    name: str
    type: str
    nbytes: int
    first: int
    last: int


def merged_axes(shape: Sequence[int], found: Sequence[Place]) -> List[List[int]]:
    """The axes of a shape, with those together over which all places go in one stride; none of size one."""
    merged: List[List[int]] = []
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        if merged and all(p.strides[merged[-1][-1]] == p.strides[axis] * n for p in found):
            merged[-1].append(axis)
        else:
            merged.append([axis])
    return merged


def arranged(buffers: Sequence[Buffer], overwriting: Sequence[Tuple[Buffer, Buffer]] = ()) -> Tuple[int, List[int]]:
    """How many bytes, and where each buffer begins: those that are in use at one time do not overlap.

    overwriting: pairs of buffers of one size, of which the second may stand where the first stands: it is written element
    by element when the first is read for the last time.
    """
    following: Dict[int, Buffer] = {}
    heads = {id(buffer): buffer for buffer in buffers}
    for before, after in overwriting:
        if before.last == after.first and id(before) not in following and heads[id(after)] is after:
            following[id(before)] = after
            heads[id(after)] = before
    chains = {}
    for buffer in buffers:
        if heads[id(buffer)] is buffer:
            last = buffer
            while id(last) in following:
                last = following[id(last)]
                heads[id(last)] = buffer
            chains[id(buffer)] = Buffer(buffer.name, buffer.type, buffer.nbytes, buffer.first, last.last)
    total, where = _arranged(list(chains.values()))
    return total, [where[id(chains[id(heads[id(buffer)])])] for buffer in buffers]


def _arranged(buffers: Sequence[Buffer]) -> Tuple[int, Dict[int, int]]:
    placed: List[Tuple[int, Buffer]] = []
    total = 0
    for buffer in sorted(buffers, key=lambda b: -b.nbytes):
        size = -(-buffer.nbytes // ALIGNMENT) * ALIGNMENT
        at = 0
        for begin, other in sorted(placed, key=lambda item: item[0]):
            if other.first <= buffer.last and buffer.first <= other.last:
                if at + size <= begin:
                    break
                at = max(at, begin + -(-other.nbytes // ALIGNMENT) * ALIGNMENT)
        placed.append((at, buffer))
        total = max(total, at + size)
    return total, {id(buffer): at for at, buffer in placed}

"""Working memory: what all programs share, because a function needs it only while it runs, and arenas of free sizes.

Blocks wait here for the next function that runs.  One that is too small for a function gives way to a larger one, so
there are as many as functions run at one time (threads, and functions that call others), of the largest size asked for.
One that is much too large for many functions on end gives way to a smaller one.
"""
from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

_serial = itertools.count()

#: The blocks that wait; at most so many.
_free: List["Block"] = []
_MOST_WAITING = 4

#: How many functions there are that take blocks.
_users: List[int] = [0]

#: Memory of which so many requests on end have needed less than half, or nothing, is given up.
MOST_LITTLE = 64

_ALIGNMENT = 64
_NOTHING = np.empty(0, np.uint8)


class _Piece:
    """A piece of memory that becomes larger and smaller with what is asked for."""

    __slots__ = ("memory", "little")

    def __init__(self) -> None:
        self.memory, self.little = _NOTHING, 0

    def hold(self, nbytes: int) -> None:
        """Let there be so many bytes."""
        self.little = self.little + 1 if 2 * nbytes < self.memory.nbytes else 0
        if self.memory.nbytes < nbytes or self.little >= MOST_LITTLE:
            self.forget()                               # the old memory goes first
            self.memory, self.little = _NOTHING, 0
            self.memory = np.empty(nbytes, np.uint8)

    def forget(self) -> None:
        """Let go of all arrays in it."""


def _from_line(memory: np.ndarray) -> np.ndarray:
    """The memory from a cache line on."""
    return memory[-memory.ctypes.data % _ALIGNMENT:]


class SizedArena(_Piece):
    """The arena of one call of a function that makes its arrays itself, because their sizes are known only then.

    sizes: those for which ``arrays`` are; None where they have to be made in any case.
    """

    __slots__ = ("sizes", "arrays")

    def __init__(self) -> None:
        super().__init__()
        self.sizes: Optional[Tuple[int, ...]] = None
        self.arrays: Tuple[Any, ...] = ()

    @property
    def nbytes(self) -> int:
        """How many bytes it has."""
        return self.memory.nbytes

    def room(self, nbytes: int) -> np.ndarray:
        """At least so many bytes for new arrays, from a cache line on."""
        self.forget()
        self.hold(nbytes + _ALIGNMENT)
        return _from_line(self.memory)

    def forget(self) -> None:
        self.sizes, self.arrays = None, ()

    def keep(self, sizes: Tuple[int, ...], arrays: Tuple[Any, ...]) -> None:
        """Use these arrays again for these sizes; not while the memory is too large, so that this is counted."""
        self.arrays = arrays
        self.sizes = None if self.little else sizes


class Block(_Piece):
    """Memory that functions share, and the arrays that they have made in it."""

    __slots__ = ("made",)

    def __init__(self) -> None:
        super().__init__()
        self.made: Dict[int, Any] = {}

    def forget(self) -> None:
        self.made.clear()


class _Part:
    """The arrays of one function in a block, as `SizedArena`.  nbytes: what it has asked for."""

    __slots__ = ("block", "number", "sizes", "arrays", "nbytes")

    def __init__(self, block: Block, number: int):
        self.block, self.number, self.nbytes = block, number, 0
        self.sizes: Optional[Tuple[int, ...]] = None
        self.arrays: Tuple[Any, ...] = ()

    def room(self, nbytes: int) -> np.ndarray:
        """As `SizedArena.room`."""
        self.sizes, self.arrays, self.nbytes = None, (), nbytes + _ALIGNMENT
        self.block.hold(self.nbytes)
        self.block.made[self.number] = self             # it may have been forgotten
        return _from_line(self.block.memory)

    def keep(self, sizes: Tuple[int, ...], arrays: Tuple[Any, ...]) -> None:
        """Use these arrays again for these sizes."""
        self.arrays, self.sizes = arrays, sizes


class _User:
    """A function that takes blocks; the last one takes them with it."""

    def __init__(self) -> None:
        self.number = next(_serial)
        _users[0] += 1

    def __del__(self) -> None:
        _users[0] -= 1
        if not _users[0]:
            _free.clear()
        for block in tuple(_free):
            block.made.pop(self.number, None)


class Workspace(_User):
    """The working memory of one function.

    make: its arrays in a block of ``nbytes`` bytes.
    """

    def __init__(self, make: Callable[[np.ndarray], Tuple[Any, ...]], nbytes: int):
        super().__init__()
        self.make, self.nbytes = make, nbytes

    def take(self) -> Tuple[Block, Tuple[Any, ...]]:
        """A block that no call uses, and the arrays in it."""
        block = _waiting()
        block.hold(self.nbytes)
        arrays = block.made.get(self.number)
        if arrays is None:
            arrays = block.made[self.number] = self.make(block.memory)
        return block, arrays


class SizedWorkspace(_User):
    """The working memory of a function that makes its arrays itself, because their sizes are known only then."""

    def take(self) -> Tuple[Block, _Part]:
        """A block that no call uses, and what the function has made in it."""
        block = _waiting()
        part = block.made.get(self.number)
        if part is not None:
            if 2 * part.nbytes >= block.memory.nbytes:
                block.little = 0
                return block, part
            block.hold(part.nbytes)
            part = block.made.get(self.number)
        if part is None:
            part = block.made[self.number] = _Part(block, self.number)
        return block, part


def _waiting() -> Block:
    try:
        return _free.pop()
    except IndexError:
        return Block()


def give(block: Block) -> None:
    """Return a block.  One that is not returned because a function fails is garbage-collected."""
    if _users[0]:
        _free.append(block)
        del _free[_MOST_WAITING:]                       # other threads give blocks back at the same time

"""Working memory that all programs share: what a function needs only while it runs.

Blocks wait here for the next function that runs.  One that is too small for a function gives way to a larger one, so
there are as many as functions run at one time (threads, and functions that call others), of the largest size asked for.
"""
from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, List, Tuple

import numpy as np

_serial = itertools.count()

#: The blocks that wait; at most so many.
_free: List["Block"] = []
_MOST_WAITING = 4

#: How many functions there are that take blocks.
_users: List[int] = [0]


class Block:
    """A piece of memory, and the arrays that functions have made in it."""

    __slots__ = ("memory", "made")

    def __init__(self, nbytes: int):
        self.memory = np.empty(nbytes, np.uint8)
        self.made: Dict[int, Tuple[Any, ...]] = {}


class Workspace:
    """The working memory of one function.

    make: its arrays in a block of ``nbytes`` bytes.
    """

    def __init__(self, make: Callable[[np.ndarray], Tuple[Any, ...]], nbytes: int):
        self.make, self.nbytes, self.number = make, nbytes, next(_serial)
        _users[0] += 1

    def __del__(self) -> None:
        _users[0] -= 1
        if not _users[0]:
            _free.clear()
        for block in tuple(_free):
            block.made.pop(self.number, None)

    def take(self) -> Tuple[Block, Tuple[Any, ...]]:
        """A block that no call uses, and the arrays in it."""
        try:
            block = _free.pop()
        except IndexError:
            block = Block(self.nbytes)
        if block.memory.nbytes < self.nbytes:
            block = Block(self.nbytes)
        arrays = block.made.get(self.number)
        if arrays is None:
            arrays = block.made[self.number] = self.make(block.memory)
        return block, arrays


def give(block: Block) -> None:
    """Return a block.  One that is not returned because a function fails is garbage-collected."""
    if _users[0]:
        _free.append(block)
        del _free[_MOST_WAITING:]                       # other threads give blocks back at the same time

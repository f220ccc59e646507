"""``chainer.config`` while a capture runs: Chainer's own entries are guarded as a whole, a user's where they are read."""
from __future__ import annotations

from typing import Any

import chainer

from ..capture_context import Heap
from ..record.guards import KeyAbsent
from ..record.paths import Constant, InstanceDict, Item


class ConfigEntries:
    """The user's entries of ``chainer.config``, for one capture."""

    def __init__(self, heap: Heap):
        self.heap = heap
        self.spaces = [(owner, dict(owner.__dict__)) for owner in (chainer.config._local, chainer.global_config)]

    def assigned(self, owner: Any, name: str) -> None:
        """An entry is about to be set: if it keeps its value, that must be the value at each call."""
        start = next(start for known, start in self.spaces if known is owner)
        if name in start:
            space = self.heap.source(InstanceDict, self.heap.source(Constant, None, owner))
            self.heap.fix(start[name], self.heap.source(Item, space, name))

    def read(self, name: str, everywhere: bool = True) -> Any:
        """The entry as user code sees it.  everywhere: of this thread or of all; else that of all.

        Raises AttributeError if there is none.
        """
        for owner, start in self.spaces[not everywhere:]:
            space = self.heap.source(InstanceDict, self.heap.source(Constant, None, owner))
            now = owner.__dict__
            if name in now and (name not in start or start[name] is not now[name]):
                return now[name]                        # set by the function itself
            if name in now:
                self.heap.check_fresh(now[name])
                return self.heap.shadow(now[name], self.heap.source(Item, space, name))
            if name not in start:
                self.heap.guard(KeyAbsent(space, name))
        raise AttributeError(f"'GlobalConfig' object has no attribute {name!r}")

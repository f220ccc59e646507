"""``chainer.config`` while a capture runs: Chainer's own entries are guarded as a whole, a user's where they are read."""
from __future__ import annotations

from typing import Any, Dict, Mapping

import chainer
from chainer.configuration import GlobalConfig

#: Chainer's own entries, as its class declares them.
SETTINGS = frozenset(name for name in vars(GlobalConfig) if not name.startswith("__") and name != "show")


def settings_of(space: Mapping[str, Any]) -> Dict[str, Any]:
    """Chainer's own entries among those of one of the two configurations."""
    return {name: value for name, value in space.items() if name in SETTINGS}


def settings_differ(found: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """Whether Chainer's own entries are others than expected."""
    return settings_of(found) != expected


class ConfigEntries:
    """The user's entries of ``chainer.config``, for one capture."""

    def __init__(self, world: Any):
        self.world = world
        self.spaces = [(owner, dict(owner.__dict__)) for owner in (chainer.config._local, chainer.global_config)]

    def assigned(self, owner: Any, name: str) -> None:
        """An entry is about to be set: if it keeps its value, that must be the value at each call."""
        start = next(start for known, start in self.spaces if known is owner)
        if name in start:
            space = self.world.source("dict", self.world.source("const", None, owner))
            self.world.fix(start[name], self.world.source("item", space, name))

    def read(self, name: str, everywhere: bool = True) -> Any:
        """The entry as user code sees it.  everywhere: of this thread or of all; else that of all.

        Raises AttributeError if there is none.
        """
        for owner, start in self.spaces[not everywhere:]:
            space = self.world.source("dict", self.world.source("const", None, owner))
            now = owner.__dict__
            if name in now and (name not in start or start[name] is not now[name]):
                return now[name]                        # set by the function itself
            if name in now:
                self.world.check_fresh(now[name])
                return self.world.shadow(now[name], self.world.source("item", space, name))
            if name not in start:
                self.world.guard(space, "absent", name)
        raise AttributeError(f"'GlobalConfig' object has no attribute {name!r}")

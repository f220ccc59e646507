"""Chainer's own entries of ``chainer.config``, which programs compare as a whole."""
from __future__ import annotations

from typing import Any, Dict, Mapping

from chainer.configuration import GlobalConfig

#: Chainer's own entries, as its class declares them.
SETTINGS = frozenset(name for name in vars(GlobalConfig) if not name.startswith("__") and name != "show")


def settings_of(space: Mapping[str, Any]) -> Dict[str, Any]:
    """Chainer's own entries among those of one of the two configurations."""
    return {name: value for name, value in space.items() if name in SETTINGS}


def settings_differ(found: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """Whether Chainer's own entries are others than expected."""
    return settings_of(found) != expected

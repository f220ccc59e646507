"""All functions that are compiled, together: turned off or on, counted, and made to forget."""
from __future__ import annotations

from typing import Dict

from .. import config
from .dispatcher import Dispatcher


def enable(enabled: bool) -> None:
    """Turn compilation off or on, also for what is compiled already."""
    config.ENABLED.value = int(enabled)
    for dispatcher in Dispatcher.all.all():
        dispatcher.enable(enabled)


def totals() -> Dict[str, int]:
    """The counts of `Dispatcher.stats` over all functions that are compiled; their parts are counted with them."""
    found: Dict[str, int] = {}
    for dispatcher in Dispatcher.all.all():
        if dispatcher.in_parts.is_outermost:
            for name, count in dispatcher.stats().items():
                found[name] = found.get(name, 0) + count
    return found


def clear_all() -> None:
    """Let all functions forget what they learned."""
    for dispatcher in Dispatcher.all.all():
        dispatcher.clear()

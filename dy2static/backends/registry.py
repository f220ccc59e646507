"""The backends there are, by name."""
from __future__ import annotations

from typing import Dict

from .. import config
from .base import Backend
from .c.backend import C
from .host.backend import NUMPY

#: One row per backend.
BACKENDS: Dict[str, Backend] = {}


def register(backend: Backend) -> None:
    """Add a backend, which ``to_static(backend=its name)`` then takes."""
    BACKENDS[backend.name] = backend
    if backend.name not in config.BACKENDS:
        config.BACKENDS.append(backend.name)


register(NUMPY)
register(C)

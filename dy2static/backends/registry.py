"""The backends there are, by name, and those of GPUs by the library of their arrays."""
from __future__ import annotations

from typing import Dict, Tuple

from .. import config
from ..ir.devices import HOST, is_gpu, kind_of
from ..runtime.devices import COMPILED
from .base import Backend
from .c.backend import C
from .cuda.backend import CUDA
from .cupy.backend import CUPY
from .host.backend import NUMPY

#: One row per backend.
BACKENDS: Dict[str, Backend] = {}

#: What runs programs on arrays of a library other than NumPy, by the name of the library, and whether it makes machine code.
OF_LIBRARY: Dict[Tuple[str, bool], Backend] = {}


def register(backend: Backend) -> None:
    """Add a backend, which ``to_static(backend=its name)`` then takes.

    One whose arrays are not NumPy's is for all programs on such arrays.  Where there are two of a library, the one that makes
    machine code stands for ``backend="c"``, and the other one for ``backend="numpy"``.
    """
    if backend.arrays.device != HOST:
        OF_LIBRARY[backend.arrays.device, backend.is_compiled] = backend
        COMPILED.add(backend.arrays.device)
        return
    BACKENDS[backend.name] = backend
    if backend.name not in config.BACKENDS:
        config.BACKENDS.append(backend.name)


def forget(backend: Backend) -> None:
    """Take back `register` of a backend whose arrays are NumPy's."""
    del BACKENDS[backend.name]
    config.BACKENDS.remove(backend.name)


def backend_for(device: str, chosen: Backend) -> Backend:
    """Return the backend for a device.  chosen: the backend that the user chose for the CPU."""
    if not is_gpu(device):
        return chosen
    found = [OF_LIBRARY.get((kind_of(device), is_compiled)) for is_compiled in (chosen.is_compiled, not chosen.is_compiled)]
    return next(filter(None, found))


register(NUMPY)
register(C)
register(CUPY)
register(CUDA)

"""The threads of native code: one team for the process, made by a small library of ours.

Not OpenMP's: after `fork` that waits for threads which the child does not have, each thread that calls it gets a team of its
own, and its teams wait for every member, which on a machine with other work to do may be away for milliseconds.
"""
from __future__ import annotations

import ctypes
import functools
from typing import Optional

from .. import config
from . import compiler, cpus, library

HEADER = "dy2static_shares.h"
_TEXT = '#include "dy2static_team.h"\n'
_FLAGS = ("-O2", "-pthread")
_SETTER = "dy2static_set_team"


def wanted() -> int:
    """How many threads native code may use: ``DY2STATIC_THREADS``, or ``OMP_NUM_THREADS``, or one for each core.

    Unless the first one says so, not more than there are cores for this process: they would wait for each other.
    """
    cores = cpus.cores()
    return int(config.THREADS.value) or min(config.openmp_threads() or cores, cores)


def start(anyhow: bool = False) -> Optional[compiler.Build]:
    """The library, which may be on its way; None where there is one thread, unless ``anyhow``.  Raises `failures.NoCompiler`."""
    return compiler.start(_TEXT, _FLAGS) if anyhow or wanted() > 1 else None


@functools.lru_cache(maxsize=None)
def team() -> library.Library:
    """The library.  Raises `failures.NoCompiler` and `failures.BuildFailed`."""
    built = compiler.build(_TEXT, _FLAGS)
    built.handle.set_threads(wanted())
    return built


def address() -> int:
    """Where what shares work is; 0 where there is one thread."""
    return team().address("team") if wanted() > 1 else 0


def set_threads(count: int) -> None:
    """Use so many threads from now on."""
    config.THREADS.value = count
    team().handle.set_threads(count)
    for built in compiler.built():
        setter = built.find(_SETTER)
        if setter is not None:
            setter(ctypes.c_void_p(address()))


library.ADDRESSES[_SETTER] = address
library.CALLED[f'#include "{HEADER}"'] = start

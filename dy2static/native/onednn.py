"""Finds oneDNN's library and loads it; keeps it from hanging children made by fork."""
from __future__ import annotations

import ctypes
import functools
import glob
import os
import site
import sys
from typing import Iterator, Optional

from .. import config
from .announce import announce

OLDEST = 3          # the version since which operations are described by one call


@functools.lru_cache(maxsize=None)
def load(wanted: Optional[str] = None) -> Optional[ctypes.CDLL]:
    """oneDNN, or None where there is none or it was asked to stay away (``DY2STATIC_ONEDNN``)."""
    if wanted is None:
        return load(str(config.ONEDNN.value))
    if wanted == "none":
        return None
    for path in [wanted] if wanted else _candidates():
        try:
            library = ctypes.CDLL(path)
            version = _version(library)
        except (OSError, AttributeError):
            continue
        if version >= OLDEST:
            _one_thread_after_fork()
            return library
    if wanted:
        announce("onednn", f"oneDNN is not used: {wanted} is not a library of oneDNN {OLDEST} or newer")
    return None


def _version(library: ctypes.CDLL) -> int:
    library.dnnl_version.restype = ctypes.POINTER(ctypes.c_int)
    return int(library.dnnl_version()[0])


def _candidates() -> Iterator[str]:
    """Where wheels put it, then wherever the loader looks."""
    suffix = "dylib" if sys.platform == "darwin" else "so"
    for prefix in (sys.prefix, site.getuserbase(), sys.base_prefix):
        # what ends in a number is what runs; the name without one may be left from a development package
        yield from sorted(glob.glob(os.path.join(prefix, "lib", f"libdnnl*.{suffix}*")), reverse=True)
    yield f"libdnnl.{suffix}.{OLDEST}" if suffix == "so" else f"libdnnl.{OLDEST}.dylib"


@functools.lru_cache(maxsize=None)
def _one_thread_after_fork() -> None:
    """A child has none of its parent's threads, but its OpenMP waits for them: it gets one thread."""
    try:
        set_threads = ctypes.CDLL("libgomp.so.1").omp_set_num_threads
    except (OSError, AttributeError):
        return          # oneDNN of another threading library
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: set_threads(1))

"""The libraries of kernels that generated code calls: compiled once per machine, when a text first needs them, or before."""
from __future__ import annotations

import functools
from typing import Callable, Tuple

from . import compiler, library

_FLAGS = ("-ffp-contract=fast", "-O2")


def serve(setter: str, mark: str, text: Callable[[], str]) -> Callable[[], int]:
    """Let texts with the line ``mark`` have the ``table`` of functions of the library that ``text()`` compiles to.

    setter: the C function of these texts that takes the table.  Returns what gives the address of the table, and raises
    `compiler.NoCompiler` and `compiler.BuildFailed`.
    """
    def start() -> compiler.Build:
        return compiler.start(text(), _FLAGS)

    @functools.lru_cache(maxsize=None)
    def address() -> int:
        return start().library().address("table")

    library.ADDRESSES[setter] = address
    library.CALLED[mark] = start
    return address


def build_all(*others: Callable[[], compiler.Build]) -> Tuple[int, int]:
    """Compile all kernels, and these libraries, that are not in the store yet; several at a time.

    Returns how many were compiled, and how many there are.  Raises `compiler.NoCompiler` and `compiler.BuildFailed`.
    """
    builds = [build for build in (start() for start in (*others, *library.CALLED.values())) if build is not None]
    compiled = sum([not build.ready() for build in builds])
    for build in builds:
        build.library()
    return compiled, len(builds)

"""The libraries of kernels that generated code calls: compiled once per machine, when a text first needs them, or before."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, List, Optional, Sequence, Tuple

from . import compiler, library

#: Flags of all kernels.  -O3 takes four times as long to compile and is not faster here.
FLAGS = ("-ffp-contract=fast", "-O2")

#: The first lines of all kernels: without these passes GCC takes 0.8 to 0.9 of the time, and the kernels are as fast.
PASSES = """
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-pre", "no-code-hoisting", "no-gcse", "no-tree-vrp")
#endif
"""


class Kernels:
    """The library that a text compiles to, which is called by its ``table`` of functions."""

    def __init__(self, text: Callable[[], str]):
        self._text = text
        self._library: Optional[library.Library] = None

    def start(self) -> compiler.Build:
        """The library, which may be on its way.  Raises `failures.NoCompiler`."""
        return compiler.start(self._text(), FLAGS)

    def loaded(self) -> library.Library:
        """The library.  Raises `failures.NoCompiler` and `failures.BuildFailed`."""
        if self._library is None:
            self._library = self.start().library()
        return self._library

    def address(self) -> int:
        """Where the table is.  Raises as `loaded`."""
        return self.loaded().address("table")


def serve(setter: str, mark: str, text: Callable[[], str]) -> Kernels:
    """Let texts with the line ``mark`` have the ``table`` of functions of the library that ``text()`` compiles to.

    setter: the C function of these texts that takes the table.
    """
    kernels = Kernels(text)
    library.ADDRESSES[setter] = kernels.address
    library.CALLED[mark] = kernels.start
    return kernels


def words(members: Sequence[Any]) -> Any:
    """Members of a structure in C, each of 64 bits, numbers and tuples of them: as an array that a function can be given."""
    flat = [part for member in members for part in (member if isinstance(member, tuple) else (member,))]
    return (ctypes.c_int64 * len(flat))(*flat)


def algorithms_of(kernels: Kernels, most: int, *arguments: Any) -> List[int]:
    """The numbers that the function ``algorithms`` of a library gives, at most so many."""
    found = (ctypes.c_int64 * most)()
    function = kernels.loaded().find("algorithms")
    function.restype = ctypes.c_int64
    return list(found[:function(*arguments, found)])


def build_all(*others: Callable[[], compiler.Build]) -> Tuple[int, int]:
    """Compile all kernels, and these libraries, that are not in the store yet; several at a time.

    Returns how many were compiled, and how many there are.  Raises `failures.NoCompiler` and `failures.BuildFailed`.
    """
    builds = [build for build in (start() for start in (*others, *library.CALLED.values())) if build is not None]
    compiled = sum([not build.ready() for build in builds])
    for build in builds:
        build.library()
    return compiled, len(builds)

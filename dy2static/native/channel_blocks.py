"""Convolutions and what goes with them for arrays in blocks of channels, for generated code."""
from __future__ import annotations

import ctypes
import functools
import math
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from . import tuning
from .kernels import algorithms_of, serve, words

HEADER = "dy2static_channel_blocks.h"

#: So many taps are summed at a time; with more, sums that are not complete are written to the result.
PIECE = 1152

#: Names of the algorithms, by their numbers in ``dy2static_channel_blocks.h``.
ALGORITHMS = ("rules", "direct", "Winograd", "groups")

#: Channels of a group for which there are kernels of their own.
_SMALL_GROUPS = (4, 8)

_BEFORE = f"#define DY_T float\n#define DY_PIECE {PIECE}\n"

#: Leaves out what convolutions of plain images do not need.
_ONLY_PLAIN = "#define DY_PLAIN_IMAGES"

#: The libraries, by name: the lines of the header that declare what is in them, and their tables.
_PARTS = {
    "conv": ('#include "dy2static_winograd.h"\n#include "dy2static_blocked_transposed.h"',
             "const dy_blocks_dense table = {any_conv, blocks_expect, blocks_transposed};"),
    "plain": (f'{_ONLY_PLAIN}\n#include "dy2static_winograd_filters.h"',
              "const dy_blocks_plain table = {winograd_windows, winograd_filters};"),
    "depthwise": ('#include "dy2static_blocked_depthwise.h"', "const dy_blocks_each table = {blocks_depthwise, blocks_pair};"),
    "groups_4": ('#define DY_GROUPS_4\n#include "dy2static_blocked_groups.h"', "dy_blocks_function *const table = blocks_groups;"),
    "groups_8": ('#define DY_GROUPS_8\n#include "dy2static_blocked_groups.h"', "dy_blocks_function *const table = blocks_groups;"),
    "layers": ('#include "dy2static_blocked_layers.h"',
               "const dy_blocks_layers table = {blocks_max, blocks_mean, blocks_join, blocks_of, blocks_back};")}


def text(name: str) -> str:
    """The C text of a library."""
    includes, table = _PARTS[name]
    return f"{_BEFORE}{includes}\n{table}\n"


def everything() -> str:
    """The C text of the functions of all libraries, without tables: by it their versions are told apart."""
    lines = {line for includes, _ in _PARTS.values() for line in includes.splitlines()} - {_ONLY_PLAIN}
    return _BEFORE + "".join(f"{line}\n" for line in sorted(lines))            # definitions come before includes


class Windows(NamedTuple):
    """The windows of ``x: (batch, blocks of in_, *image, 16)``, or of a plain ``(batch, in_, *image)``.

    relu, cap: what bounds the result, if anything does.
    """

    batch: int
    in_: int
    out: int
    groups: int
    image: Tuple[int, ...]
    kernel: Tuple[int, ...]
    spots: Tuple[int, ...]
    stride: Tuple[int, ...]
    pad: Tuple[int, ...]
    dilate: Tuple[int, ...]
    plain: bool = False
    relu: bool = False
    cap: Optional[float] = None
    algorithm: int = 0

    def text(self) -> str:
        """The initialiser of a ``dy_blocks`` in C."""
        def axes(sizes: Sequence[int]) -> str:
            return "{" + ", ".join(map(str, sizes)) + "}"

        cap = "__builtin_inff()" if self.cap is None else f"{self.cap!r}f"
        return "{" + ", ".join([*map(str, self[:4]), *map(axes, self[4:10]), str(int(self.plain)), str(int(self.relu)), cap,
                                str(self.algorithm)]) + "}"

    def members(self) -> Sequence[Any]:
        """The members of a ``dy_blocks`` without limits: numbers, and tuples of them."""
        infinity = 0x7F800000           # as a float, with what fills the word behind it
        return (*self[:10], int(self.plain), 0, infinity, self.algorithm)

    def library(self) -> str:
        """The name of the library for a convolution with these windows."""
        size = self.in_ // self.groups
        if self.groups == self.in_ == self.out != 1:
            return "depthwise"
        is_small = self.groups > 1 and self.in_ == self.out and size in _SMALL_GROUPS
        return f"groups_{size}" if is_small and ALGORITHMS[self.algorithm] in ("rules", "groups") else "conv"

    def describe(self) -> str:
        """The windows in words, short."""
        def axes(sizes: Sequence[int]) -> str:
            return "x".join(map(str, sizes))

        groups = f", {self.groups} groups" if self.groups > 1 else ""
        return (f"{self.batch}x{self.in_} -> {self.out}, {axes(self.image)} -> {axes(self.spots)}, {axes(self.kernel)} / "
                f"{axes(self.stride)} + {axes(self.pad)} * {axes(self.dilate)}{groups}")


#: The libraries of these functions, by name.
KERNELS = {name: serve(f"dy2static_set_blocks_{name}", f"#define DY_BLOCKS_{name.upper()}", functools.partial(text, name))
           for name in _PARTS}

_CHOICE = tuning.declare("conv_blocks", "convolutions of images in blocks of channels", everything)


def tuned(windows: Windows) -> Windows:
    """The windows with the algorithm to use for a dense convolution, with ``DY2STATIC_TUNE=1``."""
    if not tuning.is_on():
        return windows
    nbytes = 4 * sum(map(math.prod, _shapes(windows)))
    winner = tuning.choose(_CHOICE, windows.describe(), nbytes, lambda: candidates(windows), lambda names: calls(windows, names))
    return windows._replace(algorithm=0 if winner is None else ALGORITHMS.index(winner))


def candidates(windows: Windows) -> List[str]:
    """The algorithms for these windows, that of the rules first.  Raises `failures.NoCompiler` and `failures.BuildFailed`."""
    library = windows.library()
    small = ["groups"] if library.startswith("groups") and KERNELS[library].loaded().find("takes")(words(windows.members())) else []
    return small + [ALGORITHMS[number] for number in algorithms_of(KERNELS["conv"], len(ALGORITHMS), words(windows.members()))]


def calls(windows: Windows, names: Sequence[str]) -> Mapping[str, Callable[[], int]]:
    """Calls of these algorithms on arrays of numbers, by name."""
    arrays = [tuning.numbers(*shape) for shape in _shapes(windows)]
    return {algorithm: functools.partial(compute, windows._replace(algorithm=ALGORITHMS.index(algorithm)), *arrays)
            for algorithm in names}


def compute(windows: Windows, x: np.ndarray, filters: np.ndarray, y: np.ndarray) -> int:
    """Call a convolution on contiguous arrays; gives 0, or another number if the result is not to be used."""
    (function,) = (ctypes.c_void_p * 1).from_address(KERNELS[windows.library()].address())
    called = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 7)(function or 0)
    return int(called(words(windows.members()), x.ctypes.data, filters.ctypes.data, None, None, None, y.ctypes.data))


def winograd(members: Sequence[Any], transposed: bool, direct: int, pointers: Sequence[int]) -> int:
    """Call Winograd's algorithm for plain images; gives 0, or another number if there is not enough memory.

    members: of a ``dy_windows``; direct: the address of the function that computes the same; pointers: what this takes.
    """
    table = (ctypes.c_void_p * 2).from_address(KERNELS["plain"].address())
    called = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, *[ctypes.c_void_p] * 5)(table[0] or 0)
    return int(called(words(members), transposed, direct, *pointers, None))


def winograd_filters(members: Sequence[Any], direct: int, pointers: Sequence[int]) -> int:
    """Call Winograd's algorithm for the derivative by the filters; operands and result as those of `winograd`."""
    table = (ctypes.c_void_p * 2).from_address(KERNELS["plain"].address())
    called = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 5)(table[1] or 0)
    return int(called(words(members), direct, *pointers))


def _shapes(w: Windows) -> Sequence[Tuple[int, ...]]:
    """Those of x, of the filters, and of y, without what fills blocks of the result of a plain image."""
    def whole(channels: int) -> int:
        return -(-channels // 16) * 16

    return ((w.batch, w.in_ if w.plain else whole(w.in_), *w.image), (w.out, w.in_ // w.groups, *w.kernel),
            (w.batch, whole(w.out), *w.spots))

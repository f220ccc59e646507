"""Convolutions for generated code, forward and both derivatives: planes read by tables of offsets, by kernels of ours
that threads share."""
from __future__ import annotations

import ctypes
import functools
import math
from typing import Any, Callable, List, Mapping, NamedTuple, Sequence, Tuple

import numpy as np

from . import channel_blocks, tuning
from .kernels import PASSES, algorithms_of, serve, words

HEADER = "dy2static_windows.h"
POOLS = "dy2static_pools.h"
AXES = 3                            # how many the C functions have
_SLICES = 8                         # of filters over three axes that Winograd's algorithm is for
_TYPES = {"f32": "float", "f64": "double"}
_DTYPES = {"f32": np.float32, "f64": np.float64}

#: What depthwise filters may have: taps of a channel, and along an axis, and remainders by the strides; as in the C header.
_MOST_TAPS, _MOST_ALONG, _MOST_KINDS = 128, 64, 16

_TEXT = """
#define DY_T {type}
#include "dy2static_convolutions.h"
#include "{header}"
void *const table[3] = {{shared_forward, shared_transposed, shared_grad_weight}};
"""


class Windows(NamedTuple):
    """The windows of a convolution of ``x: (batch, groups * in_, *image)`` with ``(groups * out, in_, *kernel)``.

    Its transposed one and its derivatives have the windows of the convolution itself.
    """

    batch: int
    groups: int
    in_: int
    out: int
    image: Tuple[int, ...]
    kernel: Tuple[int, ...]
    spots: Tuple[int, ...]
    stride: Tuple[int, ...]
    pad: Tuple[int, ...]
    dilate: Tuple[int, ...]
    algorithm: int = 0

    def fits(self) -> bool:
        """Whether there are few enough axes."""
        return len(self.image) <= AXES

    def is_depthwise(self) -> bool:
        """Whether rules take the library for filters of one channel each; as ``dy2static_depthwise.h`` says."""
        _, groups, in_, out, image, kernel, spots, stride, pad, *_ = self.members()
        return ALGORITHMS[self.algorithm] in ("rules", "depthwise") and in_ == 1 and groups > 1 \
            and image[0] == kernel[0] == spots[0] == 1 and not pad[0] and max(kernel) <= _MOST_ALONG \
            and out * math.prod(kernel) <= _MOST_TAPS and math.prod(stride[1:]) <= _MOST_KINDS

    def library(self, name: str) -> str:
        """The name of the library for these windows, and a type of this name."""
        return f"depthwise_{name}" if self.is_depthwise() else name

    def text(self) -> str:
        """The initialiser of a ``dy_windows`` in C."""
        parts = [f"{{{', '.join(map(str, part))}}}" if isinstance(part, tuple) else str(part) for part in self.members()]
        return "{" + ", ".join(parts) + "}"

    def members(self) -> Sequence[Any]:
        """The members of a ``dy_windows``: numbers, and tuples of them."""
        def axes(sizes: Sequence[int], filler: int) -> Tuple[int, ...]:
            return (filler,) * (AXES - len(sizes)) + tuple(sizes)

        return (*self[:4], *(axes(sizes, 1) for sizes in self[4:8]), axes(self.pad, 0), axes(self.dilate, 1), 0, 0, self.algorithm)

    def describe(self) -> str:
        """The windows in words, short."""
        def axes(sizes: Sequence[int]) -> str:
            return "x".join(map(str, sizes))

        groups = f", {self.groups} groups" if self.groups > 1 else ""
        return (f"{self.batch}x{self.groups * self.in_} -> {self.groups * self.out}, {axes(self.image)} -> {axes(self.spots)}, "
                f"{axes(self.kernel)} / {axes(self.stride)} + {axes(self.pad)} * {axes(self.dilate)}{groups}")


def text(name: str) -> str:
    """The C text of a library."""
    header = "dy2static_depthwise.h" if name.startswith("depthwise") else "dy2static_shared_windows.h"
    return PASSES + _TEXT.format(type=_TYPES[name[-3:]], header=header)


#: The libraries of both types: for any windows, and for depthwise filters.
KERNELS = {name: serve(f"dy2static_set_convolutions_{name}", f"#define DY_WINDOWS_{name.upper()}", functools.partial(text, name))
            for name in (*_TYPES, *(f"depthwise_{name}" for name in _TYPES))}

#: The functions, in the order of the table, and names of the algorithms, by their numbers in ``dy2static_windows.h``.
FUNCTIONS = ("conv", "conv_transpose", "conv_grad_weight")
ALGORITHMS = ("rules", "in place", "gathered", "added windows", "depthwise", "few filters", "turned", "panels", "Winograd")
WINOGRAD = ALGORITHMS.index("Winograd")


def _all_texts() -> str:
    """The C texts of all libraries that compute convolutions of plain images."""
    return "".join(map(text, KERNELS)) + channel_blocks.text("plain")


_CHOICES = {name: tuning.declare(name, about, _all_texts) for name, about in (
    ("conv", "convolutions"), ("conv_transpose", "derivatives of convolutions by the image, and transposed convolutions"),
    ("conv_grad_weight", "derivatives of convolutions by the filters"))}


def takes_filters(kernel: Sequence[int]) -> bool:
    """Whether Winograd's algorithm is for filters of these sizes: three by three, in a few slices if there is a third axis."""
    return tuple(kernel[-2:]) == (3, 3) and (len(kernel) == 2 or len(kernel) == AXES and kernel[0] <= _SLICES)


def may_winograd(function: str, windows: Windows, name: str) -> bool:
    """Whether `channel_blocks.winograd`, or `winograd_filters`, is for a function with these windows; name: of the type."""
    steps = {*windows.stride, *windows.dilate[:-2]}
    return name == "f32" and windows.groups == 1 and takes_filters(windows.kernel) and steps == {1} \
        and all(pad <= dilate * (size - 1) for pad, size, dilate in zip(windows.pad, windows.kernel, windows.dilate))


def tuned(function: str, windows: Windows, name: str) -> Windows:
    """The windows with the algorithm to use for a function, with ``DY2STATIC_TUNE=1``; name: of the type.

    The algorithm of the windows is that of rules.
    """
    if not tuning.is_on() or not 0 < math.prod((windows.batch, *windows.spots)):
        return windows
    nbytes = sum(map(math.prod, _shapes(windows))) * np.dtype(_DTYPES[name]).itemsize
    winner = tuning.choose(_CHOICES[function], f"{name} {windows.describe()}", nbytes,
                           lambda: candidates(function, windows, name), lambda names: calls(function, windows, name, names))
    return windows._replace(algorithm=0 if winner is None else ALGORITHMS.index(winner))


def candidates(function: str, windows: Windows, name: str) -> List[str]:
    """The algorithms for these windows, that of the rules first.  Raises `failures.NoCompiler` and `failures.BuildFailed`."""
    numbers = algorithms_of(KERNELS[name], len(ALGORITHMS), ctypes.c_int64(FUNCTIONS.index(function)), words(windows.members()))
    if windows.is_depthwise():
        numbers.insert(0, ALGORITHMS.index("depthwise"))
    elif windows.algorithm == WINOGRAD:
        numbers.insert(0, WINOGRAD)
    elif may_winograd(function, windows, name):
        numbers.append(WINOGRAD)
    return [ALGORITHMS[number] for number in numbers]


def calls(function: str, windows: Windows, name: str, names: Sequence[str]) -> Mapping[str, Callable[[], int]]:
    """Calls of these algorithms on arrays of numbers, by name."""
    x, filters, y = [tuning.numbers(*shape, dtype=_DTYPES[name]) for shape in _shapes(windows)]
    arrays = {"conv": (x, filters, y), "conv_transpose": (y, filters, x), "conv_grad_weight": (x, y, filters)}[function]
    return {algorithm: functools.partial(compute, function, windows._replace(algorithm=ALGORITHMS.index(algorithm)), name, *arrays)
            for algorithm in names}


def compute(function: str, windows: Windows, name: str, *arrays: np.ndarray) -> int:
    """Call a function on operands and a result, which are contiguous; gives 0, or another number if there is not enough memory."""
    table = (ctypes.c_void_p * len(FUNCTIONS)).from_address(KERNELS[windows.library(name)].address())
    address, pointers = table[FUNCTIONS.index(function)] or 0, [array.ctypes.data for array in arrays]
    if windows.algorithm == WINOGRAD and function == "conv_grad_weight":
        return channel_blocks.winograd_filters(windows.members(), address, pointers)
    if windows.algorithm == WINOGRAD:
        return channel_blocks.winograd(windows.members(), function == "conv_transpose", address, pointers)
    # the derivative by the filters takes one argument less, which does no harm
    called = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 5)(address)
    return int(called(words(windows.members()), *pointers, None))


def _shapes(w: Windows) -> Sequence[Tuple[int, ...]]:
    """Those of x, of the filters, and of y."""
    return ((w.batch, w.groups * w.in_, *w.image), (w.groups * w.out, w.in_, *w.kernel), (w.batch, w.groups * w.out, *w.spots))

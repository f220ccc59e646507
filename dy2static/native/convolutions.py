"""Convolutions for generated code, forward and both derivatives: planes read by tables of offsets, by kernels of ours
that threads share."""
from __future__ import annotations

import functools
from typing import NamedTuple, Sequence, Tuple

from .kernels import serve

HEADER = "dy2static_windows.h"
POOLS = "dy2static_pools.h"
AXES = 3                            # how many the C functions have
_TYPES = {"f32": "float", "f64": "double"}

_TEXT = """
#define DY_T {type}
#include "dy2static_convolutions.h"
#include "dy2static_shared_windows.h"
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

    def fits(self) -> bool:
        """Whether there are few enough axes."""
        return len(self.image) <= AXES

    def text(self) -> str:
        """The initialiser of a ``dy_windows`` in C."""
        def axes(sizes: Sequence[int], filler: int) -> str:
            return "{" + ", ".join(map(str, (filler,) * (AXES - len(sizes)) + tuple(sizes))) + "}"

        parts = [*map(str, self[:4]), *(axes(sizes, 1) for sizes in self[4:8]), axes(self.pad, 0), axes(self.dilate, 1), "0"]
        return "{" + ", ".join(parts) + "}"


def text(name: str) -> str:
    """The C text for one type."""
    return _TEXT.format(type=_TYPES[name])


for _name in _TYPES:
    serve(f"dy2static_set_convolutions_{_name}", f"#define DY_WINDOWS_{_name.upper()}", functools.partial(text, _name))

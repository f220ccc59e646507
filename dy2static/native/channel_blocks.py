"""Convolutions and what goes with them for arrays in blocks of channels, for generated code."""
from __future__ import annotations

import functools
from typing import NamedTuple, Optional, Sequence, Tuple

from . import compiler, library

HEADER = "dy2static_channel_blocks.h"
_FLAGS = ("-ffp-contract=fast", "-O2")

#: So many taps are summed at a time; with more, sums that are not complete are written to the result.
PIECE = 1152

TEXT = f"""
#define DY_T float
#define DY_PIECE {PIECE}
#include "dy2static_winograd.h"
#include "dy2static_blocked_depthwise.h"
const dy_blocks_table table = {{any_conv, blocks_depthwise, blocks_expect, blocks_max, blocks_of, blocks_back}};
"""


class Windows(NamedTuple):
    """The windows of ``x: (batch, in_ / 16, *image, 16)``, or of a plain ``(batch, in_, *image)``.

    relu, cap: what bounds the result, if anything does.
    """

    batch: int
    in_: int
    out: int
    image: Tuple[int, ...]
    kernel: Tuple[int, ...]
    spots: Tuple[int, ...]
    stride: Tuple[int, ...]
    pad: Tuple[int, ...]
    dilate: Tuple[int, ...]
    plain: bool = False
    relu: bool = False
    cap: Optional[float] = None

    def text(self) -> str:
        """The initialiser of a ``dy_blocks`` in C."""
        def axes(sizes: Sequence[int]) -> str:
            return "{" + ", ".join(map(str, sizes)) + "}"

        cap = "__builtin_inff()" if self.cap is None else f"{self.cap!r}f"
        return "{" + ", ".join([*map(str, self[:3]), *map(axes, self[3:9]), str(int(self.plain)), str(int(self.relu)), cap]) + "}"


def start() -> compiler.Build:
    """The library, which may be on its way.  Raises `compiler.NoCompiler`."""
    return compiler.start(TEXT, _FLAGS)


@functools.lru_cache(maxsize=None)
def address() -> int:
    """Where the table of functions is.  Raises `compiler.NoCompiler` and `compiler.BuildFailed`."""
    return start().library().address("table")


library.ADDRESSES["dy2static_set_channel_blocks"] = address
library.CALLED[f'#include "{HEADER}"'] = start

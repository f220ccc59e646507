"""Convolutions and what goes with them for arrays in blocks of channels, for generated code."""
from __future__ import annotations

from typing import NamedTuple, Optional, Sequence, Tuple

from .kernels import serve

HEADER = "dy2static_channel_blocks.h"

#: So many taps are summed at a time; with more, sums that are not complete are written to the result.
PIECE = 1152

TEXT = f"""
#define DY_T float
#define DY_PIECE {PIECE}
#include "dy2static_winograd.h"
#include "dy2static_blocked_depthwise.h"
#include "dy2static_blocked_layers.h"
const dy_blocks_table table = {{any_conv, blocks_depthwise, blocks_expect,
                               blocks_max, blocks_mean, blocks_join, blocks_of, blocks_back}};
"""


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

    def text(self) -> str:
        """The initialiser of a ``dy_blocks`` in C."""
        def axes(sizes: Sequence[int]) -> str:
            return "{" + ", ".join(map(str, sizes)) + "}"

        cap = "__builtin_inff()" if self.cap is None else f"{self.cap!r}f"
        return "{" + ", ".join([*map(str, self[:4]), *map(axes, self[4:10]), str(int(self.plain)), str(int(self.relu)), cap]) + "}"


#: Where the table of functions is.  Raises `compiler.NoCompiler` and `compiler.BuildFailed`.
address = serve("dy2static_set_channel_blocks", f'#include "{HEADER}"', lambda: TEXT)

"""The headers that a text of C needs."""
from __future__ import annotations

from ...native import products, team, working
from . import draws, kernels_blocks, kernels_convolution, kernels_indexing, kernels_sorting, lists, masked_rows


def headers(text: str, standalone: bool = False) -> str:
    """The lines in front of a text of functions: the headers of what it calls, and only those.

    standalone: no Python stands behind them; convolutions are made of products then.
    """
    used = [name for name in ("f32", "f64") if f"gemm_{name}(" in text or standalone and name in kernels_convolution.types_in(text)]
    found = '#include "dy2static_math.h"\n#include "dy2static_values.h"\n'
    found += "".join(f"#define DY_PRODUCTS_{name.upper()}\n" for name in used)
    found += f'#include "{products.HEADER}"\n' if used else ""
    found += f'#include "{team.HEADER}"\n' if "dy_share" in text or "dy_join_" in text else ""
    found += f'#include "{working.HEADER}"\n' if "dy_working " in text else ""
    found += masked_rows.HEADER if "dy_kept_columns(" in text else ""
    found += '#include "dy2static_lanes.h"\n' if "DY_LANES_" in text else ""
    found += draws.HEADER if "dy_generator " in text else ""
    found += kernels_convolution.headers(text) + lists.headers(text) + kernels_sorting.headers(text)
    return found + kernels_indexing.headers(text) + kernels_blocks.headers(text)

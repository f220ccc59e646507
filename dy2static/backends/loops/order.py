"""The order of loops whose turns may come in any order: which of them stands around the innermost one."""
from __future__ import annotations

from typing import Dict, List, Sequence

import numpy as np

from ...ir.dims import Size
from .layout import Place

#: Fewer rows or columns do not repay turning a matrix.
LEAST_TURNED = 8


def may_turn(dtype: np.dtype) -> bool:
    """Whether there is a function that turns matrices of such elements."""
    return dtype.kind in "fiu" and dtype.itemsize in (4, 8)


def ordered(sizes: Sequence[Size], axes: Sequence[int], read: Sequence[Place]) -> List[int]:
    """Loops over these axes from the outermost to the innermost one: the last one stays.

    In front of it comes the loop over which most of the places go from neighbour to neighbour that do not do so over the last
    one.  So these can be turned square by square.
    """
    *others, inner = range(len(axes))
    found: Dict[int, int] = dict.fromkeys(reversed(others), 0)
    for place in read:
        if place.strides[axes[inner]] in (0, 1) or not may_turn(place.base.dtype):
            continue
        for loop in others:
            if place.strides[axes[loop]] == 1 and _is_long(sizes[loop]) and _is_long(sizes[inner]):
                found[loop] += 1
    beside = max(found, key=lambda loop: found[loop])
    return [*(loop for loop in others if loop != beside), beside, inner]


def _is_long(size: Size) -> bool:
    return isinstance(size, int) and size >= LEAST_TURNED

"""How many elements of a group a GPU computes at the same time: an estimate from sizes, before the group is a loop nest."""
from __future__ import annotations

import math

from ...loops.groups import Group
from ...loops.recompute import guessed
from . import rows, sums, totals

#: Elements of a row that a thread computes side by side: as many as 16 bytes hold of float32.
_LOADED = 4


def at_once(group: Group) -> int:
    """Elements that threads of the kernel of a group compute at the same time, if the GPU has place for all of them."""
    sizes = [guessed(size) for size in group.shape]
    elements = math.prod(sizes)
    if not group.rows and not group.totals:
        return elements
    if group.split is not None:
        return min(elements, _LOADED * _of_rows(math.prod(sizes[:group.split]), math.prod(sizes[group.split:]), bool(group.totals)))
    shapes = {tuple([guessed(size) for size in value.shape]) for value in group.totals}
    if len(shapes) > 1:
        return min(elements, _LOADED * _of_rows(math.prod(sizes[:-1]), sizes[-1], True))
    (shape,) = shapes
    results = max(1, math.prod(shape))
    return sums.threads_for(results, elements // results, shape[-1:] == tuple(sizes[-1:]))


def _of_rows(count: int, size: int, has_totals: bool) -> int:
    """Threads for so many rows of a size."""
    return totals.threads_for(count, size, _LOADED) if has_totals else rows.threads_for(count, size)

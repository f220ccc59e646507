"""A loop nest as kernels: how loops become blocks and threads.

A nest is one of several kinds of kernels:

- *elements*: nothing is reduced.  One thread computes one element, or several that stand side by side.
- *tiles*: the same, if arrays are transposed: a block reads tiles of them as they stand in memory, and turns them.
- *rows*: reductions that are ready at the end of each row.  A row belongs to one warp, or to one block where it is long; each
  thread goes over elements of the row, and what threads have summed is added up in one fixed tree.
- *cut rows*: few long rows, each of which several blocks share.  There is a kernel for each sweep, and one for what follows.
- *sums*: each result belongs to threads of one block, or of several; a second kernel adds up what several blocks have summed.
- *totals*: other reductions, also beside rows.  Each block takes some rows one after the other and has sums of its own; a second
  kernel adds these up in their order.

No sum depends on the order in which threads or blocks run.  Where sizes that only the run knows decide on the kind, there are
kernels of both kinds, and the run launches those of one.
"""
from __future__ import annotations

from typing import Callable

from ....ir.dims import Size
from ....ir.graph import Node
from ...loops.groups import Group
from ...loops.ir import LoopNest
from ...loops.schedule import schedule
from ..text.function import FunctionText
from .elements import Elements, Tiles, Vectors, are_many, tiled_axis, vector_width
from .rows import CutRows, Rows, are_few, are_long
from .sums import Sums, summed_axes, sums_width
from .totals import Totals, loops_of, totals_width
from .vectors import width_of


def render(group: Group, function: FunctionText) -> None:
    """Write the kernels of a group of nodes, and launch them."""
    nest = schedule(group, function.places.of, function.stored, vectors=False, target=function.target)
    if nest.totals:
        axes = summed_axes(nest)
        if axes is not None:
            width = sums_width(nest, axes, function)
            _by_width(function, axes[-1].size if axes else 1, width, lambda width: Sums(nest, function, axes, width).write())
            return
        width = totals_width(nest, function)
        _by_width(function, loops_of(nest)[-1].size, width, lambda width: Totals(nest, function, width).write())
    elif nest.split is not None:
        _rows(group, nest, function)
    else:
        axis = tiled_axis(nest, function)
        if axis >= 0:
            Tiles(nest, function, axis).write()
            return
        width = vector_width(nest, function)
        function.either(width > 1 and are_many(nest, function), lambda: Vectors(nest, function, width).write(),
                        lambda: Elements(nest, function).write())


def _rows(group: Group, nest: LoopNest, function: FunctionText) -> None:
    """Kernels of a nest with rows.  Of long rows nothing is kept: to compute it again takes less than to store and load it."""
    def long() -> None:
        again = schedule(group, function.places.of, function.stored, keeps=False, target=function.target)
        _by_last(again, function, lambda width: function.either(
            are_few(nest, function), lambda: CutRows(again, function, width).write(),
            lambda: Rows(again, function, width, is_long=True).write()))
    function.either(are_long(nest, function), long,
                    lambda: _by_last(nest, function, lambda width: Rows(nest, function, width).write()))


def _by_last(nest: LoopNest, function: FunctionText, write: Callable[[int], None]) -> None:
    """Write kernels for rows whose threads take as many elements of the last loop at a time as they can."""
    last = nest.inner[-1] if nest.inner else None
    _by_width(function, last.size if last else 1, width_of(nest, last, function) if last else 1, write)


def _by_width(function: FunctionText, size: Size, width: int, write: Callable[[int], None]) -> None:
    """Write kernels whose threads take so many elements of a line at a time if its size is a multiple of that, else one."""
    if width == 1:
        write(1)
    else:
        function.either(function.late(lambda size: size % width == 0, size), lambda: write(width), lambda: write(1))


def reduces(node: Node) -> bool:
    """Whether kernels compute a reduction: of floats to floats, of ints, and tests."""
    kind = node.outputs[0].dtype.kind
    return node.op.name in ("any", "all") or kind in "iu" or kind == "f" and node.inputs[0].dtype.kind == "f"

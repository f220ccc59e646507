"""A product of few rows and the elementwise nests that follow it, which threads share by columns: one piece for each thread.

So are the steps of recurrent networks: each thread computes the gates of the units whose part of the product it has made.  What a
nest reads of the product, or of a nest before it, must be in the same columns: those of an LSTM have four gates for each unit, side
by side.
"""
from __future__ import annotations

import dataclasses
from typing import Dict, List, NamedTuple, Optional

from ...ir.dims import is_known
from ...ir.graph import Node, Value
from ...native import products
from ..loops.fuse import Run
from ..loops.groups import Group
from ..loops.layout import Place
from ..loops.parallelize import Share
from ..loops.schedule import schedule
from .emitter import Emitter, NestText
from .epilogues import share_memory
from .kernels_products import common_size, matrix, suffix
from .render_c import render

#: Rows of the product, at least (fewer are computed in other ways) and at most: threads share the columns of such products.
_LEAST_ROWS, _MOST_ROWS = 8, 96

#: Bytes of the product that stay in the nearest caches until the nests have read them.
_MOST_BYTES = 1 << 18

#: Columns of a product of which pieces are multiples.
_GRAIN = 8


class SharedColumns(NamedTuple):
    """A product, and the groups that follow it.

    units: how many columns the narrowest of them has; the others have a multiple.
    """

    node: Node
    groups: List[Group]
    units: int

    @property
    def share(self) -> Share:
        """The pieces of the units: whole grains of the columns of the product."""
        columns = self.node.outputs[0].shape[-1] // self.units
        return Share("units", self.units, max(1, _GRAIN // columns), evenly=True)


def shared_columns_at(emitter: Emitter, fused: Run, index: int) -> Optional[SharedColumns]:
    """The product that this part is, with the parts behind it that can follow in the same columns; None without any."""
    node = fused.parts[index]
    if not isinstance(node, Node) or node.op.name != "matmul":
        return None
    (value,), inner = node.outputs, common_size(node)
    if value.ndim != 2 or not all(map(is_known, (*value.shape, inner))):
        return None
    rows, columns = value.shape
    if not _LEAST_ROWS <= rows <= _MOST_ROWS or value.nbytes > _MOST_BYTES or rows * columns * inner < products.SHARED:
        return None
    made: Dict[Value, int] = {value: columns}
    groups: List[Group] = []
    for part in fused.parts[index + 1:]:
        if not isinstance(part, Group) or not _follows(emitter, part, rows, made):
            break
        groups.append(part)
        made.update((v, part.shape[1]) for v in part.elements)
    units = min(made.values())
    if any(size % units for size in made.values()) or columns // units > _GRAIN:
        return None
    return SharedColumns(node, groups, units) if groups else None


def _follows(emitter: Emitter, group: Group, rows: int, made: Dict[Value, int]) -> bool:
    """Whether a group is an elementwise nest that reads of what has been made only elements in the same columns.

    made: how many columns each of these values has.
    """
    if len(group.shape) != 2 or not all(map(is_known, group.shape)) or group.shape[0] != rows or group.shape[1] < 2 \
            or group.split is not None or group.sweeps != 1 or group.totals or group.rows or not group.nodes:
        return False
    read = [place for node in group.nodes for place in map(emitter.place, node.inputs) if place.base in made]
    return bool(read) and all(_in_columns(place, group.shape[1], made[place.base]) for place in read)


def _in_columns(place: Place, columns: int, size: int) -> bool:
    """Whether column c of a place is among the columns c * n to c * n + n - 1 of its memory, which has n times as many."""
    times = size // columns
    return times * columns == size and place.shape[-1:] == (columns,) and len(place.shape) == 2 \
        and place.strides == (size, times) and not place.terms and is_known(place.offset) and 0 <= place.offset < times


def write_product(emitter: Emitter, found: SharedColumns, fused: Run, index: int) -> None:
    """Write the columns of the product from unit ``begin`` to ``end``."""
    node, (value,) = found.node, found.node.outputs
    share_memory(emitter, value, fused, index)
    rows, columns = value.shape
    times = columns // found.units
    left, right = (matrix(emitter, v, node.attrs[turn]) for v, turn in zip(node.inputs, ("transa", "transb")))
    first, count = (f"begin * {times}", f"(end - begin) * {times}") if times > 1 else ("begin", "end - begin")
    operands = f"{left.at('0')}, {left.distance}, {right.at('0', column=first)}, {right.distance}"
    emitter.line(f"dy_gemm_{suffix(value)}({left.turned}, {right.turned}, {rows}, {count}, {common_size(node)}, 1, {operands}, 0, "
                 f"{emitter.name(value)} + {first}, {columns});")


def columns_text(emitter: Emitter, group: Group, units: int) -> NestText:
    """The lines of a nest for its columns from unit ``begin`` to ``end``."""
    nest = schedule(group, emitter.place, emitter.stored, apart=1)
    times = group.shape[1] // units
    span = (f"begin * {times}", f"end * {times}") if times > 1 else ("begin", "end")
    return render(dataclasses.replace(nest, share=None), emitter, {nest.inner[-1].name: span})

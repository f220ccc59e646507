"""A product and the elementwise nest that follows it, part of the matrix by part: bias, activation, residual sum.

The kernel of products calls the nest with each part of the result that is complete, while that is in the cache.  Where nothing
else reads the product, it is made in the memory of what the nest makes of it.
"""
from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple, Optional

from ...ir.dims import is_known
from ...ir.graph import Node
from ..loops.fuse import Run
from ..loops.groups import Group
from ..loops.ir import LoopNest
from ..loops.schedule import schedule
from .emitter import Emitter
from .epilogues import share_memory
from .kernels_products import common_size, matrix, suffix
from .render_c import render

#: Bytes of a product that are in the nearest caches anyhow.
_SMALL = 1 << 16


class Finished(NamedTuple):
    """A product, and the nest that follows it: a loop over rows and one over columns."""

    node: Node
    group: Group
    nest: LoopNest


def finished_at(emitter: Emitter, fused: Run, index: int) -> Optional[Finished]:
    """The product that this part is, with the next part, if that is an elementwise nest over its rows and columns."""
    parts = fused.parts[index:index + 2]
    if len(parts) < 2 or not isinstance(parts[0], Node) or parts[0].op.name != "matmul" or not isinstance(parts[1], Group):
        return None
    node, group = parts
    (value,) = node.outputs
    if not all(map(is_known, (*value.shape, common_size(node)))) or math.prod(value.shape[:-2]) != 1 or value.nbytes < _SMALL:
        return None
    if group.split is not None or group.sweeps != 1 or group.totals or math.prod(group.shape) != math.prod(value.shape):
        return None
    read = [place for inner in group.nodes for place in map(emitter.place, inner.inputs) if place.base is value]
    apart = _leading(group.shape, value.shape[-1])
    if not read or not all(place.whole for place in read) or apart is None:
        return None
    nest = schedule(group, emitter.place, emitter.stored, apart=apart)
    if len(nest.inner) != 2:
        return None
    share_memory(emitter, value, fused, index)
    return Finished(node, group, nest)


def _leading(shape: tuple, columns: int) -> Optional[int]:
    """How many axes of a shape are those of the rows of a matrix of so many columns; None if it is none."""
    for axis in range(1, len(shape)):
        if math.prod(shape[axis:]) == columns and shape[axis] != 1 and math.prod(shape[:axis]) != 1:
            return axis
    return None


def write_finished(emitter: Emitter, found: Finished) -> None:
    """Write the product and the nest as one call."""
    node, (value,), (rows, columns) = found.node, found.node.outputs, found.nest.inner
    spans = {rows.name: ("begin", "end"), columns.name: ("left", "right")}
    text = render(dataclasses.replace(found.nest, share=None), emitter, spans)
    function, given = emitter.body(["    " + line for line in text.lines], of_part=True)
    left, right = (matrix(emitter, v, node.attrs[turn]) for v, turn in zip(node.inputs, ("transa", "transb")))
    sizes = f"{value.shape[-2]}, {value.shape[-1]}, {common_size(node)}"
    emitter.part([f"    dy_finished_gemm_{suffix(value)}({left.turned}, {right.turned}, {sizes}, {left.at('0')}, {left.distance}, "
                  f"{right.at('0')}, {right.distance}, {emitter.name(value)}, {value.shape[-1]}, {function}, {given});"])

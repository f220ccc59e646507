"""What moves, repeats or takes only rows and columns of images, on images in blocks of channels."""
from __future__ import annotations

from typing import Any, Dict, Optional

from ..ir.dims import is_known
from ..ir.graph import Node
from ..ops.channel_blocks import BLOCK, blocks_of, in_blocks

#: Ops that can leave the batch and the channels as they are.
PLACES = ("reshape", "broadcast_to", "transpose", "getitem", "scatter_slice")


def in_places(node: Node) -> Optional[Dict[str, Any]]:
    """The attributes of a node on arrays in blocks: ``(batch, blocks, *places, 16)`` for ``(batch, channels, *places)``.

    None if the node does more than that.
    """
    (x,), (y,), attrs = node.inputs, node.outputs, node.attrs
    if x.shape[:2] != y.shape[:2] or min(x.ndim, y.ndim) < 3 or not all(is_known(n) and n for n in (*x.shape, *y.shape)):
        return None
    if node.op.name == "transpose":
        return {"axes": (*attrs["axes"], x.ndim)} if attrs["axes"][:2] == (0, 1) else None
    if node.op.name == "reshape" or node.op.name == "broadcast_to" and x.ndim == y.ndim:
        return {"shape": in_blocks(y.shape)}
    return _part(node) if node.op.name in ("getitem", "scatter_slice") else None


def _part(node: Node) -> Optional[Dict[str, Any]]:
    (batch, channels, *places), whole = node.attrs["index"], node.attrs.get("shape", node.inputs[0].shape)
    if len(places) + 2 != len(whole) or not all(isinstance(entry, tuple) and len(entry) == 3 for entry in places):
        return None
    if (batch, channels) != ((0, whole[0], 1), (0, whole[1], 1)):
        return None
    index = (batch, (0, blocks_of(whole[1]), 1), *places, (0, BLOCK, 1))
    return {"index": index, **({"shape": in_blocks(whole)} if "shape" in node.attrs else {})}

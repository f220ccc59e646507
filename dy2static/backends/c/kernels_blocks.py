"""Images in blocks of channels: each node is one call of the kernels in `native.channel_blocks`."""
from __future__ import annotations

import math
from typing import Any, Dict, Optional, Sequence

from ...ir.dims import is_known
from ...ir.graph import Node, Value
from ...native import channel_blocks
from ...native.channel_blocks import Windows
from ...ops.channel_blocks import BLOCK
from .emitter import Emitter, Rule


def _conv(emitter: Emitter, node: Node) -> None:
    (x, W, *more), attrs, (value,) = node.inputs, node.attrs, node.outputs
    plain = x.ndim == 4
    windows = Windows(x.shape[0], W.shape[1] * attrs["groups"], W.shape[0], attrs["groups"], x.shape[2:4], W.shape[2:],
                      tuple(attrs["size"]), attrs["stride"], attrs["pad"], attrs["dilate"], plain, attrs["relu"], attrs["cap"])
    if windows.library() != "depthwise":
        windows = channel_blocks.tuned(windows)
    rest = iter(more)
    given = [emitter.pointer(next(rest)) if attrs[name] else "0" for name in ("scale", "shift", "residual")]
    arguments = ["&windows", emitter.pointer(x), emitter.pointer(W), *given, emitter.name(value)]
    emitter.line("{")
    emitter.line(f"    static const dy_blocks windows = {windows.text()};")
    emitter.line(f"    if (dy_blocks_{windows.library()}({', '.join(arguments)})) goto bail;")
    emitter.line("}")


def _pool(function: str) -> Rule:
    """The rule of an op on windows of every channel."""
    def write(emitter: Emitter, node: Node) -> None:
        (x,), attrs, (value,) = node.inputs, node.attrs, node.outputs
        channels = x.shape[1] * BLOCK
        windows = Windows(x.shape[0], channels, channels, 1, x.shape[2:4], attrs["kernel"], tuple(attrs["size"]), attrs["stride"],
                          attrs["pad"], (1, 1))
        emitter.line("{")
        emitter.line(f"    static const dy_blocks windows = {windows.text()};")
        emitter.line(f"    {function}(&windows, {emitter.pointer(x)}, {emitter.name(value)});")
        emitter.line("}")
    return write


def _join(emitter: Emitter, node: Node) -> None:
    channels, (value,) = node.attrs["channels"], node.outputs
    pointers = [emitter.pointer(x) for x in node.inputs]
    emitter.line("{")
    emitter.line(f"    static const int64_t channels[] = {{{', '.join(map(str, channels))}}};")
    emitter.line(f"    const float *const xs[] = {{{', '.join(pointers)}}};")
    emitter.line(f"    dy_blocks_join({len(channels)}, channels, xs, {value.shape[0]}, {math.prod(value.shape[2:4])}, "
                 f"{emitter.name(value)});")
    emitter.line("}")


def _to_blocks(emitter: Emitter, node: Node) -> None:
    (x,), (value,) = node.inputs, node.outputs
    sizes = f"{x.shape[0]}, {x.shape[1]}, {math.prod(x.shape[2:])}"
    emitter.line(f"dy_blocks_of({sizes}, {emitter.pointer(x)}, {emitter.name(value)});")


def _from_blocks(emitter: Emitter, node: Node) -> None:
    (x,), (value,) = node.inputs, node.outputs
    sizes = f"{value.shape[0]}, {value.shape[1]}, {math.prod(value.shape[2:])}"
    emitter.line(f"dy_blocks_back({sizes}, {emitter.pointer(x)}, {emitter.name(value)});")


#: Ops by name.
BLOCKS: Dict[str, Rule] = {
    "conv_blocks": _conv, "max_pool_blocks": _pool("dy_blocks_max"), "average_pool_blocks": _pool("dy_blocks_mean"),
    "join_blocks": _join, "to_blocks": _to_blocks, "from_blocks": _from_blocks}


#: What is called of each library; small groups leave to dense convolutions what they do not take.
_CALLED = {"conv": ("conv", "expect", "winograd", "winograd_filters", "groups_4", "groups_8"), "depthwise": ("depthwise",),
           "groups_4": ("groups_4",), "groups_8": ("groups_8",), "layers": ("max", "mean", "join", "of", "back")}


def expect(emitter: Emitter, parts: Sequence[Any]) -> None:
    """Tell the convolution at the head of these parts which filters the next one reads, if the caller has them in memory."""
    convolutions = (part for part in parts[1:] if _is_dense(part)) if _is_dense(parts[0]) else iter(())
    following = next(convolutions, None)
    if following is not None:
        filters = following.inputs[1]
        if emitter.has_memory(filters):
            emitter.line(f"dy_blocks_expect({emitter.name(filters)}, {math.prod(filters.shape)});")


def _is_dense(part: Any) -> bool:
    return isinstance(part, Node) and part.op.name == "conv_blocks" and part.attrs["groups"] == 1


def may_overwrite(node: Node) -> Optional[Value]:
    """The operand of a node, if any, that its result may stand in place of: the residual, which is read where that is written."""
    if node.op.name != "conv_blocks" or not node.attrs["residual"] or math.prod(node.inputs[1].shape[1:]) > channel_blocks.PIECE:
        return None
    return node.inputs[-1]


def takes(node: Node) -> bool:
    """Whether the kernels are for these dtypes and sizes."""
    values = (*node.inputs, *node.outputs)
    return all(v.dtype.name == "float32" and all(map(is_known, v.shape)) and 0 not in v.shape for v in values)


def headers(text: str) -> str:
    """The lines of C in front of a text with such calls."""
    called = [name for name, functions in _CALLED.items() if any(f"dy_blocks_{function}(" in text for function in functions)]
    lines = [f"#define DY_BLOCKS_{name.upper()}\n" for name in called]
    return "".join([*lines, f'#include "{channel_blocks.HEADER}"\n']) if called else ""

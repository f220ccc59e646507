"""Images in blocks of channels: each node is one call of the kernels in `native.channel_blocks`."""
from __future__ import annotations

import itertools
import math
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ...ir.dims import is_known
from ...ir.graph import Node, Value
from ...native import channel_blocks
from ...native.channel_blocks import Windows
from ...ops.channel_blocks import BLOCK
from ..loops.fuse import Run
from .emitter import Emitter, Rule

#: Two convolutions are computed together if the result of the first has more bytes than stay in the second cache.
_FAR = 1 << 20
#: Bytes of some channels of an image that stay there, at least so many channels, and places from which on it pays to turn filters
#: again for each image.
_NEAR, _CHANNELS, _PLACES = 1 << 19, 2 * BLOCK, 1024


def _windows(node: Node) -> Windows:
    (x, W, *_), attrs = node.inputs, node.attrs
    if node.op.name == "conv_transpose_blocks":
        return Windows(x.shape[0], *W.shape[:2], 1, x.shape[2:4], W.shape[2:], tuple(attrs["size"]), attrs["stride"], attrs["pad"],
                       attrs["dilate"], False, attrs["relu"], attrs["cap"])
    return Windows(x.shape[0], W.shape[1] * attrs["groups"], W.shape[0], attrs["groups"], x.shape[2:4], W.shape[2:],
                   tuple(attrs["size"]), attrs["stride"], attrs["pad"], attrs["dilate"], x.ndim == 4, attrs["relu"], attrs["cap"])


def _factors(emitter: Emitter, node: Node) -> List[str]:
    """Pointers to scale, shift and residual; 0 for what there is not."""
    rest = iter(node.inputs[2:])
    return [emitter.pointer(next(rest)) if node.attrs.get(name) else "0" for name in ("scale", "shift", "residual")]


def _conv(emitter: Emitter, node: Node) -> None:
    windows = _windows(node)
    if windows.library() != "depthwise":
        windows = channel_blocks.tuned(windows)
    _call(emitter, node, windows, windows.library())


def _conv_transpose(emitter: Emitter, node: Node) -> None:
    _call(emitter, node, _windows(node), "transposed")


def _call(emitter: Emitter, node: Node, windows: Windows, function: str) -> None:
    (x, W, *_), (value,) = node.inputs, node.outputs
    arguments = ["&windows", emitter.pointer(x), emitter.pointer(W), *_factors(emitter, node), emitter.name(value)]
    emitter.line("{")
    emitter.line(f"    static const dy_blocks windows = {windows.text()};")
    emitter.line(f"    if (dy_blocks_{function}({', '.join(arguments)})) goto bail;")
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
    order = node.attrs["order"] or range(sum(channels))
    pointers = [emitter.pointer(x) for x in node.inputs]
    emitter.line("{")
    emitter.line(f"    static const int32_t channels[] = {{{', '.join(map(str, channels))}}};")
    emitter.line(f"    static const int32_t order[] = {{{', '.join(map(str, order))}}};")
    emitter.line(f"    const float *const xs[] = {{{', '.join(pointers)}}};")
    emitter.line(f"    dy_blocks_join(channels, xs, {len(order)}, order, {value.shape[0]}, {math.prod(value.shape[2:4])}, "
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


class Pair(NamedTuple):
    """A convolution of one tap, and the depthwise one of its result; so many channels of an image are computed together."""

    first: Node
    second: Node
    channels: int


def pair_at(emitter: Emitter, fused: Run, index: int) -> Optional[Pair]:
    """The pair that begins with this part, if one does whose middle is to stay in the cache, and nothing else reads that."""
    parts = [part for part in fused.parts[index:index + 2] if isinstance(part, Node) and part.op.name == "conv_blocks"]
    if len(parts) < 2 or any(part.attrs["residual"] for part in parts):
        return None
    first, second = parts
    (value,), a, b = first.outputs, _windows(first), _windows(second)
    nbytes = math.prod(a.spots) * value.dtype.itemsize              # of a channel of an image
    is_point = a.groups == 1 and a.kernel == a.stride == (1, 1) and a.pad == (0, 0) and not a.plain
    if not is_point or b.library() != "depthwise" or math.prod(a.spots) < _PLACES or a.batch * a.out * nbytes <= _FAR:
        return None
    if value is not second.inputs[0] or value in fused.kept or emitter.has_memory(value) \
            or fused.is_read_behind(value, index + 1):
        return None
    fitting = [c for c in range(_CHANNELS, _NEAR // nbytes + 1, BLOCK) if a.out % c == 0]
    return Pair(first, second, fitting[-1]) if fitting else None


def write_pair(emitter: Emitter, pair: Pair) -> None:
    """Write both convolutions as one call."""
    factors = [", ".join([emitter.pointer(node.inputs[1]), *_factors(emitter, node)[:2]]) for node in pair[:2]]
    arguments = ["&first, &second", str(pair.channels), emitter.pointer(pair.first.inputs[0]),
                 *(f"(dy_blocks_factors){{{some}}}" for some in factors), emitter.name(pair.second.outputs[0])]
    emitter.line("{")
    emitter.line(f"    static const dy_blocks first = {_windows(pair.first).text()};")
    emitter.line(f"    static const dy_blocks second = {_windows(pair.second).text()};")
    emitter.line(f"    if (dy_blocks_pair({', '.join(arguments)})) goto bail;")
    emitter.line("}")


#: Ops by name.
BLOCKS: Dict[str, Rule] = {
    "conv_blocks": _conv, "conv_transpose_blocks": _conv_transpose, "max_pool_blocks": _pool("dy_blocks_max"),
    "average_pool_blocks": _pool("dy_blocks_mean"), "join_blocks": _join, "to_blocks": _to_blocks, "from_blocks": _from_blocks}


#: What is called of each library; small groups leave to dense convolutions what they do not take.
_CALLED = {"conv": ("conv", "transposed", "pair", "expect", "groups_4", "groups_8"), "plain": ("winograd", "winograd_filters"),
           "depthwise": ("depthwise", "pair"), "groups_4": ("groups_4",), "groups_8": ("groups_8",),
           "layers": ("max", "mean", "join", "of", "back")}


def expect(emitter: Emitter, parts: Sequence[Any], index: int) -> None:
    """Tell the convolution at this place of these parts which filters the next one reads, if the caller has them in memory."""
    if not _is_dense(parts[index]):
        return
    following = next(filter(_is_dense, itertools.islice(parts, index + 1, None)), None)
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

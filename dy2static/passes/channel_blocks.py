"""Convolutions that follow each other keep their images in blocks of channels, with what stands between them as their ends."""
from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Callable, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from ..ir.building import Builder, building
from ..ir.dims import is_known
from ..ir.graph import Graph, Node, Value
from ..ir.op import OPS
from ..ir.types import Tensor
from ..ops.channel_blocks import BLOCK, are_groups, are_transposed_windows, blocks_of, in_blocks
from ..ops.elementwise import sqrt
from .blocked_parts import Taken, gain_of, gain_of_transposed, worthwhile

#: Fewer places in a row do not fill a tile.
_PLACES = 4
#: Places are found by offsets of 32 bits.
_MOST = 1 << 31
#: Taps of a filter of one channel.
_MOST_TAPS = 128


def block_channels(graph: Graph, layout: str = "") -> Graph:
    """Compute chains of convolutions on images in blocks of channels, ``(batch, blocks, rows, columns, 16)``.

    Fixed batch normalisation, biases, residual sums and ReLU become parts of `conv_blocks`; pooling, joins and other
    elementwise ops are computed in blocks, too.  What others read is turned back.  Only those parts of the graph change for which
    that pays by an estimate, if ``layout`` does not name another one of the `layouts`.  For native code.  As long as a minimum cut
    takes.
    """
    found = layouts(graph)
    return found[layout] if layout in found else next(iter(found.values()))


def layouts(graph: Graph) -> Dict[str, Graph]:
    """The graph with its images in each of the ways that there are, the one of the estimate first: plain, in blocks, in parts."""
    if not any(_fits(node) or _fits_transposed(node) for node in graph.nodes):
        return {"plain": graph}
    everything = _Blocks(graph)
    in_blocks = everything.rewritten()
    chosen = worthwhile(graph, everything.taken)
    if not chosen:
        return {"plain": graph, "blocks": in_blocks}
    if len(chosen) == len(everything.taken):
        return {"blocks": in_blocks, "plain": graph}
    parts = _Blocks(graph, chosen, [one.node.outputs[0] for one in everything.taken if not one.leaves])
    return {"parts": parts.rewritten(), "blocks": in_blocks, "plain": graph}


class _Sum(NamedTuple):
    """A convolution in blocks that is not in the graph yet, because what follows may become a part of it."""

    node: Node
    x: Value
    scale: Optional[Value] = None
    shift: Optional[Value] = None
    residual: Optional[Value] = None
    relu: bool = False
    cap: Optional[float] = None


class _Blocks:
    """The nodes so far.

    sums: results of convolutions that are not in the graph yet.  blocked: values in blocks; plain: those of them that are
    there as they were, too.  taken: the nodes that are computed in blocks.

    chosen: the nodes that are to be; none: all that can be.  turned: the values that are turned to blocks where such nodes read
    them.
    """

    def __init__(self, graph: Graph, chosen: Optional[Collection[Node]] = None, turned: Sequence[Value] = ()):
        self.graph, self.chosen, self.turned = graph, chosen, frozenset(turned)
        self.builder = Builder(graph.name)
        for value in graph.values():
            self.builder.fresh(value.name)
        self.producers = graph.producers()
        self.readers = Counter(v for node in graph.walk() for v in node.inputs)
        self.readers.update(v for region in _regions(graph) for v in region.outputs)
        self.sums: Dict[Value, _Sum] = {}
        self.blocked: Dict[Value, Value] = {}
        self.plain: Set[Value] = set()
        self.taken: List[Taken] = []

    def rewritten(self) -> Graph:
        """The graph with all these nodes in blocks."""
        for node in self.graph.nodes:
            self._add(node)
        for value in self.graph.outputs:
            self._as_it_was(value)
        return self.graph.with_(nodes=tuple(self.builder.nodes))

    def _add(self, node: Node) -> None:
        self.builder.loc = node.loc
        rule = _RULES.get(node.op.name, _elementwise if node.op.kind == "elementwise" else None)
        if self.chosen is not None and node not in self.chosen or not _is_single(node):
            rule = None
        with building(self.builder):
            operands = tuple([v for v in node.inputs if self.is_ready(v)])
            if rule is None or not rule(self, node):
                self._keep(node)
            else:
                self._note(node, operands)

    def _note(self, node: Node, operands: Tuple[Value, ...]) -> None:
        """Note that a node is computed in blocks."""
        if node.op.name == "conv":
            may_stay = node.attrs["groups"] == 1
            plain_gain = gain_of(node, True) if may_stay else 0.0
            gain = gain_of(node, False) if operands else plain_gain
            self.taken.append(Taken(node, operands, gain, plain_gain, may_stay, is_convolution=True))
        elif node.op.name == "conv_transpose":
            self.taken.append(Taken(node, node.inputs[:1], gain_of_transposed(node), is_convolution=True))
        else:
            operands = node.inputs if node.op.name == "concat" else operands
            self.taken.append(Taken(node, operands, leaves=not self.is_blocked(node.outputs[0])))

    def _keep(self, node: Node) -> None:
        for value in (*node.inputs, *(v for inner in node.walk() for v in inner.inputs)):
            self._as_it_was(value)
        self.builder.nodes.append(node)

    def _as_it_was(self, value: Value) -> None:
        if self.is_blocked(value) and value not in self.plain:
            self.plain.add(value)
            self.builder.nodes.append(Node(OPS["from_blocks"], (self.in_blocks(value),), (value,), {"channels": value.shape[1]}, (),
                                           self.builder.loc))

    def is_blocked(self, value: Value) -> bool:
        """Whether a value comes in blocks."""
        return value in self.sums or value in self.blocked

    def is_ready(self, value: Value) -> bool:
        """Whether a value comes in blocks, or is to be turned where it is read."""
        return self.is_blocked(value) or value in self.turned

    def in_blocks(self, value: Value) -> Value:
        """The value in blocks: turned, if it is not."""
        if value in self.sums:
            self.blocked[value] = self._convolution(self.sums.pop(value))
        elif value not in self.blocked:
            (self.blocked[value],) = self.builder.add(OPS["to_blocks"], (value,))
            self.plain.add(value)
        return self.blocked[value]

    def _convolution(self, found: _Sum) -> Value:
        node = found.node
        outside, self.builder.loc = self.builder.loc, node.loc
        op = OPS[f"{node.op.name}_blocks"]
        given = {name: getattr(found, name) for name in ("scale", "shift", "residual") if name in op.attrs}
        attrs = {name: value for name, value in node.attrs.items() if name in op.attrs}
        (value,) = self.builder.add(
            op, (found.x, node.inputs[1], *(v for v in given.values() if v is not None)),
            {**attrs, **{name: v is not None for name, v in given.items()}, "relu": found.relu, "cap": found.cap})
        self.builder.loc = outside
        return value

    def open_sum(self, value: Value) -> Optional[_Sum]:
        """The convolution that a value is the result of, if only one node reads it and more may be done to it."""
        found = self.sums.get(value)
        return found if found is not None and self.readers[value] == 1 and not found.relu else None

    def of_channels(self, value: Value) -> Optional[Value]:
        """The numbers, one for each channel, that an operand of an elementwise op holds for all places; None if it is not such."""
        node = self.producers.get(value)
        if node is None or node.op.name != "broadcast_to":
            return None
        (given,) = node.inputs
        channels = value.shape[1]
        if given.ndim < 3 or given.shape[-3:] != (channels, 1, 1) or math.prod(given.shape) != channels or self.is_ready(given):
            return None
        return self.reshaped(given, (channels,))

    def reshaped(self, value: Value, shape: Sequence[int]) -> Value:
        """The same elements in another shape."""
        return value if value.shape == tuple(shape) else OPS["reshape"](value, shape=tuple(shape))

    def spread(self, value: Value, like: Value) -> Optional[Value]:
        """An operand of an elementwise op beside one in blocks; None where it would have to be turned."""
        if self.is_ready(value):
            return self.in_blocks(value)
        node = self.producers.get(value)
        given = self.of_channels(value)
        if given is not None:
            return self.spread_channels(self.reshaped(given, (1, *given.shape)), like)
        if node is None or node.op.name != "broadcast_to" or self.is_ready(node.inputs[0]):
            return None
        (given,) = node.inputs
        if math.prod(given.shape) == 1:
            return OPS["broadcast_to"](self.reshaped(given, ()), shape=in_blocks(like.shape))
        if given.shape == (*like.shape[:2], 1, 1):
            return self.spread_channels(self.reshaped(given, like.shape[:2]), like)
        return None

    def spread_channels(self, given: Value, like: Value) -> Value:
        """Numbers, one for each channel (of each image, or of all), beside images in blocks; zeros fill the last block."""
        images, channels = given.shape
        if channels % BLOCK:
            filling = OPS["constant"](value=np.zeros((images, -channels % BLOCK), given.dtype))
            given = OPS["concat"](given, filling, axis=1)
        return OPS["broadcast_to"](self.reshaped(given, (images, blocks_of(channels), 1, 1, BLOCK)), shape=in_blocks(like.shape))


def _regions(graph: Graph) -> List[Graph]:
    return [graph, *(region for node in graph.walk() for region in node.regions)]


# Nodes --------------------------------------------------------------------------------------------------------------


def _is_single(node: Node) -> bool:
    """Whether a node is about arrays of single precision, which the kernels are for; other results are of no account."""
    return all(isinstance(v.type, Tensor) and v.dtype == np.float32 for v in (*node.inputs, node.outputs[0]))


def _fits(node: Node) -> bool:
    """Whether a node is a convolution that the kernels for blocks are for."""
    if node.op.name != "conv" or len(node.attrs["size"]) != 2:
        return False
    (x, W), (y,), groups = node.inputs, node.outputs, node.attrs["groups"]
    if not _is_single(node) or not all(all(map(is_known, v.shape)) and 0 not in v.shape for v in (x, W, y)):
        return False
    if groups == W.shape[0] == x.shape[1] != 1:
        return math.prod(W.shape[2:]) <= _MOST_TAPS
    grown = math.prod(n + 2 * p + s for n, p, s in zip(x.shape[2:], node.attrs["pad"], node.attrs["stride"]))
    places = math.prod(y.shape[2:]) if W.shape[2:] == (1, 1) else y.shape[3]
    return places >= _PLACES and x.shape[1] * grown < _MOST and (groups == 1 or are_groups(x.shape[1], W.shape[0], groups))


def _conv(work: _Blocks, node: Node) -> bool:
    x = node.inputs[0]
    is_dense = node.attrs["groups"] == 1
    if not _fits(node) or not is_dense and not work.is_ready(x):
        return False
    work.sums[node.outputs[0]] = _Sum(node, work.in_blocks(x) if work.is_blocked(x) or not is_dense else x)
    return True


def _conv_transpose(work: _Blocks, node: Node) -> bool:
    if not _fits_transposed(node):
        return False
    work.sums[node.outputs[0]] = _Sum(node, work.in_blocks(node.inputs[0]))
    return True


def _fits_transposed(node: Node) -> bool:
    """Whether a node is a transposed convolution that the kernels for blocks are for."""
    if node.op.name != "conv_transpose" or len(node.attrs["size"]) != 2 or not _is_single(node):
        return False
    (x, W), (y,), attrs = node.inputs, node.outputs, node.attrs
    if attrs["groups"] != 1 or set(attrs["dilate"]) != {1} or not all(is_known(n) and n for v in (x, W, y) for n in v.shape):
        return False
    grown = math.prod(n + 2 * size for n, size in zip(x.shape[2:], W.shape[2:]))
    return x.shape[1] * grown < _MOST and math.prod(W.shape[2:]) <= _MOST_TAPS and are_transposed_windows(
        x.shape[2:], W.shape[2:], y.shape[2:], attrs["stride"], attrs["pad"])


def _change(work: _Blocks, node: Node, value: Value, **changes: object) -> bool:
    """Make a node a part of the convolution whose result it reads."""
    work.sums[node.outputs[0]] = work.sums.pop(value)._replace(**changes)
    return True


def _fixed_batch_norm(work: _Blocks, node: Node) -> bool:
    x, gamma, beta, mean, var = node.inputs
    found = work.open_sum(x)
    if node.attrs["axis"] != (0, 2, 3) or any(work.readers[v] for v in node.outputs[1:]) or not work.is_ready(x):
        return False
    scale = gamma * sqrt(1.0 / (var + node.attrs["eps"]))
    if found is not None and found.residual is None:
        shift = beta + (-mean if found.shift is None else found.shift - mean) * scale
        return _change(work, node, x, scale=scale if found.scale is None else found.scale * scale, shift=shift)
    factor, term = (work.spread_channels(work.reshaped(v, (1, *v.shape)), x) for v in (scale, beta - mean * scale))
    work.blocked[node.outputs[0]] = work.in_blocks(x) * factor + term
    return True


def _add(work: _Blocks, node: Node) -> bool:
    for value, other in (node.inputs, node.inputs[::-1]):
        found = work.open_sum(value)
        if found is None or found.residual is not None:
            continue
        term = work.of_channels(other)
        if term is not None:
            return _change(work, node, value, shift=term if found.shift is None else found.shift + term)
        if work.is_ready(other) and found.node.op.name == "conv":
            return _change(work, node, value, residual=work.in_blocks(other))
    return _elementwise(work, node)


def _relu(work: _Blocks, node: Node) -> bool:
    (x,) = node.inputs
    cap = node.attrs.get("cap")
    if work.open_sum(x) is not None and (cap is None or 0 < np.float32(cap) < math.inf):
        return _change(work, node, x, relu=True, cap=cap)
    return _elementwise(work, node)


def _elementwise(work: _Blocks, node: Node) -> bool:
    inside = [v for v in node.inputs if work.is_ready(v)]
    if not inside or len(node.outputs) != 1 or any(v.shape != node.outputs[0].shape for v in node.inputs):
        return False
    if inside[0].shape[1] % BLOCK and node.op.name not in _HARMLESS:
        return False
    operands = [work.spread(v, inside[0]) for v in node.inputs]
    if None in operands:
        return False
    (value,) = work.builder.add(node.op, tuple(v for v in operands if v is not None), node.attrs)
    work.blocked[node.outputs[0]] = value
    return True


def _max_pool(work: _Blocks, node: Node) -> bool:
    (x,), (y, places) = node.inputs, node.outputs
    if not work.is_ready(x) or work.readers[places]:
        return False
    (work.blocked[y],) = work.builder.add(OPS["max_pool_blocks"], (work.in_blocks(x),), node.attrs)
    return True


def _average_pool(work: _Blocks, node: Node) -> bool:
    (x,), (y,), attrs = node.inputs, node.outputs, node.attrs
    if not work.is_ready(x):
        return False
    if attrs["kernel"] == x.shape[2:] and not any(attrs["pad"]) and set(attrs["size"]) == {1}:
        return _of_whole_images(work, x, y, math.prod(attrs["kernel"]))
    (work.blocked[y],) = work.builder.add(OPS["average_pool_blocks"], (work.in_blocks(x),), attrs)
    return True


def _sum_or_mean(work: _Blocks, node: Node) -> bool:
    (x,), (y,) = node.inputs, node.outputs
    if not work.is_blocked(x) or node.attrs["axis"] != (2, 3):
        return False
    return _of_whole_images(work, x, y, math.prod(x.shape[2:]) if node.op.name == "mean" else 1)


def _of_whole_images(work: _Blocks, x: Value, y: Value, count: int) -> bool:
    """The sum of each whole image by ``count``, which leaves as it was."""
    found = OPS["sum"](work.in_blocks(x), axis=(2, 3))
    found = OPS["reshape"](found if count == 1 else found / float(count), shape=(x.shape[0], found.shape[1] * BLOCK))
    if x.shape[1] % BLOCK:
        found = OPS["getitem"](found, index=(slice(None), slice(0, x.shape[1])))
    OPS["reshape"](found, shape=y.shape)
    last = work.builder.nodes.pop()
    work.builder.nodes.append(replace(last, outputs=(y,)))
    return True


def _concat(work: _Blocks, node: Node) -> bool:
    if node.attrs["axis"] != 1 or not any(map(work.is_ready, node.inputs)) or not all(
            v.ndim == 4 and is_known(v.shape[1]) for v in node.inputs):
        return False
    channels = tuple([v.shape[1] for v in node.inputs])
    operands = tuple(map(work.in_blocks, node.inputs))
    fill = not any(count % BLOCK for count in channels[:-1])
    (work.blocked[node.outputs[0]],) = work.builder.add(OPS["concat"], operands, node.attrs) if fill else work.builder.add(
        OPS["join_blocks"], operands, {"channels": channels})
    return True


#: Elementwise ops that raise no warnings for what fills the last block.
_HARMLESS = frozenset("add sub mul neg relu clipped_relu leaky_relu elu maximum minimum abs tanh sigmoid hard_sigmoid square "
                      "clip copy".split())

#: What is done with nodes, by op: whether it was.
_RULES: Mapping[str, Callable[[_Blocks, Node], bool]] = {
    "conv": _conv, "conv_transpose": _conv_transpose, "fixed_batch_norm": _fixed_batch_norm,
    "add": _add, "relu": _relu, "clipped_relu": _relu, "max_pool": _max_pool,
    "average_pool": _average_pool, "mean": _sum_or_mean, "sum": _sum_or_mean, "concat": _concat}

"""Convolutions that follow each other keep their images in blocks of channels, with what stands between them as their ends."""
from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Callable, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from ..ir.building import Builder, building
from ..ir.graph import Graph, Node, Value
from ..ir.op import OPS
from ..ops.channel_blocks import BLOCK, blocks_of, in_blocks
from ..ops.elementwise import sqrt
from .blocked_convolutions import convolves_sequences, fits, fits_transposed, is_single
from .blocked_parts import Taken, gain_of, gain_of_maxima, gain_of_transposed, worthwhile
from .channel_moves import MOVES, Channels, moved, of_image
from .place_moves import PLACES, in_places
from .sequence_images import images_of_sequences


def block_channels(graph: Graph, layout: str = "") -> Graph:
    """Compute chains of convolutions on images in blocks of channels, ``(batch, blocks, rows, columns, 16)``.

    Fixed batch normalisation, biases, residual sums and ReLU become parts of `conv_blocks`; pooling, joins, parts and shuffles of
    channels and other elementwise ops are computed in blocks, too.  What others read is turned back.  Only those parts of the graph
    change for which that pays by an estimate, if ``layout`` does not name another one of the `layouts`.  For native code.  As long
    as a minimum cut takes.
    """
    found = layouts(graph)
    return found[layout] if layout in found else next(iter(found.values()))


def layouts(graph: Graph) -> Dict[str, Graph]:
    """The graph with its images in each of the ways that there are, the one of the estimate first: plain, in blocks, in parts."""
    images = images_of_sequences(graph, convolves_sequences)
    if not any(fits(node) or fits_transposed(node) for node in images.nodes):
        return {"plain": graph}
    everything = _Blocks(images)
    in_blocks = everything.rewritten()
    chosen = worthwhile(images, everything.taken)
    if not chosen:
        return {"plain": graph, "blocks": in_blocks}
    if len(chosen) == len(everything.taken):
        return {"blocks": in_blocks, "plain": graph}
    parts = _Blocks(images, chosen, [value for one in everything.taken if not one.leaves for value in one.node.outputs
                                    if value.ndim == 4])
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

    sums: results of convolutions that are not in the graph yet.  moved: values that hold channels of images in blocks, and are not
    in the graph yet.  blocked: values in blocks; plain: those of all these that are there as they were, too.  taken: the nodes that
    are computed in blocks.

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
        self.moved: Dict[Value, Channels] = {}
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
        if self.chosen is not None and node not in self.chosen or not is_single(node):
            rule = None
        if rule not in (_move, _move_places, _elementwise) and any(v.ndim != 4 and v in self.blocked for v in node.inputs):
            rule = None
        with building(self.builder):
            operands = tuple([v for v in node.inputs if self.is_ready(v) or v in self.moved])
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
            value = node.outputs[0]
            gain = gain_of_maxima(node) if node.op.name == "max_pool" else 0.0
            self.taken.append(Taken(node, operands, gain, leaves=not self.is_blocked(value) and value not in self.moved))

    def _keep(self, node: Node) -> None:
        for value in (*node.inputs, *(v for inner in node.walk() for v in inner.inputs)):
            self._as_it_was(value)
        self.builder.nodes.append(node)

    def _as_it_was(self, value: Value) -> None:
        if value in self.plain or not self.is_blocked(value) and value not in self.moved:
            return
        self.plain.add(value)
        channels = self.moved[value].numbers.size if value in self.moved else value.shape[1]
        operand = self._put_together(self.moved[value]) if value in self.moved and value.ndim != 4 else self.in_blocks(value)
        last, attrs = "from_blocks", {"channels": channels}
        if value.ndim != 4:
            operand = self.reshaped(operand, (*operand.shape[:2], 1, math.prod(operand.shape[2:-1]), BLOCK))
            (operand,) = self.builder.add(OPS[last], (operand,), attrs)
            last, attrs = "reshape", {"shape": value.shape}
        self.builder.nodes.append(Node(OPS[last], (operand,), (value,), attrs, (), self.builder.loc))

    def is_blocked(self, value: Value) -> bool:
        """Whether a value comes in blocks."""
        return value in self.sums or value in self.blocked or value in self.moved and value.ndim == 4

    def is_ready(self, value: Value) -> bool:
        """Whether a value comes in blocks, or is to be turned where it is read."""
        return self.is_blocked(value) or value in self.turned

    def in_blocks(self, value: Value) -> Value:
        """The value in blocks: turned, if it is not."""
        if value in self.sums:
            self.blocked[value] = self._convolution(self.sums.pop(value))
        elif value in self.moved and value not in self.blocked:
            self.blocked[value] = self._put_together(self.moved[value])
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

    def _put_together(self, found: Channels) -> Value:
        """Channels of images as one image in blocks."""
        channels = tuple([image.shape[1] for image in found.images])
        operands = tuple(map(self.in_blocks, found.images))
        is_join = found.is_join()
        if is_join and len(operands) == 1:
            return operands[0]
        if is_join and not any(count % BLOCK for count in channels[:-1]):
            return self.builder.add(OPS["concat"], operands, {"axis": 1})[0]
        order = () if is_join else tuple(found.numbers.ravel().tolist())
        return self.builder.add(OPS["join_blocks"], operands, {"channels": channels, "order": order})[0]

    def channels_of(self, value: Value) -> Channels:
        """The channels that a value holds."""
        found = self.moved.get(value)
        return of_image(value) if found is None or value in self.blocked else found

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
        return value if value.shape == tuple(shape) else self.builder.add(OPS["reshape"], (value,), {"shape": tuple(shape)})[0]

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


def _conv(work: _Blocks, node: Node) -> bool:
    x = node.inputs[0]
    is_dense = node.attrs["groups"] == 1
    if not fits(node) or not is_dense and not work.is_ready(x):
        return False
    work.sums[node.outputs[0]] = _Sum(node, work.in_blocks(x) if work.is_blocked(x) or not is_dense else x)
    return True


def _conv_transpose(work: _Blocks, node: Node) -> bool:
    if not fits_transposed(node):
        return False
    work.sums[node.outputs[0]] = _Sum(node, work.in_blocks(node.inputs[0]))
    return True


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
    operands = [work.spread(v, inside[0]) for v in node.inputs if v.ndim == 4 or work.is_blocked(v)]
    if None in operands or len(operands) != len(node.inputs):
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
        return _of_whole_images(work, x, y, "sum", math.prod(attrs["kernel"]))
    (work.blocked[y],) = work.builder.add(OPS["average_pool_blocks"], (work.in_blocks(x),), attrs)
    return True


def _reduction(work: _Blocks, node: Node) -> bool:
    (x,), (y,), name = node.inputs, node.outputs, node.op.name
    if not work.is_blocked(x) or node.attrs["axis"] != (2, 3):
        return False
    return _of_whole_images(work, x, y, *("sum", math.prod(x.shape[2:])) if name == "mean" else (name, 1))


def _of_whole_images(work: _Blocks, x: Value, y: Value, name: str, count: int) -> bool:
    """A reduction of each whole image by ``count``, which leaves as it was."""
    found = OPS[name](work.in_blocks(x), axis=(2, 3))
    found = OPS["reshape"](found if count == 1 else found / float(count), shape=(x.shape[0], found.shape[1] * BLOCK))
    if x.shape[1] % BLOCK:
        found = OPS["getitem"](found, index=(slice(None), slice(0, x.shape[1])))
    OPS["reshape"](found, shape=y.shape)
    last = work.builder.nodes.pop()
    work.builder.nodes.append(replace(last, outputs=(y,)))
    return True


def _move(work: _Blocks, node: Node) -> bool:
    if not any(value in work.moved or work.is_ready(value) for value in node.inputs):
        return False
    operands = [work.channels_of(value) for value in node.inputs if value in work.moved or value.ndim == 4]
    found = moved(node, operands) if len(operands) == len(node.inputs) else None
    if found is None:
        return node.op.name in PLACES and _move_places(work, node)
    if node.op.name == "concat" and len(operands) > 1:          # what comes from several images is not read from all of them again
        found = moved(node, [of_image(value) if len(one.images) > 1 and value.ndim == 4 else one
                             for value, one in zip(node.inputs, operands)])
    for image in dict.fromkeys(image for one in found for image in one.images):
        work.in_blocks(image)
    work.moved.update(zip(node.outputs, found))
    return True


def _move_places(work: _Blocks, node: Node) -> bool:
    attrs = in_places(node) if work.is_ready(node.inputs[0]) else None
    if attrs is None:
        return False
    (work.blocked[node.outputs[0]],) = work.builder.add(node.op, (work.in_blocks(node.inputs[0]),), attrs)
    return True


#: Elementwise ops that raise no warnings for what fills the last block.
_HARMLESS = frozenset("add sub mul neg relu clipped_relu leaky_relu elu maximum minimum abs tanh sigmoid hard_sigmoid square "
                      "clip copy".split())

#: What is done with nodes, by op: whether it was.
_RULES: Mapping[str, Callable[[_Blocks, Node], bool]] = {
    "conv": _conv, "conv_transpose": _conv_transpose, "fixed_batch_norm": _fixed_batch_norm,
    "add": _add, "relu": _relu, "clipped_relu": _relu, "max_pool": _max_pool,
    "average_pool": _average_pool, **{name: _reduction for name in ("sum", "mean", "max", "min")},
    **{name: _move_places for name in PLACES}, **{name: _move for name in MOVES}}

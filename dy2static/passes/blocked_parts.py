"""Which nodes are worth computing on images in blocks of channels: a minimum cut between those that are and those that are not."""
from __future__ import annotations

import math
from collections import Counter
from typing import Dict, Hashable, Iterator, List, NamedTuple, Sequence, Set, Tuple

from ..ir.graph import Graph, Node, Value
from ..native.cpus import has_long_vectors
from ..ops.channel_blocks import BLOCK
from .convolution_speed import MORE, TURN, Speed, is_winograd, of_plain_images, speed_here
from .memory.min_cut import Network

#: So many convolutions for each image that is turned: where every result is wanted as it was, nothing is gained.
CHAIN = 2
#: Parts are worth more than all nodes if these gain less than this part of it: the estimate is not more precise.
_MUCH = 0.8
#: How many times as much filters that take one channel each save in blocks if they step.
_STEPS = 3
#: How many times as long as in convolutions multiplications take in transposed ones, of plain images and in blocks; and nanoseconds
#: that it takes to turn a tap of a filter for these (one core of a Zen 4 with AVX-512 and with AVX2).
_TRANSPOSED, _IN_PHASES, _TAP = 1.2, 1.1, 0.5
#: Taps of maxima that cost nothing: those of two by two take nearly as long in both ways.  And nanoseconds: what a row of maxima
#: of a plain image takes besides these.
_FEW_TAPS, _ROW = 2, 25.0
_PLAIN, _BLOCKED = "plain", "blocked"


class Taken(NamedTuple):
    """A node that can be computed in blocks.

    operands: the values that it then reads in blocks.  gain: nanoseconds that are saved; if its operand is as it was, and it may
    stay so, ``plain_gain``.  leaves: whether its result is as it was in any case.
    """

    node: Node
    operands: Tuple[Value, ...]
    gain: float = 0.0
    plain_gain: float = 0.0
    may_stay: bool = False
    leaves: bool = False
    is_convolution: bool = False

    def results(self) -> Tuple[Value, ...]:
        """The results that come in blocks."""
        return self.node.outputs if self.node.op.name == "split" else self.node.outputs[:1]


class _Flow:
    """Who makes and who reads the values between nodes that can be computed in blocks.

    made: the number of the node that makes a value.  readers: those that read it in blocks.  others: values that are read as
    they are.
    """

    def __init__(self, graph: Graph, taken: Sequence[Taken]):
        self.taken = taken
        self.made = {value: k for k, one in enumerate(taken) if not one.leaves for value in one.results()}
        self.readers: Dict[Value, List[int]] = {}
        for k, one in enumerate(taken):
            for value in dict.fromkeys(one.operands):
                self.readers.setdefault(value, []).append(k)
        read = Counter(v for node in graph.walk() for v in node.inputs)
        read.update(v for region in [graph, *(inner for node in graph.walk() for inner in node.regions)] for v in region.outputs)
        read.subtract(v for one in taken for v in one.node.inputs if v in one.operands)
        self.others = {value for value in self.made if read[value] > 0}

    def values(self) -> Dict[Value, None]:
        """All values that may be in blocks."""
        return dict.fromkeys((*self.made, *self.readers))


def worthwhile(graph: Graph, taken: Sequence[Taken]) -> Set[Node]:
    """The nodes among those that can be computed in blocks for which that takes the least time in all, by the estimate.

    They are all of them unless parts gain clearly more.  Nodes with a result that is as it was in any case are among them.
    """
    flow = _Flow(graph, taken)
    every = {k for k, one in enumerate(taken) if not one.leaves}
    chosen = every - _network(flow).sink_side(_BLOCKED, _PLAIN)
    chosen -= _short(flow, chosen)
    if not _short(flow, every) and _gained(flow, every) > max(0.0, _MUCH * _gained(flow, chosen)):
        chosen = every
    return {one.node for k, one in enumerate(taken)
            if k in chosen or one.leaves and any(flow.made.get(v) in chosen for v in one.operands)}


def _network(flow: _Flow) -> Network:
    """The sink's side of a cut are the nodes that stay as they are; its edges are what is lost."""
    network = Network()
    for k, one in enumerate(flow.taken):
        if one.leaves:
            continue
        if one.gain > 0:
            network.add(_BLOCKED, k, one.gain)
        else:
            network.add(k, _PLAIN, -one.gain)
    for value in flow.values():
        cost = math.prod(value.shape) * TURN if value.ndim == 4 else math.inf       # only images are turned
        maker: Hashable = flow.made.get(value, _PLAIN)
        readers = [k for k in flow.readers.get(value, ()) if not flow.taken[k].leaves]
        if maker != _PLAIN:
            network.add(maker, (value, "from"), cost)
            for reader in [*readers, *([_PLAIN] if value in flow.others else ())]:
                network.add((value, "from"), reader, math.inf)
        network.add((value, "to"), maker, cost)
        for k in readers:
            one = flow.taken[k]
            if one.may_stay:
                network.add(k, maker, max(0.0, one.gain - one.plain_gain))
            else:
                network.add(k, (value, "to"), math.inf)
    return network


def _turned(flow: _Flow, chosen: Set[int]) -> Iterator[Tuple[Value, int]]:
    """The values that are turned to or from blocks, and a chosen node that makes or reads each of them."""
    for value in flow.values():
        maker, readers = flow.made.get(value), flow.readers.get(value, ())
        if maker in chosen:
            if value in flow.others or any(k not in chosen and not flow.taken[k].leaves for k in readers):
                yield value, maker
        else:
            inside = [k for k in readers if k in chosen and not flow.taken[k].may_stay]
            yield from ((value, k) for k in inside[:1])


def _gained(flow: _Flow, chosen: Set[int]) -> float:
    """Nanoseconds, by the estimate."""
    gained = 0.0
    for k in chosen:
        one = flow.taken[k]
        stays = one.may_stay and not any(flow.made.get(v) in chosen for v in one.operands)
        gained += one.plain_gain if stays else one.gain
    return gained - TURN * sum([math.prod(value.shape) for value, _ in _turned(flow, chosen)])


def _short(flow: _Flow, chosen: Set[int]) -> Set[int]:
    """Those of the chosen nodes that are connected with too few convolutions for the images that are turned around them."""
    groups = {k: {k} for k in chosen}
    for value in flow.values():
        near = [k for k in (flow.made.get(value), *flow.readers.get(value, ())) if k in chosen]
        for a, b in zip(near, near[1:]):
            if groups[a] is not groups[b]:
                groups[a] |= groups[b]
                for k in groups[b]:
                    groups[k] = groups[a]
    turns = Counter(k for _, k in _turned(flow, chosen))
    convolutions = Counter(k for k in chosen if flow.taken[k].is_convolution)
    return {k for k in chosen if sum([convolutions[j] - CHAIN * turns[j] for j in groups[k]]) < 0}


def gain_of(node: Node, is_plain: bool) -> float:
    """How many nanoseconds a convolution takes less in blocks, about."""
    (x, W), (y,), attrs = node.inputs, node.outputs, node.attrs
    groups, size, speed = attrs["groups"], math.prod(y.shape), speed_here()
    if groups == y.shape[1] != 1:
        number, tap = speed.depthwise
        return size * (number + tap * math.prod(W.shape[2:])) * (1 if attrs["stride"] == (1, 1) else _STEPS)
    inner, outer = W.shape[1], W.shape[0] // groups
    if groups > 1 and inner == outer and inner in speed.small:
        is_nine = W.shape[2:] == (3, 3) and attrs["dilate"] == (1, 1)
        plain, blocked = speed.small[inner][0 if is_nine else 1 if attrs["stride"] == (1, 1) else 2]
        return size * math.prod(W.shape[1:]) * (plain - blocked)
    winograd = not is_plain and is_winograd(W.shape, groups, y.shape, attrs["stride"], attrs["dilate"])
    least = BLOCK // 2 if not winograd and not has_long_vectors() else BLOCK      # channels that are computed together
    filled = -(-y.shape[1] // least) * least / y.shape[1]
    each = speed.winograd * (MORE if attrs["stride"] == (2, 2) else 1) if winograd else speed.in_blocks * _of_tiles(node, speed)
    may_turn = groups == 1 and attrs["stride"] == (1, 1)
    plain_time = of_plain_images(W.shape, x.shape, y.shape, attrs["dilate"], may_turn)
    if not is_plain:
        plain_time += speed.each * (math.prod(x.shape) + size)
    return plain_time - size * math.prod(W.shape[1:]) * filled * each


def gain_of_transposed(node: Node) -> float:
    """How many nanoseconds a transposed convolution takes less in blocks, about."""
    (x, W), (y,), speed = node.inputs, node.outputs, speed_here()
    filled = -(-y.shape[1] // BLOCK) * BLOCK / y.shape[1]
    multiplications = math.prod(x.shape) * math.prod(W.shape[1:])
    return multiplications * (_TRANSPOSED * speed.direct - _IN_PHASES * speed.in_blocks * filled) - _TAP * math.prod(W.shape)


def gain_of_maxima(node: Node) -> float:
    """How many nanoseconds maxima of windows take less in blocks, about."""
    taps, shape = math.prod(node.attrs["kernel"]), node.outputs[0].shape
    return math.prod(shape) * max(0, taps - _FEW_TAPS) * speed_here().maxima + math.prod(shape[:-1]) * _ROW


def _of_tiles(node: Node, speed: Speed) -> float:
    """How many times as long multiplications take because tiles hold fewer places than they could."""
    (_, W), (y,), attrs = node.inputs, node.outputs, node.attrs
    is_flat = W.shape[2:] == attrs["stride"] == (1, 1) and not any(attrs["pad"])
    is_short = not has_long_vectors() and y.shape[3] <= 4 * -(-y.shape[3] // speed.most)        # a tile has places of several rows
    places = math.prod(y.shape[2:]) if is_flat or is_short else y.shape[3]
    return max(1.0, speed.few * -(-places // speed.most) / places)

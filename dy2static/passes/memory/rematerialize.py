"""Rematerialization: which values are kept for the backward, and which are recomputed."""
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Collection, Dict, Iterable, List, Optional, Sequence, Set

from ...ir.graph import Graph, Node, Value
from ...ir.types import Tensor
from ...options import Recompute
from ..effects import must_run
from .min_cut import Network

#: The cost in bytes of keeping one more array, besides its own bytes.
_PER_ARRAY = 64.0

#: The guess for a size that only the run knows.
_UNKNOWN = 32

#: Kinds of ops that may run again with the same result, and the cheap ones among them.
_PURE = ("elementwise", "view", "creation", "reduction", "contraction", "movement")
_CHEAP = ("elementwise", "view", "creation")

#: Without being asked, so many bytes must be saved, and this part of them, before anything is computed again.
_WORTH, _PART = 1 << 23, 0.125

#: The most segments that a forward is divided into.
_MOST_SEGMENTS = 32


@dataclass(frozen=True)
class Saving:
    """What decides which values of one forward are kept.

    forward: its graph.  needed: the values that its backward reads and that would be kept.  there: values that are available
    in any case.  fixed: values from which nothing may be recomputed, because their contents will have changed.
    deciding: values that the run itself reads again later.
    """

    forward: Graph
    needed: Sequence[Value]
    there: Collection[Value]
    fixed: Collection[Value] = ()
    deciding: Collection[Value] = ()

    def kept(self, mode: Recompute) -> Optional[Set[Value]]:
        """The values to keep; None for all that are needed."""
        if mode == "none" or not self.needed:
            return None
        if mode == "auto":
            return self._own()
        if mode == "cheap":
            return self._cheap()
        if mode == "sublinear":
            return min(self._segmented(), key=self._peak)
        return self._within(int(mode))

    # --- what may be computed again ------------------------------------------------------------------------------------

    def _repeatable(self, kinds: Sequence[str]) -> Set[Node]:
        """The nodes that may run again: pure ones that read no value that changes."""
        fixed, there, found = set(self.fixed), {*self.there, *self.deciding}, set()
        for node in self.forward.nodes:
            if node.op.view and not fixed.isdisjoint(node.inputs[:1]):
                fixed.update(node.outputs)
            elif node.op.kind in kinds and not must_run(node) and not node.regions and fixed.isdisjoint(node.inputs) \
                    and (node.op.view or not node.outputs or there.isdisjoint(node.outputs)) \
                    and all(_size(v) and v.ndim for v in node.outputs if not node.op.view):
                found.add(node)
        return found

    def _free(self) -> Set[Value]:
        return {*self.there, *self.forward.inputs}

    def _closed(self, kept: Set[Value], again: Set[Node]) -> Set[Value]:
        """The values of ``kept`` that are read, and those that the nodes of ``again`` cannot recompute from them."""
        producers, free = self.forward.producers(), self._free()
        found: Set[Value] = set()
        seen: Set[Value] = set()
        waiting = list(self.needed)
        while waiting:
            value = waiting.pop()
            if value in seen:
                continue
            seen.add(value)
            node = producers.get(value)
            if value in free or node is None:
                continue
            redone = node.op.view or node.op.name == "constant"
            if not redone and (node not in again or not kept.isdisjoint(node.outputs)):
                found.add(value)                        # all results of a node that are read are kept, or none
            else:
                waiting += node.inputs
        return found

    # --- cheap: the fewest bytes from which elementwise ops compute the rest ----------------------------------------

    def _cheap(self) -> Set[Value]:
        again = self._repeatable(_CHEAP)
        producers, free, network = self.forward.producers(), self._free(), Network()
        outputs = set(self.forward.outputs)
        seen: Set[Value] = set()
        waiting = list(self.needed)
        for value in self.needed:
            network.add((value, "out"), "backward", math.inf)
        while waiting:
            value = waiting.pop()
            node = producers.get(value)
            if value in seen or value in free or node is None:
                continue
            seen.add(value)
            redone = node.op.view or node.op.name == "constant"
            savable = not redone and (value not in outputs or value in self.needed)
            network.add((value, "in"), (value, "out"), _size(value) + _PER_ARRAY if savable else math.inf)
            if redone or node in again:
                for operand in node.inputs:
                    if operand in producers and operand not in free:
                        network.add((operand, "out"), (value, "in"), math.inf)
                        waiting.append(operand)
            else:
                network.add("forward", (value, "in"), math.inf)
        behind = network.sink_side("forward", "backward")
        return self._closed({v for v in seen if (v, "out") in behind and (v, "in") not in behind}, again)

    def _own(self) -> Optional[Set[Value]]:
        """As `_cheap`, but from nothing that the caller has, and may change before the backward; None where that saves little."""
        total = _bytes_of(self.needed)
        if total < _WORTH:
            return None
        fixed = {*self.fixed, *self.there, *(v for v in self.forward.inputs if isinstance(v.type, Tensor))}
        kept = replace(self, fixed=fixed, deciding={*self.deciding, *fixed})._cheap()      # nor are these themselves made again
        return kept if total - _bytes_of(kept) >= max(_WORTH, _PART * total) else None

    # --- sublinear: what crosses from one segment to the next --------------------------------------------------------

    def _segmented(self) -> List[Set[Value]]:
        """What is kept with 1, 2, ... segments; all segments but the last one are recomputed."""
        return [self._of_segments(count, True) for count in self._counts()]

    def _counts(self) -> Iterable[int]:
        return range(1, min(_MOST_SEGMENTS, len(self.needed)) + 1)

    def _of_segments(self, count: int, last: bool) -> Set[Value]:
        """What is kept with so many segments of about the same bytes.  last: also the values of the last one."""
        segment, again = self._segments(count), self._repeatable(_PURE)
        drawn = {v for node in self.forward.nodes if node.op.effect for v in node.outputs}
        kept = {v for v in self.needed if last and segment.get(v) == count - 1}
        for node in self.forward.nodes:
            for value in node.outputs:
                for operand in node.inputs:
                    if operand in segment and segment[operand] < segment[value]:
                        kept.add(operand)
            if any(v in drawn and _size(v) > _size(node.outputs[0]) for v in node.inputs):
                kept.update(node.outputs)               # a mask instead of the numbers it was made of
        views = {v: node.inputs[0] for node in self.forward.nodes if node.op.view for v in node.outputs}
        for value in list(kept):                        # in place of a view, what it shows is kept
            while value in views:
                value = views[value]
            kept.add(value)
        return self._closed(kept, again)

    def _segments(self, count: int) -> Dict[Value, int]:
        """The segment of each value made in the forward."""
        needed = set(self.needed)
        total = _bytes_of(self.needed)
        found: Dict[Value, int] = {}
        made = 0
        for node in self.forward.nodes:
            number = min(count - 1, made * count // max(total, 1))
            found.update(dict.fromkeys(node.outputs, number))
            made += _bytes_of(v for v in node.outputs if v in needed)
        return found

    def _peak(self, kept: Set[Value]) -> float:
        """About the peak of bytes in the backward: what is kept, and the largest stretch that is recomputed."""
        largest = run = 0
        needed = set(self.needed)
        for node in self.forward.nodes:
            if not kept.isdisjoint(node.outputs):
                largest, run = max(largest, run), 0
            run += _bytes_of(v for v in node.outputs if v in needed and v not in kept)
        return _bytes_of(kept) + max(largest, run)

    # --- a number of bytes -------------------------------------------------------------------------------------------

    def _within(self, budget: int) -> Optional[Set[Value]]:
        """The first plan that keeps within a budget, from the least recomputation to the most; else the smallest one."""
        if _bytes_of(self.needed) <= budget:
            return None
        plans = [self._cheap()]
        for count in reversed(self._counts()):
            plans += [self._of_segments(count, True), self._of_segments(count, False)]
        for kept in plans:
            if _bytes_of(kept) <= budget:
                return kept
        return min(plans, key=lambda kept: _bytes_of(kept))


def _size(value: Value) -> int:
    """The bytes of an array, with a guess for sizes that only the run knows; 0 of anything else."""
    if not isinstance(value.type, Tensor):
        return 0
    return math.prod(n if isinstance(n, int) else _UNKNOWN for n in value.shape) * value.dtype.itemsize


def _bytes_of(values: Iterable[Value]) -> int:
    return sum(_size(v) for v in values)


def schedule_late(graph: Graph, arriving: Collection[Value]) -> Graph:
    """Move nodes that do not depend on the arriving gradients to just before their first reader.

    Linear in nodes + edges.
    """
    producers = graph.producers()
    following: Set[Value] = set(arriving)
    place = {node: k for k, node in enumerate(graph.nodes)}
    nodes: List[Node] = []
    done: Set[Node] = set()
    for node in graph.nodes:
        if must_run(node) or not following.isdisjoint(node.inputs):
            following.update(node.outputs)
            for other in sorted(_ancestors(node, producers, done), key=place.__getitem__):
                nodes.append(other)
    ends = [producers[v] for v in graph.outputs if v in producers]
    for node in ends:
        nodes += sorted(_ancestors(node, producers, done), key=place.__getitem__)
    return graph.with_(nodes=tuple(nodes))


def _ancestors(node: Node, producers: Dict[Value, Node], done: Set[Node]) -> List[Node]:
    """A node and the nodes that it needs, except those in ``done``, to which all of them are added."""
    found, waiting = [], [node]
    while waiting:
        node = waiting.pop()
        if node not in done:
            done.add(node)
            found.append(node)
            waiting += [producers[v] for v in node.inputs if v in producers]
    return found


def mark_recomputed(graph: Graph, forward: Graph) -> Graph:
    """Mark the nodes that ran in the forward as recomputed: NumPy has already warned about them."""
    ran = set(forward.nodes)
    return graph.with_(nodes=tuple(replace(node, recomputed=True) if node in ran and not node.op.view else node
                                   for node in graph.nodes))

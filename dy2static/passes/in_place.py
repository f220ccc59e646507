"""Updates: what gives arrays that exist new contents, all or a part of them, taken out of a graph to be done in their memory."""
from __future__ import annotations

import collections
import math
import operator
from dataclasses import dataclass, replace
from typing import (
    AbstractSet,
    Any,
    Collection,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

import numpy as np

from ..ir.dims import is_known
from ..ir.graph import Graph, Node, Value
from ..ir.types import Scalar, Tensor, Type
from ..library_facts.python import OPERATORS
from .cleanup.dce import eliminate_dead
from .effects import must_run
from .memory.aliases import aliased_operands
from .rewriting import with_inputs

#: What gives one number for all elements, and is computed again in each update that reads it.
_NUMBERS = ("constant", "scalar_to_tensor")

#: Parts of arrays of so many bytes are written in place.
_LEAST = 1 << 15

#: Ops that give their operand; what they mean, they mean for gradients.
_PASSING = ("identity", "stop_gradient", "gradient_of")

#: Kinds of ops whose results may be memory of anybody's; those of them that are NumPy, new arrays or views of operands.
_UNKNOWN_MEMORY = ("effect", "opaque")
_OF_NUMPY = ("numpy_call", "checked_call", "sized_call")


@dataclass(frozen=True, eq=False)
class Update:
    """Some arrays of one shape, each of whose elements becomes what elements at the same place decide.

    Or it is one array, into parts of which calls of NumPy write.

    graph: gives their new contents.  targets: per output, the input of that graph in whose memory it goes.
    places: per output, which output of the whole graph it is.
    """

    graph: Graph
    targets: Tuple[int, ...]
    places: Tuple[int, ...]


class Parted(NamedTuple):
    """A graph in two: what is computed first, and what is then changed.

    graph: without the updates; in the place of each output that they give, it gives what is there before.
    saved: what the updates read of it, besides its inputs and outputs.
    """

    graph: Graph
    updates: Tuple[Update, ...]
    saved: Tuple[Value, ...]


def part_updates(graph: Graph, targets: Mapping[int, Value], filling: Collection[int], saved: Collection[Value],
                 apart: Collection[Value], writes: bool = True) -> Parted:
    """Take the updates out of a graph.

    targets: per output that is to fill an input, that input.  filling: other outputs that fill arrays of the caller's, later.
    saved: what is read of the graph besides its outputs.  apart: inputs that share no memory with each other.
    writes: whether NumPy may write into parts of arrays.

    An output that is neither made element by element nor by writes into parts of its array stays where it is, and so does one
    where another update, or an output that fills an array later, may read the memory that it would change.  What may fail in a
    write is looked at where the write was.  Linear in nodes, for each time that such a one is found.
    """
    graph = _seen_through(graph, targets, tuple(saved))
    count, apart = collections.Counter(graph.outputs), frozenset(apart)
    chosen = {k: target for k, target in targets.items() if count[graph.outputs[k]] == 1
              and graph.outputs[k].type == target.type and target.ndim and target in apart}
    while True:
        search = _Search(graph, chosen, saved, writes)
        wrong = search.not_made() or search.in_conflict({*targets, *filling}.difference(chosen), apart)
        if not wrong:
            return search.parted()
        chosen = {k: target for k, target in chosen.items() if k not in wrong}


def _is_of_anybody(node: Node) -> bool:
    """Whether an array that a node gives may be in any memory."""
    is_numpy = node.op.name in _OF_NUMPY and getattr(node.attrs["call"], "trusted", False)
    return node.op.kind in _UNKNOWN_MEMORY and not is_numpy and any(not isinstance(v.type, Scalar) for v in node.outputs)


def _is_arithmetic(node: Node) -> bool:
    """Whether a call of NumPy gives one new array always."""
    function = getattr(node.attrs.get("call"), "function", None) if node.op.name in _OF_NUMPY else None
    return isinstance(function, np.ufunc) or any(function is row.function for row in OPERATORS)


def _seen_through(graph: Graph, places: Collection[int], saved: Tuple[Value, ...]) -> Graph:
    """The graph whose nodes, and outputs at these places, are of what others only pass on: it has been differentiated."""
    before: Dict[Value, Value] = {}
    nodes = []
    for node in graph.nodes:
        if not before.keys().isdisjoint(node.inputs):
            node = with_inputs(node, tuple([before.get(v, v) for v in node.inputs]))
        if node.op.name in _PASSING:
            before[node.outputs[0]] = node.inputs[0]
        nodes.append(node)
    outputs = tuple([before.get(v, v) if k in places else v for k, v in enumerate(graph.outputs)])
    return eliminate_dead(graph.with_(nodes=tuple(nodes), outputs=outputs + saved)).with_(outputs=outputs)


def writes_part(node: Node) -> bool:
    """Whether a node gives its first operand after a write into it that can be done in the array itself.

    Of what may fail, these are writes at numbers, which are in the array or not whatever is written.  Small arrays are
    copied faster.
    """
    call = node.attrs.get("call") if node.op.name in ("numpy_call", "checked_call") else None
    if not hasattr(getattr(call, "function", None), "in_place") or not call.single or len(node.outputs) != 1 or node.recomputed:
        return False
    contents, *rest = node.inputs
    return getattr(call.args[0], "index", None) == 0 and contents not in rest and _is_large(contents.type) and (
        not must_run(node) or _is_at_numbers(node))


def _is_at_numbers(node: Node) -> bool:
    """Whether a write assigns an item at an index of numbers and slices that are known."""
    _, steps, function, args, kwargs = node.attrs["call"].args
    if steps or kwargs or function is not operator.setitem:
        return False
    key = args[0] if isinstance(args[0], tuple) else (args[0],)
    return all(part is None or part is Ellipsis or type(part) is int or _is_known(part) or isinstance(
        getattr(node.inputs[part.index], "type", None) if hasattr(part, "index") and type(part.index) is int else None, Scalar)
        for part in key)


def _is_large(type: Type) -> bool:
    if not isinstance(type, Tensor):
        return False
    return not all(map(is_known, type.shape)) or math.prod(type.shape) * type.dtype.itemsize >= _LEAST


def _is_known(part: Any) -> bool:
    return isinstance(part, slice) and all(end is None or type(end) is int for end in (part.start, part.stop, part.step))


class _Search:
    """The updates that there are if the chosen outputs fill their targets."""

    def __init__(self, graph: Graph, targets: Mapping[int, Value], saved: Collection[Value], writes: bool):
        self.graph, self.targets, self.saved = graph, targets, saved
        self.writes = {node for node in graph.nodes if writes and targets and writes_part(node)}
        self.producers = graph.producers()
        self.made = {graph.outputs[k]: k for k in targets}
        self.filled = set(targets.values())
        self.nodes = self._changing()
        self.groups = self._grouped()
        self._memories: Dict[Value, Optional[FrozenSet[Value]]] = {}
        self._inside: Dict[FrozenSet[Value], bool] = {}

    # What belongs to updates

    def _changing(self) -> Set[Node]:
        """The nodes that nothing but targets needs, element by element."""
        others = {v for k, v in enumerate(self.graph.outputs) if k not in self.targets}.union(self.saved)
        readers: Dict[Value, List[Node]] = {}
        found: Set[Node] = set()
        for node in reversed(self.graph.nodes):
            is_write = node in self.writes
            if is_write or self._is_by_element(node):
                (value,) = node.outputs
                read = readers.get(value, ())
                if value not in others and (read or value in self.made) and found.issuperset(read) \
                        and all([(reader in self.writes) == is_write for reader in read]):
                    found.add(node)
            for value in node.inputs:
                readers.setdefault(value, []).append(node)
        return found

    def _is_by_element(self, node: Node) -> bool:
        if node.op.kind != "elementwise" or len(node.outputs) != 1 or node.recomputed or must_run(node):
            return False
        shape = node.outputs[0].shape
        return bool(shape) and all(isinstance(v.type, Tensor) and v.shape == shape for v in node.inputs)

    def not_made(self) -> Set[int]:
        """The chosen outputs that are not made in updates."""
        return {k for value, k in self.made.items() if self.producers.get(value) not in self.nodes}

    def _grouped(self) -> List[List[Node]]:
        """The nodes by update: those that read what others make, or the array that they fill, belong together."""
        joined: Dict[Any, Any] = {}

        def first(item: Any) -> Any:
            while item in joined:
                above = joined[item]
                joined[item] = above = joined.get(above, above)
                item = above
            return item
        for node in self.graph.nodes:
            if node not in self.nodes:
                continue
            (value,) = node.outputs
            with_: List[Any] = [self.producers.get(v) if self.producers.get(v) in self.nodes else v for v in node.inputs
                                if v in self.filled or self.producers.get(v) in self.nodes]
            with_ += [self.targets[self.made[value]]] if value in self.made else []
            for other in with_:
                one, two = first(node), first(other)
                if one is not two:
                    joined[one] = two
        groups: Dict[Any, List[Node]] = {}
        for node in self.graph.nodes:
            if node in self.nodes:
                groups.setdefault(first(node), []).append(node)
        return list(groups.values())

    # What they read

    def in_conflict(self, filling: Iterable[int], apart: AbstractSet[Value]) -> Set[int]:
        """The chosen outputs of updates that would read, or let others read, memory that has been changed."""
        read_later = set().union(*{self._memory(self.graph.outputs[k]) or frozenset() for k in filling})
        found: Set[int] = set()
        for nodes in self.groups:
            places = {self.made[v] for node in nodes for v in node.outputs if v in self.made}
            mine = {self.targets[k] for k in places}
            is_wrong = not mine.isdisjoint(read_later) or not self.writes.isdisjoint(nodes) and not self._are_writes(nodes, mine)
            for value in self._read(nodes):
                memory = frozenset((value,)) if value in mine else self._memory(value)
                is_wrong |= memory is None or not self._is_safe(memory, value in mine, apart)
            found |= places if is_wrong else set()
        return found

    def _are_writes(self, nodes: Sequence[Node], mine: AbstractSet[Value]) -> bool:
        """Whether nodes do nothing but write into one array, one after the other."""
        contents, *others = mine
        for node in nodes:
            if others or node not in self.writes or node.inputs[0] is not contents or not mine.isdisjoint(node.inputs[1:]):
                return False
            (contents,) = node.outputs
        return True

    def _read(self, nodes: Sequence[Node]) -> List[Value]:
        made = {v for node in nodes for v in node.outputs}
        return [v for node in nodes for v in node.inputs if v not in made and self._number(v) is None]

    def _is_safe(self, memory: FrozenSet[Value], mine: bool, apart: AbstractSet[Value]) -> bool:
        """Whether nothing changes what is read there before it is read."""
        if mine:
            return memory <= apart
        if memory not in self._inside:
            self._inside[memory] = memory.isdisjoint(self.filled) and memory <= apart
        return self._inside[memory]

    def _memory(self, value: Value) -> Optional[FrozenSet[Value]]:
        """The inputs whose memory a value may be in; None where that may be anybody's."""
        if not self._memories:
            self._memories.update((v, frozenset((v,) if isinstance(v.type, Tensor) else ())) for v in self.graph.inputs)
            for node in self.graph.nodes:
                held = {self._memories[v] for v in (() if _is_arithmetic(node) else aliased_operands(node))}
                anybody = None in held or any(map(_is_of_anybody, node.walk()))
                memory = None if anybody else held.pop() if len(held) == 1 else frozenset().union(*held)
                self._memories.update((v, frozenset() if isinstance(v.type, Scalar) else memory) for v in node.outputs)
        return self._memories[value]

    def _number(self, value: Value) -> Optional[Node]:
        """The node that repeats one number for all elements."""
        node = self.producers.get(value)
        return node if node is not None and node.op.name == "broadcast_to" and node.inputs[0].ndim == 0 else None

    # The parts

    def parted(self) -> Parted:
        updates = tuple(map(self._update, self.groups))
        outputs = list(self.graph.outputs)
        for k, target in self.targets.items():
            outputs[k] = target
        there = {*self.graph.inputs, *outputs, *self.saved}
        saved = tuple(dict.fromkeys(v for update in updates for v in update.graph.inputs if v not in there))
        nodes = tuple([left for node in self.graph.nodes for left in ([node] if node not in self.nodes else self._checks(node))])
        rest = self.graph.with_(nodes=nodes, outputs=(*outputs, *self.saved, *saved))
        return Parted(eliminate_dead(rest).with_(outputs=tuple(outputs)), updates, saved)

    def _checks(self, node: Node) -> Sequence[Node]:
        """What a node of an update leaves behind: the look at an index that may be too large, of the array that is written."""
        if not must_run(node):
            return ()
        contents = node.inputs[0]
        while self.producers.get(contents) in self.nodes:
            contents = self.producers[contents].inputs[0]
        call = node.attrs["call"]
        attrs = {**node.attrs, "call": call.of(operator.getitem, (call.args[0], call.args[3][0])), "types": ()}
        return (replace(node, inputs=(contents, *node.inputs[1:]), outputs=(), attrs=attrs),)

    def _update(self, nodes: Sequence[Node]) -> Update:
        """The update of some nodes, with the numbers that they read."""
        kept: Dict[Node, None] = {}
        for node in nodes:
            for value in node.inputs:
                repeats = self._number(value)
                if repeats is not None:
                    number = self.producers.get(repeats.inputs[0])
                    kept.update(dict.fromkeys([number] if number is not None and number.op.name in _NUMBERS else []))
                    kept[repeats] = None
            kept[node] = None
        made = {v for node in kept for v in node.outputs}
        outputs = [v for node in nodes for v in node.outputs if v in self.made]
        places = [self.made[v] for v in outputs]
        inputs = list(dict.fromkeys([v for node in kept for v in node.inputs if v not in made] + [self.targets[k] for k in places]))
        graph = Graph(tuple(inputs), tuple(outputs), tuple(kept), "update")
        return Update(graph, tuple([inputs.index(self.targets[k]) for k in places]), tuple(places))

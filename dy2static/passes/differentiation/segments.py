"""Where one differentiable op would change gradients: the cuts between FunctionNodes."""
from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import reduce
from typing import Collection, Dict, List, Optional, Sequence, Set, Tuple, Union

from ...ir.graph import Graph, Node, Value
from ...ir.types import Tensor

#: Where an input of a segment comes from: ("input", i) of the whole graph, (k, j): output j of segment k, or (-1, p):
#: a value without gradient of node p, which has others with gradient and belongs to another segment.
Origin = Tuple[Union[str, int], int]

_SINK = 1               # a set of cuts is a number: one bit for each, and this one for the common end


@dataclass(frozen=True)
class Segment:
    """The part of a graph that becomes one FunctionNode.

    graph: what is differentiated.  Its values and nodes are those of the whole graph.  It describes, it is not run:
        the whole forward is one function.  Nodes that need no gradient are in the graph of every segment that reads
        them.
    inputs: the origin of every input.
    outputs: per output, its first index in the outputs of the whole graph, or None for a value that only other
        segments read.
    """

    graph: Graph
    inputs: Tuple[Origin, ...]
    outputs: Tuple[Optional[int], ...]


def segments(graph: Graph, escaping: Sequence[int], active: Collection[Value]) -> Tuple[Segment, ...]:
    """The segments of a graph, in an order in which each one only reads from earlier ones.

    escaping: indexes of the outputs that the user gets as Variables.
    active: the values that require a gradient.

    An escaping value that another escaping value depends on is a *cut*: the user can ask for its gradient or unchain
    it, so a FunctionNode has to end there.  Nodes belong together if they lead to the same cuts, each without
    passing another one; everything that leads to no cut leads to the one common end, but parts that have nothing to
    do with each other stay apart: unchaining one must leave the other alone.  What makes an array of a list of unknown length stays
    with the loop that makes the list.  Most graphs are one segment.

    Linear in nodes + edges, times the number of cuts.
    """
    active = set(active)
    targets = {graph.outputs[i] for i in escaping if graph.outputs[i] in active}.difference(graph.inputs)
    tokens = _tokens(graph, active, targets)
    groups: Dict[int, List[Node]] = {}
    home: Dict[Value, int] = {}
    for node in graph.nodes:
        group = reduce(operator.or_, [tokens.get(v, 0) for v in node.outputs], 0)
        if group:
            group = _beside_lists(node, group, home, active)
            home.update(dict.fromkeys(node.outputs, group))
            groups.setdefault(group, []).append(node)
    parts = [part for group, nodes in groups.items()
             for part in (_unrelated(nodes, active) if group == _SINK else [nodes])]
    members = _ordered(parts, active)
    return _Assembly(graph, active, targets).segments(members)


def _tokens(graph: Graph, active: Set[Value], targets: Set[Value]) -> Dict[Value, int]:
    """Per active value, the cuts it leads to, and the common end; a cut leads to itself only."""
    bits = {value: _SINK << k for k, value in enumerate(targets, start=1)}
    leads: Dict[Value, int] = {}
    tokens: Dict[Value, int] = {}
    for node in reversed(graph.nodes):
        reached = 0
        for value in node.outputs:
            if value not in active:
                continue
            onward = leads.get(value, 0)
            if value in targets:
                onward = bits[value] if onward else _SINK
            tokens[value] = onward
            reached |= onward
        if reached:
            for value in node.inputs:
                if value in active:
                    leads[value] = leads.get(value, 0) | reached
    return tokens


def _beside_lists(node: Node, group: int, home: Dict[Value, int], active: Set[Value]) -> int:
    """The group of a node: that of a list that it reads, which no FunctionNode can hand on, if all that it reads is there."""
    read = [v for v in node.inputs if v in active]
    if all(isinstance(v.type, Tensor) for v in read):
        return group
    found = {home.get(v, group) for v in read}
    return found.pop() if len(found) == 1 else group


def _unrelated(nodes: List[Node], active: Set[Value]) -> List[List[Node]]:
    """Group the nodes so that no active value leads from one group to another; each group in order.

    Nearly linear in nodes + edges.
    """
    parent: Dict[Node, Node] = {}

    def root(node: Node) -> Node:
        while parent[node] is not node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    made: Dict[Value, Node] = {}
    for node in nodes:
        parent[node] = node
        for value in node.inputs:
            if value in active and value in made:
                parent[root(made[value])] = node
        made.update(dict.fromkeys(node.outputs, node))
    found: Dict[Node, List[Node]] = {}
    for node in nodes:
        found.setdefault(root(node), []).append(node)
    return list(found.values())


def _ordered(groups: List[List[Node]], active: Set[Value]) -> List[List[Node]]:
    """The groups, so that each one comes after those it reads from."""
    home = {value: k for k, nodes in enumerate(groups) for node in nodes for value in node.outputs}
    ordered: List[List[Node]] = []
    done: Set[int] = set()

    def visit(k: int) -> None:
        if k in done:
            return
        done.add(k)
        for node in groups[k]:
            for value in node.inputs:
                if value in active and value in home:
                    visit(home[value])
        ordered.append(groups[k])

    for k in range(len(groups)):
        visit(k)
    return ordered


class _Assembly:
    """Makes segments out of groups of nodes."""

    def __init__(self, graph: Graph, active: Set[Value], targets: Set[Value]):
        self.graph, self.active, self.targets = graph, active, targets
        self.producers = graph.producers()
        self.position = {node: i for i, node in enumerate(graph.nodes)}
        self.origins: Dict[Value, Origin] = {v: ("input", i) for i, v in reversed(list(enumerate(graph.inputs)))}
        self.index: Dict[Value, int] = {}
        for i, value in enumerate(graph.outputs):
            self.index.setdefault(value, i)

    def segments(self, groups: List[List[Node]]) -> Tuple[Segment, ...]:
        home = {value: k for k, nodes in enumerate(groups) for node in nodes for value in node.outputs}
        shared = {v for k, nodes in enumerate(groups) for node in nodes for v in node.inputs
                  if v in self.active and home.get(v, k) != k}
        return tuple(self._segment(k, nodes, shared) for k, nodes in enumerate(groups))

    def _segment(self, k: int, members: List[Node], shared: Set[Value]) -> Segment:
        nodes, inputs = self._closure(members)
        made = [v for node in members for v in node.outputs if v in self.active]
        escaping = sorted((v for v in made if v in self.targets), key=self.index.__getitem__)
        outputs = escaping + [v for v in made if v in shared and v not in self.targets]
        for j, value in enumerate(outputs):
            self.origins[value] = (k, j)
        ordered = sorted(inputs, key=lambda v: (self.origins[v][0] != "input", self.origins[v]))
        name = self.graph.name if len(members) == len(self.graph.nodes) else f"{self.graph.name}_{k}"
        return Segment(Graph(tuple(ordered), tuple(outputs), tuple(nodes), name),
                       tuple(self.origins[v] for v in ordered),
                       tuple(self.index[v] if v in self.targets else None for v in outputs))

    def _closure(self, members: List[Node]) -> Tuple[List[Node], Set[Value]]:
        """The members with the nodes they read that need no gradient, in order, and the inputs of all these."""
        inside: Set[Node] = set(members)
        inputs: Set[Value] = set()
        waiting = list(members)
        while waiting:
            for value in waiting.pop().inputs:
                node = self.producers.get(value)
                if node is None or node not in inside and not self.active.isdisjoint(node.outputs):
                    inputs.add(value)
                    self.origins.setdefault(value, (-1, self.position[node] if node else 0))
                elif node not in inside:
                    inside.add(node)
                    waiting.append(node)
        return sorted(inside, key=self.position.__getitem__), inputs

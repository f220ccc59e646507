"""Values in new memory that need no other: copies of them are themselves, and a changed copy is made where it is changed."""
from __future__ import annotations

from dataclasses import replace
from typing import Collection, Dict, List, Mapping, Optional, Set

from ...ir.graph import Graph, Node, Value
from ...ir.types import Tensor
from ..flatten import Block
from ..loops import layout
from ..loops.layout import Places

#: Nodes whose results have no memory, or memory that was there before.
_NO_MEMORY = ("reshape", "getitem_at", "constant", "full")


def without_copies(graph: Graph) -> Graph:
    """The graph without copies of what nodes make in new memory, and without parts that are put where they are.

    Values are never changed, so one array serves both.  A copy that only `put` reads, which copies what it changes, goes, too.  An
    output stays an array of its own.  Only nodes at the top are looked at.  Linear in nodes.
    """
    return _Copies(graph).without() if any(node.op.name in ("copy", "put") for node in graph.nodes) else graph


class _Copies:
    def __init__(self, graph: Graph):
        self.graph, self.outputs = graph, set(graph.outputs)
        self.places = Places(lambda: "")
        self.new: Set[Value] = set()                            # what has memory of its own, in C order
        self.leaving: Set[Value] = set()                        # memory in which an output is
        self.instead: Dict[Value, Value] = {}
        self.makers = graph.producers()
        self.readers: Dict[Value, List[Node]] = {}
        for node in graph.nodes:
            for value in node.inputs:
                self.readers.setdefault(value, []).append(node)

    def without(self) -> Graph:
        nodes: List[Node] = []
        for node in self.graph.nodes:
            if node.op.name == "copy" and self._goes(node) or node.op.name == "put" and self._is_there(node):
                continue
            nodes.append(node)
            settled = self.places.settle(node)
            if not settled and not node.regions and (node.op.name not in _NO_MEMORY or node.op.name == "reshape"):
                self.new.update(v for v in node.outputs if isinstance(v.type, Tensor) and v.ndim)
            self.leaving.update(self.places.of(v).base for v in node.outputs if v in self.outputs and isinstance(v.type, Tensor))
        if len(nodes) == len(self.graph.nodes):
            return self.graph
        return self.graph.with_(nodes=tuple([self._renamed(node) for node in nodes]))

    def _goes(self, node: Node) -> bool:
        operand, (value,) = self._name(node.inputs[0]), node.outputs
        place = self.places.of(operand)
        if place.whole and place.base in self.new:
            if value not in self.outputs:
                self.instead[value] = operand
            elif place.base not in self.leaving and operand not in self.outputs:
                self.leaving.add(place.base)
                self.instead[operand] = value
            else:
                return False
        elif value not in self.outputs and all(_changes(reader, value) for reader in self.readers.get(value, ())):
            self.instead[value] = operand
        else:
            return False
        self.places.views[value] = place
        return True

    def _is_there(self, node: Node) -> bool:
        """Whether a node puts a part of an array where that part is: Python does so after ``a[1:] += 1``."""
        (value,), contents = node.outputs, self._name(node.inputs[0])
        part = self.makers.get(node.inputs[1])
        if part is None or part.op.name != "getitem" or len(node.inputs) > 2 or self._name(part.inputs[0]) is not contents \
                or part.attrs["index"] != node.attrs["index"] or contents not in self.new or contents in self.leaving:
            return False
        if value in self.outputs:
            self.leaving.add(contents)
            self.instead[contents] = value
        else:
            self.instead[value] = contents
        self.places.views[value] = self.places.of(contents)
        return True

    def _renamed(self, node: Node) -> Node:
        inputs, outputs = (tuple([self._name(v) for v in values]) for values in (node.inputs, node.outputs))
        return node if inputs == node.inputs and outputs == node.outputs else replace(node, inputs=inputs, outputs=outputs)

    def _name(self, value: Value) -> Value:
        while value in self.instead:
            value = self.instead[value]
        return value


def _changes(node: Node, value: Value) -> bool:
    """Whether a node gives a changed copy of a value, and reads it for nothing else."""
    return node.op.name == "put" and node.inputs[0] is value and value not in node.inputs[1:]


def bases_of_views(block: Block) -> Mapping[Value, Value]:
    """What has memory of its own in a block, by the values that are all of it in another shape."""
    places, new, found = Places(lambda: ""), set(), {}
    for step in block.steps:
        if step.blocks or places.settle(step.node):
            continue
        if step.node.op.name not in _NO_MEMORY or step.node.op.name == "reshape":
            new.update(v for v in step.node.outputs if isinstance(v.type, Tensor))
    for value, place in places.views.items():
        if place.base in new and place.whole:
            found[value] = place.base
    return found


def changed_later(block: Block, read_by: Mapping[Value, Collection[Optional[Node]]]) -> Dict[Value, Value]:
    """What is made in new memory and then only changed, by the value that it becomes: both are in one memory.

    Whatever else reads it is needed for nothing but what is put there, so that this has been read when it is changed.
    """
    own = {v for step in block.steps if not step.blocks and step.node.op.name not in _NO_MEMORY
           and step.node.op.name not in layout.RULES for v in step.node.outputs if isinstance(v.type, Tensor)}
    return {step.node.inputs[0]: step.node.outputs[0] for step in block.steps
            if step.node.op.name == "put" and step.node.inputs[0] in own and _changes(step.node, step.node.inputs[0])
            and _ends_in(step.node.inputs[0], step.node, read_by)}


def _ends_in(value: Value, node: Node, read_by: Mapping[Value, Collection[Optional[Node]]]) -> bool:
    """Whether a value, and what views and operations on elements make of it, is read for a node alone."""
    found = read_by.get(value, ())
    return bool(found) and all([reader is node or reader is not None and len(reader.outputs) == 1 and (
        reader.op.view or reader.op.kind == "elementwise") and _ends_in(reader.outputs[0], node, read_by) for reader in found])

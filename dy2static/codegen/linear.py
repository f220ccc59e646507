"""Lists that grow in loops: where an append may change the list itself, because nobody reads the shorter one any more."""
from __future__ import annotations

from typing import Dict, List, Set, Tuple

from ..ir.graph import Node, Value
from ..ir.types import List as ListType
from .flatten import Block, Step, all_steps

#: What reads a list and does not keep it.
_READERS = ("list_len", "list_get", "list_stack", "list_append")

#: The branches around a step, with the side it is on.
_Path = Tuple[Tuple[Step, int], ...]


class InPlaceAppends:
    """nodes: the ``list_append`` that change their list.  variables: those of loops that own theirs, for which the list
    that the loop begins with is copied.
    """

    def __init__(self, block: Block):
        self.nodes: Set[Node] = set()
        self.variables: Set[Value] = set()
        for step in all_steps(block):
            for variable, result in zip(step.variables, step.blocks[-1].results if step.variables else ()):
                versions = _Versions(variable, step.blocks[-1]) if isinstance(variable.type, ListType) else None
                if versions is not None and versions.are_one(result):
                    self.nodes.update(node for node, _, _ in versions.appends)
                    self.variables.add(variable)


class _Versions:
    """The values of one iteration that would be one list: a variable of the loop and what is appended to it.

    made: where each comes to be.  kept: whether something else may come to hold it.
    """

    def __init__(self, variable: Value, body: Block):
        self.made: Dict[Value, int] = {variable: -1}
        self.appends: List[Tuple[Node, int, _Path]] = []
        self.reads: List[Tuple[Value, int, _Path]] = []
        self.kept, self.body = False, body
        self._follow(body, ())

    def are_one(self, result: Value) -> bool:
        """Whether the list can be one object that ends as ``result``: no version is read after it was made longer."""
        ends = [v for v in self.body.results if v in self.made]
        if self.kept or not self.appends or ends != [result]:
            return False
        reads = [*self.reads, (result, self.body.end, ())]
        return all(self.made[value] >= position or other <= position or _apart(path, other_path)
                   for _, position, path in self.appends for value, other, other_path in reads)

    def _follow(self, block: Block, path: _Path) -> None:
        for step in block.steps:
            node = step.node
            if node.op.name == "if_":
                for side, inner in enumerate(step.blocks):
                    self._follow(inner, (*path, (step, side)))
                self._join(step, path)
            elif not self.made.keys().isdisjoint(_read_by(step)):
                self.reads += [(v, step.position, path) for v in node.inputs if v in self.made]
                self.kept |= node.op.name not in _READERS or not self.made.keys().isdisjoint(node.inputs[1:])
                if node.op.name == "list_append":
                    self.appends.append((node, step.position, path))
                    self.made[node.outputs[0]] = step.position

    def _join(self, step: Step, path: _Path) -> None:
        """A result of a branch is the list if it is that on both sides."""
        for index, output in enumerate(step.node.outputs):
            values = [inner.results[index] for inner in step.blocks if index < len(inner.results)]
            own = [v in self.made for v in values]
            self.reads += [(v, inner.end, (*path, (step, side))) for side, inner in enumerate(step.blocks)
                           for v in inner.results[index:index + 1] if v in self.made]
            if own and all(own):
                self.made[output] = step.end
            else:
                self.kept |= any(own)


def _read_by(step: Step) -> Set[Value]:
    """What a step, or one in its blocks, reads."""
    found = set(step.node.inputs)
    for block in step.blocks:
        found.update(block.results, *(_read_by(inner) for inner in block.steps))
    return found


def _apart(path: _Path, other: _Path) -> bool:
    """Whether two places are on different sides of a branch."""
    return any(a is b and side != side_b for a, side in path for b, side_b in other)

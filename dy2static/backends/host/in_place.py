"""Lists that grow and arrays that are filled in loops: where a step may change the object itself, since no later one reads
it as it was."""
from __future__ import annotations

from typing import AbstractSet, Dict, List, Set, Tuple

from ...ir.graph import Node, Value
from ...ir.template import fills_out
from ...ir.types import List as ListType
from ...ir.types import Tensor
from ..compiled_calls import is_native
from ..flatten import Block, Step, all_steps
from .calls import is_operator

#: What reads a list and does not keep it.
_READERS = ("list_len", "list_get", "list_stack")

#: The branches around a step, with the side it is on.
_Path = Tuple[Tuple[Step, int], ...]


class InPlaceChanges:
    """The lists and arrays of a block that may be changed in place, because the old contents are never read again.

    nodes: the appends and writes that change their list or array.  variables: those of loops that own theirs; their first
    value is copied in front of the loop.  joined: what makes an array of a list of these that only native code reads.
    buffered: the values that live in the arena, which are left alone.
    """

    def __init__(self, block: Block, buffered: AbstractSet[Value]):
        self.nodes: Set[Node] = set()
        self.variables: Set[Value] = set()
        self.joined: Dict[Node, Value] = {}
        for step in all_steps(block):
            for variable, result in zip(step.variables, step.blocks[-1].results if step.variables else ()):
                if isinstance(variable.type, (ListType, Tensor)) and variable not in buffered:
                    versions = _Versions(variable, step)
                    if versions.are_one(result) and buffered.isdisjoint(versions.made):
                        self.nodes.update(node for node, _, _ in versions.changes)
                        self.variables.add(variable)
                        self.joined.update((node, variable) for node in versions.joined)
        kept = _kept_values(block)
        self.joined = {node: v for node, v in self.joined.items() if node.outputs[0] not in kept}

    def copied(self, variable: Value, text: str) -> str:
        """What a loop begins with, for this variable."""
        if variable not in self.variables:
            return text
        return f"list({text})" if isinstance(variable.type, ListType) else f"{text}.copy('K')"


def changes_first(node: Node) -> bool:
    """Whether a node gives its first operand changed, with nothing else of it in the result."""
    if node.op.name == "list_append":
        return True
    call = node.attrs.get("call")
    return hasattr(getattr(call, "function", None), "in_place") and call.single and \
        getattr(call.args[0], "index", None) == 0


class _Versions:
    """The values of one iteration that would be one list: a variable of the loop and what becomes of it.

    made: where each comes to be.  kept: whether something else may come to hold it.
    """

    def __init__(self, variable: Value, step: Step):
        self.made: Dict[Value, int] = {variable: -1}
        self.changes: List[Tuple[Node, int, _Path]] = []
        self.reads: List[Tuple[Value, int, _Path]] = []
        self.joined: List[Node] = []
        self.kept, self.body = False, step.blocks[-1]
        for block in step.blocks:
            self._follow(block, ())

    def are_one(self, result: Value) -> bool:
        """Whether all can be one object that ends as ``result``: no version is read after it was changed."""
        ends = [v for v in self.body.results if v in self.made]
        if self.kept or not self.changes or ends != [result]:
            return False
        reads = [*self.reads, (result, self.body.end, ())]
        return all(self.made[value] >= position or other <= position or _apart(path, other_path)
                   for _, position, path in self.changes for value, other, other_path in reads)

    def _follow(self, block: Block, path: _Path) -> None:
        for step in block.steps:
            node = step.node
            if node.op.name == "if_":
                for side, inner in enumerate(step.blocks):
                    self._follow(inner, (*path, (step, side)))
                self._join(step, path)
            elif not self.made.keys().isdisjoint(_read_by(step)):
                self.reads += [(v, step.position, path) for v in node.inputs if v in self.made]
                changes = changes_first(node) and node.inputs[0] in self.made
                self.kept |= not (changes or _only_reads(node))
                self.joined += [node] if node.op.name == "list_stack" and node.attrs["axis"] == 0 else []
                if changes:
                    self.kept |= not self.made.keys().isdisjoint(node.inputs[1:])
                    self.changes.append((node, step.position, path))
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


def _kept_values(block: Block) -> Set[Value]:
    """What anything but native code reads, or a block gives."""
    found = set(block.results)
    for step in block.steps:
        found.update(() if is_native(step.node) else step.node.inputs, *map(_kept_values, step.blocks))
    return found


def _only_reads(node: Node) -> bool:
    """Whether a node reads where it stands, and its results share nothing with its operands."""
    call = node.attrs.get("call") if node.op.name == "numpy_call" else None
    return node.op.name in _READERS or fills_out(node.op) and not node.op.view or call is not None and is_operator(call)


def _read_by(step: Step) -> Set[Value]:
    """What a step, or one in its blocks, reads."""
    found = set(step.node.inputs)
    for block in step.blocks:
        found.update(block.results, *(_read_by(inner) for inner in block.steps))
    return found


def _apart(path: _Path, other: _Path) -> bool:
    """Whether two places are on different sides of a branch."""
    return any(a is b and side != side_b for a, side in path for b, side_b in other)

"""Which values of a program with branches and loops live in planned buffers, and which share one.

What leaves the program, what unknown code sees and what is pushed on a stack has memory of its own.  A value that
becomes the result of a branch is written where the result lives.  The next state of a loop is written over the state
if that is not read later, else into a second buffer, and the two take turns.
"""
from __future__ import annotations

import collections
from typing import Collection, Dict, List, Mapping, Optional, Set, Tuple

from ...ir.devices import HOST
from ...ir.dims import Dim
from ...ir.graph import Node, Value
from ...ir.template import fills_out
from ...ir.types import Tensor
from ...passes.memory.aliases import aliased_operands, exposed_operands
from ..flatten import Block, Step, all_steps

#: The sides of branches a step is in: (branch, which side).
Path = Tuple[Tuple[Step, int], ...]


class Placement:
    """Where values live.

    held: values whose memory somebody outside can hold.
    buffered: variables of loops that live in planned buffers; those in ``turns`` have two.
    homes: values that are written into the memory of another one: of the result of a branch, or of a variable.
    results: results of branches that have memory of their own, into which both sides write.
    symbols: those of the sizes that have their numbers when the function begins.
    """

    def __init__(self, block: Block, escaping: Collection[Value], used: Collection[Value],
                 operands: Mapping[Node, Tuple[Value, ...]], symbols: Collection[str] = ()):
        self.symbols = frozenset(symbols)
        self.block, self.escaping, self.used, self.operands = block, escaping, used, operands
        self.steps = list(all_steps(block))
        blocks = [block, *[inner for step in self.steps for inner in step.blocks]]
        self.makers = {v: (step, k, around) for around in blocks for step in around.steps for k, v in enumerate(step.node.outputs)}
        self.counts = {around: collections.Counter(around.results) for around in blocks}
        self.loops = [step for step in self.steps if step.variables or step.node.op.name == "while_"]
        self.buffered = {v for step in self.loops for v in step.variables if self.is_sized(v)}
        while not self._settled():
            pass
        self.turns = {v for step in self.loops for v, new in zip(step.variables, step.blocks[-1].results)
                      if v in self.buffered and not self._may_overwrite(step, v, new)}

    def root(self, value: Value) -> Value:
        """The value in whose memory this one is."""
        while value in self.homes:
            value = self.homes[value]
        return value

    def is_sized(self, value: Value) -> bool:
        """Whether a value is an array whose size is known when the function begins, where the arrays of the program are."""
        return isinstance(value.type, Tensor) and value.type.device != HOST and not any(
            isinstance(n, Dim) and not self.symbols.issuperset(n.symbols) for n in value.shape)

    def is_placed(self, value: Value, node: Node) -> bool:
        """Whether the result of a node goes into a buffer."""
        return fills_out(node.op) and self.is_sized(value) and value not in self.held and value in self.used

    def _settled(self) -> bool:
        """Find held values and homes for the present choice; variables that do not fit it go out of ``buffered``."""
        self.held: Set[Value] = set(self.escaping)
        self._hold(self.block)
        self.homes: Dict[Value, Value] = {}
        self.results: Set[Value] = set()
        misfits = set()
        for step in self.loops:
            for variable, new in zip(step.variables, step.blocks[-1].results):
                if variable in self.buffered and not (
                        variable not in self.held and self._settle(new, variable, step.blocks[-1])):
                    misfits.add(variable)
        self.buffered -= misfits
        if misfits:
            return False
        for step in self.steps:
            if step.node.op.name == "if_":
                self._own_results(step)
        return True

    # What is held

    def _hold(self, block: Block) -> None:
        for step in reversed(block.steps):
            if step.node.op.name == "if_":
                for inner in step.blocks:
                    self.held.update(v for y, v in zip(step.node.outputs, inner.results) if y in self.held)
                    self._hold(inner)
            elif step.blocks:
                self._hold_loop(step)
            else:
                self.held.update(exposed_operands(step.node))
                if not self.held.isdisjoint(step.node.outputs):
                    self.held.update(aliased_operands(step.node))

    def _hold_loop(self, step: Step) -> None:
        """State that is not buffered may be what the loop began with, or what any iteration gave."""
        body = step.blocks[-1]
        n = len(step.variables)
        self.held.update(body.results[n:])
        free = [j for j, v in enumerate(step.variables) if v not in self.buffered]
        self.held.update(body.results[j] for j in free if j < len(body.results))
        self.held.update(step.variables[j] for j in free if step.node.outputs[j] in self.held)
        before = -1
        while len(self.held) != before:
            before = len(self.held)
            for block in reversed(step.blocks):
                self._hold(block)
        self.held.update(step.loop.state[j] for j in free if step.variables[j] in self.held)

    # Who shares memory

    def _settle(self, value: Value, home: Value, block: Block) -> bool:
        """Let a value made in this block be written into the memory of ``home``, if that can be."""
        found = self._sources(value, block)
        if found is None or any(v in self.homes for v in found) or value.type != home.type:
            return False
        self.homes.update(found)
        self.homes[value] = home
        return True

    def _sources(self, value: Value, block: Block) -> Optional[Dict[Value, Value]]:
        """For the result of a branch, what its sides write instead; None where the value is not written here."""
        step, index, around = self.makers.get(value, (None, 0, None))
        if step is None or around is not block or value in self.homes:
            return None
        if step.node.op.name != "if_":
            return {} if self.is_placed(value, step.node) else None
        if not self.is_sized(value) or value in self.held or value not in self.used:
            return None
        found: Dict[Value, Value] = {}
        for inner in step.blocks:
            if len(inner.results) <= index:
                continue                                       # this side raises
            part = inner.results[index]
            if part.type != value.type:
                if len(inner.results) == 1:
                    continue
                return None
            more = self._sources(part, inner)
            if more is None or part in found or self.counts[inner][part] > 1:
                return None
            found.update(more)
            found[part] = value
        return found

    def _own_results(self, step: Step) -> None:
        for result in step.node.outputs:
            if result in self.homes:
                continue
            found = self._sources(result, self.makers[result][2])
            if found and not any(v in self.homes for v in found):
                self.homes.update(found)
                self.results.add(result)

    # What may be overwritten

    def _may_overwrite(self, step: Step, variable: Value, new: Value) -> bool:
        """Whether the old state is read nowhere after the new one begins to be written in its place."""
        same, body = self._aliases(step, variable), step.blocks[-1]
        inner = _with_paths(body, ())
        ends = [block for part, _ in inner for block in part.blocks]
        if any(v in same for block in (body, *ends) for v in block.results):
            return False
        reads = [(part, path) for part, path in inner if not same.isdisjoint(_read_by(part))]
        writers = [(part, path) for part, path in inner
                   if not part.blocks and any(v is new or self._leads(v, new) for v in part.node.outputs)]
        return all(self._passed(read, path, writer, other, same)
                   for writer, other in writers for read, path in reads)

    def _leads(self, value: Value, new: Value) -> bool:
        while value in self.homes:
            value = self.homes[value]
            if value is new:
                return True
        return False

    def _passed(self, read: Step, path: Path, writer: Step, other: Path, same: Set[Value]) -> bool:
        if any(a is b and side != side_b for a, side in path for b, side_b in other):
            return True                                        # on the other side of a branch
        if read is writer:
            direct = self.operands[writer.node]
            return writer.node.op.inplace_ok and all(v.shape == writer.node.outputs[0].shape
                                                     and len(same.intersection(direct)) == 1
                                                     for v in direct if v in same) \
                and not any(v in same for v in writer.node.inputs if v not in direct) \
                and all(not self._is_view(v, same) for v in direct)
        return read.position < writer.position

    def _is_view(self, value: Value, same: Set[Value]) -> bool:
        """Whether an operand is another value in the memory of the state: elements may not stand where they stood."""
        return value in same and not any(value in step.variables for step in self.loops)

    def _aliases(self, step: Step, variable: Value) -> Set[Value]:
        """The values of the body that may be the variable, or views of it."""
        same = {variable}
        for inner, _ in _with_paths(step.blocks[-1], ()):
            node = inner.node
            if node.op.name == "if_":
                same.update(y for block in inner.blocks for y, v in zip(node.outputs, block.results) if v in same)
            elif inner.blocks:
                same.update(v for v, x in zip(inner.variables, inner.loop.state)
                            if x in same and v not in self.buffered)
                same.update(y for y, v in zip(node.outputs, inner.variables) if v in same)
            elif not same.isdisjoint(aliased_operands(node)):
                same.update(node.outputs)
        return same


def _read_by(step: Step) -> Tuple[Value, ...]:
    """What a step itself reads, without the steps in its blocks."""
    if step.node.op.name == "if_":
        return step.node.inputs[:1]
    return step.loop.state if step.blocks else step.node.inputs


def _with_paths(block: Block, path: Path) -> List[Tuple[Step, Path]]:
    """All steps, those in regions after the step they belong to, with the sides they are on."""
    found: List[Tuple[Step, Path]] = []
    for step in block.steps:
        found.append((step, path))
        for side, inner in enumerate(step.blocks):
            found += _with_paths(inner, path + (((step, side),) if step.node.op.name == "if_" else ()))
    return found

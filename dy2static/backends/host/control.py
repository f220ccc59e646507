"""Branches and loops as statements."""
from __future__ import annotations

import collections
from typing import Callable, List, Optional, Sequence, Tuple

from ...ir.graph import Node, Value
from ...ir.types import Extent
from ...runtime.joined_rows import Rows
from ..flatten import Block, Step
from ..text import Line
from .emitter import Emitter


class ControlText:
    """Writes ``if``, ``while`` and ``for``.  steps: writes the steps of a block."""

    def __init__(self, out: Emitter, steps: Callable[[Block], None]):
        self.text, self.values, self.plan, self.changes = out.text, out.values, out.plan, out.changes
        self.reads, self.held, self.names, self.rows, self.steps = out.reads, out.held, out.names, out.rows, steps
        self.copy_to = out.copy_to

    def write(self, step: Step) -> None:
        """Write a step that has blocks."""
        if step.node.op.name == "if_":
            self._branch(step)
        else:
            self._loop(step)

    def _branch(self, step: Step) -> None:
        node = step.node
        names = {v: self.values.variable(v) for v in node.outputs if v in self.reads.uses}
        sides = []
        for block in step.blocks:
            pairs = [(value, names[result]) for result, value in zip(node.outputs, block.results) if result in names]
            with self.text.aside() as lines:
                self._side(block, pairs)
                self._assign([(self.values.texts.get(value, ""), name) for value, name in pairs])
            sides.append(lines)
        (then, orelse), condition = sides, self.values.texts[node.inputs[0]]
        if not then and orelse:
            then, orelse, condition = orelse, [], f"not {condition}"
        self.text.line(f"if {condition}:", node)
        self.text.add(then)
        if orelse:
            self.text.line("else:")
            self.text.add(orelse)

    def _loop(self, step: Step) -> None:
        node, loop, texts = step.node, step.loop, self.values.texts
        for variable in dict.fromkeys(v for v in self.changes.joined.values() if v in step.variables):
            self.rows[variable] = self.names.fresh("rows")
            self.text.line(f"{self.rows[variable]} = {self.names.bind('Rows', Rows)}()", node)
        begin = [self.changes.copied(variable, texts[v]) for variable, v in zip(step.variables, loop.state)]
        state = [self.values.variable(v) for v in step.variables]
        for variable, name, text in zip(step.variables, state, begin):
            if self.values.is_placed(variable) and name != text:
                self.copy_to(name, text, node)
        self._assign([(text, name) for v, name, text in zip(step.variables, state, begin) if not self.values.is_placed(v)], node)
        stacks = [self.values.new(v) for v in loop.pushed]
        for stack in stacks:
            self.text.line(f"{stack} = []", node)
        count = self.values.new(loop.counted[0]) if loop.counted and not stacks else None
        if count is not None:
            self.text.line(f"{count} = 0", node)
        header, test = self._loop_header(step)
        self.text.line(header, node)
        with self.text.aside() as lines:
            self._iteration(step, state, stacks, count)
        self.text.add(test + lines)
        for result, variable, name in zip(loop.last, step.variables, state):
            texts[result] = name
            if self.values.is_placed(variable) and result in self.held:
                self.text.line(f"{self.values.new(result)} = {name}.copy()", node)
        if loop.counted and stacks:
            self.text.line(f"{self.values.new(loop.counted[0])} = len({stacks[0]})")

    def _loop_header(self, step: Step) -> Tuple[str, List[Line]]:
        """The first line of a loop, and those of its test where it is not one expression."""
        loop, texts = step.loop, self.values.texts
        if loop.test is None:
            items = [self._item(v) for v in step.items]
            read = [f"reversed({texts[v]})" for v in loop.stacks]
            over = f"range({texts[step.node.inputs[0]]})" if not read else \
                read[0] if len(read) == 1 else f"zip({', '.join(read)})"
            return f"for {', '.join(items) or '_'} in {over}:", []
        test = step.blocks[0]
        with self.text.aside() as lines:
            self.steps(test)
        text = texts[test.results[0]]
        expression = text if not lines else self.text.expression(lines, text)
        if expression is not None:
            return f"while {expression}:", []
        with self.text.aside() as end:
            self.text.line(f"if not {text}:")
            self.text.line("    break")
        return "while True:", lines + end

    def _item(self, value: Value) -> str:
        """The name for what is read from a stack; the number of a symbol is the symbol."""
        if not isinstance(value.type, Extent):
            return self.values.new(value)
        self.values.texts[value] = value.type.symbol
        return value.type.symbol

    def _iteration(self, step: Step, state: Sequence[str], stacks: Sequence[str], count: Optional[str]) -> None:
        """The body of a loop, with what it pushes and counts, and the next state at its end."""
        body, texts, places = step.blocks[-1], self.values.texts, self.plan.places
        self._side(body, [(value, name if v not in places else "") for v, value, name in zip(
            step.variables, body.results, state)], step.variables)
        for stack, value in zip(stacks, body.results[len(state):]):
            self.text.line(f"{stack}.append({texts[value]})")
        if count is not None:
            self.text.line(f"{count} += 1")
        turns = [(name, texts[value]) for v, name, value in zip(step.variables, state, body.results) if v in self.plan.partners]
        self._assign([(texts[value], name) for value, name in zip(body.results, state)] + turns)

    def _side(self, block: Block, results: Sequence[Tuple[Value, str]], variables: Sequence[Value] = ()) -> None:
        """The steps of a block; a result gets its name as soon as the earlier variable of that name is not read any more."""
        made = {v: step for step in block.steps for v in step.node.outputs}
        times = collections.Counter([value for value, _ in results])
        for k, (value, name) in enumerate(results):
            if not name or value not in made or times[value] > 1:
                continue
            read = self.reads.last.get(variables[k], 0) if variables else -1
            if read <= made[value].position:
                self.values.prefer(value, name, read == made[value].position)
        self.steps(block)

    def _assign(self, pairs: Sequence[Tuple[str, str]], node: Optional[Node] = None) -> None:
        """All assignments at once."""
        pairs = [(text, name) for text, name in pairs if text and text != name]
        if pairs:
            texts, names = zip(*pairs)
            self.text.line(f"{', '.join(names)} = {', '.join(texts)}", node)

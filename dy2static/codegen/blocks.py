"""Branches and loops as statements: what the writer of the lines of a function does with blocks."""
from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..ir.graph import Node, Value
from .buffers import BufferPlan
from .flatten import Block, Step
from .linear import InPlaceChanges
from .names import Names
from .text import Line


class BlockWriter:
    """Writes ``if``, ``while`` and ``for``; a subclass writes steps, and says what each value is called.

    texts: what the values made so far are called.  preferred: for a value of a block, the name its result will have,
    and whether an operand of the same name is still read where the value is made.
    """

    plan: BufferPlan
    changes: InPlaceChanges
    names: Names
    uses: Dict[Value, int]
    reads: Dict[Value, int]
    held: Any
    texts: Dict[Value, str]
    slot_names: Dict[int, str]
    lines: List[Line]
    indent: str
    preferred: Dict[Value, Tuple[str, bool]]
    _block: Callable[[Block], None]
    _buffer: Callable[[Value], str]
    _new_name: Callable[[Value], str]
    _numpy: Callable[[str], str]

    def _line(self, text: str, node: Optional[Node] = None) -> None:
        self.lines.append((self.indent + text, node.loc if node is not None else None))

    def _branch(self, step: Step) -> None:
        node = step.node
        results = [v for v in node.outputs if self.uses.get(v)]
        names = {v: self._variable(v) for v in results}
        sides = []
        for block in step.blocks:
            pairs = [(value, names[result]) for result, value in zip(node.outputs, block.results) if result in names]
            sides.append(self._indented(functools.partial(self._side, block, pairs, ())))
        (then, orelse), condition = sides, self.texts[node.inputs[0]]
        if not then and orelse:
            then, orelse, condition = orelse, [], f"not {condition}"
        self._line(f"if {condition}:", node)
        self.lines += then or [(f"{self.indent}    pass", None)]
        if orelse:
            self._line("else:")
            self.lines += orelse

    def _loop(self, step: Step) -> None:
        node, loop, body = step.node, step.loop, step.blocks[-1]
        begin = [self.changes.copied(variable, self.texts[v]) for variable, v in zip(step.variables, loop.state)]
        state = [self._variable(v) for v in step.variables]
        for variable, name, text in zip(step.variables, state, begin):
            if variable in self.plan.places and name != text:
                self._line(f"{self._numpy('copyto')}({name}, {text})", node)
        self._assign([(text, name) for v, name, text in zip(step.variables, state, begin) if v not in self.plan.places],
                     node)
        stacks = [self._new_name(v) for v in loop.pushed]
        for stack in stacks:
            self._line(f"{stack} = []", node)
        count = self._new_name(loop.counted[0]) if loop.counted and not stacks else None
        if count is not None:
            self._line(f"{count} = 0", node)
        header, test = self._loop_header(step)
        self._line(header, node)

        def iteration() -> None:
            self._side(body, [pair if v not in self.plan.places else (pair[0], "") for v, pair in zip(
                step.variables, zip(body.results, state))], step.variables)
            for stack, value in zip(stacks, body.results[len(state):]):
                self._line(f"{stack}.append({self.texts[value]})")
            if count is not None:
                self._line(f"{count} += 1")
            turns = [(state[j], self.texts[body.results[j]]) for j, v in enumerate(step.variables)
                     if v in self.plan.partners]
            self._assign([(self.texts[v], name) for v, name in zip(body.results, state)] + turns)

        lines = test + self._indented(iteration)
        self.lines += lines or [(f"{self.indent}    pass", None)]
        for result, variable, name in zip(loop.last, step.variables, state):
            self.texts[result] = name
            if variable in self.plan.places and result in self.held:
                self._line(f"{self._new_name(result)} = {name}.copy()", node)
        if loop.counted and stacks:
            self._line(f"{self._new_name(loop.counted[0])} = len({stacks[0]})")

    def _loop_header(self, step: Step) -> Tuple[str, List[Line]]:
        """The first line of a loop, and those of its test where it is not one expression."""
        loop = step.loop
        if loop.test is None:
            items = [self._new_name(v) for v in step.items]
            read = [f"reversed({self.texts[v]})" for v in loop.stacks]
            over = f"range({self.texts[step.node.inputs[0]]})" if not read else \
                read[0] if len(read) == 1 else f"zip({', '.join(read)})"
            return f"for {', '.join(items) or '_'} in {over}:", []
        test = step.blocks[0]
        lines = self._indented(lambda: self._block(test))
        text = self.texts[test.results[0]]
        if not lines:
            return f"while {text}:", []
        begin = f"{self.indent}    {text} = "
        if len(lines) == 1 and lines[0][0].startswith(begin):
            return f"while {lines[0][0][len(begin):]}:", []
        return "while True:", lines + self._indented(lambda: self._line(f"if not {text}:")) + \
            self._indented(lambda: self._line("    break"))

    def _side(self, block: Block, results: Sequence[Tuple[Value, str]], variables: Sequence[Value]) -> None:
        """The steps of a block; its results get their names as soon as nobody reads the variables of these names."""
        made = {v: step for step in block.steps for v in step.node.outputs}
        values = [value for value, _ in results]
        for k, (value, name) in enumerate(results):
            if not name or value not in made or values.count(value) > 1:
                continue
            read = self.reads.get(variables[k], 0) if variables else -1
            if read <= made[value].position:
                self.preferred[value] = name, read == made[value].position
        self._block(block)
        if not variables:
            self._assign([(self.texts.get(value, ""), name) for value, name in results])

    def _variable(self, variable: Value) -> str:
        """The name of the result of a branch or of a variable of a loop, and of its second buffer."""
        if variable not in self.plan.places:
            return self._new_name(variable)
        self.texts[variable] = self._buffer(variable)
        if variable in self.plan.partners:
            self.slot_names[self.plan.partners[variable]] = self.names.fresh(f"next_{variable.name}")
        return self.texts[variable]

    def _assign(self, pairs: Sequence[Tuple[str, str]], node: Optional[Node] = None) -> None:
        """All assignments at once."""
        pairs = [(text, name) for text, name in pairs if text and text != name]
        if pairs:
            texts, names = zip(*pairs)
            self._line(f"{', '.join(names)} = {', '.join(texts)}", node)

    def _indented(self, write: Callable[[], Any]) -> List[Line]:
        """The lines that ``write`` writes, one level deeper."""
        before, self.lines, self.indent = self.lines, [], self.indent + "    "
        write()
        lines, self.lines, self.indent = self.lines, before, self.indent[:-4]
        return lines

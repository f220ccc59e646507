"""Branches and loops of a graph as those of C."""
from __future__ import annotations

import collections
import math
from dataclasses import dataclass
from typing import Callable, List, Sequence, Set

from ...ir.c_forms import c_type
from ...ir.graph import Value
from ...ir.types import Tensor
from ..flatten import Block, Step
from ..loops import layout
from .emitter import FlowEmitter
from .lists import make_items_in_place
from .nests import block as braces
from .scalars import is_number, scalar_type

#: What writes all steps of a block.
WriteBlock = Callable[[Block], None]


def owned(block: Block) -> Set[Value]:
    """The values to which plain nodes of this block give memory of their own."""
    return {value for step in block.steps for value in step.node.outputs if _gives_memory(step, value)}


def copied(block: Block) -> Set[Value]:
    """What nodes of this block put in order, because no strides show it: that has memory of its own, too."""
    places = layout.Places(lambda: "")
    return {value for step in block.steps if not step.blocks and not places.settle(step.node) and step.node.op.name == "reshape"
            for value in step.node.outputs}


def _gives_memory(step: Step, value: Value) -> bool:
    if not isinstance(value.type, Tensor):
        return False
    name = step.node.op.name
    if step.blocks:
        return name == "if_" and value.ndim > 0
    return name not in layout.RULES and name not in ("reshape", "getitem_at", "constant", "full")


def write_branch(emitter: FlowEmitter, step: Step, write_block: WriteBlock) -> None:
    """An ``if_``: its results are C variables, or memory that both sides fill."""
    results = step.node.outputs
    for value in results:
        if is_number(value):
            declaration = emitter.declaration(value)
            if declaration:                             # lists are declared in front of all
                emitter.line(f"{declaration}{emitter.local(value)};")
        else:
            emitter.name(value)
    emitter.line(f"if ({emitter.scalar(step.node.inputs[0])}) {{")
    for side, block in enumerate(step.blocks):
        if side:
            emitter.line("} else {")
        with emitter.indented():
            _side(emitter, results, block, write_block)
    emitter.line("}")
    for value in results:
        if is_number(value):
            _store(emitter, value)


def _side(emitter: FlowEmitter, results: Sequence[Value], block: Block, write_block: WriteBlock) -> None:
    """One side of a branch: what it can is made in the memory of the results, the rest is copied there.

    One that raises has no results.
    """
    if any(step.node.op.name == "raise_" for step in block.steps):
        write_block(block)
        return
    made, here, times = owned(block), set(), collections.Counter(block.results)
    for value, inner in zip(results, block.results):
        if not is_number(value) and not emitter.has_memory(inner) and inner in made and times[inner] == 1:
            emitter.put_at(inner, emitter.name(value))
            here.add(inner)
    write_block(block)
    for value, inner in zip(results, block.results):
        if is_number(value):
            emitter.line(f"{emitter.local(value)} = {emitter.scalar(inner)};")
        elif inner not in here:
            emitter.copy(layout.place_of(value), emitter.place(inner), emitter.name(value))
        else:
            emitter.name(value)


def _store(emitter: FlowEmitter, value: Value) -> None:
    """Put a number that has memory there."""
    pointer = emitter.memory.pointer(value)
    if pointer is not None:
        emitter.line(f"{pointer}[0] = {emitter.local(value)};")


@dataclass(frozen=True)
class _Turns:
    """An array of the state of a loop: two buffers take turns to be ``now`` and ``next``; it begins in ``first``."""

    variable: Value
    now: str
    next: str
    first: str
    spare: str


class LoopText:
    """Writes one ``while_`` or ``scan``."""

    def __init__(self, emitter: FlowEmitter, step: Step, write_block: WriteBlock):
        self.emitter, self.step, self.loop, self.write_block = emitter, step, step.loop, write_block
        body = step.blocks[-1]
        count = len(step.variables)
        self.next, self.pushed = body.results[:count], body.results[count:]
        self.carried = [k for k in range(count) if self.next[k] is not step.variables[k]]
        self.turns: List[_Turns] = []
        self.arrays: List[str] = []                          # pointers to the arrays of the state
        self.made = owned(body)

    def write(self) -> None:
        """Write the whole loop."""
        emitter, step, loop = self.emitter, self.step, self.loop
        self._start_state()
        stacks = []
        for value in loop.pushed:
            stacks.append(emitter.new_stack(value))
            emitter.line(f"{stacks[-1]}.count = 0;")             # in a loop, it has been used before
        counter = emitter.variable("count", "const int64_t")
        begin = emitter.memory.tick()
        if loop.test is None:
            count = emitter.scalar(loop.count)
            with braces(emitter, f"for (int64_t {counter} = 0; {counter} < {count}; ++{counter}) {{"):
                self._read_items(counter, count)
                self._body(stacks)
        else:
            emitter.line(f"int64_t {counter} = 0;")
            with braces(emitter, "while (1) {"):
                self.write_block(step.blocks[0])
                emitter.line(f"if (!{emitter.scalar(step.blocks[0].results[0])}) break;")
                emitter.line(f"++{counter};")
                self._body(stacks)
        emitter.memory.used(*self.arrays)
        emitter.memory.loop_ends(begin)
        emitter.memory.used(*self.arrays)
        self._results(counter)

    def _results(self, counter: str) -> None:
        """What the loop gives is where its state is."""
        emitter = self.emitter
        for value in self.loop.counted:
            emitter.rename(value, counter)
        for value, variable in zip(self.loop.last, self.step.variables):
            if is_number(value):
                emitter.rename(value, emitter.local(variable))
                _store(emitter, value)
            else:
                emitter.put_at(value, emitter.name(variable))

    # The state

    def _start_state(self) -> None:
        """Variables: numbers are C variables; arrays are pointers, which two buffers take turns to be."""
        emitter, memory = self.emitter, self.emitter.memory
        for k, (variable, begin) in enumerate(zip(self.step.variables, self.loop.state)):
            if is_number(variable):
                emitter.line(f"{emitter.declaration(variable)}{emitter.local(variable)} = {emitter.scalar(begin)};")
                continue
            source, type = emitter.pointer(begin), c_type(variable.dtype)
            behind = memory.behind(memory.pointer(emitter.place(begin).base), source)
            if k not in self.carried:
                name = emitter.variable(variable.name, f"const {type} *")
                emitter.line(f"const {type} *const {name} = {source};")
                memory.put(variable, name, *behind)
                self.arrays.append(name)
                continue
            one, two = (memory.buffer(variable.name, math.prod(variable.shape), variable.dtype) for _ in range(2))
            name, following = emitter.variable(variable.name, f"{type} *"), emitter.variable(f"next_{variable.name}", f"{type} *")
            start = emitter.variable(f"first_{variable.name}")
            emitter.line(f"{type} *const {start} = ({type} *){source}, *{name} = {start}, *{following} = {one.name};")
            memory.put(variable, name, one, two, *behind)
            memory.lie_behind(following, one, two, *behind)
            self.arrays.append(name)
            self.turns.append(_Turns(variable, name, following, start, two.name))

    def _read_items(self, counter: str, count: str) -> None:
        """What is read from stacks, from the last item to the first."""
        emitter = self.emitter
        for item, stack in zip(self.step.items, self.loop.stacks):
            name, type = emitter.local(stack), c_type(item.dtype)
            address = f"(const {type} *){name}.data + ({count} - 1 - {counter}) * {math.prod(item.shape)}"
            if is_number(item):
                emitter.line(f"const {scalar_type(item.type)} {emitter.local(item)} = *({address});")
            else:
                pointer = emitter.variable(item.name, f"const {type} *")
                emitter.line(f"const {type} *const {pointer} = {address};")
                emitter.put_at(item, pointer)

    # The body

    def _body(self, stacks: Sequence[str]) -> None:
        """One turn: what it can is made where it is wanted, the rest is copied there."""
        emitter = self.emitter
        following = {turn.variable: turn.next for turn in self.turns}
        for k in self.carried:
            variable, new = self.step.variables[k], self.next[k]
            if variable in following and self._is_free(new):
                emitter.put_at(new, following[variable])
        items = [self._item(stack, value) for stack, value in zip(stacks, self.pushed)]
        make_items_in_place(emitter, self.step.blocks[-1], self.step.variables, self.made)
        self.write_block(self.step.blocks[-1])
        for item, value in zip(items, self.pushed):
            if is_number(value):
                emitter.line(f"{item}[0] = {emitter.scalar(value)};")
            elif emitter.memory.pointer(value) != item:
                emitter.copy(layout.place_of(value), emitter.place(value), item)
        for k in self.carried:
            variable, new = self.step.variables[k], self.next[k]
            if variable in following and emitter.memory.pointer(new) != following[variable]:
                emitter.copy(layout.place_of(variable), emitter.place(new), following[variable])
        self._next_numbers()
        emitter.sweep_lists()
        for turn in self.turns:
            spare, type = emitter.variable("spare"), c_type(turn.variable.dtype)
            emitter.line(f"{type} *const {spare} = {turn.now} == {turn.first} ? {turn.spare} : {turn.now};")
            emitter.line(f"{turn.now} = {turn.next};")
            emitter.line(f"{turn.next} = {spare};")

    def _item(self, stack: str, value: Value) -> str:
        """A new item on a stack; gives the pointer to it."""
        emitter, type = self.emitter, c_type(value.dtype)
        item = emitter.variable("item", f"{type} *")
        size = math.prod(value.shape) * value.dtype.itemsize
        emitter.line(f"{type} *const {item} = ({type} *)dy_stack_grow(&{stack}, {size});")
        emitter.line(f"if (!{item}) goto bail;")
        if not is_number(value) and self._is_free(value):
            emitter.put_at(value, item)
        return item

    def _next_numbers(self) -> None:
        """All numbers of the state change at once."""
        emitter = self.emitter
        numbers = [k for k in self.carried if is_number(self.step.variables[k])]
        news = [emitter.variable("new") for _ in numbers]
        for k, new in zip(numbers, news):
            emitter.line(f"const {scalar_type(self.step.variables[k].type)} {new} = {emitter.scalar(self.next[k])};")
        for k, new in zip(numbers, news):
            emitter.line(f"{emitter.local(self.step.variables[k])} = {new};")

    def _is_free(self, value: Value) -> bool:
        """Whether a value of the body can be written where it is wanted."""
        return not self.emitter.has_memory(value) and value in self.made

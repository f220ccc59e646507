"""Branches and loops of a graph as those of C."""
from __future__ import annotations

import math
from typing import Any, List, Sequence, Set

from ...ir.c_forms import c_type
from ...ir.graph import Value
from ..flatten import Block, Step
from .lists import SWEEP
from .places import place_of
from .scalars import is_number, scalar_type


def write_branch(writer: Any, step: Step) -> None:
    """An ``if_``: its results are C variables, or memory that both sides fill."""
    results = step.node.outputs
    for value in results:
        if is_number(value):
            writer.line(f"{writer.declaring(value)}{writer.local(value)};")
        else:
            writer.name(value)
    writer.line(f"if ({writer.scalar(step.node.inputs[0])}) {{")
    for side, block in enumerate(step.blocks):
        if side:
            writer.line("} else {")
        writer.depth += 1
        homes = {}
        for value, inner in zip(results, block.results):
            if not is_number(value) and inner not in writer.pointers and writer.makes(inner, block) \
                    and block.results.count(inner) == 1:
                writer.pointers[inner] = homes[inner] = writer.name(value)
        writer.write_block(block)
        for value, inner in zip(results, block.results):
            if is_number(value):
                writer.line(f"{writer.local(value)} = {writer.scalar(inner)};")
            elif inner not in homes:
                writer.copy(place_of(value), writer.place(inner), writer.name(value))
            else:
                writer.name(value)
        writer.depth -= 1
    writer.line("}")
    for value in results:
        if is_number(value) and value in writer.pointers:
            writer.line(f"{writer.pointers[value]}[0] = {writer.local(value)};")


class LoopText:
    """Writes one ``while_`` or ``scan``."""

    def __init__(self, writer: Any, step: Step):
        self.writer, self.step, self.loop = writer, step, step.loop
        body = step.blocks[-1]
        count = len(step.variables)
        self.next, self.pushed = body.results[:count], body.results[count:]
        self.carried = [k for k in range(count) if self.next[k] is not step.variables[k]]

    def write(self) -> None:
        writer, step, loop = self.writer, self.step, self.loop
        self.swaps: List[List[str]] = []
        self._start_state()
        stacks = [self._new_stack(value) for value in loop.pushed]
        counter = writer.given.fresh("count")
        writer.types[counter] = "const int64_t"
        begin_inside = writer.loop_begins()
        if loop.test is None:
            count = writer.scalar(loop.count)
            writer.line(f"for (int64_t {counter} = 0; {counter} < {count}; ++{counter}) {{")
            writer.depth += 1
            self._read_items(counter, count)
        else:
            writer.line(f"int64_t {counter} = 0;")
            writer.line("while (1) {")
            writer.depth += 1
            writer.write_block(step.blocks[0])
            writer.line(f"if (!{writer.scalar(step.blocks[0].results[0])}) break;")
            writer.line(f"++{counter};")
        self._body(stacks)
        writer.depth -= 1
        writer.line("}")
        self._touch_state()
        writer.loop_ends(begin_inside)
        self._touch_state()
        for value in loop.counted:
            writer.names[value] = counter
        for value, variable in zip(loop.last, step.variables):
            if is_number(value):
                writer.names[value] = writer.local(variable)
                if value in writer.pointers:
                    writer.line(f"{writer.pointers[value]}[0] = {writer.local(value)};")
            else:
                writer.pointers[value] = writer.pointers[variable]

    def _start_state(self) -> None:
        """Variables: numbers are C variables; arrays are pointers, which two buffers take turns to be."""
        writer = self.writer
        for k, (variable, begin) in enumerate(zip(self.step.variables, self.loop.state)):
            if is_number(variable):
                writer.line(f"{writer.declaring(variable)}{writer.local(variable)} = {writer.scalar(begin)};")
                continue
            source = writer.pointer(begin)
            base = writer.kept_by.get(writer.pointers.get(writer.place(begin).base, ""), ()) + writer.kept_by.get(source, ())
            base += tuple(b for b in writer.buffers if b.name == source)
            if k not in self.carried:
                name = writer.given.fresh(variable.name)
                writer.types[name] = f"const {c_type(variable.dtype)} *"
                writer.line(f"const {c_type(variable.dtype)} *const {name} = {source};")
                writer.pointers[variable] = name
                writer.kept_by[name] = base
                self.swaps.append([name])
                continue
            type, count = c_type(variable.dtype), math.prod(variable.shape)
            one, two = (writer.buffer(variable.name, count, variable.dtype) for _ in range(2))
            name, following = writer.given.fresh(variable.name), writer.given.fresh(f"next_{variable.name}")
            start = writer.given.fresh(f"first_{variable.name}")
            writer.types.update(dict.fromkeys((name, following), f"{type} *"))
            writer.line(f"{type} *const {start} = ({type} *){source}, *{name} = {start}, *{following} = {one.name};")
            writer.pointers[variable] = name
            writer.kept_by[name] = writer.kept_by[following] = (one, two, *base)
            self.swaps.append([name, following, start, one.name, two.name, variable])

    def _touch_state(self) -> None:
        for names in self.swaps:
            for buffer in self.writer.kept_by[names[0]]:
                buffer.last = max(buffer.last, self.writer.clock)

    def _new_stack(self, value: Value) -> str:
        name = self.writer.given.fresh(f"{value.name}")
        self.writer.names[value] = name
        self.writer.stacks.append(name)
        self.writer.line(f"{name}.count = 0;")               # in a loop, it has been used before
        return name

    def _read_items(self, counter: str, count: str) -> None:
        """What is read from stacks, from the last item to the first."""
        writer = self.writer
        for item, stack in zip(self.step.items, self.loop.stacks):
            name, size = writer.names[stack], math.prod(item.shape)
            type = c_type(item.dtype)
            address = f"(const {type} *){name}.data + ({count} - 1 - {counter}) * {size}"
            if is_number(item):
                writer.line(f"const {scalar_type(item.type)} {writer.local(item)} = *({address});")
            else:
                pointer = writer.given.fresh(item.name)
                writer.types[pointer] = f"const {type} *"
                writer.line(f"const {type} *const {pointer} = {address};")
                writer.pointers[item] = pointer

    def _body(self, stacks: Sequence[str]) -> None:
        writer, body = self.writer, self.step.blocks[-1]
        following = {swap[5]: swap[1] for swap in self.swaps if len(swap) > 1}
        homes: Set[Value] = set()
        for k in self.carried:
            variable, new = self.step.variables[k], self.next[k]
            if variable in following and self._free(new, body, homes):
                writer.pointers[new] = following[variable]
                homes.add(new)
        items = []
        for stack, value in zip(stacks, self.pushed):
            size = math.prod(value.shape) * value.dtype.itemsize
            item = writer.given.fresh("item")
            type = c_type(value.dtype)
            writer.types[item] = f"{type} *"
            writer.line(f"{type} *const {item} = ({type} *)dy_stack_grow(&{stack}, {size});")
            writer.line(f"if (!{item}) goto bail;")
            items.append(item)
            if not is_number(value) and self._free(value, body, homes):
                writer.pointers[value] = item
                homes.add(value)
        writer.write_block(body)
        for item, value in zip(items, self.pushed):
            if is_number(value):
                writer.line(f"{item}[0] = {writer.scalar(value)};")
            elif writer.pointers.get(value) != item:
                writer.copy(place_of(value), writer.place(value), item)
        numbers = [k for k in self.carried if is_number(self.step.variables[k])]
        for k in self.carried:
            variable, new = self.step.variables[k], self.next[k]
            if k not in numbers and new not in homes or k not in numbers and writer.pointers.get(new) != following[variable]:
                writer.copy(place_of(variable), writer.place(new), following[variable])
        temporaries = [(k, writer.given.fresh("new")) for k in numbers]
        for k, temporary in temporaries:
            variable = self.step.variables[k]
            writer.line(f"const {scalar_type(variable.type)} {temporary} = {writer.scalar(self.next[k])};")
        for k, temporary in temporaries:
            writer.line(f"{writer.local(self.step.variables[k])} = {temporary};")
        if writer.lists:
            writer.line(SWEEP)
        for swap in self.swaps:
            if len(swap) > 1:
                name, new, start, _, two, _ = swap
                spare = writer.given.fresh("spare")
                writer.line(f"{c_type(swap[5].dtype)} *const {spare} = {name} == {start} ? {two} : {name};")
                writer.line(f"{name} = {new};")
                writer.line(f"{new} = {spare};")

    def _free(self, value: Value, body: Block, homes: Set[Value]) -> bool:
        """Whether a value of the body can be written where it is wanted."""
        return value not in homes and value not in self.writer.pointers and self.writer.makes(value, body)

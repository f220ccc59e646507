"""The C text of a whole function: control flow, memory, and what runs between."""
from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

import numpy as np

from ...ir.c_forms import c_constant, c_type
from ...ir.graph import Graph, Node, Value
from ...ir.types import Extent, Stack, Tensor
from ...passes.dead import eliminate_dead
from ...runtime.clocks import NativeClock
from ..flatten import Block, Step, all_steps, flatten
from . import places
from .alone import ALONE
from .control import LoopText, write_branch
from .convolutions import write as write_convolution
from .draws import graph_draws
from .epilogues import finished, followers
from .expand import expand
from .extents import dims_of, is_grown, name_of, with_run_sizes
from .groups import REDUCTIONS, Group, Grouping, nodes_of, readers
from .lists import SWEEP, is_list, nbytes
from .loops import LoopWriter
from .memory import Buffer, arranged
from .names import CNames
from .parts import IDENTIFIER, Parts
from .places import Place, broadcast, place_of, reshaped
from .scalars import SCALARS, enters_as_array, scalar_type
from .shares import Share
from .storage import Storage


@dataclass(frozen=True)
class CFunction:
    """``static int run(char **p, int64_t *n, double *d)`` for a graph.

    text: of the function.  scratch: how many bytes it wants behind its outputs.
    """

    text: str
    scratch: int


def write(graph: Graph, name: str, parts: Parts, ticks: Optional[NativeClock] = None) -> CFunction:
    """The C function of a graph all of whose nodes are `supported`; its loop nests go to ``parts``.

    ticks: the clock that is to be in it.
    """
    return Writer(graph, parts, ticks).run(name)


class Writer(Storage):
    """What `write` knows while it walks over the steps; the ``memory`` of `LoopWriter`."""

    def __init__(self, graph: Graph, parts: Parts, ticks: Optional[NativeClock] = None):
        self.graph = eliminate_dead(with_run_sizes(expand(graph)))
        self.block = flatten(self.graph)
        self.outside = self._readers()
        self._makers: Dict[Block, Dict[Value, Step]] = {}
        self.views: Dict[Value, Place] = {}
        self.literals: Dict[Value, str] = {}
        self.pointers: Dict[Value, str] = {}              # of values in memory
        self.kept_by: Dict[str, Tuple[Buffer, ...]] = {}  # the buffers that a pointer may point into
        self.names: Dict[Value, str] = {}
        self.given = CNames()
        self.types: Dict[str, str] = {}                   # of pointers and numbers, by their names
        self.parts, self.ticks = parts, ticks
        self.needed: Set[Value] = set()                   # values of the run at hand that must be in memory
        self.buffers: List[Buffer] = []
        self.rooms: List[Buffer] = []                     # buffers of sizes that the run knows
        self.overwriting: List[Tuple[Buffer, Buffer]] = []
        self.stacks: List[str] = []
        self.lists: List[str] = []                        # variables that hold lists
        self.storages = "all_lists"
        self.given.taken.add(self.storages)
        self.clock = 0
        self.lines: List[str] = []
        self.depth = 1
        self.generator = ""                               # the pointer to the state of NumPy's generator

    def _readers(self) -> Mapping[Value, Set[Any]]:
        """What reads each value: plain nodes, and None for control flow and ends of blocks."""
        found: Dict[Value, Set[Any]] = {}
        for step in all_steps(self.block):
            for value in step.node.inputs:
                found.setdefault(value, set()).add(None if step.blocks else step.node)
            for block in step.blocks:
                for value in block.results:
                    found.setdefault(value, set()).add(None)
        for value in self.block.results:
            found.setdefault(value, set()).add(None)
        return found

    # --- the whole -------------------------------------------------------------------------------------------------

    def run(self, function: str) -> CFunction:
        """The text, and how much scratch memory it takes."""
        self.enter: List[str] = []
        numbers = {"int": itertools.count(), "float": itertools.count()}
        pointers = itertools.count()
        for value in self.graph.inputs:
            self._input(value, pointers, numbers)
        drawing, before = graph_draws(self.graph), ""
        if drawing:
            self.generator, before = self.given.fresh("generator"), self.given.fresh("before")
            self.enter.append(f"dy_generator *const {self.generator} = (dy_generator *)n[{next(numbers['int'])}];")
            self.enter.append(f"const dy_generator {before} = *{self.generator};")
        self._check_sizes()
        copied: List[Tuple[Value, str]] = []
        for value in self.graph.outputs:
            if enters_as_array(value.type) and not is_grown(value, self.made):
                pointer = self._declared(value, f"({c_type(value.dtype)} *)p[{next(pointers)}]", "out_")
                if value not in self.pointers and self.makes(value, self.block):
                    self.pointers[value] = pointer
                else:
                    copied.append((value, pointer))
        scratch = next(pointers)
        if self.ticks is not None:
            self.line("dy_start();")
        self.write_block(self.block)
        for value, pointer in copied:
            self.copy(place_of(value), self.place(value), pointer)
        if not self.buffers:                                   # then there is no scratch memory among the arguments
            pointers = itertools.count(scratch)
        for value in self.graph.outputs:
            if isinstance(value.type, Stack):
                name, item = self.names[value], value.type.elem
                self.line(f"p[{next(pointers)}] = {name}.data;")
                size = math.prod(item.shape) * item.dtype.itemsize
                self.line(f"n[{next(numbers['int'])}] = {name}.count * {size};")
            elif isinstance(value.type, Extent):
                self.line(f"n[{next(numbers['int'])}] = {name_of(value.type.symbol)};")
            elif is_list(value) or is_grown(value, self.made):
                self._given(value, f"p[{next(pointers)}]", f"n[{next(numbers['int'])}]")
            elif not enters_as_array(value.type):
                kind = "float" if value.type.kind == "py_float" else "int"
                self.line(f"{'d' if kind == 'float' else 'n'}[{next(numbers[kind])}] = {self.scalar(value)};")
        leaving = {self.names[value] for value in self.graph.outputs if isinstance(value.type, Stack)}
        for name in self.stacks:
            if name not in leaving:
                self.line(f"dy_block_give({name}.data);")
        size, offsets = arranged(self.buffers, self.overwriting)
        head = [f"static int {function}(char **p, int64_t *n, double *d)", "{"]
        head += [f"    {line}" for line in self.enter]
        if self.buffers:
            head.append(f"    char *const scratch = p[{scratch}];")
        head += [f"    {b.type} *const {b.name} = ({b.type} *)(scratch + {at});" for b, at in zip(self.buffers, offsets)]
        head += [f"    dy_stack {name} = {{0}};" for name in self.stacks]
        head += [f"    int64_t {name_of(symbol)} = 0;" for symbol in self.made]
        head += [f"    dy_list {name} = {{0}};" for name in self.lists]
        head += [f"    dy_storages {self.storages} = {{0}};"] if self.lists else []
        variables = ", ".join(f"&{name}" for name in self.lists)
        sweep = f"dy_lists_sweep(&{self.storages}, (dy_list *const[]){{{variables}}}, {len(self.lists)});"
        self.lines = [line.replace(SWEEP, sweep) if SWEEP in line else line for line in self.lines]
        for room in self.rooms:
            head.append(f"    dy_room {room.name}_room = {{0}}; {room.type} *{room.name} = 0;")
        rooms = [f"    free({room.name}_room.data);" for room in self.rooms]
        rooms += [f"    dy_lists_free(&{self.storages});"] if self.lists else []
        back = [f"    *{self.generator} = {before};"] if drawing else []
        tail = ["    if (dy_float_flags()) {", *back, "        return 1;", "    }"] if drawing else []
        tail = [*rooms, *tail, "    return 0;"]
        if drawing or any("goto bail" in line for line in self.lines):
            tail += ["bail:"] + back + [f"    dy_block_give({name}.data);" for name in self.stacks] + rooms + ["    return 1;"]
        return CFunction("\n".join([*head, *self.lines, *tail, "}"]) + "\n", size)

    def _given(self, value: Value, pointer: str, size: str) -> None:
        """Memory for the caller, with the items of a list or an array whose size was found here."""
        bytes_ = f"{self.local(value)}.count * {nbytes(value.type)}" if is_list(value) else value.type.size * value.dtype.itemsize
        self.line(f"{size} = {bytes_};")
        self.line(f"if (!({pointer} = dy_block_new({size}))) goto bail;")
        if is_list(value):
            self.line(f"memcpy({pointer}, {self.local(value)}.data, {size});")
            return
        name = self.given.fresh("grown")
        self.types[name] = f"{c_type(value.dtype)} *"
        self.line(f"{self.types[name]}const {name} = ({self.types[name]}){pointer};")
        self.copy(place_of(value), self.place(value), name)

    def _input(self, value: Value, pointers: Iterator[int], numbers: Mapping[str, Iterator[int]]) -> None:
        if enters_as_array(value.type):
            pointer = self._declared(value, f"(const {c_type(value.dtype)} *)p[{next(pointers)}]", "")
            if value.ndim:
                self.pointers[value] = pointer
            else:
                self.enter.append(f"const {c_type(value.dtype)} {self.local(value)} = {pointer}[0];")
        elif is_list(value):
            name = self.names[value] = self.given.fresh(value.name)
            self.enter.append(f"const dy_list {name} = {{p[{next(pointers)}], n[{next(numbers['int'])}], 0}};")
        elif isinstance(value.type, Extent):
            name = name_of(value.type.symbol)
            self.given.taken.add(name)
            self.types[name] = "const int64_t"
            self.enter.append(f"const int64_t {name} = n[{next(numbers['int'])}];")
        elif isinstance(value.type, Stack):
            name = self.names[value] = self.given.fresh(value.name)
            self.enter.append(f"const dy_stack {name} = {{p[{next(pointers)}], n[{next(numbers['int'])}], 0}};")
        else:
            kind = "float" if value.type.kind == "py_float" else "int"
            source = f"{'d' if kind == 'float' else 'n'}[{next(numbers[kind])}]"
            self.enter.append(f"const {scalar_type(value.type)} {self.local(value)} = {source};")

    def _check_sizes(self) -> None:
        """Arrays without elements are NumPy's."""
        self.known = {value.type.symbol for value in self.graph.inputs if isinstance(value.type, Extent)}
        self.unchecked = {dim for node in self.graph.walk() for dim in dims_of(node)}
        self.made = sorted({symbol for dim in self.unchecked for symbol in dim.symbols} - self.known)
        for symbol in self.made:
            self.given.taken.add(name_of(symbol))
            self.types[name_of(symbol)] = "const int64_t"
        self.enter += [f"if ({size} <= 0) return 1;" for size in self._checked()]

    def _checked(self) -> List[str]:
        """The sizes that are known by now, and were not before."""
        found = {dim for dim in self.unchecked if self.known.issuperset(dim.symbols)}
        self.unchecked -= found
        return sorted(map(str, found))

    def size_is_known(self, symbol: str) -> None:
        """From here on a symbol has its number."""
        self.known.add(symbol)
        for size in self._checked():
            self.line(f"if ({size} <= 0) goto bail;")

    def _declared(self, value: Value, source: str, prefix: str) -> str:
        name = self.given.fresh(prefix + value.name)
        const = "const " if source.startswith("(const") else ""
        self.enter.append(f"{const}{c_type(value.dtype)} *const {name} = {source};")
        self.types[name] = f"{const}{c_type(value.dtype)} *"
        return name

    def makes(self, value: Value, block: Block) -> bool:
        """Whether a plain node of this block gives the value memory of its own."""
        steps = self._makers.get(block)
        if steps is None:
            steps = self._makers[block] = {v: step for step in block.steps for v in step.node.outputs}
        step = steps.get(value)
        if step is None or value.ndim == 0 and not isinstance(value.type, Tensor):
            return False
        node = step.node
        if step.blocks:
            return node.op.name == "if_" and value.ndim > 0
        return node.op.name not in places.RULES and node.op.name not in ("reshape", "getitem_at", "constant", "full")

    def line(self, text: str) -> None:
        """One more line of the function."""
        self.lines.append("    " * self.depth + text)

    # --- blocks ----------------------------------------------------------------------------------------------------

    def write_block(self, block: Block) -> None:
        run: List[Node] = []
        for step in block.steps:
            if step.blocks:
                self._run(run)
                run = []
                self.clock += 1
                self._control(step)
                self._tick([step.node])
            else:
                run.append(step.node)
        self._run(run)
        self.clock += 1

    def _run(self, nodes: Sequence[Node]) -> None:
        """Nodes without control flow."""
        grouping, inside = Grouping(self.place), set(nodes)
        for node in nodes:
            self._sort_in(grouping, node)
        kept = {self.place(v).base for node in nodes for v in node.outputs if self.outside.get(v, set()) - inside}
        needed = set(kept)
        grouping.sink(needed)
        read = readers(grouping.order)
        for value, parts in read.items():
            base = self.place(value).base
            for part in parts:
                made_in = grouping.position.get(base)
                if made_in is not None and made_in != part or not isinstance(grouping.order[part], Group):
                    needed.add(base)
        self.needed = needed
        done: Set[int] = set()
        for index, part in enumerate(grouping.order):
            if index in done:
                continue
            self.clock += 1
            after = followers(self, grouping.order, index, kept)
            if after:       # all of this is one moment for the memory: what follows must not write where the operands are
                self.lines += ["    " * self.depth + line for follower in after for line in follower.before]
                write_convolution(self, part, *finished(self, after))
                self.lines += ["    " * self.depth + line for follower in after for line in follower.joined]
                done.update(range(index + 1, index + 1 + len(after)))
                self._tick([part, *(node for follower in after for node in nodes_of(follower.part))])
                continue
            if not isinstance(part, Group):
                self._alone(part)
            elif part.nodes:
                self._group(part)
            self._tick(nodes_of(part))

    def _tick(self, nodes: Sequence[Node]) -> None:
        """The clock is told that these nodes have run.  Single numbers take less than that: they count with what follows."""
        if self.ticks is not None and nodes and any(
                node.op.kind != "scalar" and node.op.name not in ("getitem_at", "dimension") for node in nodes):
            self.line(f"dy_tick({self.ticks.part(nodes)});")

    def _group(self, group: Group) -> None:
        """A loop nest: a function of its own, which gives numbers by pointers; arithmetic on single numbers stays here."""
        loops = LoopWriter(self, group)
        lines = ["    " + line for line in loops.write()]
        self._overwrite(group)
        if loops.share is not None:
            self.lines += ["    " * self.depth + line for line in loops.before]
            self.part(lines, loops.share)
            self.lines += ["    " * self.depth + line for line in loops.joined()]
            return
        if not group.shape:
            self.lines += ["    " * (self.depth - 1) + line for line in lines]
            return
        values = group.values()                         # a set: the text must not depend on its order
        numbers = {self.local(value): scalar_type(value.type) for node in group.nodes for value in node.outputs
                   if value in values and value.ndim == 0 and value not in self.literals}
        inside = {name: self.given.fresh(name) for name in numbers}
        lines = [IDENTIFIER.sub(lambda found: inside.get(found.group(), found.group()), line) for line in lines]
        for name, type in numbers.items():
            to = self.given.fresh("to")
            self.types[to] = f"{type} *"
            self.line(f"{type} {name}, *const {to} = &{name};")
            lines.append(f"    *{to} = {inside[name]};")
        self.part(lines)

    def _overwrite(self, group: Group) -> None:
        """Note which results of a group may stand where an operand stands that it reads element by element, once."""
        if group.sweeps > 1 or not all(isinstance(n, int) for n in group.shape):
            return
        read: Dict[Value, List[Place]] = {}
        until: Dict[Value, int] = {}                           # the last node that reads a value
        for number, node in enumerate(group.nodes):
            for value in node.inputs:
                place = self.place(value)
                read.setdefault(place.base, []).append(place)
                until[place.base] = number
        before = [(value, self._own_buffer(value)) for value, found in read.items() if value not in group.values()
                  and all(place.whole and math.prod(place.shape) == math.prod(group.shape) for place in found)]
        for number, node in enumerate(group.nodes):
            (value,) = node.outputs
            after = self._own_buffer(value) if value in group.elements and self.stored(value) else None
            if after is not None and after.first == self.clock:
                self.overwriting += [(buffer, after) for operand, buffer in before if buffer is not None
                                     and buffer.first < self.clock and buffer.nbytes == after.nbytes and until[operand] <= number]

    def _own_buffer(self, value: Value) -> Optional[Buffer]:
        """The only buffer that a value can be in."""
        found = self.kept_by.get(self.pointers.get(value, ""), ())
        return found[0] if len(found) == 1 else None

    def part(self, lines: Sequence[str], share: Optional[Share] = None) -> None:
        """Lines that only fill memory, as a function of their own; what is shared runs from ``begin`` to ``end``."""
        self.line(self.parts.call(lines, self.types, self.given.taken, share))

    def _sort_in(self, grouping: Grouping, node: Node) -> None:
        name = node.op.name
        if name in places.RULES:
            self.views.update(zip(node.outputs, places.RULES[name](node, self.place(node.inputs[0]))))
        elif name == "constant" and node.outputs[0].ndim == 0:
            self.literals[node.outputs[0]] = c_constant(node.attrs["value"], node.outputs[0].dtype)
        elif name == "py_constant":
            self.literals[node.outputs[0]] = _python_literal(node.attrs["value"])
        elif name == "dimension":
            self.literals[node.outputs[0]] = _python_literal(node.attrs["size"])
        elif name == "full":
            (value,) = node.outputs
            number = Value(Tensor((), value.dtype), value.name)
            self.literals[number] = c_constant(node.attrs["value"], value.dtype)
            self.views[value] = broadcast(place_of(number), value.shape)
            if value.ndim == 0:
                self.literals[value] = self.literals[number]
        elif name == "reshape":
            place = reshaped(self.place(node.inputs[0]), node.outputs[0].shape)
            if place is None:
                grouping.add_alone(node)
            else:
                self.views[node.outputs[0]] = place
        elif name == "getitem_at":
            numbers = [self.at() for _ in node.inputs[1:]]
            self.views[node.outputs[0]] = places.indexed(self.place(node.inputs[0]), node.attrs["index"], numbers)
            grouping.add_alone(node)
        elif node.op.kind == "elementwise" or name in REDUCTIONS:
            grouping.add(node)
        else:
            grouping.add_alone(node)

    def _alone(self, node: Node) -> None:
        if node.op.kind == "scalar":
            (value,) = node.outputs
            lines = SCALARS[node.op.name](node, [self.scalar(v) for v in node.inputs], self.local(value))
            for line in lines:
                self.line(line)
            if self.stored(value):
                self.line(f"{self.name(value)}[0] = {self.local(value)};")
        else:
            ALONE[node.op.name](self, node)

    # --- control flow ---------------------------------------------------------------------------------------------------

    def _control(self, step: Step) -> None:
        if step.node.op.name == "if_":
            write_branch(self, step)
        else:
            LoopText(self, step).write()

    def loop_begins(self) -> int:
        """The time at which a loop begins."""
        self.clock += 1
        return self.clock

    def loop_ends(self, begin: int) -> None:
        """What is read in a loop and made before it is in use until the loop ends."""
        self.clock += 1
        for buffer in self.buffers:
            if buffer.first < begin <= buffer.last:
                buffer.last = self.clock


def _python_literal(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, float):
        return c_constant(value, np.dtype("float64"))
    return f"INT64_C({value})" if value >= 0 else f"(-INT64_C({-value}))"

"""The C text of a whole function: a walk over the steps of a graph."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence, Set

from ...ir.dims import Size
from ...ir.graph import Graph, Node, Value
from ...lowering.numpy.legalize import legalize_numpy_calls
from ...passes import Pass, Pipeline, Setting, run
from ...passes.channel_blocks import block_channels
from ...passes.cleanup.dce import eliminate_dead
from ...passes.legalize.decompose import decompose
from ...passes.order_of_memory import operate_in_order_within
from ...runtime.clocks import NativeClock
from ..flatten import Block, Step, all_steps, flatten
from ..loops.fuse import Run, fuse
from ..loops.groups import Group, nodes_of
from ..loops.layout import Place
from ..loops.schedule import schedule
from ..run_sizes import size_variables, with_run_sizes
from .alike_nests import AlikeNests, form_of
from .control import LoopText, copied, owned, write_branch
from .epilogues import finished, followers
from .finished_products import finished_at, write_finished
from .function import FunctionEmitter
from .kernels_blocks import expect, may_overwrite, pair_at, write_pair
from .kernels_convolution import write as write_convolution
from .kernels_dense import ALONE
from .kernels_products import head_of, multiply
from .new_memory import bases_of_views, changed_later, without_copies
from .outline import IDENTIFIER, Parts
from .render_c import render
from .row_chains import chain_at, write_chain
from .scalars import SCALARS, scalar_type
from .shared_columns import columns_text, shared_columns_at, write_product
from .signature import Signature
from .standalone import Standalone

#: What a region goes through before it is written as C.
REGION = Pipeline("c region", "a native part of a graph, before it is written as C", (
    Pass(legalize_numpy_calls, is_verified=False), Pass(operate_in_order_within, is_verified=False),
    Pass(block_channels, reads=("layout",), is_verified=False),      # before normalisation is taken apart; reads sizes of outside
    Pass(decompose, is_verified=False), Pass(with_run_sizes, is_verified=False), Pass(without_copies, is_verified=False),
    Pass(eliminate_dead, is_verified=False)))
#: From so many nests and nodes in a row on, all are functions.
_MANY = 64
#: Nests of so many elements take much longer than a call.
_LARGE = 1 << 14


@dataclass(frozen=True)
class CFunction:
    """``static int run(char **p, int64_t *n, double *d)`` for a graph.

    text: of the function.  scratch: how many bytes it wants behind its outputs.  sized: at most how many bytes it asks for when it
    begins, in sizes that the caller gives.  grows: whether it takes memory besides, as much as its loops and lists need.
    """

    text: str
    scratch: int
    sized: Size = 0
    grows: bool = False


def write(graph: Graph, name: str, parts: Parts, ticks: Optional[NativeClock] = None,
          standalone: Optional[Standalone] = None, layout: str = "") -> CFunction:
    """The C function of a graph all of whose nodes are `supported`; its loop nests go to ``parts``.

    ticks: the clock that is to be in it.  standalone: for a function that no Python stands behind; its graph has been through
    the passes.  layout: that of its images, if the estimate is not to choose one.
    """
    graph = run(REGION, graph, Setting(layout=layout)) if standalone is None else graph
    block = flatten(graph)
    with size_variables():
        read_by = _readers(block)
        out = FunctionEmitter(graph, parts, read_by, standalone)
        signature = Signature(graph, out)
        signature.enter()
        signature.bind_outputs(owned(block) | copied(block), bases_of_views(block))
        out.becomes = changed_later(block, read_by)
        if ticks is not None:
            out.line("dy_start();")
        _Walk(out, read_by, ticks).block(block)
        signature.leave()
        text, scratch, sized = signature.text(name)
    parts.own |= out.names.taken
    return CFunction(text, scratch, sized, bool(out.stacks or out.lists or out.memory.rooms))


def _readers(block: Block) -> Mapping[Value, Set[Optional[Node]]]:
    """What reads each value: plain nodes, and None for control flow and ends of blocks."""
    found: Dict[Value, Set[Optional[Node]]] = {}
    for step in all_steps(block):
        for value in step.node.inputs:
            found.setdefault(value, set()).add(None if step.blocks else step.node)
        for inner in step.blocks:
            for value in inner.results:
                found.setdefault(value, set()).add(None)
    for value in block.results:
        found.setdefault(value, set()).add(None)
    return found


class _Walk:
    """Writes the steps of blocks, one after the other."""

    def __init__(self, out: FunctionEmitter, read_by: Mapping[Value, Set[Optional[Node]]], ticks: Optional[NativeClock]):
        self.out, self.read_by, self.ticks = out, read_by, ticks
        self.are_many = False
        self.alike = AlikeNests(out)

    def block(self, block: Block) -> None:
        """Write all steps of a block; nodes between two control nodes are fused together."""
        nodes: List[Node] = []
        for step in block.steps:
            if step.blocks:
                self._run(nodes)
                nodes = []
                self.out.memory.tick()
                self.out.begin([step.node])
                self._control(step)
                self._tick([step.node])
            else:
                nodes.append(step.node)
        self._run(nodes)
        self.out.memory.tick()

    def _control(self, step: Step) -> None:
        def write_block(block: Block) -> None:
            self.block(block)
            self.out.begin([step.node])
        if step.node.op.name == "if_":
            write_branch(self.out, step, write_block)
        else:
            LoopText(self.out, step, write_block).write()

    def _run(self, nodes: Sequence[Node]) -> None:
        """Write nodes without control flow."""
        fused = fuse(nodes, self.out.places, self.read_by, _LARGE, vectors=True)
        self.out.needed, self.are_many = fused.needed, len(fused.parts) >= _MANY
        index = 0
        while index < len(fused.parts):
            self.out.memory.tick()
            self.out.begin(nodes_of(fused.parts[index]))
            expect(self.out, fused.parts, index)
            index += (self._pair(fused, index) or self._epilogue(fused, index) or self._chain(fused, index)
                      or self._columns(fused, index) or self._finished(fused, index) or self._head(fused, index)
                      or self._part(fused.parts[index]))

    def _epilogue(self, fused: Run, index: int) -> int:
        """Write a convolution with what follows it, if anything can; gives how many parts that is.

        All of this is one moment for the memory: what follows must not write where the operands are.
        """
        found, part = followers(self.out, fused, index), fused.parts[index]
        if found:
            assert isinstance(part, Node)
            for follower in found:
                self.out.lines(follower.before)
            write_convolution(self.out, part, *finished(self.out, found))
            for follower in found:
                self.out.lines(follower.joined)
            self._tick([part, *(node for follower in found for node in nodes_of(follower.part))])
            return 1 + len(found)
        return 0

    def _chain(self, fused: Run, index: int) -> int:
        """Write two products with the loop nest between them, if that can go block by block; gives how many parts that is."""
        chain = chain_at(self.out, fused, index)
        if chain is None:
            return 0
        head = head_of(self.out, chain.second, fused, index + 3)
        copies = [] if head is None else [head.node]
        write_chain(self.out, chain, head)
        self._tick([chain.first, *chain.group.nodes, chain.second, *copies])
        return 3 + len(copies)

    def _head(self, fused: Run, index: int) -> int:
        """Write a product where the copy that follows it would be, if nothing else reads it; gives how many parts that is."""
        part = fused.parts[index]
        if not isinstance(part, Node) or part.op.name != "matmul":
            return 0
        head = head_of(self.out, part, fused, index + 1)
        if head is None:
            return 0
        multiply(self.out, part, head)
        self._tick([part, head.node])
        return 2

    def _pair(self, fused: Run, index: int) -> int:
        """Write a convolution and the depthwise one behind it together, if that pays; gives how many parts that is."""
        pair = pair_at(self.out, fused, index)
        if pair is None:
            return 0
        write_pair(self.out, pair)
        self._tick([pair.first, pair.second])
        return 2

    def _columns(self, fused: Run, index: int) -> int:
        """Write a product with the nests that threads compute for the same columns, if there are any; gives how many parts that is.

        All of this is one moment for the memory: threads are at different parts.
        """
        found, out = shared_columns_at(self.out, fused, index), self.out
        if found is None:
            return 0
        with out.text.apart() as lines:
            write_product(out, found, fused, index)
            for group in found.groups:
                out.parts.nodes = group.nodes
                self._piece(group, found.units)
        nodes = out.parts.nodes = [found.node, *(node for group in found.groups for node in group.nodes)]
        out.part(lines, found.share)
        self._tick(nodes)
        return 1 + len(found.groups)

    def _piece(self, group: Group, units: int) -> None:
        """Write the call of a nest among the lines of a share of so many units."""
        out, form = self.out, form_of(group, self.out)
        form = form and form._replace(key=(form.key, units))
        if form is not None and self.alike.again(form):
            return
        out.named.clear()
        lines = ["    " + line for line in columns_text(out, group, units).lines]
        call = out.parts.call_of_piece(lines, out.names.types, out.names.taken)
        out.line(call)
        if form is not None:
            self.alike.note(form, call)

    def _finished(self, fused: Run, index: int) -> int:
        """Write a product with the elementwise nest that follows it, if one can; gives how many parts that is."""
        found = finished_at(self.out, fused, index)
        if found is None:
            return 0
        write_finished(self.out, found)
        self._tick([found.node, *found.group.nodes])
        return 2

    def _part(self, part: object) -> int:
        if isinstance(part, Node):
            self._alone(part)
        elif isinstance(part, Group) and part.nodes:
            self._group(part)
        self._tick(nodes_of(part))
        return 1

    def _tick(self, nodes: Sequence[Node]) -> None:
        """The clock is told that these nodes have run.  Single numbers take less than that: they count with what follows."""
        if self.ticks is not None and nodes and any(
                node.op.kind != "scalar" and node.op.name not in ("getitem_at", "dimension") for node in nodes):
            self.out.line(f"dy_tick({self.ticks.part(nodes)});")

    def _group(self, group: Group) -> None:
        """Write a loop nest: a function of its own, which gives numbers by pointers.

        Arithmetic on single numbers stays here, unless it is that of many steps (`call_list`).
        """
        out, form = self.out, form_of(group, self.out)
        if form is not None and self.alike.again(form):
            self._overwrite(group)
            return
        out.named.clear()
        nest = schedule(group, out.place, out.stored, reorders=True)
        text = render(nest, out)
        self._overwrite(group)
        if not group.shape and not self.are_many:
            out.lines(text.lines)
            return
        out.lines(text.before)
        lines = ["    " + line for line in text.lines]
        lines = lines if nest.share is not None else self._by_pointers(group, lines)
        call = out.parts.call(lines, out.names.types, out.names.taken, nest.share)
        out.line(call)
        out.lines(text.joined)
        if form is not None and not (text.before or text.joined or nest.kept):
            self.alike.note(form, call)

    def _by_pointers(self, group: Group, lines: Sequence[str]) -> List[str]:
        """The lines of a function, and behind them some that hand over the numbers it has found."""
        out, values = self.out, group.values()              # a set: the text must not depend on its order
        numbers = {out.local(value): scalar_type(value.type) for node in group.nodes for value in node.outputs
                   if value in values and value.ndim == 0}
        inside = {name: out.variable(name) for name in numbers}
        found = [IDENTIFIER.sub(lambda found: inside.get(found.group(), found.group()), line) for line in lines]
        for name, type in numbers.items():
            found.append(f"    *{out.cell(name, type)} = {inside[name]};")
        return found

    def _overwrite(self, group: Group) -> None:
        """Note which results of a group may stand where an operand stands that it reads element by element, once."""
        if group.sweeps > 1:
            return
        memory = self.out.memory
        read: Dict[Value, List[Place]] = {}
        until: Dict[Value, int] = {}                           # the last node that reads a value
        for number, node in enumerate(group.nodes):
            for value in node.inputs:
                place = self.out.place(value)
                read.setdefault(place.base, []).append(place)
                until[place.base] = number
        before = [(value, memory.own_buffer(value)) for value, found in read.items() if not group.makes(value)
                  and all(place.whole and math.prod(place.shape) == math.prod(group.shape) for place in found)]
        for number, node in enumerate(group.nodes):
            (value,) = node.outputs
            after = memory.own_buffer(value) if value in group.elements and self.out.stored(value) else None
            if after is not None and after.first == memory.clock:
                for operand, buffer in before:
                    if buffer is not None and buffer.first < memory.clock and buffer.nbytes == after.nbytes \
                            and until[operand] <= number:
                        memory.may_overwrite(buffer, after)

    def _overwrite_operand(self, node: Node) -> None:
        """Note that the result of a node may stand where an operand stands."""
        operand, memory, place = may_overwrite(node), self.out.memory, self.out.place
        if operand is None or not place(operand).whole or sum(place(v).base is place(operand).base for v in node.inputs) > 1:
            return
        before, after = memory.own_buffer(place(operand).base), memory.own_buffer(node.outputs[0])
        if before is None or after is None or before.nbytes != after.nbytes:
            return
        if before.first < after.first == memory.clock:
            memory.may_overwrite(before, after)

    def _alone(self, node: Node) -> None:
        """Write a node that does not become a loop over elements."""
        if node.op.kind != "scalar":
            ALONE[node.op.name](self.out, node)
            self._overwrite_operand(node)
            return
        (value,), out = node.outputs, self.out
        if out.same_number(node):
            return
        operands = [f"(int64_t){out.scalar(v)}" if getattr(v.type, "kind", "") == "py_bool" else out.scalar(v) for v in node.inputs]
        out.lines(SCALARS[node.op.name](node, operands, out.local(value)))
        if out.stored(value):
            out.line(f"{out.name(value)}[0] = {out.local(value)};")

"""Graphs as readable Python functions that call NumPy: a walk over the steps of a graph."""
from __future__ import annotations

from contextlib import contextmanager
from typing import Collection, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from ...ir.graph import Graph, Value
from ...ir.size_texts import divided_text
from ...ir.types import Extent
from ...passes import Pass, Pipeline, Setting, run
from ...passes.cleanup.dce import eliminate_dead_in_regions
from ...runtime.clocks import Clock
from ..compiled_calls import is_native
from ..extents import made_in_regions, several_numbers, symbol_sources, symbols_in
from ..flatten import Block, Step, flatten
from ..names import Names
from .arenas import unpacked
from .control import ControlText
from .emitter import Emitter
from .function import NumpyFunction
from .in_place import changes_first
from .library import NUMPY_CALLS, Library
from .nodes import write_node

#: What every graph goes through right before it is written as NumPy calls; it may have native nodes.
TEXT = Pipeline("numpy text", "a graph that is written as NumPy calls, native parts included", (
    Pass(eliminate_dead_in_regions, reads=("saved",), is_verified=False),))

#: Working memory of so many bytes is shared with other functions; less stays in the arena, which costs nothing to take.
_LEAST_SHARED = 1 << 18


def emit(graph: Graph, *, name: str, escaping: Collection[Value], saved: Tuple[Value, ...] = (),
         reserved: Collection[str] = (), clock: Optional[Clock] = None, into: Mapping[Value, Value] = {},
         library: Library = NUMPY_CALLS) -> NumpyFunction:
    """A NumPy function for a graph; branches and loops become ``if``, ``while`` and ``for``.

    escaping: values whose arrays somebody outside will hold.  They, and everything they may be views of, get new
        memory in every call; everything else is computed into the arena.
    saved: values that the function also returns; they stay as they are in the arena until it is used again.
    reserved: names the text must not use.
    clock: what is told when each node has run.
    into: results that fill the memory of inputs; nothing else is in memory that they share.
    library: what the text calls.

    Linear in nodes + edges.
    """
    graph = run(TEXT, graph, Setting(saved=saved))
    block, returned = flatten(graph), (*graph.outputs, *saved)
    names = Names({*reserved, *symbols_in(graph), *library.reserved, "work", "parts", "take_work", "give_work"})
    several = several_numbers(graph)
    fixed = [symbol for symbol, _, _, _ in symbol_sources(graph) if symbol not in several]
    out = Emitter(block, returned, escaping, names, library, fixed)
    params = tuple(out.values.new(value, "x") for value in graph.inputs)
    with _inside(out, library.around(names)):
        head = _write(out, graph, block, clock, into)
    results = tuple(v.type.symbol if isinstance(v.type, Extent) else out.values.texts[v] for v in returned)
    compiled = {known: names.namespace.pop(known) for known in out.compiled}
    kept, work = out.plan.parted()
    is_shared = library.shares_work and (work.nbytes >= _LEAST_SHARED or bool(work.symbols))
    plan = kept if is_shared else out.plan
    arena = unpacked(plan, out.values.arena(lambda slot: not is_shared or slot.storage in out.plan.kept), names, "arena")
    shared = unpacked(work, out.values.arena(lambda slot: slot.storage not in out.plan.kept), names, "parts") if is_shared else []
    first = head if plan.symbols or work.symbols else 0
    lines = tuple(out.text.lines)
    return NumpyFunction(name, params, tuple(arena), lines[:first], lines[first:], results, names.namespace, plan, tuple(shared),
                         work if is_shared else None, library, compiled)


@contextmanager
def _inside(out: Emitter, manager: str) -> Iterator[None]:
    """What is written inside is in the block of a manager; of none if there is no text for one."""
    if not manager:
        yield
        return
    with out.text.aside() as lines:
        yield
    out.text.line(f"with {manager}:")
    out.text.add(lines)


def _write(out: Emitter, graph: Graph, block: Block, clock: Optional[Clock], into: Mapping[Value, Value]) -> int:
    """Write all lines but the last.  Gives how many there are before the first node."""
    names = out.names
    if clock is not None:
        clock.libraries, clock.stamps = out.library.titles, out.library.stamps
        out.text.line(f"{names.bind('start', clock.start)}()")
    _bind_symbols(out, graph)
    head = len(out.text.lines)
    out.into = _made_there(out, block, into)
    _Walk(out, clock).block(block)
    for value in [value for value in into if value not in out.into]:
        out.copy_to(out.values.texts[into[value]], out.values.texts[value])
    return head


def _made_there(out: Emitter, block: Block, into: Mapping[Value, Value]) -> Mapping[Value, Value]:
    """The results that can be made in the memory of their inputs: nothing reads these afterwards.  Writes change what they read."""
    found: Dict[Value, Value] = {}
    there = set(into.values())
    for step in block.steps:
        for value in step.node.outputs:
            if into and changes_first(step.node) and step.node.inputs[0] in there:
                there.add(value)
                out.changes.nodes.add(step.node)
                found.update({value: into[value]} if value in into else {})
            elif value in into and step.node.op.inplace_ok and out.reads.last.get(into[value], -1) <= step.position:
                found[value] = into[value]
    return found


def _bind_symbols(out: Emitter, graph: Graph) -> None:
    """Let each unknown size be read from an input; those that a branch finds out have a number in any case."""
    for symbol, value, axis, factor in symbol_sources(graph):
        text = out.values.texts[value]
        out.text.line(f"{symbol} = {text}" if axis < 0 else f"{symbol} = {divided_text(f'{text}.shape[{axis}]', factor)}")
    for symbol in made_in_regions(graph):
        out.text.line(f"{symbol} = 0")


class _Walk:
    """Writes the steps of blocks, one after the other, and tells the clock of each."""

    def __init__(self, out: Emitter, clock: Optional[Clock]):
        self.out, self.clock = out, clock
        self.control = ControlText(out, self.block)

    def block(self, block: Block) -> None:
        """Write the steps of a block that anything needs."""
        quiet: List[Step] = []
        for step in block.steps:
            if self.out.reads.is_written(step):
                if step.node.recomputed:
                    quiet.append(step)
                else:
                    self._quiet(quiet)
                    self._step(step)
        self._quiet(quiet)

    def _quiet(self, steps: List[Step]) -> None:
        """Write what has been computed before, where NumPy said what there is to say, and forget these steps."""
        text = self.out.text
        with text.aside() as lines:
            for step in steps:
                self._step(step)
        steps.clear()
        if lines and not self.out.library.warns:
            text.lines += [(line[4:], loc) for line, loc in lines]
        elif lines:
            text.line(f"with {self.out.names.bind('errstate', np.errstate)}(all='ignore'):")
            text.add(lines)

    def _step(self, step: Step) -> None:
        text, node = self.out.text, step.node
        written = len(text.lines)
        if step.blocks:
            self.control.write(step)
        else:
            with self.out.on_device_of(node):
                write_node(self.out, node)
        if self.clock is not None and len(text.lines) > written:
            number = self.clock.part([node], is_native(node))
            text.line(f"{self.out.names.bind('tick', self.clock.tick)}({number})", node)

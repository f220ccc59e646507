"""A graph with regions as nested steps, one for each generated line; every value has one place."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Dict, Iterator, List, Sequence, Tuple

from ..ir.graph import Graph, Node, Value
from ..ops.control import Loop, loop_of


@dataclass(eq=False)
class Block:
    """Steps in order, what they give in the end, and the position of the end."""

    steps: List["Step"]
    results: Tuple[Value, ...] = ()
    end: int = 0


@dataclass(eq=False)
class Step:
    """One node: its operands and results are values of the flat program.

    position: counts steps and ends of blocks in the order of the text.
    blocks: of a branch the two sides; of a loop the test, if there is one, and the body.
    variables: of a loop, the values that stand for its state inside; items: those for what it reads from stacks.
    """

    node: Node
    position: int
    blocks: Tuple[Block, ...] = ()
    variables: Tuple[Value, ...] = ()
    items: Tuple[Value, ...] = ()

    @property
    def loop(self) -> Loop:
        """The parts of a loop; of its regions only the shape means something."""
        return loop_of(self.node)

    @property
    def end(self) -> int:
        """The position of the last thing that belongs to the step."""
        return self.blocks[-1].end if self.blocks else self.position


def flatten(graph: Graph) -> Block:
    """The steps of a graph.  Values and nodes without regions at the top level are those of the graph.

    What a region sees is replaced with what it stands for: captured operands and invariants with the operands.
    Values made in regions are new, also where a region occurs twice.  Linear in the nodes of all regions.
    """
    return _Flattener().block(graph, {}, False)


def all_steps(block: Block) -> Iterator[Step]:
    """The steps of a block and of the blocks in it, in the order of the text."""
    for step in block.steps:
        yield step
        for inner in step.blocks:
            yield from all_steps(inner)


class _Flattener:
    def __init__(self) -> None:
        self.position = -1

    def next(self) -> int:
        self.position += 1
        return self.position

    def block(self, graph: Graph, known: Dict[Value, Value], copied: bool) -> Block:
        steps = []
        for node in graph.nodes:
            new = node
            if copied or node.regions:
                outputs = tuple(map(_copy, node.outputs)) if copied else node.outputs
                new = replace(node, inputs=_look_up(node.inputs, known), outputs=outputs)
            step = Step(new, self.next())
            if node.op.name == "if_":
                self._branch(step)
            elif node.regions:
                self._loop(step)
            known.update(zip(node.outputs, new.outputs))
            steps.append(step)
        return Block(steps, _look_up(graph.outputs, known), self.next() if copied else self.position + 1)

    def _branch(self, step: Step) -> None:
        captured = step.node.inputs[1:]
        step.blocks = tuple(self.block(region, dict(zip(region.inputs, captured)), True)
                            for region in step.node.regions)

    def _loop(self, step: Step) -> None:
        loop = step.loop
        n = len(loop.state)
        step.variables = tuple(map(_copy, loop.last))
        step.items = tuple(map(_copy, loop.body.inputs[n:n + len(loop.stacks)]))
        arguments = step.variables + step.items + loop.invariants
        step.blocks = tuple(self.block(region, dict(zip(region.inputs, arguments)), True)
                            for region in step.node.regions)


def _copy(value: Value) -> Value:
    return Value(value.type, value.name)


def _look_up(values: Sequence[Value], known: Dict[Value, Value]) -> Tuple[Value, ...]:
    return tuple(known.get(v, v) for v in values)

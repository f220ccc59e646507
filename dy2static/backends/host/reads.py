"""What the text of a function reads: which operands, how often, where for the last time, and whose memory that is."""
from __future__ import annotations

import itertools
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ...ir.graph import Node, Value
from ...ir.template import fills_out
from ...passes.effects import must_run
from ..compiled_calls import is_native
from ..flatten import Block, Step, all_steps


class Reads:
    """What is known of the values of a flat program before any line is written.

    producers: the node that makes each value.
    operands: what the text of each node reads: its inputs, without the broadcasts that NumPy does by itself.
    uses: how often the text reads each value; values that nothing needs are absent.
    last: where each value, or what may be it or a view of it, is read for the last time in the order of the text.

    Linear in nodes + edges.
    """

    def __init__(self, block: Block, returned: Sequence[Value]):
        steps = list(all_steps(block))
        self.producers = {value: step.node for step in steps for value in step.node.outputs}
        self.operands = {step.node: self._operands_of(step.node) for step in steps}
        self.uses: Dict[Value, int] = {}
        self._count(returned, 2)                               # returned values get a name of their own
        self._count_in(block)
        self.last = self._last_reads(steps)

    def is_written(self, step: Step) -> bool:
        """Whether the text has lines for a step."""
        return must_run(step.node) or any(v in self.uses for v in step.node.outputs)

    def overwritable(self, node: Node) -> Tuple[Value, ...]:
        """The operands a node may write its result over: no other operand is, or is a view of, the same array."""
        if not node.op.inplace_ok:
            return ()
        direct = self.operands[node]
        roots = [self._root(v) for v in direct]
        if any(v in self.producers and self.producers[v].regions for v in roots):
            return ()                                          # they may be, or be views of, what a branch captured
        return tuple(v for i, v in enumerate(direct)
                     if v is roots[i] and all(v is other or root is not v for other, root in zip(direct, roots)))

    def as_view(self, node: Node) -> Optional[Tuple[str, Tuple[Any, ...]]]:
        """How to make a node's result once, with the arena: a view of a buffer that is always the same."""
        if node.op.name not in ("transpose", "reshape") or node.outputs[0] not in self.uses:
            return None
        base = self.producers.get(node.inputs[0])
        if node.op.name == "transpose":
            return "transpose", node.attrs["axes"]
        if base is None or not fills_out(base.op):
            return None                                        # only the buffer itself is sure to be contiguous
        return "reshape", (node.outputs[0].shape,)

    def may_run_backwards(self, value: Value) -> bool:
        """Whether an array may have a negative stride: its memory is not from here, or a view has turned it."""
        producer = self.producers.get(value)
        while producer is not None and producer.op.view:
            if any(isinstance(entry, tuple) and entry[2] < 0 for entry in producer.attrs.get("index", ())):
                return True
            producer = self.producers.get(producer.inputs[0])
        return producer is None or not fills_out(producer.op)

    def _operands_of(self, node: Node) -> Tuple[Value, ...]:
        operands = list(node.inputs)
        if node.op.kind == "elementwise" and isinstance(node.op.numpy, str):
            for i, value in enumerate(operands):
                producer = self.producers.get(value)
                if producer is not None and producer.op.name == "broadcast_to":
                    operands[i] = producer.inputs[0]
                    if _broadcast(operands) != node.outputs[0].shape:
                        operands[i] = value
        return tuple(operands)

    def _count(self, values: Sequence[Value], times: int) -> None:
        for value in values:
            self.uses[value] = self.uses.get(value, 0) + times

    def _count_in(self, block: Block) -> None:
        self._count(block.results, 2)
        for step in reversed(block.steps):
            if self.is_written(step):
                for inner in reversed(step.blocks):
                    self._count_in(inner)
                self._count(self.operands[step.node], 1)
                if is_native(step.node):
                    for value in step.node.outputs:
                        self.uses.setdefault(value, 1)          # it writes all of them

    def _last_reads(self, steps: Sequence[Step]) -> Dict[Value, int]:
        last: Dict[Value, int] = {}
        for step in reversed(steps):
            for block in step.blocks:
                for value in block.results:
                    last[value] = max(last.get(value, 0), block.end)
            until = max([step.position] + ([] if fills_out(step.node.op) else
                                           [last[v] for v in step.node.outputs if v in last]))
            for value in self.operands[step.node]:
                last[value] = max(last.get(value, 0), until)
        return last

    def _root(self, value: Value) -> Value:
        """The value whose memory a chain of views ends at."""
        producer = self.producers.get(value)
        while producer is not None and producer.op.view:
            value = producer.inputs[0]
            producer = self.producers.get(value)
        return value


def _broadcast(values: Sequence[Value]) -> Optional[Tuple[Any, ...]]:
    """The shape NumPy gives these operands, None where it would not take them."""
    result: List[Any] = []
    for sizes in itertools.zip_longest(*(reversed(v.shape) for v in values), fillvalue=1):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            return None
        result.append(wide.pop() if wide else 1)
    return tuple(reversed(result))

"""What a backward reads that an application of a function keeps by reference, once these arrays have been changed in place."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import chainer

from ..capture_context import CaptureContext
from ..heap.ownership import is_library_class
from ..ir.building import Builder
from ..ir.graph import Node, Value
from ..library_facts import chainer as chainer_facts
from ..library_facts.table import named
from .values import SymbolicArray

#: Functions whose backward reads nothing but their operands and results, and applies their own formula to these.
_READING_AGAIN = named("rereads", chainer_facts.NODES)

#: Functions whose backward reads nothing that their inputs hold.
_FORGETTING = named("forgets", chainer_facts.NODES)


def function_of(node: chainer.FunctionNode) -> str:
    """The name of a class of Chainer's; "" for one that is not Chainer's, which may have the same name."""
    return type(node).__name__ if is_library_class(type(node)) else ""


def holds_inputs(node: chainer.FunctionNode) -> bool:
    """Whether its backward may read its inputs, or its results may share their memory."""
    function = function_of(node)
    return function not in _FORGETTING or function in chainer_facts.VIEWING


class Application(NamedTuple):
    """One application of a function of Chainer's that can be differentiated.

    function: as `function_of` gives it.  nodes: the operations that it became, in ``builder``.
    operands: the arrays that it got, and what they held.  needed: those of them that count even if its backward forgets its inputs:
    its attributes, and the arrays of the caller's Variables that get gradients.
    """

    function: str
    builder: Builder
    nodes: Tuple[Node, ...]
    operands: Tuple[Tuple[SymbolicArray, Value], ...]
    outputs: Tuple[Value, ...]
    needed: Tuple[SymbolicArray, ...] = ()

    def changed(self) -> Dict[Value, SymbolicArray]:
        """The operands that hold something else now, by what they held."""
        return {value: array for array, value in self.operands if array.now() is not value}

    def forgets(self, array: SymbolicArray) -> bool:
        """Whether nothing is known to need what this operand of it held."""
        return self.function in _FORGETTING and all(array is not other for other in self.needed)

    @property
    def reads_again(self) -> bool:
        """Whether its backward is known to take what its operands hold by then, in the place of what they held."""
        return self.function in _READING_AGAIN and not any(node.regions or node.op.kind in ("opaque", "effect", "control")
                                                           for node in self.nodes)


def read_again(capture: CaptureContext, nodes: Sequence[Node], applications: Sequence[Application]) -> List[Node]:
    """The nodes that a backward goes through, with the operands of some applications replaced by what these hold now.

    What such an application computes from those operands alone, on the way to its results, is computed again.
    """
    replaced: Dict[Node, Node] = {}
    there = set(nodes)
    for application in applications:
        now: Dict[Value, Value] = {value: array.now() for value, array in application.changed().items()}
        for node in application.nodes:
            if node not in there or now.keys().isdisjoint(node.inputs):
                continue
            inputs = tuple([now.get(v, v) for v in node.inputs])
            if not set(node.outputs).isdisjoint(application.outputs):
                replaced[node] = replace(node, inputs=inputs)
                continue
            made = capture.builder.add(node.op, inputs, node.attrs)
            now.update(zip(node.outputs, made))
            replaced[node] = capture.builder.nodes[-1]
    return [replaced.get(node, node) for node in nodes]


def changed_operands(applications: Sequence[Application]) -> Dict[Value, SymbolicArray]:
    """All operands of these that hold something else now, by what they held."""
    found: Dict[Value, Any] = {}
    for application in applications:
        found.update(application.changed())
    return found

"""One-node graphs of ops as native regions, many functions in one C text."""

import numpy as np

from dy2static.backends.c.backend import fallback_of
from dy2static.backends.c.executor import Bundle
from dy2static.ir.building import Builder, building
from dy2static.ir.interpret import interpret
from dy2static.ir.types import Tensor, type_of


class NativeCase:
    """One graph, the operands it is called with, and, once `build` has run, the function.

    declined: whether the last call was answered by NumPy.
    """

    def __init__(self, name, graph, operands):
        self.name, self.graph, self.operands = name, graph, operands
        self.region = None
        self.declined = False

    def __str__(self):
        return self.name

    def fallback(self, graph):
        self.declined = True
        return fallback_of(graph)

    def run(self, *operands):
        """The outputs, called as programs call it."""
        self.declined, self.region._fallback = False, None
        arrays = [np.empty(v.shape, v.dtype) for v in self.graph.outputs if isinstance(v.type, Tensor)]
        size = self.region.function.scratch
        others = self.region.call(*operands, *arrays, *([np.empty(size, np.uint8)] if size else []))
        waiting, numbers = iter(arrays), iter(others if isinstance(others, tuple) else (others,))
        return tuple(next(waiting) if isinstance(v.type, Tensor) else next(numbers) for v in self.graph.outputs)

    def expected(self, *operands):
        """What the graph means."""
        return interpret(self.graph, *operands)


def graph_of(op, operands, attrs):
    """The graph of one node.  Raises what the op's rule of types raises."""
    builder = Builder(op.name)
    inputs = [builder.input(type_of(x), name) for x, name in zip(operands, "stuvwxyz")]
    with building(builder):
        return builder.build(builder.add(op, tuple(inputs), attrs))


def build(cases):
    """Make the functions of all cases out of one text."""
    bundle = Bundle()
    for case in cases:
        case.region = bundle.add(case.graph, case.fallback)
    bundle.start()
    bundle.build()

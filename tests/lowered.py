"""Eager Chainer code recorded as a graph: each function node runs as usual and is lowered next to it."""
import contextlib

import chainer
import numpy as np
from chainer.function import FunctionAdapter

from dy2static.ir.building import Builder, building, constant
from dy2static.ir.graph import Value
from dy2static.ir.types import type_of
from dy2static.ir.verify import verify
from dy2static.lowering.registry import lowering_of


class Held:
    """What an attribute of a node holds for a captured number or array."""

    def __init__(self, value):
        self.value = value


class Recording:
    """The graph of ``function(*arrays)``, and what eager gives."""

    def __init__(self, function, arrays):
        self.builder = Builder("recorded")
        self.values, self.kept, self.opaque = {}, [], []
        self.inputs = [chainer.Variable(np.array(a), requires_grad=np.asarray(a).dtype.kind == "f") for a in arrays]
        for i, x in enumerate(self.inputs):
            self._remember(x, self.builder.input(type_of(x.array), f"x{i}"))
        with building(self.builder), self._recording():
            results = function(*self.inputs)
        self.outputs = results if isinstance(results, (tuple, list)) else (results,)
        self.graph = verify(self.builder.build(tuple(self._value(y) for y in self.outputs)))

    def _remember(self, variable, value):
        self.values[id(variable)] = value
        self.kept.append(variable)                  # so that no id is used twice

    def _value(self, x):
        if id(x) not in self.values:
            array = x.array if isinstance(x, chainer.Variable) else x
            with building(self.builder):
                self.values[id(x)] = constant(array)
            self.kept.append(x)
        return self.values[id(x)]

    @contextlib.contextmanager
    def _recording(self):
        apply = chainer.FunctionNode.apply

        def recorded(node, inputs):
            before = _like(node)
            values = [self._value(x) for x in inputs]
            outputs = apply(node, inputs)
            lowered = self._lower(node, before, values)
            if lowered is None:
                self.opaque.append(type(node).__name__)
                lowered = [constant(y.array) for y in outputs]
            for y, value in zip(outputs, lowered):
                self._remember(y, value)
            return outputs

        chainer.FunctionNode.apply = recorded
        try:
            yield
        finally:
            chainer.FunctionNode.apply = apply

    def _lower(self, node, before, values):
        """The lowering sees the node as it was before it ran."""
        if "slices" in before.__dict__:             # as a capture leaves it
            before.slices = tuple(Held(constant(s)) if isinstance(s, np.ndarray) else s for s in before.slices)
        held = {name: Held(self._value(x)) for name, x in before.__dict__.items() if isinstance(x, chainer.Variable)}
        before.__dict__.update(held)
        lowering = lowering_of(node)
        result = None if lowering is None else lowering(before, *values)
        for name, value in before.__dict__.items():
            if isinstance(value, Value):            # what forward leaves in the node
                self._remember(getattr(node, name), value)
        return (result,) if isinstance(result, Value) else result


def _like(node):
    """A copy of a node, and of the old-style Function in it."""
    made = type(node).__new__(type(node))
    made.__dict__.update(node.__dict__)
    if isinstance(node, FunctionAdapter):
        made._function = _like(node.function)
    return made

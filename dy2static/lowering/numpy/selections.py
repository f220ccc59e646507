"""Calls of ``argpartition`` of whose result only one side is read, whose order has no effect.

NumPy does not say in which order it leaves elements that it only put into two heaps: what must give the very same has to call it.
"""
from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any, List, Optional, Set, Tuple

import numpy as np

from ... import ops
from ...ir.graph import Graph, Node, Value
from ...runtime.host_calls import Call, Hole
from .exact import Rule

#: The most elements that are kept in order while the others go by.
_MOST = 64
_FLOATS = ("float32", "float64")


class Chosen(Call):
    """A call of ``np.argpartition`` of which only the part ``[begin:end]`` is read, whose order has no effect."""

    __slots__ = ("begin", "end")

    def __init__(self, call: Call, begin: int, end: int):
        super().__init__(call.function, call.args, call.kwargs, call.flatten, call.name, call.single, call.within)
        self.begin, self.end = begin, end


def selection(call: Call) -> Optional[Rule]:
    """The rule of such a call; None for others."""
    if not isinstance(call, Chosen):
        return None
    return lambda type_, x, *_: ops.select(x, begin=call.begin, end=call.end)


# What can be seen of an order ---------------------------------------------------------------------------------------


def with_selections(graph: Graph) -> Graph:
    """The graph with `Chosen` for each ``argpartition`` whose order cannot be seen, in regions too."""
    nodes: List[Node] = []
    for node in graph.nodes:
        if node.regions:
            node = replace(node, regions=tuple(map(with_selections, node.regions)))
        elif node.op.name == "checked_call" and node.attrs["call"].function is np.argpartition:
            part = _Uses(graph, node).part()
            if part is not None:
                node = replace(node, attrs={**node.attrs, "call": Chosen(node.attrs["call"], *part)})
        nodes.append(node)
    return graph.with_(nodes=tuple(nodes))


class _Uses:
    """What is made of the result of an ``argpartition``.

    parallel: arrays in the unknown order.  orders: what sorts these, as an index.  alike: arrays of one number.
    """

    def __init__(self, graph: Graph, node: Node):
        self.graph, self.node = graph, node
        self.leaving = set(graph.outputs)
        self.parallel: Set[Value] = set()
        self.orders: Set[Value] = set()
        self.alike = {v for maker in graph.nodes if maker.op.name in ("broadcast_to", "full")
                      and all(v.shape == () for v in maker.inputs) for v in maker.outputs}

    def part(self) -> Optional[Tuple[int, int]]:
        """The part that is read, if the order cannot be seen."""
        call, (value,) = self.node.attrs["call"], self.node.outputs
        (x,) = self.node.inputs if len(self.node.inputs) == 1 else (None,)
        if x is None or x.ndim != 1 or not isinstance(x.shape[0], int) or x.dtype.name not in _FLOATS or call.kwargs \
                or len(call.args) != 2 or type(call.args[1]) is not int or value in self.leaving:
            return None
        n, kth = x.shape[0], call.args[1]
        kth += n if kth < 0 else 0
        found = set()
        for reader in [n for n in self.graph.nodes if value in n.inputs]:
            index = reader.attrs["index"] if reader.op.name == "getitem" else _key(reader)
            entry = index[0] if type(index) is tuple and len(index) == 1 else index
            if type(entry) is tuple:
                entry = slice(*entry)
            if type(entry) is not slice or not all(e is None or type(e) is int for e in (entry.start, entry.stop, entry.step)) \
                    or entry.step not in (None, 1):
                return None
            found.add(entry.indices(n)[:2])
            self.parallel.update(reader.outputs)
        if len(found) != 1:
            return None
        (begin, end), = found
        fits = (begin == 0 and end in (kth, kth + 1) or end == n and begin in (kth, kth + 1)) and 0 < end - begin <= _MOST
        return (begin, end) if fits and 0 <= kth < n and self._hidden(end - begin) else None

    def _hidden(self, count: int) -> bool:
        """Whether whatever is in the unknown order is put into a known one."""
        for node in self.graph.nodes:
            if node is self.node or all(v not in self.parallel and v not in self.orders for v in node.inputs):
                continue
            made = self._made(node, count)
            if made is None:
                return False
            self.parallel.update(node.outputs if made == "parallel" else ())
            self.orders.update(node.outputs if made == "order" else ())
        return self.leaving.isdisjoint(self.parallel | self.orders)

    def _made(self, node: Node, count: int) -> Optional[str]:
        """What a node makes of such arrays: "parallel", "order", "" if it ends here; None if the order can be seen."""
        mine = [v in self.parallel or v in self.orders for v in node.inputs]
        call = node.attrs.get("call")
        if node.op.kind == "elementwise" or type(call) is Call and _is_elementwise(call):
            plain = all(v in self.parallel or v.shape == () or v in self.alike for v in node.inputs)
            return "parallel" if plain and node.outputs[0].shape == (count,) else None
        if node.op.name == "getitem":
            return "order" if node.inputs[0] in self.orders else None
        if type(call) is not Call or len(node.outputs) != 1:
            return None
        (value,) = node.outputs
        is_sort = call.function is np.argsort or getattr(call.function, "method", "") == "argsort"
        if is_sort and mine == [True] and node.inputs[0] in self.parallel and len(call.args) == 1 and not call.kwargs:
            return "order" if node.inputs[0].dtype.name in _FLOATS else None
        if call.function is not operator.getitem or call.kwargs:
            return None
        if len(node.inputs) == 1:                              # an order that is turned round, or cut
            return "order" if node.inputs[0] in self.orders and type(call.args[1]) is slice else None
        if len(node.inputs) != 2 or type(call.args[1]) is not Hole:
            return None
        x, index = (node.inputs[part.index] for part in call.args)
        if index in self.parallel:
            return "parallel" if x not in self.parallel and x not in self.orders and value.shape == (count,) else None
        return "" if x in self.parallel and index in self.orders else None


def _is_elementwise(call: Call) -> bool:
    known = isinstance(call.function, np.ufunc) and call.single or any(call.function is f for f in _OPERATORS)
    return known and not call.kwargs and all(type(x) in (Hole, int, float) for x in call.args)


_OPERATORS = (operator.neg, operator.add, operator.sub, operator.mul, operator.truediv, abs)


def _key(node: Node) -> Any:
    """The key of an ``x[key]`` with nothing in it that only the run knows."""
    call = node.attrs.get("call")
    is_item = isinstance(call, Call) and call.function is operator.getitem and len(node.inputs) == 1
    return call.args[1] if is_item else None

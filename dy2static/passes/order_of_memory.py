"""Operations on transposed arrays are done in the order of memory, and their results are transposed in place of the operands."""
from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ..ir.building import Builder, infer
from ..ir.graph import Graph, Node, Value
from ..ir.op import OPS
from ..ir.types import Tensor
from .rewriting import with_regions

Axes = Tuple[int, ...]

#: Reductions to fewer axes, or to axes of size one; and what gives a result of the shape of its operand.
_REDUCING = frozenset("sum mean max min any all prod logsumexp argmax argmin".split())
_ALONG = frozenset("softmax log_softmax".split())

#: Ops whose results have no elements of their own: these are read alike in every order.
_REPEATED = frozenset("broadcast_to full constant py_constant".split())

#: Results of at least so many elements may leave the graph transposed.
_LARGE = 1 << 12


def operate_in_order_of_memory(graph: Graph, saved: Sequence[Value] = ()) -> Graph:
    """Do operations on elements and reductions of transposed arrays on the arrays themselves.

    Their results are transposed, which copies nothing: ``x.T.sum(1)`` is ``x.sum(0)``, and ``exp(x.T).T`` is ``exp(x)``.  That is
    done where all that reads a result is such an operation, too, or a transposition.  A large result may leave the graph
    transposed, as it does in NumPy.  Arrays that lie in different orders are left alone.  saved: values that are read
    afterwards.  For native code, in regions too.  Linear in nodes + edges, times the rounds until nothing changes.
    """
    return _InOrder(graph, set(saved), set(graph.outputs)).run()


def operate_in_order_within(graph: Graph) -> Graph:
    """The same for a part of a graph whose results have to be in the order of their axes."""
    return _InOrder(graph, set(graph.outputs), set()).run()


class _InOrder:
    """What is known of one graph: ``orders`` says of which axes of an array in the order of memory a value has its axes."""

    def __init__(self, graph: Graph, kept: Set[Value], leaving: Set[Value]):
        self.graph, self.kept, self.leaving = graph, kept, leaving - kept
        self.makers = {node.outputs[0]: node for node in graph.nodes if len(node.outputs) == 1}
        self.readers: Dict[Value, List[Node]] = defaultdict(list)
        for node in graph.nodes:
            for value in node.inputs:
                self.readers[value].append(node)
        self.orders: Dict[Value, Axes] = {}
        self.builder = Builder(graph.name)
        self.turned: Dict[Tuple[Value, Axes], Value] = {}
        self.nodes: List[Node] = []

    def run(self) -> Graph:
        for node in self.graph.nodes:
            self._propose(node)
        while self._withdraw():
            pass
        for value in self.graph.values():
            self.builder.fresh(value.name)
        for node in self.graph.nodes:
            self._write(node)
        if len(self.nodes) == len(self.graph.nodes) and all(a is b for a, b in zip(self.nodes, self.graph.nodes)):
            return self.graph
        return self.graph.with_(nodes=tuple(self.nodes))

    # Decisions

    def _propose(self, node: Node) -> None:
        if _is_for_elements(node):
            found = {order for order in map(self._order, node.inputs) if order is not None}
            if len(found) == 1 and found != {tuple(range(node.outputs[0].ndim))}:
                self.orders[node.outputs[0]] = found.pop()

    def _order(self, value: Value) -> Optional[Axes]:
        """In which order a value lies in memory; None if that does not matter."""
        node = self.makers.get(value)
        if value.ndim < 2 or node is not None and node.op.name in _REPEATED:
            return None
        if value in self.orders:
            return self.orders[value]
        if node is not None and node.op.name == "transpose":
            (x,), axes = node.inputs, node.attrs["axes"]
            inner = self._order(x)
            return None if inner is None else tuple([inner[a] for a in axes])
        return tuple(range(value.ndim))

    def _withdraw(self) -> bool:
        """Take values from the orders that something reads in another one, or that read something in another one."""
        wrong = [value for value, order in self.orders.items() if not self._is_right(value, order)]
        for value in wrong:
            del self.orders[value]
        return bool(wrong)

    def _is_right(self, value: Value, order: Axes) -> bool:
        if value in self.kept or value in self.leaving and not _is_large(value):
            return False
        operands = {found for found in map(self._order, self.makers[value].inputs) if found is not None}
        return operands == {order} and all(self._reads_in(node, order) for node in self.readers[value])

    def _reads_in(self, node: Node, order: Axes) -> bool:
        name = node.op.name
        return name == "transpose" or _reduces(node) or _is_for_elements(node) and self.orders.get(node.outputs[0]) == order

    # The graph

    def _write(self, node: Node) -> None:
        self.builder.loc = node.loc
        value = node.outputs[0] if len(node.outputs) == 1 else None
        if value is not None and value in self.orders:
            order = self.orders[value]
            made = self._add(node, tuple([self._in_order(v, order) for v in node.inputs]), _moved(node.attrs, order))
            self.turned[value, order] = made
            if value in self.leaving:
                self.nodes.append(_transposed(made, order, node, value))
            return
        if value is not None and _reduces(node):
            order = self._order(node.inputs[0])
            if order is not None and order != tuple(range(len(order))):
                self._reduce(node, order)
                return
        if value is not None and node.op.name == "transpose" and node.inputs[0] in self.orders:
            order, axes = self.orders[node.inputs[0]], node.attrs["axes"]
            node = _transposed(self.turned[node.inputs[0], order], tuple([order[a] for a in axes]), node, value)
        self.nodes.append(with_regions(node, operate_in_order_within))

    def _reduce(self, node: Node, order: Axes) -> None:
        """The reduction over the same elements in the order of memory, and what turns its result if that has several axes."""
        (value,) = node.outputs
        attrs = _moved(node.attrs, order)
        operand = self._in_order(node.inputs[0], order)
        axis = node.attrs["axis"]
        if node.attrs.get("keepdims"):
            back = order
        else:
            gone = {axis} if isinstance(axis, int) else set(axis)
            left = [order[a] for a in range(len(order)) if a not in gone]
            back = tuple([sorted(left).index(a) for a in left])
        if back == tuple(range(len(back))):
            self.nodes.append(replace(node, inputs=(operand,), attrs=attrs))
        else:
            self.nodes.append(_transposed(self._add(node, (operand,), attrs), back, node, value))

    def _in_order(self, value: Value, order: Axes) -> Value:
        """The array of which a value is the transposition to this order."""
        if value.ndim < 2:
            return value
        found = self.turned.get((value, order))
        if found is None:
            node = self.makers.get(value)
            back = _inverse(order)
            if node is not None and node.op.name == "transpose":
                axes = tuple([node.attrs["axes"][a] for a in back])
                inner = node.inputs[0]
                if inner in self.orders:
                    inner_order = self.orders[inner]
                    inner, axes = self.turned[inner, inner_order], tuple([inner_order[a] for a in axes])
            else:
                inner, axes = value, back
            found = inner if axes == tuple(range(len(axes))) else self._view(inner, axes)
            self.turned[value, order] = found
        return found

    def _view(self, value: Value, axes: Axes) -> Value:
        made = Value(infer(OPS["transpose"], (value.type,), {"axes": axes})[1][0], self.builder.fresh(value.name))
        self.nodes.append(Node(OPS["transpose"], (value,), (made,), {"axes": axes}, (), self.builder.loc))
        return made

    def _add(self, node: Node, inputs: Tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
        attrs, (type,) = infer(node.op, tuple([v.type for v in inputs]), attrs)
        made = Value(type, self.builder.fresh(node.outputs[0].name))
        self.nodes.append(replace(node, inputs=inputs, outputs=(made,), attrs=attrs))
        return made


def _is_for_elements(node: Node) -> bool:
    """Whether each element of the result is computed of the elements at its place, or of those along one axis."""
    op = node.op
    return (op.kind == "elementwise" and not op.effect and not op.regions or op.name in _ALONG) and len(node.outputs) == 1 \
        and node.outputs[0].ndim > 1


def _reduces(node: Node) -> bool:
    return node.op.name in _REDUCING and node.attrs["axis"] is not None and node.inputs[0].ndim > 1


def _moved(attrs: Mapping[str, Any], order: Axes) -> Mapping[str, Any]:
    """The attributes, with the axis or axes where they are in the order of memory."""
    axis = attrs.get("axis")
    if axis is None:
        return attrs
    return {**attrs, "axis": order[axis] if isinstance(axis, int) else tuple(sorted([order[a] for a in axis]))}


def _transposed(made: Value, axes: Axes, node: Node, value: Value) -> Node:
    """The node that gives a value by transposing what was made, in place of a node."""
    return Node(OPS["transpose"], (made,), (value,), {"axes": axes}, (), node.loc)


def _inverse(order: Axes) -> Axes:
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def _is_large(value: Value) -> bool:
    shape = value.type.shape if isinstance(value.type, Tensor) else ()
    return all(isinstance(size, int) for size in shape) and math.prod(shape) >= _LARGE

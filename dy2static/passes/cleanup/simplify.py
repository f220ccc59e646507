"""Algebraic simplification: nodes that change nothing go, chains of views become one."""
from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np

from ...ir.building import Builder, infer
from ...ir.graph import Graph, Node, Value
from ...ir.op import OPS, OpDef
from ...ir.types import Tensor
from ...ops.control import loop_of, returns
from ..effects import OPEN_KINDS
from ..memory.aliases import held_values
from ..rewriting import with_inputs, with_regions


def simplify(graph: Graph) -> Graph:
    """Replace nodes by simpler ones with exactly the same result.

    Views of views become one view; reshapes, broadcasts, casts and ``sum_to`` that change nothing go; turned operands
    go into ``matmul``; ``x * 1``, ``x / 1``, ``x - 0``, ``-(-x)`` become ``x``; arithmetic on constants is done.
    ``x + 0`` and a sum of one element stay: they turn -0.0 into 0.0.  Nodes with effects and ``stop_gradient`` stay.
    State that a loop does not change becomes an invariant.  Regions of branches and loops are simplified as well.
    A value that somebody outside can hold never becomes an array that somebody else holds, or a view of one.  Nor does a copy of
    an array that comes from outside become this array, which may be written before a backward reads it.

    Linear in nodes + edges.  Nodes that nothing changes are kept as they are; what became unused stays for
    `eliminate_dead`.
    """
    return _Simplifier(graph).run()


class _Simplifier:
    """The state of the pass: the nodes so far and what old values became."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.held = held_values(graph, graph.outputs)
        self.builder = Builder(graph.name)
        self.replaced: Dict[Value, Value] = {}
        self.producers: Dict[Value, Node] = {}
        self.uses: Dict[Value, int] = {}
        for value in (*graph.outputs, *(v for node in graph.nodes for v in node.inputs)):
            self.uses[value] = self.uses.get(value, 0) + 1

    def run(self) -> Graph:
        for value in self.graph.values():
            self.builder.fresh(value.name)
        for node in self.graph.nodes:
            self._node(node)
        nodes = tuple(self.builder.nodes)
        if len(nodes) == len(self.graph.nodes) and all(a is b for a, b in zip(nodes, self.graph.nodes)):
            return self.graph
        return self.graph.with_(nodes=nodes, outputs=tuple(self.replaced.get(v, v) for v in self.graph.outputs))

    def apply(self, op: OpDef, *inputs: Value, **attrs: Any) -> Value:
        """The simplest value that equals ``op`` of these operands: an old one, or that of a new node."""
        full, _ = infer(op, tuple(v.type for v in inputs), attrs)
        simpler = self._rule(op, inputs, full)
        if simpler is not None:
            return simpler
        (value,) = self.builder.add(op, inputs, full)
        self.producers[value] = self.builder.nodes[-1]
        return value

    def made_by(self, value: Value, name: str) -> Optional[Node]:
        """The node that made a value, if it is of this op."""
        node = self.producers.get(value)
        return node if node is not None and node.op.name == name else None

    def constant_of(self, value: Value) -> Optional[np.ndarray]:
        """The array a value is filled with, if it is a constant or one repeated."""
        node = self.made_by(value, "broadcast_to")
        node = self.made_by(value if node is None else node.inputs[0], "constant")
        return None if node is None else node.attrs["value"]

    def _node(self, node: Node) -> None:
        if self.replaced:
            node = with_inputs(node, tuple([self.replaced.get(v, v) for v in node.inputs]))
        node = with_regions(node, simplify)
        if node.op.name in ("while_", "scan"):
            node = self._without_constant_state(node)
        if node.op.name in RULES and not (node.op.effect or node.regions or len(node.outputs) != 1):
            (value,) = node.outputs
            self.builder.loc = node.loc
            before = len(self.builder.nodes)
            simpler = None if value in self.held and node.op.view else self._rule(node.op, node.inputs, node.attrs)
            if simpler is not None and self._may_replace(value, simpler) and not (
                    node.op.name in _COPYING and self._is_of_caller(simpler)):
                self.replaced[value] = simpler
                return
            del self.builder.nodes[before:]
        self._keep(node)

    def _keep(self, node: Node) -> None:
        self.builder.nodes.append(node)
        self.producers.update(dict.fromkeys(node.outputs, node))

    def _without_constant_state(self, node: Node) -> Node:
        """The loop with state that its body gives back unchanged among the invariants."""
        loop = loop_of(node)
        inputs, n = loop.body.inputs, len(loop.state)
        still = [j for j in range(n) if loop.next[j:j + 1] == inputs[j:j + 1]]
        if not still or not returns(loop.body):
            return node
        moving = [j for j in range(n) if j not in still]

        def ordered(values: Tuple[Value, ...]) -> Tuple[Value, ...]:
            return tuple(values[j] for j in moving) + values[n:] + tuple(values[j] for j in still)

        for j in still:
            if loop.last[j] in self.held and isinstance(loop.last[j].type, Tensor):
                # it may well be the array that came in, as it is of the loop: what is held is not lost, and nothing counts
                self._keep(Node(OPS["identity"], (loop.state[j],), (loop.last[j],), {}, (), node.loc))
            else:
                self.replaced[loop.last[j]] = loop.state[j]
        outputs = tuple(loop.next[j] for j in moving) + loop.items
        return loop._replace(
            state=tuple(loop.state[j] for j in moving),
            invariants=loop.invariants + tuple(loop.state[j] for j in still),
            test=None if loop.test is None else loop.test.with_(inputs=ordered(loop.test.inputs)),
            body=loop.body.with_(inputs=ordered(inputs), outputs=outputs),
            last=tuple(loop.last[j] for j in moving)).node(node)

    def _rule(self, op: OpDef, inputs: Tuple[Value, ...], attrs: Mapping[str, Any]) -> Optional[Value]:
        rule = RULES.get(op.name)
        return None if rule is None else rule(self, inputs, attrs)

    def _is_of_caller(self, value: Value) -> bool:
        """Whether a value may be an array that comes from outside, or a view of one."""
        producer = self.producers.get(value)
        while producer is not None and producer.op.view:
            value = producer.inputs[0]
            producer = self.producers.get(value)
        return isinstance(value.type, Tensor) and (producer is None or producer.op.kind in OPEN_KINDS)

    def _may_replace(self, value: Value, by: Value) -> bool:
        """Whether two arrays may become one without anybody noticing.  If ``value`` was held, ``by`` is from now on."""
        if value not in self.held:
            return True
        producer = self.producers.get(by)
        if producer is None or by in self.held or producer.op.view or producer.op.name == "constant" \
                or producer.op.kind in OPEN_KINDS:
            return False
        self.held.add(by)
        return True


#: Ops that also give a new array where they change nothing.
_COPYING = ("mul", "div", "sub", "neg", "scatter_slice")

Rule = Callable[[_Simplifier, Tuple[Value, ...], Mapping[str, Any]], Optional[Value]]


def _transpose(s: _Simplifier, inputs: Tuple[Value, ...], attrs: Mapping[str, Any]) -> Optional[Value]:
    (x,), axes = inputs, attrs["axes"]
    if axes == tuple(range(len(axes))):
        return x
    inner = s.made_by(x, "transpose")
    if inner is not None:
        return s.apply(OPS["transpose"], inner.inputs[0], axes=tuple(inner.attrs["axes"][a] for a in axes))
    product = s.made_by(x, "matmul")
    if product is not None and _turns_matrices(axes) and s.uses.get(x) == 1:
        a, b = product.inputs
        return s.apply(OPS["matmul"], b, a, transa=not product.attrs["transb"], transb=not product.attrs["transa"])
    return None


def _matmul(s: _Simplifier, inputs: Tuple[Value, ...], attrs: Mapping[str, Any]) -> Optional[Value]:
    turns = [s.made_by(v, "transpose") for v in inputs]
    turns = [node if node is not None and _turns_matrices(node.attrs["axes"]) else None for node in turns]
    if turns == [None, None]:
        return None
    a, b = (v if node is None else node.inputs[0] for v, node in zip(inputs, turns))
    return s.apply(OPS["matmul"], a, b, transa=attrs["transa"] != (turns[0] is not None),
                   transb=attrs["transb"] != (turns[1] is not None))


def _turns_matrices(axes: Sequence[int]) -> bool:
    n = len(axes)
    return n >= 2 and tuple(axes) == (*range(n - 2), n - 1, n - 2)


def _reshape(s: _Simplifier, inputs: Tuple[Value, ...], attrs: Mapping[str, Any]) -> Optional[Value]:
    return _same_shape(inputs, attrs) or _joined(s, "reshape", inputs, attrs)


def _broadcast_to(s: _Simplifier, inputs: Tuple[Value, ...], attrs: Mapping[str, Any]) -> Optional[Value]:
    return _same_shape(inputs, attrs) or _joined(s, "broadcast_to", inputs, attrs)


def _sum_to(s: _Simplifier, inputs: Tuple[Value, ...], attrs: Mapping[str, Any]) -> Optional[Value]:
    return _same_shape(inputs, attrs) or _joined(s, "sum_to", inputs, attrs)


def _scatter_slice(s: _Simplifier, inputs: Tuple[Value, ...], attrs: Mapping[str, Any]) -> Optional[Value]:
    whole = tuple((0, n, 1) for n in attrs["shape"])
    return inputs[0] if attrs["index"] == whole else None


def _same_shape(inputs: Tuple[Value, ...], attrs: Mapping[str, Any]) -> Optional[Value]:
    return inputs[0] if inputs[0].shape == attrs["shape"] else None


def _joined(s: _Simplifier, name: str, inputs: Tuple[Value, ...], attrs: Mapping[str, Any]) -> Optional[Value]:
    inner = s.made_by(inputs[0], name)
    return None if inner is None else s.apply(OPS[name], inner.inputs[0], shape=attrs["shape"])


def _cast(s: _Simplifier, inputs: Tuple[Value, ...], attrs: Mapping[str, Any]) -> Optional[Value]:
    return inputs[0] if inputs[0].dtype == attrs["dtype"] else None


def _neg(s: _Simplifier, inputs: Tuple[Value, ...], attrs: Mapping[str, Any]) -> Optional[Value]:
    inner = s.made_by(inputs[0], "neg")
    return inner.inputs[0] if inner is not None else _folded(s, np.negative, inputs)


def _mul(s: _Simplifier, inputs: Tuple[Value, ...], attrs: Mapping[str, Any]) -> Optional[Value]:
    a, b = inputs
    return a if _is_ones(s, b) else b if _is_ones(s, a) else _folded(s, np.multiply, inputs)


def _div(s: _Simplifier, inputs: Tuple[Value, ...], attrs: Mapping[str, Any]) -> Optional[Value]:
    a, b = inputs
    return a if _is_ones(s, b) and a.dtype.kind == "f" else _folded(s, np.true_divide, inputs)


def _sub(s: _Simplifier, inputs: Tuple[Value, ...], attrs: Mapping[str, Any]) -> Optional[Value]:
    zeros = s.constant_of(inputs[1])
    if zeros is not None and not zeros.any() and not np.signbit(zeros).any():
        return inputs[0]
    return _folded(s, np.subtract, inputs)


def _add(s: _Simplifier, inputs: Tuple[Value, ...], attrs: Mapping[str, Any]) -> Optional[Value]:
    return _folded(s, np.add, inputs)


def _is_ones(s: _Simplifier, value: Value) -> bool:
    array = s.constant_of(value)
    return array is not None and bool((array == 1).all())


def _folded(s: _Simplifier, ufunc: Callable[..., Any], inputs: Tuple[Value, ...]) -> Optional[Value]:
    """The result for operands that are all constants without dimensions."""
    nodes = [s.made_by(v, "constant") for v in inputs]
    arrays = [node.attrs["value"] for node in nodes if node is not None]
    if len(arrays) < len(inputs) or any(array.ndim for array in arrays):
        return None
    with np.errstate(all="ignore"):
        return s.apply(OPS["constant"], value=np.asarray(ufunc(*arrays)))


#: By op: what an application of it can be replaced with, or None.
RULES: Dict[str, Rule] = {
    "add": _add, "broadcast_to": _broadcast_to, "cast": _cast, "div": _div, "matmul": _matmul, "mul": _mul, "neg": _neg,
    "reshape": _reshape, "scatter_slice": _scatter_slice, "sub": _sub, "sum_to": _sum_to, "transpose": _transpose}

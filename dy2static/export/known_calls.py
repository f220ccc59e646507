"""Constant folding of a graph that leaves Python: what does not depend on its inputs, such as a mask that a function makes."""
from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any, Collection, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ..ir.building import Builder
from ..ir.dims import Size
from ..ir.graph import Graph, Node, Value
from ..ir.interpret import Run, interpret_node
from ..ir.op import OPS
from ..ir.size_needed import SizeNeeded
from ..ir.types import Tensor
from ..library_facts.by_name import known_as
from ..lowering.numpy.legalize import CALLS
from ..lowering.numpy.table import fixed_array
from ..runtime.host_calls import fill

#: Larger arrays stay nodes.
_MOST_BYTES = 1 << 20
#: Ops that are folded, and those of them that stay: they say in a few numbers what a constant would write out.
_FOLDED = frozenset({"elementwise", "reduction", "view", "movement", "creation", "contraction"})
_SHORT = frozenset({"constant", "full", "broadcast_to"})
#: Functions that give the array they are given, perhaps in other memory: nothing outside of Python sees the difference.
_SAME = known_as("same")


def with_known_calls(graph: Graph, known: Optional[Mapping[Value, Any]] = None) -> Graph:
    """The graph with constants for the results of ops, and of calls of NumPy, whose operands are known, in regions too.

    known: what inputs of a region hold.
    """
    values: Dict[Value, Any] = dict(known or {})
    sizes: Dict[Value, Size] = {}
    nodes: List[Node] = []
    for node in graph.nodes:
        made = _results(node, values)
        if made is not None:
            values.update(zip(node.outputs, made))
            nodes += [node] if node.op.name in _SHORT else map(_constant, [node] * len(made), node.outputs, made)
        elif node.op.name in ("if_", "while_"):
            nodes.append(replace(node, regions=tuple([_region(node, region, values) for region in node.regions])))
        else:
            nodes.append(_part(_identity(node), sizes))
        if node.op.name == "dimension":
            sizes[node.outputs[0]] = node.attrs["size"]
    return graph.with_(nodes=tuple(nodes))


def _region(node: Node, region: Graph, values: Mapping[Value, Any]) -> Graph:
    """A region, which knows what the node is given but for what a loop carries."""
    skipped = 1 if node.op.name == "if_" else 0
    carried = node.attrs.get("carried", 0)
    pairs = list(zip(region.inputs, node.inputs[skipped:]))[carried:]
    return with_known_calls(region, {inner: values[outer] for inner, outer in pairs if outer in values})


def _results(node: Node, values: Mapping[Value, Any]) -> Optional[Tuple[np.ndarray, ...]]:
    """The arrays that a node gives, if they are known."""
    types = [v.type for v in node.outputs]
    is_call = node.op.name in CALLS
    is_folded = is_call or node.op.kind in _FOLDED and not node.op.effect
    is_fixed = all(isinstance(t, Tensor) and all(isinstance(n, int) for n in t.shape) for t in types)
    if not types or not is_folded or not is_fixed or not all(v in values for v in node.inputs) or \
            sum(v.nbytes for v in node.outputs) > _MOST_BYTES:
        return None
    operands = [np.array(values[v]) for v in node.inputs]
    try:
        made = _called(node.attrs["call"], operands) if is_call else interpret_node(node, operands, Run({}))
    except (ArithmeticError, LookupError, TypeError, ValueError):       # so does each run
        return None
    arrays = None if made is None else tuple(map(np.asarray, made))
    return arrays if arrays is not None and [(x.shape, x.dtype) for x in arrays] == [(t.shape, t.dtype) for t in types] else None


def _called(call: Any, operands: Sequence[np.ndarray]) -> Optional[Sequence[Any]]:
    """What a call of NumPy gives; None for functions that may look at something else than their operands."""
    if operands:
        return call(*operands)                          # type: ignore[no-any-return]
    if _is_of_numpy(call.function, known_as("saved")):
        return call()                                   # type: ignore[no-any-return]
    value = fixed_array(call)
    return None if value is None else [value]


def _identity(node: Node) -> Node:
    """A call that gives the array that it is given as the op that does."""
    call = node.attrs.get("call") if node.op.name in CALLS else None
    has_types = [v.type for v in node.inputs] == [v.type for v in node.outputs]
    is_same = has_types and _is_of_numpy(getattr(call, "function", None), _SAME)
    return replace(node, op=OPS["identity"], attrs={}) if is_same else node


def _part(node: Node, sizes: Mapping[Value, Size]) -> Node:
    """A part of an array between ends that are sizes, such as the rows of a table up to a length, as the op that takes it."""
    call = node.attrs.get("call") if node.op.name in CALLS else None
    if getattr(call, "function", None) is not operator.getitem or not all(v in sizes for v in node.inputs[1:]):
        return node
    x, (value,), op = node.inputs[0], node.outputs, OPS["getitem"]
    try:
        index = op.canonical(x.type, index=fill(call.args, [x, *[sizes[v] for v in node.inputs[1:]]])[1])["index"]
        is_same = op.infer(x.type, index=index) == value.type
    except (SizeNeeded, AttributeError, LookupError, TypeError, ValueError):    # another kind of index
        return node
    return replace(node, op=op, inputs=(x,), attrs={"index": index}) if is_same else node


def _is_of_numpy(function: Any, names: Collection[str]) -> bool:
    name = getattr(function, "__name__", "")
    return name in names and getattr(np, name, None) is function


def _constant(node: Node, output: Value, value: np.ndarray) -> Node:
    builder = Builder("known")
    builder.loc = node.loc
    builder.add(OPS["constant"], (), {"value": value})
    made, = builder.nodes
    return replace(made, outputs=(output,))
